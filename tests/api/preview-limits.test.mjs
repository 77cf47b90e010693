// SPDX-License-Identifier: Apache-2.0
// Previews: limits, large bodies, malformed requests, private ports, and previews by path.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { requests } from '../lib/malformed.mjs';
import { expose, serve } from '../lib/preview.mjs';
import { until, within } from '../lib/wait.mjs';

const WAIT = 60_000;
let daemon, box, preview;

before(async () => {
	daemon = await startDaemon({ flags: { 'preview.paths': 'on', 'preview.connections': 8 } });
	box = await daemon.box();
	await serve(box, 8000);
	preview = await expose(box, 8000);
	assert.equal((await preview.get('/')).status, 200);
});
after(async () => {
	preview?.close();
	await daemon?.stop();
});

/** Resident memory of silt-preview in KiB, and its highest. */
function memory() {
	const status = fs.readFileSync(`/proc/${daemon.programs('silt-preview')[0]}/status`, 'utf8');
	return Number(/VmRSS:\s+(\d+)/.exec(status)[1]);
}

test('a gigabyte passes in both directions, and silt-preview does not grow', async () => {
	const GIB = 2 ** 30, most = 32 << 10;
	const before = memory();
	let high = 0;
	const look = setInterval(() => { high = Math.max(high, memory()); }, 20);
	try {
		const response = await preview.open('GET', '/big?mib=1024');
		let length = 0;
		for await (const piece of response)
			length += piece.length;
		assert.equal(length, GIB);
		const raw = await preview.raw('POST /echo', `Content-Length: ${GIB}\r\nConnection: close\r\n`);
		const piece = Buffer.alloc(1 << 20);
		for (let i = 0; i < 1024; i++)
			if (!raw.socket.write(piece))
				await within(WAIT, 'room for more', new Promise(resolve => raw.socket.once('drain', resolve)));
		assert.match((await raw.answer(WAIT)).text, new RegExp(`"length":${GIB}`));
	} finally {
		clearInterval(look);
	}
	assert.ok(high > 0 && high - before < most, `${before} KiB before, ${high} KiB at most`);
});

test('a reader that is slow holds its writer back', async t => {
	const before = memory();
	const response = await preview.open('GET', '/big?mib=512');
	t.after(() => response.destroy());
	const pieces = response[Symbol.asyncIterator]();
	for (let i = 0; i < 20; i++)
		await pieces.next();
	assert.ok(memory() - before < 32 << 10);
});

