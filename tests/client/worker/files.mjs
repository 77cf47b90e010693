// SPDX-License-Identifier: Apache-2.0
// Files and watches.

import assert from 'node:assert/strict';
import { collectFile, parseSSEStream, streamFile } from '@cloudflare/sandbox';
import { bytes, rejects, within } from './lib.mjs';

const noise = size => Uint8Array.from({ length: size }, (_, i) => (i * 7919) >> 3);

export async function writeFile(sandbox) {
	const written = await sandbox.writeFile('/workspace/a/b/text.txt', 'grüße\n');
	assert.deepEqual([written.success, written.path], [true, '/workspace/a/b/text.txt']);
	await sandbox.writeFile('/workspace/bytes.bin', btoa(String.fromCharCode(...noise(300))), { encoding: 'base64' });
	assert.equal((await sandbox.exec('stat -c %s /workspace/bytes.bin')).stdout, '300\n');
	await rejects(sandbox.writeFile('/workspace/x', 'not base64!', { encoding: 'base64' }), 'VALIDATION_FAILED');
}

export async function readFile(sandbox) {
	await sandbox.writeFile('/workspace/text.txt', 'grüße\n');
	const read = await sandbox.readFile('/workspace/text.txt');
	assert.deepEqual([read.content, read.encoding, read.isBinary, read.size], ['grüße\n', 'utf-8', false, 8]);
	assert.equal((await sandbox.readFile('text.txt', { encoding: 'base64' })).content, 'Z3LDvMOfZQo=');
	await rejects(sandbox.readFile('/workspace/none'), 'FILE_NOT_FOUND');
}

export async function readFileRaw(sandbox, { transport }) {
	await sandbox.exec('head -c 200000 /dev/zero > /workspace/zeros.bin');
	if (transport !== 'rpc')
		return assert.rejects(async () => sandbox.readFile('/workspace/zeros.bin', { encoding: 'none' }));
	const { content, size } = await sandbox.readFile('/workspace/zeros.bin', { encoding: 'none' });
	assert.deepEqual([size, (await bytes(content)).length], [200_000, 200_000]);
}

export async function writeFileStream(sandbox, { transport }) {
	const content = noise(500_000);
	if (transport !== 'rpc')
		return assert.rejects(async () => sandbox.writeFile('/workspace/stream.bin', new Blob([content]).stream()));
	const written = await sandbox.writeFile('/workspace/stream.bin', new Blob([content]).stream());
	assert.equal(written.bytesWritten, content.length);
	const sum = [...new Uint8Array(await crypto.subtle.digest('SHA-256', content))].map(b => b.toString(16).padStart(2, '0')).join('');
	assert.equal((await sandbox.exec('sha256sum < /workspace/stream.bin')).stdout.slice(0, 64), sum);
}

export async function readFileStream(sandbox) {
	await sandbox.exec('seq 1 50000 > /workspace/numbers.txt; head -c 150000 /dev/urandom > /workspace/noise.bin');
	const { content, metadata } = await collectFile(await sandbox.readFileStream('/workspace/numbers.txt'));
	assert.ok(content.endsWith('\n50000\n'));
	assert.equal(metadata.size, content.length);
	let size = 0;
	for await (const chunk of streamFile(await sandbox.readFileStream('/workspace/noise.bin')))
		size += chunk.length;
	assert.equal(size, 150_000);
	await assert.rejects(async () => collectFile(await sandbox.readFileStream('/workspace/none')));
}

export async function mkdirAndList(sandbox) {
	await sandbox.mkdir('/workspace/d/e', { recursive: true });
	await sandbox.writeFile('/workspace/d/file', 'x');
	await sandbox.writeFile('/workspace/d/.hidden', 'x');
	const names = async options => (await sandbox.listFiles('/workspace/d', options)).files.map(f => f.name).sort();
	assert.deepEqual(await names(), ['e', 'file']);
	assert.deepEqual(await names({ includeHidden: true }), ['.hidden', 'e', 'file']);
	await sandbox.writeFile('/workspace/d/e/deep', 'x');
	const { files } = await sandbox.listFiles('/workspace/d', { recursive: true });
	assert.equal(files.find(f => f.name === 'deep').relativePath, 'e/deep');
	assert.deepEqual(Object.keys(files[0].permissions).sort(), ['executable', 'readable', 'writable']);
	await assert.rejects(sandbox.mkdir('/workspace/no/such/parent'));
	await rejects(sandbox.listFiles('/workspace/none'), 'FILE_NOT_FOUND');
}

export async function moveRenameDelete(sandbox) {
	await sandbox.writeFile('/workspace/one', '1');
	await sandbox.renameFile('/workspace/one', '/workspace/two');
	await sandbox.mkdir('/workspace/d');
	const moved = await sandbox.moveFile('/workspace/two', '/workspace/d/three');
	assert.equal(moved.newPath, '/workspace/d/three');
	assert.equal((await sandbox.exists('/workspace/d/three')).exists, true);
	await sandbox.deleteFile('/workspace/d/three');
	assert.equal((await sandbox.exists('/workspace/d/three')).exists, false);
	await rejects(sandbox.deleteFile('/workspace/none'), 'FILE_NOT_FOUND');
	await assert.rejects(sandbox.deleteFile('/workspace/d'), /directories/i);
	await rejects(sandbox.moveFile('/workspace/none', '/workspace/x'), 'FILE_NOT_FOUND');
}

export async function watch(sandbox) {
	const stream = await sandbox.watch('/workspace');
	const seen = (async () => {
		for await (const event of parseSSEStream(stream)) {
			if (event.type === 'watching')
				await sandbox.writeFile('/workspace/new.txt', 'x');
			if (event.type === 'event' && event.path.endsWith('new.txt'))
				return event.eventType;
		}
	})();
	assert.ok(['create', 'modify'].includes(await within('the event', seen)));
	await assert.rejects(sandbox.watch('/workspace/none'));
}

export async function checkChanges(sandbox) {
	const first = await sandbox.checkChanges('/workspace');
	assert.deepEqual([first.success, first.status], [true, 'unchanged']);
	await sandbox.writeFile('/workspace/changed', 'x');
	let version = first.version;
	for (let tries = 0; tries < 200; tries++) {
		const { status, version: next } = await sandbox.checkChanges('/workspace', { since: version });
		if (status === 'changed')
			return;
		version = next;
		await scheduler.wait(50);
	}
	assert.fail('no change was seen');
}
