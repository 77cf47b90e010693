// SPDX-License-Identifier: Apache-2.0
// An image has a digest, any number of names, and says something about the commands in it.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { refused } from '../lib/expect.mjs';
import { namesIn } from '../lib/host.mjs';
import { skeletonTar } from '../lib/tar.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon({ images: false, flags: { image: 'plain', 'images.map': 'cloudflare/sandbox*=plain other=nowhere' } }); });
after(() => daemon?.stop());

const escaped = name => name.split('/').join('%2F');
const put = (name, bytes, config) => daemon.api('PUT', `/v1/images/${escaped(name)}?kind=host${config ? `&config=${encodeURIComponent(JSON.stringify(config))}` : ''}`, bytes, { headers: { 'content-type': 'application/x-tar' } });
const get = name => daemon.api('GET', `/v1/images/${escaped(name)}`);
const tag = (name, other) => daemon.api('POST', `/v1/images/${escaped(name)}/tag?name=${encodeURIComponent(other)}`);
const remove = name => daemon.api('DELETE', `/v1/images/${escaped(name)}`);
const names = async (query = '') => (await daemon.api('GET', `/v1/images${query}`)).body.images.map(i => i.name);
const marked = text => skeletonTar({ mark: { name: 'opt/mark', data: text } });
const directories = () => namesIn(path.join(daemon.state, 'images')).filter(name => /^[0-9a-f]{64}$/.test(name));

function cleanUp(t, ...list) {
	t.after(async () => {
		for (const name of list)
			await remove(name);
	});
}

const box = (t, options) => daemon.box(t, options);

test('an image has several names, each in one spelling', async t => {
	cleanUp(t, 'one', 'team/app:1.2', 'localhost:5000/x/y');
	const { digest } = (await put('one', marked('a'))).body;
	assert.equal((await tag('one', 'docker.io/team/app:1.2')).body.name, 'team/app:1.2');
	assert.equal((await tag('one:latest', 'localhost:5000/x/y:latest')).status, 201);
	assert.deepEqual((await names()).sort(), ['localhost:5000/x/y', 'one', 'team/app:1.2']);
	for (const name of ['one', 'library/one', 'docker.io/library/one:latest', 'team/app:1.2', 'localhost:5000/x/y', digest, digest.slice(0, 19), digest.slice(7), digest.slice(7, 19)])
		assert.equal((await get(name)).body.digest, digest, name);
	for (const name of ['two', 'team/app', 'team/app:1.3', digest.slice(7, 18), 'sha256:00000000000000', `${digest}0`])
		refused(await get(name), 404, 'IMAGE_NOT_FOUND');
	const made = await box(t, { image: 'team/app:1.2' });
	assert.equal(await made.out('cat /opt/mark'), 'a');
	await made.destroy();
});

test('an image goes with its last name, and its files with it', async t => {
	cleanUp(t, 'last', 'other');
	const { digest } = (await put('last', marked('last'))).body;
	await tag('last', 'other');
	assert.deepEqual((await remove('last')).body, { name: 'last', deleted: true });
	assert.equal((await get(digest)).body.name, 'other');
	assert.ok(directories().includes(digest.slice(7)), 30_000);
	assert.deepEqual((await remove('other')).body, { name: 'other', deleted: true });
	refused(await get(digest), 404, 'IMAGE_NOT_FOUND');
	await until('its files are gone', () => !directories().includes(digest.slice(7)));
});

test('the last name of an image stays while a sandbox uses it, others may go', async t => {
	cleanUp(t, 'used', 'also');
	await put('used', marked('used'));
	await tag('used', 'also');
	const made = await daemon.box(t, { image: 'used' });
	assert.equal((await remove('used')).body.deleted, true);
	refused(await remove('also'), 409, 'RESOURCE_BUSY');
	await made.destroy();
	assert.equal((await remove('also')).body.deleted, true);
});

test('a name moves to another image, and the old one goes', async t => {
	cleanUp(t, 'moves', 'kept');
	const before = (await put('moves', marked('1'))).body.digest;
	const kept = (await put('kept', marked('2'))).body.digest;
	await tag('kept', 'moves');
	assert.equal((await get('moves')).body.digest, kept);
	refused(await get(before), 404, 'IMAGE_NOT_FOUND');
	await until('its files are gone', () => !directories().includes(before.slice(7)));
});

