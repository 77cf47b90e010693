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
	await sandbox.exec('printf "\\211PNG\\r\\n\\032\\n" > /workspace/p.png; printf "{}" > /workspace/o.json; truncate -s 33M /workspace/huge.txt');
	const picture = await sandbox.readFile('/workspace/p.png');
	assert.deepEqual([picture.isBinary, picture.encoding, picture.mimeType, picture.content], [true, 'base64', 'image/png', 'iVBORw0KGgo=']);
	assert.deepEqual(await sandbox.readFile('/workspace/o.json').then(f => [f.mimeType, f.isBinary]), ['application/json', false]);
	await rejects(sandbox.readFile('/workspace/huge.txt'), 'FILE_TOO_LARGE');
	await rejects(sandbox.readFile(''), 'VALIDATION_FAILED');
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
	await sandbox.exec('echo old > /workspace/stream.bin; chmod 750 /workspace/stream.bin');
	const written = await sandbox.writeFile('/workspace/stream.bin', new Blob([content]).stream());
	assert.equal(written.bytesWritten, content.length);
	const sum = [...new Uint8Array(await crypto.subtle.digest('SHA-256', content))].map(b => b.toString(16).padStart(2, '0')).join('');
	assert.equal((await sandbox.exec('sha256sum < /workspace/stream.bin')).stdout.slice(0, 64), sum);
	assert.equal((await sandbox.exec('stat -c %a /workspace/stream.bin')).stdout, '750\n');
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
	const binary = await collectFile(await sandbox.readFileStream('/workspace/noise.bin'));
	assert.deepEqual([binary.content instanceof Uint8Array, binary.metadata.isBinary], [true, true]);
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
	await sandbox.exec('chmod 640 /workspace/d/file; ln -s file /workspace/d/link');
	const listed = (await sandbox.listFiles('/workspace/d')).files;
	const { modifiedAt, ...file } = listed.find(f => f.name === 'file');
	assert.deepEqual(file, { name: 'file', absolutePath: '/workspace/d/file', relativePath: 'file', type: 'file', size: 1, mode: 'rw-r-----', permissions: { readable: true, writable: true, executable: false } });
	assert.ok(Date.parse(modifiedAt) > 0);
	assert.deepEqual(['e', 'link'].map(name => listed.find(f => f.name === name).type), ['directory', 'symlink']);
	await assert.rejects(sandbox.mkdir('/workspace/no/such/parent'));
	await rejects(sandbox.mkdir('/workspace/d'), 'FileSystemError');
	await rejects(sandbox.listFiles('/workspace/none'), 'FILE_NOT_FOUND');
	await rejects(sandbox.listFiles('/workspace/d/file'), 'FileSystemError');
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
	await assert.rejects(sandbox.deleteFile('/workspace/d'), /Cannot delete directory with deleteFile/);
	await rejects(sandbox.deleteFile('/workspace/d'), 'FileSystemError');
	assert.equal((await sandbox.exists('/workspace/d')).exists, true);
	await rejects(sandbox.renameFile('/workspace/none', '/workspace/x'), 'FILE_NOT_FOUND');
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

/** The names of files of which a watch tells, when these were written one after the other. */
async function watched(sandbox, options, names) {
	const seen = [];
	const stream = await sandbox.watch('/workspace', options);
	await within('the last event', (async () => {
		for await (const event of parseSSEStream(stream)) {
			if (event.type === 'watching')
				for (const name of names)
					await sandbox.writeFile(`/workspace/${name}`, 'x');
			if (event.type !== 'event' || event.isDirectory)
				continue;
			seen.push(event.path.replace(/^\/workspace\//, ''));
			if (event.path.endsWith(names.at(-1)))
				return;
		}
	})());
	return [...new Set(seen)];
}

export async function watchOptions(sandbox, { transport }) {
	await sandbox.mkdir('/workspace/deep');
	await sandbox.mkdir('/workspace/node_modules');
	assert.deepEqual(await watched(sandbox, { include: ['*.js'] }, ['a.txt', 'b.js']), ['b.js']);
	assert.deepEqual(await watched(sandbox, { exclude: ['*.log'] }, ['c.log', 'd.txt']), ['d.txt']);
	assert.deepEqual(await watched(sandbox, { recursive: false }, ['deep/e.txt', 'f.txt']), ['f.txt']);
	assert.deepEqual(await watched(sandbox, {}, ['node_modules/g.txt', 'deep/h.txt']), ['deep/h.txt']);
	if (transport === 'rpc') // no path and no pattern is refused there
		return (await sandbox.watch('/etc')).cancel();
	for (const [where, options, code] of [['/workspace', { include: ['a'], exclude: ['b'] }, /VALIDATION_FAILED|ValidationFailed/], ['/workspace', { include: ['[ab]'] }, /VALIDATION_FAILED|ValidationFailed/], ['/etc', {}, /PERMISSION_DENIED|PermissionDenied/]])
		await assert.rejects(async () => sandbox.watch(where, options), error => code.test(`${error.name} ${error.message}`)); // of a WebSocket's streams the client keeps no class
}

export async function checkChanges(sandbox, { transport }) {
	if (transport !== 'rpc')
		await rejects(sandbox.checkChanges('/etc'), 'PERMISSION_DENIED');
	const strange = await sandbox.checkChanges('/workspace', { since: 'watch-1-1:0' });
	assert.deepEqual([strange.status, strange.reason], ['resync', 'expired']);
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
