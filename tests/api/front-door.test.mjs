// SPDX-License-Identifier: Apache-2.0
// What meets a newcomer: the index, unknown routes, browsers of other hosts, and the page of the API.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openBrowser } from '../lib/browser.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { refused } from '../lib/expect.mjs';

const ORIGIN = 'https://app.example.com';
let daemon;
before(async () => { daemon = await startDaemon({ flags: { 'cors.origins': `https://other.example.com, ${ORIGIN}` } }); });
after(() => daemon?.stop());

const ask = (method, path, headers, options = {}) => daemon.api(method, path, undefined, { headers, ...options });
const names = answer => answer.rawHeaders.filter((_, i) => i % 2 === 0).map(name => name.toLowerCase());

test('the index names version, documentation and console, without a token', async () => {
	const { status, body } = await ask('GET', '/', {}, { token: false });
	assert.equal(status, 200);
	assert.deepEqual(Object.keys(body), ['name', 'version', 'api', 'docs', 'openapi', 'console']);
	for (const path of [body.docs, body.openapi])
		assert.equal((await ask('GET', path, {}, { token: false })).status, 200, path);
	assert.equal((await ask('GET', body.console.replace('{id}', 'demo'), {}, { token: false })).status, 401, 'a page to log in');
});

test('an unknown route answers with the nearest one', async () => {
	const near = {
		'GET /sandboxes': 'GET /v1/sandboxes',
		'GET /v1/sandbox': 'GET /v1/sandboxes',
		'POST /v1/sandboxes/demo/execute': 'POST /v1/sandboxes/{id}/exec',
		'GET /v1/sandboxes/demo/proceses': 'GET /v1/sandboxes/{id}/processes',
		'POST /v1/sandboxes/demo/files/mkdri': 'POST /v1/sandboxes/{id}/files/mkdir',
		'DELETE /v1/sandboxes/demo/session/s': 'DELETE /v1/sandboxes/{id}/sessions/{session}',
		'GET /helthz': 'GET /healthz',
	};
	for (const [asked, meant] of Object.entries(near)) {
		const [method, path] = asked.split(' ');
		const answer = await ask(method, path);
		refused(answer, 404, 'ROUTE_NOT_FOUND');
		assert.ok(answer.body.message.endsWith(`; did you mean ${meant}?`), answer.body.message);
		assert.equal(`${answer.body.context.nearest.method} ${answer.body.context.nearest.path}`, meant);
	}
	for (const path of ['/favicon.ico', '/v1/no/such/thing/at/all', `/${'a/'.repeat(200)}`, '/wp-login.php']) {
		const answer = await ask('GET', path);
		refused(answer, 404, 'ROUTE_NOT_FOUND');
		assert.deepEqual(answer.body.context, {}, path);
	}
});

test('pages of allowed origins may call /v1, others may not', async () => {
	const allowed = await ask('OPTIONS', '/v1/sandboxes', { origin: ORIGIN, 'access-control-request-method': 'PATCH' }, { token: false });
	assert.equal(allowed.status, 204);
	assert.equal(allowed.headers['access-control-allow-origin'], ORIGIN);
	assert.equal(allowed.headers.vary, 'Origin');
	for (const [name, words] of Object.entries({
		'access-control-allow-methods': ['PATCH', 'HEAD', 'DELETE'],
		'access-control-allow-headers': ['Authorization', 'Range', 'If-Match', 'If-None-Match', 'Idempotency-Key', 'Last-Event-ID', 'Mcp-Session-Id'],
		'access-control-expose-headers': ['ETag', 'Content-Range', 'X-Silt-Cursor', 'Mcp-Session-Id'],
	})) {
		for (const word of words)
			assert.ok(allowed.headers[name].split(', ').includes(word), `${name}: ${word}`);
	}
	for (const answer of [await ask('GET', '/v1/sandboxes', { origin: ORIGIN }), await ask('GET', '/v1/sandboxes/none', { origin: ORIGIN })])
		assert.equal(answer.headers['access-control-allow-origin'], ORIGIN);
	for (const headers of [{}, { origin: 'https://evil.example.com' }, { origin: `${ORIGIN}.evil.example` }, { origin: 'null' }]) {
		for (const method of ['OPTIONS', 'GET'])
			assert.deepEqual(names(await ask(method, '/v1/sandboxes', headers)).filter(name => name.startsWith('access-control')), []);
	}
});

