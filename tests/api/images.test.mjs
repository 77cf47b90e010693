// SPDX-License-Identifier: Apache-2.0
// Importing images: what strangers pack stays inside, what sandboxes write stays theirs.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { envelope, refused, TIME } from '../lib/expect.mjs';
import { filesBelow, namesIn } from '../lib/host.mjs';
import { skeletonTar, tar } from '../lib/tar.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon({ images: false, flags: { image: 'plain' } }); });
after(() => daemon?.stop());

const put = (name, bytes) => daemon.api('PUT', `/v1/images/${name}`, bytes, { headers: { 'content-type': 'application/x-tar' } });
const list = async () => (await daemon.api('GET', '/v1/images')).body.images;

/** Removes the image when the test is over; its sandboxes go first. */
function cleanUp(t, ...names) {
	t.after(async () => {
		for (const name of names)
			await daemon.api('DELETE', `/v1/images/${name}`);
	});
}

test('an import answers 201 with name, digest, size and kind', async t => {
	cleanUp(t, 'plain');
	const { status, body } = await put('plain?kind=host', skeletonTar());
	assert.equal(status, 201);
	assert.equal(body.name, 'plain');
	assert.match(body.digest, /^(sha256:)?[0-9a-f]{64}$/);
	assert.ok(Number.isInteger(body.sizeBytes) && body.sizeBytes >= 0);
	assert.match(body.createdAt, TIME);
	assert.equal(body.kind, 'host');
	assert.deepEqual(await list(), [body]);
});

test('equal tars are one image, other tars another', async t => {
	cleanUp(t, 'one', 'two', 'three');
	const digest = async (name, bytes) => (await put(`${name}?kind=host`, bytes)).body.digest;
	const first = await digest('one', skeletonTar());
	assert.equal(await digest('two', skeletonTar()), first);
	assert.notEqual(await digest('three', skeletonTar({ extra: { name: 'extra', data: 'x' } })), first);
});

test('an image is removed once, and no longer usable then', async () => {
	await put('short?kind=host', skeletonTar());
	assert.deepEqual((await daemon.api('DELETE', '/v1/images/short')).body, { name: 'short', deleted: true });
	assert.deepEqual((await daemon.api('DELETE', '/v1/images/short')).body, { name: 'short', deleted: false });
	refused(await daemon.api('POST', '/v1/sandboxes', { image: 'short' }), 404, 'IMAGE_NOT_FOUND');
});

test('what a sandbox does to its image stays in the sandbox', async t => {
	cleanUp(t, 'shared');
	await put('shared?kind=host', skeletonTar({ 'opt/file': { name: 'opt/file', data: 'original\n', mode: 0o666 } }));
	const vandal = await daemon.box(t, { image: 'shared' });
	await vandal.run('echo changed > /opt/file; ln /opt/file /opt/link; mv /opt/file /opt/moved; rm -rf /etc /home /srv; echo x > /usr/bin/true; rm -rf /usr/bin; chmod 000 /opt; touch /new');
	const other = await daemon.box(t, { image: 'shared' });
	assert.equal(await other.out('cat /opt/file; ls /opt; ls -d /etc /home /srv; ls /new 2>/dev/null; true'), 'original\nfile\n/etc\n/home\n/srv\n');
	await other.out('/usr/bin/true');
	await vandal.destroy();
	await other.destroy();
});

test('a sandbox keeps the image it was made from', async t => {
	cleanUp(t, 'moving');
	await put('moving?kind=host', skeletonTar({ 'opt/version': { name: 'opt/version', data: '1\n' } }));
	const old = await daemon.box(t, { image: 'moving' });
	await put('moving?kind=host', skeletonTar({ 'opt/version': { name: 'opt/version', data: '2\n' } }));
	const young = await daemon.box(t, { image: 'moving' });
	assert.equal(await old.out('cat /opt/version'), '1\n');
	assert.equal(await young.out('cat /opt/version'), '2\n');
	await old.destroy();
	await young.destroy();
});

const LINK = { name: 'opt/out', type: 'symlink', target: '/tmp' };
const HOSTILE = {
	'a name with ..': [{ name: '../../escaped', data: 'x' }],
	'a name with .. in the middle': [{ name: 'opt/../../../escaped', data: 'x' }],
	'an absolute name': [{ name: '/escaped', data: 'x' }],
	'a file through a symlink': [LINK, { name: 'opt/out/escaped', data: 'x' }],
	'a directory through a symlink': [LINK, { name: 'opt/out/escaped/deep', type: 'dir' }],
	'a hard link to the host': [{ name: 'opt/hard', type: 'hardlink', target: '/etc/passwd' }],
	'a hard link with ..': [{ name: 'opt/hard', type: 'hardlink', target: '../../../../etc/passwd' }],
	'a hard link through a symlink': [{ name: 'opt/out', type: 'symlink', target: '/etc' }, { name: 'opt/hard', type: 'hardlink', target: 'opt/out/passwd' }],
	'a symlink replaced by a directory with files': [LINK, { name: 'opt/out', type: 'dir' }, { name: 'opt/out/escaped', data: 'x' }],
	'a name of only dots': [{ name: '..', type: 'dir' }],
	'a newline in a name': [{ name: 'opt/a\nb', data: 'x' }],
	'an empty name': [{ name: '', data: 'x' }],
};