test('malformed requests reach no service, and nothing is smuggled behind them', async () => {
	const host = preview.host;
	const { accepted, refused } = requests({ host, get: '/fine', path: '/echo' });
	const next = `GET /smuggled HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
	for (const [name, text] of Object.entries(accepted)) {
		const raw = await preview.raw();
		raw.send(Buffer.from(text, 'latin1'));
		await raw.received(/^HTTP\/1\.1 200 /, WAIT);
		raw.send(next);
		const answer = await raw.answer(WAIT);
		assert.deepEqual([answer.answers, answer.closed], [2, true], `${name}: ${answer.text.slice(0, 300)}`);
	}
	for (const [name, text] of Object.entries(refused)) {
		const raw = await preview.raw();
		raw.send(Buffer.from(text, 'latin1'));
		raw.send(next);
		const answer = await raw.answer(WAIT);
		assert.ok(answer.closed, `${name}: the proxy closes`);
		assert.ok(answer.status === null || answer.status >= 400, `${name}: answered ${answer.status}`);
		assert.ok(answer.answers <= 1, `${name}: one answer at most: ${answer.text.slice(0, 600)}`);
		assert.ok(!answer.text.includes('smuggled'), name);
	}
	assert.equal((await preview.get('/after')).body, 'hello from /after');
});

test('one sandbox has so many requests at once, and the next is told so', async t => {
	const held = [];
	t.after(() => held.forEach(raw => raw.destroy()));
	for (let i = 0; i < 8; i++)
		held.push(await preview.raw('GET /ws', 'Connection: Upgrade\r\nUpgrade: x\r\n'));
	for (const raw of held)
		await raw.received(/101/, WAIT);
	const busy = await preview.get('/');
	assert.equal(busy.status, 503);
	assert.equal(busy.body.code, 'PREVIEW_BUSY');
	const neighbour = await daemon.box(t);
	await serve(neighbour, 8000);
	const other = await expose(neighbour, 8000);
	t.after(() => other.close());
	assert.equal((await other.get('/')).status, 200, 'its neighbours are not');
	held.pop().destroy();
	await until('a place is free', async () => (await preview.get('/')).status === 200, WAIT);
});

test('nobody waits for ever: for a port on which nobody listens, for a head, for a visitor who says nothing', async t => {
	const hasty = await startDaemon({ flags: { 'preview.wait_ms': 500, 'preview.total_timeout_s': 2, 'preview.bandwidth': '1M', 'preview.scheme': 'https', 'http.head_timeout_ms': 2_000, 'preview.idle_timeout_ms': 2_000 } });
	t.after(() => hasty.stop());
	const empty = await hasty.box(undefined, {});
	const nothing = await expose(empty, 8123);
	t.after(() => nothing.close());
	const answer = await nothing.get('/', { agent: false });
	assert.equal(answer.status, 504);
	assert.equal(answer.body.code, 'PORT_NOT_LISTENING');
	assert.equal(answer.body.context.port, 8123);
	const page = await nothing.get('/', { agent: false, headers: { accept: 'text/html,application/xhtml+xml' } });
	assert.equal(page.status, 504);
	assert.match(page.headers['content-type'], /^text\/html/);
	assert.match(page.body, /port 8123[^]*ss -ltn/);
	await serve(empty, 8124);
	const slight = await expose(empty, 8124);
	t.after(() => slight.close());
	assert.match(slight.url.href, /^https:/);
	const told = await until('the service', async () => {
		const response = await slight.get('/echo', { agent: false });
		return response.status === 200 && response;
	}, WAIT);
	assert.equal(told.body.headers['x-forwarded-proto'], 'https', 'a server with a certificate stands in front');
	const tunnel = await slight.raw('GET /ws', 'Connection: Upgrade\r\nUpgrade: x\r\n');
	await tunnel.received(/101/, WAIT);
	assert.ok((await tunnel.answer(WAIT)).closed, 'its time is over');
	await assert.rejects(slight.get('/big?mib=100', { agent: false }), /aborted|ECONNRESET|socket hang up/, 'a megabyte a second is not enough for that');
	const slow = await nothing.raw();
	slow.send('GET / HTTP/1.1\r\nHost:');
	assert.equal((await slow.answer(WAIT)).status, 408);
	const idle = await nothing.raw();
	assert.deepEqual((await idle.answer(WAIT)), { closed: true, text: '', status: null, answers: 0 });
});

test('a private port asks for a proof, which a signed URL brings and a cookie keeps', async t => {
	const locked = await expose(box, 8000, { private: true });
	t.after(async () => {
		locked.close();
		preview = await expose(box, 8000, { private: false });
	});
	assert.equal((await locked.get('/')).status, 403);
	assert.equal((await locked.get('/?silt-proof=wrong')).status, 403);
	const answer = await daemon.api('POST', `/v1/sandboxes/${box.id}/ports/8000/sign`, { expiresIn: 600 });
	assert.equal(answer.status, 200, answer.raw.toString());
	const url = new URL(answer.body.url);
	const html = { accept: 'text/html' };
	const moved = await locked.get(`/a/b${url.search}&x=1`, { headers: html });
	assert.equal(moved.status, 302);
	assert.equal(moved.headers.location, '/a/b?x=1');
	const [cookie] = moved.headers['set-cookie'];
	assert.match(cookie, /^silt-proof=[^;]+; HttpOnly; SameSite=Lax; Max-Age=\d+; Path=\/$/);
	const told = await locked.get('/echo', { headers: { cookie: `a=1; ${cookie.split(';')[0]}` } });
	assert.equal(told.status, 200);
	assert.equal(told.body.headers.cookie, 'a=1', 'the service does not see it');
	const program = await locked.get(`/echo${url.search}&y`);
	assert.equal(program.body.url, '/echo?y', 'programs are served at once');
	assert.ok(program.headers['set-cookie'][0].startsWith('silt-proof='));
	const upgrade = async (where, origin) => {
		const raw = await locked.raw(`GET ${where}`, `Connection: Upgrade\r\nUpgrade: websocket\r\n${origin ? `Origin: ${origin}\r\n` : ''}Cookie: ${cookie.split(';')[0]}\r\n`);
		const text = await raw.received(/^HTTP\/1\.1 \d+ /, WAIT);
		raw.destroy();
		return Number(text.slice(9, 12));
	};
	for (const origin of [undefined, locked.url.origin])
		assert.equal(await upgrade('/ws', origin), 101);
	for (const origin of [`http://8001-${locked.host.slice(5)}`, 'http://evil.tld', 'null', `${locked.url.origin}.evil.tld`])
		assert.equal(await upgrade('/ws', origin), 403, `a page of ${origin} borrows the cookie`);
	assert.equal(await upgrade(`/ws${url.search}`, 'http://evil.tld'), 101, 'who knows a signed URL needs no cookie');
	const away = await locked.get(`//evil.tld/${url.search}`, { headers: html });
	assert.equal(away.headers.location, '/.//evil.tld/', 'nobody is sent to another host');
});

test('a preview by path is caged: no cookies, and a sandbox for its scripts', async () => {
	const { token } = (await daemon.api('GET', `/v1/sandboxes/${box.id}/ports`)).body.ports[0];
	const host = daemon.previews;
	const where = `/preview/${box.id}/8000/${token}`;
	const answer = await preview.get(`${where}/hop`, { headers: { host } });
	assert.equal(answer.status, 200, answer.raw.toString());
	assert.equal(answer.headers['content-security-policy'], 'sandbox allow-scripts allow-forms');
	assert.equal(answer.headers['x-content-type-options'], 'nosniff');
	assert.equal(answer.headers['set-cookie'], undefined);
	const told = await preview.get(`${where}/echo?q`, { headers: { host, cookie: 'a=1' } });
	assert.equal(told.body.url, '/echo?q');
	assert.equal(told.body.headers.cookie, undefined);
	assert.equal((await preview.get(where, { headers: { host } })).headers.location, `${where}/`);
	for (const wrong of [`/preview/${box.id}/08000/${token}/`, `/preview/${box.id}/8000%00/${token}/`, `/preview/${box.id}/8000/${token}x/`, `/preview/${box.id}/+8000/${token}/`, '/', '/preview/'])
		assert.equal((await preview.get(wrong, { headers: { host } })).status, 404, wrong);
});