test('variables, directory and user of an image are those of its commands', async t => {
	cleanUp(t, 'says');
	const passwd = 'root:x:0:0:root:/root:/bin/bash\nworker:x:1000:1000::/home/worker:/bin/bash\n';
	const answer = await put('says', skeletonTar({ 'etc/passwd': { name: 'etc/passwd', data: passwd }, app: { name: 'app', type: 'dir', mode: 0o777 } }), { Env: ['A=image', 'B=image', 'C=image', 'PATH=/opt/bin:/usr/bin:/bin'], WorkingDir: '/app', Labels: { z: '1', a: '2' }, Unknown: 5 });
	assert.equal(answer.status, 201, answer.raw.toString());
	assert.deepEqual(answer.body.config, { Env: ['A=image', 'B=image', 'C=image', 'PATH=/opt/bin:/usr/bin:/bin'], Labels: { a: '2', z: '1' }, WorkingDir: '/app' });
	const made = await box(t, { image: 'says', env: { B: 'sandbox', C: 'sandbox' } });
	const print = 'echo $A $B $C $PATH $PWD $HOME';
	assert.equal(await made.out(print), 'image sandbox sandbox /opt/bin:/usr/bin:/bin /app /root\n');
	const plain = await made.run(print, { sessionId: '__DISABLE_SESSION__', env: { C: 'command' } });
	assert.equal(plain.stdout, 'image sandbox command /opt/bin:/usr/bin:/bin /app /root\n');
	await made.destroy();
});

test('one set of files may be several images that say different things', async t => {
	cleanUp(t, 'files', 'first', 'second', 'same');
	const files = (await put('files', marked('same'))).body;
	const first = (await put('first', marked('same'), { Env: ['WHO=first'] })).body;
	const second = (await put('second', marked('same'), { Env: ['WHO=second'] })).body;
	const same = (await put('same', marked('same'), { Env: ['WHO=first'] })).body;
	assert.equal(new Set([files.digest, first.digest, second.digest]).size, 3);
	assert.equal(same.digest, first.digest);
	assert.equal(first.parent, files.digest);
	assert.equal(directories().filter(name => name === files.digest.slice(7)).length, 1);
	for (const name of ['first', 'second']) {
		const made = await box(t, { image: name });
		assert.equal(await made.out('echo $WHO; cat /opt/mark'), `${name}\nsame`);
		await made.destroy();
	}
	assert.equal((await remove('files')).body.deleted, true);
	assert.ok((await names('?all=1')).includes(null), 'the files are needed');
	const made = await box(t, { image: 'second' });
	assert.equal(await made.out('cat /opt/mark'), 'same');
	await made.destroy();
	for (const name of ['first', 'second', 'same'])
		await remove(name);
	assert.ok(!(await names('?all=1')).includes(null));
	await until('the files are gone', () => !directories().includes(files.digest.slice(7)));
});

test('names that do not exist here are mapped by the setting', async t => {
	cleanUp(t, 'plain');
	refused(await get('cloudflare/sandbox:0.12.10'), 404, 'IMAGE_NOT_FOUND');
	await put('plain', marked('plain'));
	for (const name of ['docker.io/cloudflare/sandbox:0.12.10', 'cloudflare/sandbox:0.1-python', 'cloudflare/sandbox-python', 'cloudflare/sandbox'])
		assert.equal((await get(name)).body.name, 'plain', name);
	refused(await get('other'), 404, 'IMAGE_NOT_FOUND');
	refused(await get('cloudflare/sand'), 404, 'IMAGE_NOT_FOUND');
	const made = await box(t, { image: 'cloudflare/sandbox:9' });
	assert.equal((await daemon.api('GET', `/v1/sandboxes/${made.id}`)).body.image.name, 'plain');
	await made.destroy();
});

test('bad names and configurations are refused', async () => {
	const before = await names();
	for (const name of ['Upper', 'a//b', 'a/', '/a', 'a:b:c', '..', 'a%2F..%2Fb', '%zz', 'a@sha256:1', 'x'.repeat(300)])
		refused(await daemon.api('PUT', `/v1/images/${name.replaceAll('/', '%2F')}?kind=host`, skeletonTar(), { headers: { 'content-type': 'application/x-tar' } }), 400, 'VALIDATION_FAILED');
	for (const config of [[], 5, { Env: 'A=1' }, { Env: ['A'] }, { Env: [5] }, { Cmd: {} , Entrypoint: 'x' }, { WorkingDir: 'relative' }, { Labels: { a: 1 } }, { User: 5 }])
		refused(await put('bad', skeletonTar(), config), 400, 'VALIDATION_FAILED');
	assert.deepEqual(await names(), before);
});

test('names, configurations and children are the same after a restart', async t => {
	cleanUp(t, 'stays', 'child', 'a/b:c');
	await put('stays', marked('stays'), { Labels: { 'silt.control': 'builtin' }, Env: ['A=1'] });
	await put('child', marked('stays'), { Env: ['A=2'] });
	await tag('stays', 'a/b:c');
	const before = (await daemon.api('GET', '/v1/images?all=1')).body;
	const pid = daemon.siltd();
	process.kill(pid, 'SIGKILL');
	await until('another siltd', () => daemon.programs('siltd').some(other => other !== pid));
	await daemon.healthy();
	const byName = body => body.images.sort((a, b) => (a.name < b.name ? -1 : 1));
	assert.deepEqual(byName((await daemon.api('GET', '/v1/images?all=1')).body), byName(before));
	const made = await box(t, { image: 'child' });
	assert.equal(await made.out('echo $A'), '2\n');
	await made.destroy();
});
