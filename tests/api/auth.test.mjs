// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { refused } from '../lib/expect.mjs';
import { OPEN, ROUTES } from '../lib/routes.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const ping = headers => daemon.api('GET', '/sandboxes/auth-probe/api/ping', undefined, { token: false, headers });

test('every route but the open ones answers 401 without a token', async () => {
	for (const [method, route] of ROUTES) {
		if (OPEN.includes(route))
			continue;
		const body = method === 'GET' || method === 'DELETE' ? undefined : {};
		const answer = await daemon.api(method, route.replace(/\{\w+\}/, 'stranger'), body, { token: false });
		refused(answer, 401, 'UNAUTHORIZED');
	}
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
