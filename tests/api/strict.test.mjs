// SPDX-License-Identifier: Apache-2.0
// Requests below /v1 name only what they know, and make a sandbox only where they say so.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { refused } from '../lib/expect.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const send = (method, path, body) => daemon.api(method, `/v1${path}`, body);

/** 400 that names the field and what was probably meant. */
function unknown(answer, field, meant, code = 'UNKNOWN_FIELD') {
	refused(answer, 400, 'VALIDATION_FAILED');
	const [error] = answer.body.context.validationErrors;
	assert.deepEqual([error.field, error.code], [field, code]);
	if (meant)
		assert.match(error.message, new RegExp(`; did you mean ${meant}\\?$`));
	else
		assert.doesNotMatch(error.message, /did you mean/);
	assert.ok(answer.body.message.startsWith(`${field}: `), answer.body.message);
}

test('a misspelled option creates nothing', async () => {
	unknown(await send('POST', '/sandboxes', { id: 'typo', netwrok: { mode: 'none' } }), 'netwrok', 'network');
	unknown(await send('POST', '/sandboxes', { id: 'typo', network: { mod: 'none' } }), 'network.mod', 'mode');
	unknown(await send('POST', '/sandboxes', { id: 'typo', network: { mode: 'allow', allow: [{ host: 'example.com', prot: 443 }] } }), 'network.allow[0].prot', 'port');
	unknown(await send('POST', '/sandboxes', { id: 'typo', banana: null }), 'banana');
	refused(await send('GET', '/sandboxes/typo'), 404, 'SANDBOX_NOT_FOUND');
});

test('a limit without its unit is refused, and errors have numbers as people write them', async () => {
	for (const [name, meant] of [['memory', 'memoryMiB'], ['disk', 'diskMiB'], ['cpus', 'cpu'], ['memory_mib', 'memoryMiB']])
		unknown(await send('POST', '/sandboxes', { limits: { [name]: 512 } }), `limits.${name}`, meant);
	const large = await send('POST', '/sandboxes', { limits: { memoryMiB: 1e12 } });
	refused(large, 400, 'VALIDATION_FAILED');
	assert.match(large.body.message, /memoryMiB must be a whole number between 16 and 16777216$/);
	for (const limits of [{ memoryMiB: 512.5 }, { pids: 10.5 }, { diskMiB: '4096' }, { cpu: 0 }])
		refused(await send('POST', '/sandboxes', { limits }), 400, 'VALIDATION_FAILED');
});

test('older spellings are refused with the one of /v1', async t => {
	const box = await daemon.box(t, {});
	const url = `/sandboxes/${box.id}`;
	unknown(await send('POST', `${url}/processes`, { command: 'true', session: 's' }), 'session', 'sessionId');
	unknown(await send('POST', `${url}/processes`, { command: 'true', timeout: 5 }), 'timeout', 'timeoutMs');
	unknown(await send('POST', `${url}/contexts`, { env_vars: {} }), 'env_vars', 'env');
	unknown(await send('POST', `${url}/contexts`, { envVars: {} }), 'envVars', 'env');
	unknown(await send('POST', `${url}/ports/wait`, { port: 1, process: 'p' }), 'process', 'processId');
	unknown(await send('POST', `${url}/git/clone`, { repoUrl: 'http://127.0.0.1:9/x', target_dir: 'x' }), 'target_dir', 'targetDir');
	unknown(await send('PATCH', url, { sleep_after: '5m' }), 'sleep_after', 'sleepAfter');
	assert.deepEqual((await send('GET', `${url}/processes`)).body.processes, []);
});

test('compatible routes ignore what they do not know, as ever', async t => {
	const box = await daemon.box(t, {});
	assert.equal((await box.api('POST', '/api/execute?odd=1', { command: 'true', banana: 1 })).status, 200);
});

