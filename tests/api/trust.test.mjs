// SPDX-License-Identifier: Apache-2.0
// Which images a Python is kept warm in: those that the machine's root has vouched for, and no others.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { skeletonTar } from '../lib/tar.mjs';
import { until } from '../lib/wait.mjs';

let daemon, folder;
before(async () => {
	daemon = await startDaemon({ images: false, flags: { 'interpreter.zygotes': 2, 'pool.sandboxes': 0 } });
	folder = path.join(daemon.state, 'images');
});
after(() => daemon?.stop());

const TRUST = path.join(import.meta.dirname, '../../images/trust');
const put = async (name, bytes) => (await daemon.api('PUT', `/v1/images/${name}?kind=host`, bytes, { headers: { 'content-type': 'application/x-tar' } })).body.digest.replace('sha256:', '');
const started = () => daemon.log().match(/zygote\.(warm|lost)|nursery\.start/g)?.length ?? 0;

/** As root does it, with the tar that was imported. */
function trust(bytes, env = process.env) {
	const file = path.join(daemon.home, 'image.tar');
	fs.writeFileSync(file, bytes);
	return spawnSync(TRUST, [folder, file], { encoding: 'utf8', env });
}

/** A tar in front of the real one: does something when it is to compare. */
function withTar(script) {
	const bin = fs.mkdtempSync(path.join(daemon.home, 'bin-'));
	const real = spawnSync('sh', ['-c', 'command -v tar'], { encoding: 'utf8' }).stdout.trim();
	fs.writeFileSync(path.join(bin, 'tar'), `#!/bin/sh\nif [ "$1" = --compare ]; then\n${script}\nfi\nexec ${real} "$@"\n`, { mode: 0o755 });
	return { ...process.env, PATH: `${bin}:${process.env.PATH}` };
}

test('an imported image is not trusted, and gets no warm Python', async t => {
	const digest = await put('strange', skeletonTar());
	t.after(() => daemon.api('DELETE', '/v1/images/strange'));
	const box = await daemon.box(t, { image: 'strange' });
	const answer = await box.api('POST', '/api/contexts', {}, { deadline: 60_000 }); // this machine may have no IPython
	assert.ok([200, 500, 501].includes(answer.status), JSON.stringify(answer.body));
	assert.equal(fs.existsSync(path.join(folder, `${digest}.trusted`)), false);
	assert.equal(started(), 0);
});

test('what root vouches for is warmed at once, and forgotten with the image', async () => {
	const bytes = skeletonTar({ mine: { name: 'mine', data: 'x' } });
	const digest = await put('mine', bytes);
	const before = started();
	const done = trust(bytes);
	assert.equal(done.status, 0, done.stderr);
	assert.equal(fs.readFileSync(path.join(folder, `${digest}.trusted`), 'utf8'), `${fs.statSync(path.join(folder, digest)).ino}\n`);
	await until('a Python of this image was started', () => started() > before, 120_000);
	assert.equal(trust(bytes).status, 0, 'a second time');
	assert.equal((await daemon.api('DELETE', '/v1/images/mine')).status, 200);
	await until('the mark is gone', () => !fs.existsSync(path.join(folder, `${digest}.trusted`)));
	assert.equal(await put('mine', bytes), digest);
	assert.equal(fs.existsSync(path.join(folder, `${digest}.trusted`)), false, 'imported again, it is a stranger');
});

test('a tree that is not what root has packed is not vouched for', async () => {
	const plain = { a: { name: 'a', data: 'x' } };
	const change = {
		'a file is another': tree => fs.writeFileSync(path.join(tree, 'a'), 'y'),
		'a file was added': tree => fs.writeFileSync(path.join(tree, 'b'), 'y'),
		'a file is gone': tree => fs.rmSync(path.join(tree, 'a')),
		'a file may be executed': tree => fs.chmodSync(path.join(tree, 'a'), 0o4755),
		'a file is a link': tree => { fs.rmSync(path.join(tree, 'a')); fs.symlinkSync('/etc/passwd', path.join(tree, 'a')); },
	};
	let number = 0;
	for (const [what, damage] of Object.entries(change)) {
		const bytes = skeletonTar({ ...plain, number: { name: `number-${++number}`, data: 'x' } });
		const digest = await put(`image-${number}`, bytes);
		damage(path.join(folder, digest));
		assert.notEqual(trust(bytes).status, 0, what);
		assert.equal(fs.existsSync(path.join(folder, `${digest}.trusted`)), false, what);
	}
	const never = trust(skeletonTar({ never: { name: 'never', data: 'x' } }));
	assert.match(never.stderr, /was not imported/);
	assert.deepEqual(fs.readdirSync(folder).filter(name => name.startsWith('.trusted')), []);
});

test('a tree that is exchanged while it is compared is not vouched for', async () => {
	const bytes = skeletonTar({ a: { name: 'a', data: 'x' }, swapped: { name: 'swapped', data: 'x' } });
	const digest = await put('swapped', bytes);
	const tree = path.join(folder, digest);
	const good = path.join(daemon.home, 'good');
	assert.equal(spawnSync('cp', ['-a', tree, good]).status, 0);
	fs.writeFileSync(path.join(tree, 'a'), 'evil');
	const done = trust(bytes, withTar(`mv ${tree} ${tree}.evil; mv ${good} ${tree}`));
	assert.notEqual(done.status, 0, 'the one that was there first would have been trusted');
	assert.match(done.stderr, /is not what is in/);
	assert.equal(fs.existsSync(`${tree}.trusted`), false);
	fs.rmSync(`${tree}.evil`, { recursive: true });
});

test('a comparison that broke off is none', async () => {
	const bytes = skeletonTar({ broken: { name: 'broken', data: 'x' } });
	const digest = await put('broken', bytes);
	const done = trust(bytes, withTar('kill -9 $$'));
	assert.notEqual(done.status, 0);
	assert.equal(fs.existsSync(path.join(folder, `${digest}.trusted`)), false);
});