for (const [name, entries] of Object.entries(HOSTILE)) {
	test(`a tar with ${name} reaches nothing outside`, async t => {
		cleanUp(t, 'hostile');
		const before = outside();
		const plain = skeletonTar();
		const answer = await put('hostile?kind=host', Buffer.concat([plain.subarray(0, plain.length - 1024), tar(entries)]));
		assert.deepEqual(outside(), before);
		if (answer.status !== 201)
			return envelope(answer);
		const box = await daemon.box(t, { image: 'hostile' });
		const hash = fs.readFileSync('/etc/passwd', 'utf8');
		assert.notEqual((await box.run('cat /opt/hard 2>/dev/null')).stdout, hash, "the host's file is not in the image");
		await box.destroy();
	});
}

/** Names that a tar could have made on the host. */
function outside() {
	return ['/', '/tmp', '/opt', daemon.home, daemon.state, path.join(daemon.state, 'images')].map(directory => namesIn(directory).filter(n => /escaped|hard/.test(n)));
}

test('a broken or cut-off import leaves no half image', async () => {
	const whole = skeletonTar({ 'opt/big': { name: 'opt/big', data: 'x'.repeat(3_000_000) } });
	const before = await list();
	for (const length of [1, 600, 100_000, whole.length - 1500]) {
		const answer = await put('half?kind=host', whole.subarray(0, length));
		assert.ok(answer.status >= 400 && answer.status < 500, `${length} bytes: ${answer.status}`);
		envelope(answer);
	}
	const raw = await daemon.client.raw();
	raw.send(`PUT /v1/images/half?kind=host HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${daemon.token}\r\nContent-Type: application/x-tar\r\nContent-Length: ${whole.length}\r\n\r\n`);
	raw.send(whole.subarray(0, 2_000_000));
	raw.socket.end();
	await raw.answer();
	assert.deepEqual(await list(), before);
	await until('no staging directory is left', () => namesIn(path.join(daemon.state, 'images')).every(name => !name.startsWith('.staging')));
});

test('an instance with the same directory of images leaves an import of this one alone', async t => {
	cleanUp(t, 'shared');
	const whole = skeletonTar({ 'opt/big': { name: 'opt/big', data: 'x'.repeat(3_000_000) } });
	const directory = path.join(daemon.state, 'images');
	const raw = await daemon.client.raw();
	raw.send(`PUT /v1/images/shared?kind=host HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${daemon.token}\r\nContent-Type: application/x-tar\r\nConnection: close\r\nContent-Length: ${whole.length}\r\n\r\n`);
	raw.send(whole.subarray(0, 2_000_000));
	await until('it is being unpacked', () => namesIn(directory).some(name => name.startsWith('.staging')));
	const other = await startDaemon({ images: false, flags: { images: directory, image: 'plain', 'pool.sandboxes': 0 } });
	try {
		assert.equal((await other.api('PUT', '/v1/images/other?kind=host', skeletonTar({ 'opt/other': { name: 'opt/other', data: 'x' } }), { headers: { 'content-type': 'application/x-tar' } })).status, 201);
		raw.send(whole.subarray(2_000_000));
		assert.equal((await raw.answer()).status, 201, raw.text);
	} finally {
		await other.stop();
	}
});

test('an image as large as a disk does not fit into memory and does not have to', async t => {
	cleanUp(t, 'large');
	const plain = skeletonTar();
	const big = tar([{ name: 'opt/big', data: Buffer.alloc(100_000_000, 'x') }]);
	const answer = await daemon.api('PUT', '/v1/images/large?kind=host', Buffer.concat([plain.subarray(0, plain.length - 1024), big]), { headers: { 'content-type': 'application/x-tar' }, deadline: 60_000 });
	assert.equal(answer.status, 201, answer.raw.toString());
	assert.ok(answer.body.sizeBytes >= 100_000_000);
});

test('files of an image belong to ids of nobody on the host', () => {
	const directory = path.join(daemon.state, 'images');
	for (const file of filesBelow(directory).slice(0, 200)) {
		const uid = fs.lstatSync(file, { throwIfNoEntry: false })?.uid ?? 0; // the trash may be emptied meanwhile
		assert.ok(uid === 0 || uid >= 65_536, `${file} belongs to ${uid}`);
	}
});
