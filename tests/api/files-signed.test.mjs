// SPDX-License-Identifier: Apache-2.0
// Signed URLs of files: what they open without a token, and nothing else.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { refused } from '../lib/expect.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const sign = async (box, body) => {
	const answer = await daemon.api('POST', `/v1/sandboxes/${box.id}/files/sign`, body);
	assert.equal(answer.status, 200, answer.raw.toString());
	return answer.body;
};

test('anybody may upload and download with a signed URL', async t => {
	const box = await daemon.box(t, {});
	const path = '/workspace/a dir/ü & ?.txt';
	const up = await sign(box, { path, method: 'PUT' });
	assert.ok(Math.abs(Date.parse(up.expiresAt) - Date.now() - 3_600_000) < 60_000);
	assert.equal((await fetch(up.url, { method: 'PUT', body: 'content', headers: { 'content-type': 'application/x-tar' } })).status, 200);
	const down = await sign(box, { path, expiresIn: 60 });
	const answer = await fetch(down.url, { headers: { range: 'bytes=3-' } });
	assert.deepEqual([answer.status, await answer.text()], [206, 'tent']);
	assert.equal((await fetch(down.url, { method: 'HEAD' })).headers.get('content-length'), '7');
	assert.equal(new URL(down.url).host, daemon.address);
});

test('a signature opens one path with one method until its time is over', async t => {
	const box = await daemon.box(t, {});
	const other = await daemon.box(t, {});
	await daemon.api('PUT', `/v1/sandboxes/${box.id}/files?path=/workspace/a`, Buffer.from('x'));
	const { url } = await sign(box, { path: '/workspace/a' });
	assert.equal((await fetch(url)).status, 200);
	const changed = change => { const u = new URL(url); change(u); return u.href; };
	const wrong = [
		changed(u => u.searchParams.set('path', '/etc/passwd')),
		changed(u => u.searchParams.set('expires', String(Number(u.searchParams.get('expires')) + 1))),
		changed(u => u.searchParams.set('format', 'tar')),
		changed(u => u.searchParams.delete('format')),
		changed(u => u.searchParams.set('wrap', 'true')),
		changed(u => u.searchParams.set('signature', '0'.repeat(64))),
		changed(u => u.searchParams.delete('signature')),
		changed(u => { u.pathname = u.pathname.replace(box.id, other.id); }),
		changed(u => { u.pathname += '/stat'; }),
	];
	for (const one of wrong)
		assert.equal((await fetch(one)).status, 401, one);
	for (const method of ['PUT', 'DELETE', 'POST'])
		assert.equal((await fetch(url, { method })).status, 401, method);
	const short = await sign(box, { path: '/workspace/a', expiresIn: 1 });
	const until = Date.parse(short.expiresAt) + 1_100;
	while (Date.now() < until)
		await new Promise(resolve => setTimeout(resolve, until - Date.now() + 1));
	assert.equal((await fetch(short.url)).status, 401);
});

test('a signature ends with its sandbox', async t => {
	const box = await daemon.box(t, {});
	const { url } = await sign(box, { path: '/workspace/a', method: 'PUT' });
	await daemon.api('DELETE', `/v1/sandboxes/${box.id}`);
	assert.equal((await fetch(url, { method: 'PUT', body: 'x' })).status, 401);
	await daemon.api('PUT', `/v1/sandboxes/${box.id}`, {});
	assert.equal((await fetch(url, { method: 'PUT', body: 'x' })).status, 401, 'another one of that id');
});

test('wrong wishes are refused', async t => {
	const box = await daemon.box(t, {});
	for (const body of [{}, { path: '' }, { path: 'a\0' }, { path: 'a', method: 'DELETE' }, { path: 'a', expiresIn: 0 }, { path: 'a', expiresIn: 604_801 }, { path: 'a', expiresIn: 1.5 }])
		refused(await daemon.api('POST', `/v1/sandboxes/${box.id}/files/sign`, body), 400, 'VALIDATION_FAILED');
});
