// SPDX-License-Identifier: Apache-2.0
// Files and lists of any size with bounded memory in the daemon.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import http from 'node:http';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { processInfo, resetPeak } from '../lib/host.mjs';
import { events } from '../lib/sse.mjs';
import { until, within } from '../lib/wait.mjs';

const MEMORY_KIB = (process.env.SILT_SANITIZED ? 96 : 12) * 1024; // a sanitizer keeps what was freed for a while
const GIB = 2 ** 30;

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const url = (box, path, query = '') => `/v1/sandboxes/${box.id}/files?path=${encodeURIComponent(path)}${query}`;

async function grown(work) {
	const pid = daemon.siltd();
	resetPeak(pid);
	const before = processInfo(pid).residentKiB;
	await work();
	return processInfo(pid).peakKiB - before;
}

function upload(box, path, size, query) {
	const piece = Buffer.alloc(1 << 20, 'abcdefghijklmnop');
	const digest = createHash('sha256');
	const request = http.request({ host: daemon.client.host, port: daemon.client.port, method: 'PUT', path: url(box, path, query), headers: { authorization: `Bearer ${daemon.token}`, 'content-length': size } });
	const answer = once(request, 'response').then(async ([response]) => ({ status: response.statusCode, body: JSON.parse(Buffer.concat(await response.toArray()).toString()) }));
	return within(240_000, 'upload', (async () => {
		for (let at = 0; at < size; at += piece.length) {
			piece.writeUInt32LE(at >>> 20, 0);
			digest.update(piece);
			if (!request.write(piece))
				await once(request, 'drain');
		}
		request.end();
		return { ...await answer, sha256: digest.digest('hex') };
	})());
}

async function digestOf(response) {
	const digest = createHash('sha256');
	let bytes = 0;
	await within(240_000, 'download', (async () => {
		for await (const chunk of response) {
			digest.update(chunk);
			bytes += chunk.length;
		}
	})());
	return { bytes, sha256: digest.digest('hex') };
}

test('1 GiB goes up and comes down whole, and costs the daemon next to nothing', async t => {
	const box = await daemon.box(t, { limits: { diskMiB: 4096, memoryMiB: 1024 } });
	await box.run('true');
	let up;
	const growth = await grown(async () => { up = await upload(box, '/workspace/large', GIB); });
	assert.equal(up.status, 200, JSON.stringify(up.body));
	assert.deepEqual([up.body.size, up.body.sha256], [GIB, up.sha256]);
	assert.ok(growth <= MEMORY_KIB, `siltd grew by ${growth} KiB`);
	const again = await grown(async () => {
		const response = await daemon.client.open('GET', url(box, '/workspace/large'));
		assert.deepEqual(await digestOf(response), { bytes: GIB, sha256: up.sha256 });
	});
	assert.ok(again <= MEMORY_KIB, `siltd grew by ${again} KiB`);
});

test('a stream of events of 128 MiB costs the daemon next to nothing', async t => {
	const box = await daemon.box(t);
	await box.out('yes 0123456789abcde | head -c 134217728 > /workspace/f.txt');
	let bytes = 0, last;
	const growth = await grown(async () => {
		for await (const { data } of events(await daemon.client.open('POST', `/sandboxes/${box.id}/api/read/stream`, { path: 'f.txt' }))) {
			bytes += data.type === 'chunk' ? data.data.length : 0;
			last = data;
		}
	});
	assert.deepEqual([bytes, last], [134_217_728, { type: 'complete', bytesRead: 134_217_728 }]);
	assert.ok(growth <= MEMORY_KIB, `siltd grew by ${growth} KiB`);
});

test('slow clients hold their own transfers back and nothing else', async t => {
	const box = await daemon.box(t);
	await box.out('truncate -s 200M /workspace/f');
	const slow = [];
	const growth = await grown(async () => {
		for (let i = 0; i < 8; i++) {
			const response = await daemon.client.open('GET', url(box, '/workspace/f'));
			response.pause();
			slow.push(response);
		}
		for (let i = 0; i < 100; i++)
			assert.equal((await box.api('POST', '/api/exists', { path: 'f' })).body.exists, true);
	});
	assert.ok(growth <= MEMORY_KIB, `siltd grew by ${growth} KiB`);
	for (const response of slow)
		response.destroy();
});

test('transfers that stand still, however many, keep nobody from other work on files', async t => {
	const box = await daemon.box(t);
	await box.out('truncate -s 200M /workspace/f');
	const head = i => `PUT ${url(box, `/workspace/up${i}`)} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${daemon.token}\r\nContent-Length: 99999999\r\n\r\n`;
	const uploads = await Promise.all(Array.from({ length: 40 }, () => daemon.client.raw()));
	t.after(() => uploads.forEach(u => u.destroy()));
	uploads.forEach((u, i) => u.send(head(i) + 'x'.repeat(100_000)));
	await box.api('POST', '/api/exists', { path: 'f' }); // the uploads were taken up before it
	for (let i = 0; i < 20; i++)
		assert.equal((await box.api('POST', '/api/write', { path: 'small', content: `${i}` }, { deadline: 60_000 })).status, 200);
	await box.api('POST', '/api/list-files', { path: '/workspace' }, { deadline: 60_000 });
	await box.run('true', {}, { deadline: 60_000 });
	uploads.forEach(u => u.destroy());
	const get = await daemon.api('GET', url(box, '/workspace/small'), undefined, { deadline: 60_000 });
	assert.equal(get.raw.toString(), '19');
});

test('a file that shrinks under a download breaks it off', async t => {
	const box = await daemon.box(t);
	await box.out('truncate -s 300M /workspace/f');
	const response = await daemon.client.open('GET', url(box, '/workspace/f'));
	response.pause();
	await box.out('truncate -s 1M /workspace/f');
	await assert.rejects(digestOf(response));
});

test('a list of a hundred thousand files streams with bounded memory', async t => {
	const box = await daemon.box(t);
	await box.out('mkdir /workspace/many && cd /workspace/many && seq -f file-%g 100000 | xargs touch', {}, { deadline: 120_000 });
	let body;
	const growth = await grown(async () => { body = (await box.api('POST', '/api/list-files', { path: '/workspace/many' }, { deadline: 60_000 })).body; });
	assert.equal(body.count, 100_000);
	assert.equal(new Set(body.files.map(f => f.name)).size, 100_000);
	assert.ok(body.files.every(f => /^file-\d+$/.test(f.name) && f.absolutePath === `/workspace/many/${f.name}`));
	assert.ok(growth <= MEMORY_KIB, `siltd grew by ${growth} KiB`);
	const native = (await daemon.api('POST', `/v1/sandboxes/${box.id}/files/list`, { path: 'many' }, { deadline: 60_000 })).body;
	assert.deepEqual([native.count, native.truncated, native.entries.length], [100_000, false, 100_000]);
	const response = await daemon.client.open('POST', `/sandboxes/${box.id}/api/list-files`, { path: '/workspace/many' });
	await once(response, 'readable');
	response.destroy();
	await until('the next one', async () => (await box.api('POST', '/api/exists', { path: '/workspace' })).body.exists);
});