test('unknown query parameters are refused', async t => {
	const box = await daemon.box(t, {});
	unknown(await send('GET', '/sandboxes?limt=5'), 'limt', 'limit', 'UNKNOWN_PARAMETER');
	unknown(await send('GET', `/sandboxes/${box.id}?x`), 'x', undefined, 'UNKNOWN_PARAMETER');
	unknown(await send('DELETE', `/sandboxes/${box.id}/processes?grace_ms=5`), 'grace_ms', 'graceMs', 'UNKNOWN_PARAMETER');
	unknown(await send('GET', `/sandboxes/${box.id}/files?path=/etc/passwd&create=true`), 'create', undefined, 'UNKNOWN_PARAMETER');
});

test('long and strange names are answered, shortened', async () => {
	const answer = await send('POST', '/sandboxes', { [`${'x'.repeat(1 << 20)}`]: 1, id: 'typo' });
	refused(answer, 400, 'VALIDATION_FAILED');
	assert.ok(answer.raw.length < 2_000);
	refused(await send('POST', '/sandboxes', { '\u0000"\\ü': 1 }), 400, 'VALIDATION_FAILED');
});

test('a call creates its sandbox only with create=true', async t => {
	const box = await daemon.box(t);
	const url = `/sandboxes/${box.id}`;
	const calls = [['POST', '/processes', { command: 'true' }], ['POST', '/files/mkdir', { path: 'd' }], ['POST', '/contexts', {}], ['POST', '/ports', { port: 8000 }], ['PUT', '/network', { mode: 'none' }]];
	for (const [method, path, body] of calls)
		refused(await send(method, url + path, body), 404, 'SANDBOX_NOT_FOUND');
	refused(await send('POST', `${url}/processes?create=yes`, { command: 'true' }), 400, 'VALIDATION_FAILED');
	refused(await send('POST', `${url}/processes?create=false`, { command: 'true' }), 404, 'SANDBOX_NOT_FOUND');
	refused(await send('GET', url), 404, 'SANDBOX_NOT_FOUND');
	assert.equal((await send('POST', `${url}/processes?create=true`, { command: 'true' })).status, 201);
	assert.equal((await send('GET', url)).body.state, 'running');
	await send('DELETE', url);
	assert.equal((await send('POST', `${url}/ports?create=true`, { port: 8000 })).status, 201);
	assert.equal((await send('POST', `${url}/ports`, { port: 8000 })).status, 200, 'it was exposed already');
	assert.equal((await send('PUT', `${url}/files?path=/workspace/a&create=true`, Buffer.from('x'))).status, 200);
});

test('a PUT creates, and then changes what it names', async t => {
	const box = await daemon.box(t);
	const url = `/sandboxes/${box.id}`;
	const made = await send('PUT', url, { labels: { a: '1' }, type: 'lite', env: { A: '1' } });
	assert.deepEqual([made.status, made.body.id, made.body.type, made.body.labels], [201, box.id, 'lite', { a: '1' }]);
	const changed = await send('PUT', url, { labels: { b: '2' }, type: 'basic', sleepAfter: '5m', image: made.body.image.name });
	assert.deepEqual([changed.status, changed.body.type, changed.body.limits.memoryMiB, changed.body.labels, changed.body.sleepAfter], [200, 'basic', 1024, { a: '1', b: '2' }, 300]);
	assert.deepEqual([changed.body.createdAt, changed.body.incarnation], [made.body.createdAt, made.body.incarnation]);
	assert.equal((await send('PUT', url, {})).body.type, 'basic');
	refused(await send('PUT', url, { image: 'another' }), 409, 'SANDBOX_ALREADY_EXISTS');
	refused(await send('PUT', url, { ephemeral: true }), 409, 'SANDBOX_ALREADY_EXISTS');
	refused(await send('PUT', url, { id: 'other' }), 400, 'VALIDATION_FAILED');
	refused(await send('PUT', '/sandboxes/..', {}), 400, 'VALIDATION_FAILED');
});

test('of many PUTs at once one creates', async t => {
	const box = await daemon.box(t);
	const answers = await Promise.all(Array.from({ length: 10 }, () => send('PUT', `/sandboxes/${box.id}`, {})));
	assert.deepEqual(answers.map(a => a.status).sort(), [...Array(9).fill(200), 201]);
});
