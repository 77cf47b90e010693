// SPDX-License-Identifier: Apache-2.0
// Direct access: any port of a sandbox below /v1/sandboxes/{id}/ports/{port}/, for who has the API's token; and the commands of silt about ports.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { refused } from '../lib/expect.mjs';
import { serve } from '../lib/preview.mjs';
import { silt } from '../lib/silt.mjs';
import { until } from '../lib/wait.mjs';

let daemon, box;
before(async () => {
	daemon = await startDaemon({ flags: { 'preview.wait_ms': 120_000 } });
	box = await daemon.box();
	await serve(box, 8000);
});
after(() => daemon?.stop());

const at = (rest, port = 8000) => `/v1/sandboxes/${box.id}/ports/${port}${rest}`;

test('a service is reached without being exposed, caged, and without our token', async () => {
	const answer = await daemon.api('GET', at('/some/where?a=1&b'), undefined, { deadline: 120_000 });
	assert.equal(answer.status, 200, answer.raw.toString());
	assert.equal(answer.body, 'hello from /some/where');
	assert.match(answer.headers['content-security-policy'], /sandbox/);
	assert.equal(answer.headers['x-content-type-options'], 'nosniff');
	const told = (await daemon.api('PUT', at('/echo?x=1'), 'hello', { headers: { 'x-kept': 'yes', cookie: 'a=1' } })).body;
	assert.deepEqual([told.url, told.length, told.headers['x-kept']], ['/echo?x=1', 5, 'yes']);
	assert.deepEqual([told.headers.authorization, told.headers.cookie], [undefined, undefined]);
	assert.equal(told.headers.host, 'localhost:8000');
	assert.deepEqual((await daemon.api('GET', `/v1/sandboxes/${box.id}/ports`)).body, { ports: [], count: 0 });
});

test('any method and a body in pieces arrive, also a large one', async () => {
	for (const method of ['POST', 'PATCH', 'DELETE'])
		assert.equal((await daemon.api(method, at('/echo'), method === 'DELETE' ? undefined : 'abc')).body.method ?? method, method);
	const large = Buffer.alloc(3_000_000, 'x');
	assert.equal((await daemon.api('POST', at('/echo'), large, { headers: { 'content-type': 'application/octet-stream' } })).body.length, large.length);
});

test('an upgrade passes, and bytes go both ways', async () => {
	const raw = await daemon.client.raw();
	raw.send(`GET ${at('/socket')} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${daemon.token}\r\nConnection: Upgrade\r\nUpgrade: thing\r\n\r\n`);
	assert.match(await raw.received(/\r\n\r\n/, 30_000), /^HTTP\/1\.1 101 /);
	assert.match(raw.text, /X-Host: localhost:8000/i);
	raw.send('over and out');
	await raw.received(/OVER AND OUT/, 30_000);
	raw.destroy();
});

test('a service on ::1 only is reached, too', async t => {
	const other = await daemon.box(t, {});
	if ((await other.run('grep -q 00000000000000000000000000000001 /proc/net/if_inet6')).exitCode !== 0)
		return t.diagnostic('this machine has no IPv6');
	await serve(other, 8010, { address: '::1' });
	assert.equal((await daemon.api('GET', `/v1/sandboxes/${other.id}/ports/8010/six`, undefined, { deadline: 120_000 })).body, 'hello from /six');
});

test('without the token nobody gets in, and it does not count in a query or a cookie', async () => {
	for (const [where, headers] of [[at('/'), {}], [`${at('/')}?token=${daemon.token}`, {}], [at('/'), { cookie: `token=${daemon.token}` }]])
		refused(await daemon.api('GET', where, undefined, { token: false, headers }), 401, 'UNAUTHORIZED');
});

test('ports that are none and sandboxes that nobody made are refused', async () => {
	for (const port of ['0', '08000', '+8000', '65536', 'x', '8000%20', '8e3'])
		refused(await daemon.api('GET', at('/', port)), 400, 'INVALID_PORT_NUMBER');
	refused(await daemon.api('GET', '/v1/sandboxes/never-made/ports/8000/'), 404, 'SANDBOX_NOT_FOUND');
	assert.equal((await daemon.api('GET', '/v1/sandboxes/never-made')).status, 404);
});

test('a request waits for a port that opens later, and wakes a sandbox that sleeps', async t => {
	const sleepy = await daemon.box(t, {});
	await sleepy.out('true');
	await sleepy.stop();
	const waiting = daemon.api('GET', `/v1/sandboxes/${sleepy.id}/ports/8000/late`, undefined, { deadline: 120_000 });
	await until('it wakes', async () => (await sleepy.info()).state === 'running');
	await serve(sleepy, 8000);
	assert.equal((await waiting).body, 'hello from /late');
});

test('a destroyed sandbox answers nobody any more', async t => {
	const gone = await daemon.box(t, {});
	await serve(gone, 8000);
	assert.equal((await daemon.api('GET', `/v1/sandboxes/${gone.id}/ports/8000/x`, undefined, { deadline: 120_000 })).body, 'hello from /x');
	await gone.destroy();
	refused(await daemon.api('GET', `/v1/sandboxes/${gone.id}/ports/8000/x`), 404, 'SANDBOX_NOT_FOUND');
});

test('silt exposes, lists, opens and unexposes', async t => {
	const mine = await daemon.box(t, {});
	const run = async (...args) => {
		const done = await silt(daemon, args);
		assert.equal(done.code, 0, done.stderr);
		return done.stdout;
	};
	const url = (await run('expose', mine.id, '8000', '--name', 'web', '--token', 'fromthecli')).trim();
	assert.match(url, new RegExp(`^http://8000-${mine.id}-fromthecli\\.localhost:\\d+/$`));
	assert.equal((await run('expose', mine.id, '8000')).trim(), url);
	assert.equal((await run('open', mine.id, '8000')).trim(), url);
	assert.equal(JSON.parse(await run('expose', mine.id, '8001', '--private', '--json')).private, true);
	assert.match(await run('open', mine.id, '8001'), /\?silt-proof=\d+\.[0-9a-f]{64}\n$/);
	const lines = (await run('ports', mine.id)).trim().split('\n').map(line => line.split(/\s+/));
	assert.deepEqual(lines.map(line => line.slice(0, 3)), [['PORT', 'ACCESS', 'NAME'], ['8000', 'url', 'web'], ['8001', 'private', '-']]);
	assert.equal(lines[1][3], url);
	assert.equal(JSON.parse(await run('ports', mine.id, '--json')).count, 2);
	assert.equal(await run('unexpose', mine.id, '8000'), '');
	for (const [args, message] of [[['unexpose', mine.id, '8000'], /not exposed/], [['expose', mine.id, '3000'], /reserved/], [['expose', mine.id, 'x'], /port x/],
		[['ports', 'never-made'], /does not exist/], [['expose', mine.id], /usage/]]) {
		const done = await silt(daemon, args);
		assert.equal(done.code, 125, args.join(' '));
		assert.match(done.stderr, message);
	}
});
