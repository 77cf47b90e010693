// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { corsOnce, refused, TIME } from '../lib/expect.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

test('GET / of a sandbox greets in plain text', async t => {
	const box = await daemon.box(t);
	const answer = await box.api('GET', '/');
	assert.equal(answer.status, 200);
	assert.equal(answer.headers['content-type'], 'text/plain; charset=utf-8');
	assert.ok(answer.body.length > 0);
});

test('ping says healthy, also as message', async t => {
	const box = await daemon.box(t);
	const { status, body } = await box.api('GET', '/api/ping');
	assert.equal(status, 200);
	assert.equal(body.success, true);
	assert.equal(body.status, 'healthy');
	assert.equal(body.message, 'healthy');
	assert.match(body.timestamp, TIME);
});

test('version names a version', async t => {
	const box = await daemon.box(t);
	const { status, body } = await box.api('GET', '/api/version');
	assert.equal(status, 200);
	assert.equal(body.success, true);
	assert.ok(typeof body.version === 'string' && body.version.length > 0);
	assert.match(body.timestamp, TIME);
});

test('commands is an empty list', async t => {
	const box = await daemon.box(t);
	const { status, body } = await box.api('GET', '/api/commands');
	assert.equal(status, 200);
	assert.deepEqual({ ...body, timestamp: 0 }, { success: true, availableCommands: [], count: 0, timestamp: 0 });
});

test('a query string does not change which route answers', async t => {
	const box = await daemon.box(t);
	assert.equal((await box.api('GET', '/api/ping?a=b&c=/api/execute')).status, 200);
});

test('JSON answers are compact and say so', async t => {
	const box = await daemon.box(t);
	const answer = await box.api('GET', '/api/ping');
	assert.match(answer.headers['content-type'], /^application\/json/);
	assert.equal(answer.raw.toString(), JSON.stringify(answer.body));
});

test('every kind of answer carries each CORS field exactly once', async t => {
	const box = await daemon.box(t);
	const answers = [
		await box.api('GET', '/api/ping'),
		await box.api('GET', '/api/nothing'),
		await box.api('GET', '/api/ping', undefined, { token: false }),
		await box.api('POST', '/api/execute', '{'),
		await box.api('POST', '/api/execute/stream', { command: 'true' }),
		await box.api('OPTIONS', '/api/execute', undefined, { token: false }),
		await daemon.api('GET', '/healthz', undefined, { token: false }),
		await daemon.api('GET', '/metrics'),
	];
	for (const answer of answers)
		corsOnce(answer);
});

test('OPTIONS answers anything without a token', async () => {
	for (const path of ['/', '/healthz', '/sandboxes/some/api/execute', '/v1/sandboxes', '/no/such/route']) {
		const answer = await daemon.api('OPTIONS', path, undefined, { token: false });
		assert.ok([200, 204].includes(answer.status), `${path}: ${answer.status}`);
	}
});

test('an OPTIONS request makes no sandbox', async () => {
	await daemon.api('OPTIONS', '/sandboxes/not-made/api/execute', undefined, { token: false });
	refused(await daemon.api('GET', '/v1/sandboxes/not-made'), 404, 'SANDBOX_NOT_FOUND');
});

test('unknown routes answer 404 with an empty context and make no sandbox', async t => {
	const box = await daemon.box(t);
	const paths = ['/api/health', '/api/shutdown', '/api/expose-port', '/api/env', '/api', '/api/', '/api/ping/', '/api/execute/stream/x', '//api/ping', '/ws', '/rpc', '/API/ping'];
	for (const path of paths) {
		const answer = await box.api('GET', path);
		assert.deepEqual(refused(answer, 404, 'UNKNOWN_ERROR'), {}, path);
		assert.ok(!('suggestion' in answer.body));
	}
	refused(await daemon.api('GET', '/sandboxes/'), 404, 'UNKNOWN_ERROR');
	for (const path of ['/sandboxes', '/v1', '/v2/sandboxes', '/v1/sandboxes/a/b', '/metrics/', '/favicon.ico'])
		refused(await daemon.api('GET', path), 404, 'ROUTE_NOT_FOUND');
	refused(await daemon.api('GET', `/v1/sandboxes/${box.id}`), 404, 'SANDBOX_NOT_FOUND');
});

test('a known path with another method answers 405 and names the methods', async t => {
	const box = await daemon.box(t);
	const cases = [['GET', '/api/execute', 'POST'], ['POST', '/api/ping', 'GET'], ['DELETE', '/api/session/list', 'GET'], ['PATCH', '/api/execute', 'POST'], ['TRACE', '/api/ping', 'GET']];
	for (const [method, path, allowed] of cases) {
		const answer = await box.api(method, path);
		refused(answer, 405, 'METHOD_NOT_ALLOWED');
		assert.match(answer.headers.allow ?? '', new RegExp(`\\b${allowed}\\b`), `${method} ${path}`);
	}
	refused(await daemon.api('PUT', '/v1/sandboxes'), 405, 'METHOD_NOT_ALLOWED');
});

test('healthz needs no token', async () => {
	const answer = await daemon.api('GET', '/healthz', undefined, { token: false });
	assert.equal(answer.status, 200);
	assert.deepEqual(answer.body, { status: 'ok' });
});

test('metrics are Prometheus text and need the token', async t => {
	const box = await daemon.box(t);
	await box.run('true');
	refused(await daemon.api('GET', '/metrics', undefined, { token: false }), 401, 'UNAUTHORIZED');
	const answer = await daemon.api('GET', '/metrics');
	assert.equal(answer.status, 200);
	assert.match(answer.headers['content-type'], /^text\/plain/);
	const lines = answer.body.split('\n').filter(line => line && !line.startsWith('#'));
	assert.ok(lines.length > 0);
	for (const line of lines)
		assert.match(line, /^silt_[a-z0-9_]+(\{[^}]*\})? -?[0-9.e+-]+(Inf|NaN)?$/);
	assert.ok(!answer.body.includes(daemon.token));
});

test('the OpenAPI documents need no token', async () => {
	for (const url of ['/v1/openapi.json', '/v1/openapi-compat.json'])
		assert.equal((await daemon.api('GET', url, undefined, { token: false })).status, 200);
});

test('a connection serves many requests', async t => {
	const box = await daemon.box(t);
	const raw = await daemon.client.raw();
	t.after(() => raw.destroy());
	const request = `GET /sandboxes/${box.id}/api/ping HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${daemon.token}\r\n\r\n`;
	raw.send(request.repeat(20)); // pipelined
	await raw.received(/(HTTP\/1\.1 200 [^]*?){20}/);
});

test('Connection: close is obeyed', async () => {
	const raw = await daemon.client.raw();
	raw.send('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
	const answer = await raw.answer();
	assert.equal(answer.status, 200);
	assert.equal(answer.closed, true);
});

test('Expect: 100-continue is answered before the body comes', async t => {
	const box = await daemon.box(t);
	const raw = await daemon.client.raw();
	t.after(() => raw.destroy());
	const body = JSON.stringify({ command: 'echo hi' });
	raw.send(`POST /sandboxes/${box.id}/api/execute HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${daemon.token}\r\nExpect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n`);
	await raw.received(/^HTTP\/1\.1 100 /);
	raw.send(body);
	await raw.received(/HTTP\/1\.1 200 [^]*"stdout":"hi\\n"/);
});
