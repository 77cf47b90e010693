// SPDX-License-Identifier: Apache-2.0
// Which images a Python is kept warm in: those that the machine's root has vouched for, and no others.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { BUILD, startDaemon } from '../lib/daemon.mjs';
import { skeletonTar } from '../lib/tar.mjs';
import { until } from '../lib/wait.mjs';

let daemon, directory;
before(async () => {
	daemon = await startDaemon({ images: false, flags: { 'interpreter.zygotes': 2, 'pool.sandboxes': 0 } });
	directory = path.join(daemon.state, 'images');
});
after(() => daemon?.stop());

const put = async (name, bytes) => (await daemon.api('PUT', `/v1/images/${name}?kind=host`, bytes, { headers: { 'content-type': 'application/x-tar' } })).body.digest.replace('sha256:', '');
const started = () => daemon.log().match(/zygote\.(warm|lost)|zygote_parent\.start/g)?.length ?? 0;
const tree = digest => path.join(directory, digest);
const mark = digest => `${tree(digest)}.trusted`;
const inode = name => fs.statSync(name).ino;
const others = () => fs.readdirSync(directory).filter(name => /^\.(root|trusted|staging)/.test(name));

/** As root does it, with a tar of its own. */
function trust(bytes) {
	const file = path.join(daemon.home, 'image.tar');
	fs.writeFileSync(file, bytes);
	return spawnSync(path.join(BUILD, 'silt-trust'), ['--config=', `--images=${directory}`, file], { encoding: 'utf8' });
}

test('an imported image is not trusted, and gets no warm Python', async t => {
	const digest = await put('strange', skeletonTar());
	t.after(() => daemon.api('DELETE', '/v1/images/strange'));
	const box = await daemon.box(t, { image: 'strange' });
	const answer = await box.api('POST', '/api/contexts', {}, { deadline: 60_000 }); // this machine may have no IPython
	assert.ok([200, 500, 501].includes(answer.status), JSON.stringify(answer.body));
	assert.equal(fs.existsSync(path.join(directory, `${digest}.trusted`)), false);
	assert.equal(started(), 0);
});

test('what root vouches for is warmed at once, imported without changing it, and forgotten with the image', async () => {
	const bytes = skeletonTar({ mine: { name: 'mine', data: 'x' } });
	const before = started();
	const done = trust(bytes);
	assert.equal(done.status, 0, done.stderr);
	const digest = createHash('sha256').update(bytes).digest('hex');
	assert.equal(fs.readFileSync(mark(digest), 'utf8'), `${inode(tree(digest))}\n`);
	await until('a Python of this image was started', () => started() > before, 120_000);
	const was = inode(tree(digest));
	assert.equal(await put('mine', bytes), digest);
	assert.equal(inode(tree(digest)), was, "root's own tree stays");
	assert.equal(trust(bytes).status, 0, 'a second time');
	assert.equal(inode(tree(digest)), was, 'which does nothing');
	assert.equal((await daemon.api('DELETE', '/v1/images/mine')).status, 200);
	await until('the mark is gone', () => !fs.existsSync(mark(digest)));
	assert.equal(await put('mine', bytes), digest);
	assert.equal(fs.existsSync(mark(digest)), false, 'imported again, it is a stranger');
	assert.deepEqual(others(), []);
});

test("what the daemon has unpacked is replaced by root's own tree, and stays for whom it serves", async t => {
	const bytes = skeletonTar({ a: { name: 'a', data: 'x' } });
	const digest = await put('theirs', bytes);
	const box = await daemon.box(t, { image: 'theirs' });
	assert.equal((await box.exec('cat /a')).body.stdout, 'x');
	const theirs = inode(tree(digest));
	fs.writeFileSync(path.join(tree(digest), 'a'), 'evil');
	const held = fs.openSync(path.join(tree(digest), 'a'), 'r+'); // as somebody who could write to it still
	const done = trust(bytes);
	assert.equal(done.status, 0, done.stderr);
	assert.notEqual(inode(tree(digest)), theirs);
	fs.writeSync(held, 'evil again', 0);
	fs.closeSync(held);
	assert.equal(fs.readFileSync(path.join(tree(digest), 'a'), 'utf8'), 'x');
	assert.equal(fs.readFileSync(mark(digest), 'utf8'), `${inode(tree(digest))}\n`);
	assert.equal((await box.exec('ls /usr/bin/env')).body.exitCode, 0, 'whoever runs on the former tree goes on');
	assert.equal(fs.readdirSync(directory).filter(name => name.startsWith('.replaced-')).length, 1);
});

test('a tar that cannot be unpacked is not vouched for', () => {
	const good = skeletonTar({ half: { name: 'half', data: 'x'.repeat(100_000) } });
	for (const bytes of [Buffer.from('no tar'), good.subarray(0, good.length / 2)]) {
		const done = trust(bytes);
		assert.notEqual(done.status, 0);
		assert.equal(fs.existsSync(mark(createHash('sha256').update(bytes).digest('hex'))), false);
	}
	assert.deepEqual(others(), []);
	assert.match(spawnSync(path.join(BUILD, 'silt-trust'), ['/nonexistent.tar'], { encoding: 'utf8' }).stderr, /nonexistent/);
});
