// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { refused } from '../lib/expect.mjs';
import { OPEN } from '../lib/routes.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const ping = headers => daemon.api('GET', '/sandboxes/auth-probe/api/ping', undefined, { token: false, headers });

/** Each operation of the OpenAPI document, with the ids of a sandbox, a process and so on that are there in the place of its parameters. */
async function operations(names) {
	const { paths } = (await daemon.api('GET', '/v1/openapi.json')).body;
	const methods = ['get', 'put', 'post', 'delete', 'patch', 'head', 'options'];
	return Object.entries(paths).flatMap(([route, item]) => methods.filter(method => method in item && method !== 'options')
		.map(method => [method.toUpperCase(), route, route.replace(/\{(\w+)\}/g, (_, name) => names[name] ?? 'x')]));
}

test('no operation of the document does anything for somebody without the token, or with another', async t => {
	const box = await daemon.box(t, {});
	await box.out('echo mine > /workspace/mine');
	const { processId } = (await box.api('POST', '/api/process/start', { command: 'sleep 300' })).body;
	const all = await operations({ id: box.id, process: processId, name: 'base', port: '8000', path: 'x', context: 'c', file: 'terminal.js' });
	assert.ok(all.length > 90, `${all.length} operations`);
	const strangers = [{}, { authorization: `Bearer ${'A'.repeat(43)}` }, { cookie: `silt-login=4102444800-${'0'.repeat(64)}`, origin: `http://${daemon.address}` }];
	for (const [method, route, target] of all) {
		if (OPEN.includes(route))
			continue;
		const body = method === 'GET' || method === 'DELETE' ? undefined : { command: 'touch /workspace/pwned', path: '/workspace/mine', content: 'yours', id: 'stranger' };
		for (const headers of strangers)
			refused(await daemon.api(method, target, body, { token: false, headers }), 401, 'UNAUTHORIZED');
	}
	assert.equal(await box.out('cat /workspace/*'), 'mine\n');
	assert.equal((await box.api('GET', `/api/process/${processId}`)).body.process.status, 'running');
	refused(await daemon.api('GET', '/v1/sandboxes/stranger'), 404, 'SANDBOX_NOT_FOUND');
});

test('an unknown route without a token answers 401, not 404', async () => {
	refused(await daemon.api('GET', '/nothing/here', undefined, { token: false }), 401, 'UNAUTHORIZED');
});

test('a refused request makes no sandbox', async () => {
	refused(await daemon.api('POST', '/sandboxes/stranger/api/execute', { command: 'true' }, { token: false }), 401, 'UNAUTHORIZED');
	refused(await daemon.api('GET', '/v1/sandboxes/stranger'), 404, 'SANDBOX_NOT_FOUND');
});

test('wrong tokens answer 401', async () => {
	const { token } = daemon;
	const flipped = token.slice(0, -1) + (token.endsWith('A') ? 'B' : 'A');
	const wrong = ['', 'x', flipped, token.slice(0, -1), `${token}A`, token.toUpperCase(), token.toLowerCase(), `${token} ${token}`, `"${token}"`, 'A'.repeat(43), 'A'.repeat(7000)];
	for (const value of wrong)
		refused(await ping({ authorization: `Bearer ${value}` }), 401, 'UNAUTHORIZED');
});

test('other schemes and places for the token answer 401', async () => {
	const { token } = daemon;
	refused(await ping({ authorization: token }), 401, 'UNAUTHORIZED');
	refused(await ping({ authorization: `Basic ${Buffer.from(`:${token}`).toString('base64')}` }), 401, 'UNAUTHORIZED');
	refused(await ping({ authorization: `Bearer${token}` }), 401, 'UNAUTHORIZED');
	refused(await ping({ 'x-api-key': token, cookie: `token=${token}` }), 401, 'UNAUTHORIZED');
	refused(await daemon.api('GET', `/sandboxes/auth-probe/api/ping?token=${token}&access_token=${token}`, undefined, { token: false }), 401, 'UNAUTHORIZED');
});

test('two Authorization fields are refused', async () => {
	const raw = await daemon.client.raw();
	raw.send(`GET /v1/sandboxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${daemon.token}\r\nAuthorization: Bearer x\r\nConnection: close\r\n\r\n`);
	assert.ok([400, 401].includes((await raw.answer()).status));
});

test('the token is never taken for a session', async t => {
	const box = await daemon.box(t);
	const body = await box.run('true');
	assert.ok(!('sessionId' in body));
	assert.deepEqual((await box.api('GET', '/api/session/list')).body.data, ['default']);
});

test('the token file is private and the token long', () => {
	const file = path.join(daemon.home, 'token');
	assert.equal(fs.statSync(file).mode & 0o777, 0o600);
	assert.equal(fs.statSync(file).uid, 0);
	assert.match(daemon.token, /^[A-Za-z0-9_-]{43}$/);
});

test('the token is in no log', () => {
	assert.ok(!daemon.log().includes(daemon.token));
});

test('the API listens on loopback only', () => {
	assert.match(daemon.address, /^127\.0\.0\.1:\d+$/);
});