test('without the setting no origin is allowed', async () => {
	const plain = await startDaemon({ images: false });
	try {
		const answer = await plain.api('OPTIONS', '/v1/sandboxes', undefined, { token: false, headers: { origin: ORIGIN } });
		assert.deepEqual(names(answer).filter(name => name.startsWith('access-control')), []);
	} finally {
		await plain.stop();
	}
});

/** Opens a terminal as a browser does, which cannot send Authorization: {status, headers}. */
async function handshake(path, protocols) {
	const headers = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==', ...(protocols && { 'sec-websocket-protocol': protocols }) };
	return await ask('GET', path, headers, { token: false });
}

test('a WebSocket of a browser carries the token as a subprotocol', async t => {
	const box = await daemon.box(t, {});
	const path = `/v1/sandboxes/${box.id}/terminal?sessionId=s`;
	const opened = await new Promise((resolve, reject) => {
		const socket = new WebSocket(`ws://${daemon.address}${path}`, ['silt', `silt.bearer.${daemon.token}`]);
		socket.onopen = () => resolve(socket);
		socket.onerror = () => reject(new Error('the handshake failed'));
	});
	assert.equal(opened.protocol, 'silt');
	opened.close();
	for (const protocols of [undefined, 'silt', `silt.bearer.${daemon.token}`, 'silt, silt.bearer.wrong', `silt, silt.bearer.${daemon.token}, silt.bearer.x`, `silt, silt.bearer.${daemon.token.slice(1)}`])
		refused(await handshake(path, protocols), 401, 'UNAUTHORIZED');
	refused(await ask('GET', '/v1/sandboxes', { 'sec-websocket-protocol': `silt, silt.bearer.${daemon.token}` }, { token: false }), 401, 'UNAUTHORIZED');
	refused(await handshake(`/sandboxes/${box.id}/ws/pty?sessionId=s`, `silt, silt.bearer.${daemon.token}`), 401, 'UNAUTHORIZED');
});

test('the page of the API loads only what this daemon serves', async () => {
	const page = await ask('GET', '/docs/api', {}, { token: false });
	assert.match(page.headers['content-security-policy'], /default-src 'none'/);
	const files = [...page.raw.toString().matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(match => match[1]);
	assert.equal(files.length, 2);
	for (const file of files)
		assert.equal((await ask('GET', file, {}, { token: false })).status, 200, file);
});

test('the page of the API shows every operation of both documents in a browser', async t => {
	const browser = await openBrowser(t);
	for (const [query, source] of [['', '/v1/openapi.json'], ['?compatible', '/v1/openapi-compat.json']]) {
		const document = (await ask('GET', source)).body;
		const ids = Object.values(document.paths).flatMap(item => Object.values(item).map(op => op.operationId).filter(Boolean));
		const page = await browser.newPage();
		const faults = [];
		page.on('pageerror', error => faults.push(error.message));
		page.on('console', message => message.type() === 'error' && faults.push(message.text()));
		await page.goto(`http://${daemon.address}/docs/api${query}`);
		await page.locator('section > details').first().waitFor({ timeout: 30_000 });
		assert.deepEqual((await page.locator('section > details').evaluateAll(all => all.map(each => each.id))).sort(), ids.sort());
		await page.locator('section > details').evaluateAll(all => all.forEach(each => { each.open = true; }));
		await page.locator('section > details > div').nth(ids.length - 1).waitFor({ state: 'attached', timeout: 30_000 });
		await page.fill('#search', 'sandboxes post');
		const shown = await page.locator('section > details:not([hidden])').count();
		assert.ok(shown > 0 && shown < ids.length, `${shown} of ${ids.length}`);
		assert.deepEqual(faults, []);
		await page.close();
	}
});
