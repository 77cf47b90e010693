// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { refused, refusedAs4xx } from '../lib/expect.mjs';
import { processInfo, resetPeak } from '../lib/host.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const execute = (box, body, options) => box.api('POST', '/api/execute', body, options);
const JSON_BODIES = ['/api/execute', '/api/execute/stream', '/api/session/create', '/api/session/delete'];

// ---- JSON ----

const BROKEN = [
	'{', '}', '{"command"', '{"command":', '{"command":"x"', '{"command":"x"}}', '{"command":"x",}', '{command:"x"}', "{'command':'x'}", '{"command":"x"} x', '{"command":"x"}{}', '[', 'nul', 'True', 'NaN', '01',
	'{"a":01}', '{"a":1.}', '{"a":.5}', '{"a":+1}', '{"a":1e}', '{"a":0x10}', '{"a":Infinity}', '{"a":"\\x"}', '{"a":"\\u12"}', '{"a":"tab\there"}', '{"a":"line\nbreak"}', '{"a":1 "b":2}', '{"a" 1}', '{,}', '[,]', '{"a":1,,"b":2}',
	'// comment\n{}', '/* c */ {}', '{"a":1}\0', '\ufeff{"command":"true"}',
];

test('broken JSON answers 400', async t => {
	const box = await daemon.box(t);
	for (const body of BROKEN) {
		for (const path of JSON_BODIES)
			refused(await box.api('POST', path, body), 400, 'VALIDATION_FAILED');
		refused(await daemon.api('POST', '/v1/sandboxes', body), 400, 'VALIDATION_FAILED');
	}
});

test('bytes that are not UTF-8 in a body answer 400', async t => {
	const box = await daemon.box(t);
	for (const bytes of ['ff', 'c0af', 'eda080', 'e282', 'f4908080'])
		refused(await execute(box, Buffer.concat([Buffer.from('{"command":"echo '), Buffer.from(bytes, 'hex'), Buffer.from('"}')])), 400, 'VALIDATION_FAILED');
});

test('lone surrogates in escapes answer 400', async t => {
	const box = await daemon.box(t);
	for (const text of ['\\ud800', '\\udc00', '\\ud800\\ud800', '\\ud83d x'])
		refused(await execute(box, `{"command":"echo ${text}"}`), 400, 'VALIDATION_FAILED');
	assert.equal((await execute(box, '{"command":"echo \\ud83d\\ude00"}')).body.stdout, '😀\n');
});

test('an empty body answers 400 where a body is needed', async t => {
	const box = await daemon.box(t);
	for (const path of ['/api/execute', '/api/execute/stream', '/api/session/delete']) {
		refused(await box.api('POST', path), 400, ['VALIDATION_FAILED', 'INVALID_COMMAND']);
		refused(await box.api('POST', path, ''), 400, ['VALIDATION_FAILED', 'INVALID_COMMAND']);
	}
});

test('a body that is JSON but no object answers 400', async t => {
	const box = await daemon.box(t);
	for (const body of ['null', 'true', '5', '"text"', '[]', '[{"command":"true"}]']) {
		for (const path of JSON_BODIES)
			refused(await box.api('POST', path, body), 400, ['VALIDATION_FAILED', 'INVALID_COMMAND']);
	}
});

test('wrong types answer 400 and run nothing', async t => {
	const box = await daemon.box(t);
	const command = 'touch /tmp/ran';
	const wrong = [
		{}, { command: null }, { command: 5 }, { command: ['true'] }, { command: { a: 1 } }, { command: true },
		{ command, sessionId: 5 }, { command, sessionId: {} }, { command, timeoutMs: 'x' }, { command, timeoutMs: -5 }, { command, env: 'A=1' }, { command, env: ['A=1'] }, { command, env: { A: 1 } },
		{ command, cwd: 5 }, { command, cwd: {} }, { command, background: 'yes' },
	];
	for (const body of wrong)
		refused(await execute(box, body), 400, 'VALIDATION_FAILED');
	assert.equal((await box.run('ls /tmp/ran')).exitCode, 2);
});

test('unknown fields are ignored', async t => {
	const box = await daemon.box(t);
	assert.equal((await execute(box, { command: 'echo ok', unknown: { deep: [1, 2, { x: null }] }, origin: 'internal' })).body.stdout, 'ok\n');
});

test('duplicate keys answer 400, also deep inside and when escaped', async t => {
	const box = await daemon.box(t);
	for (const body of ['{"command":"true","command":"touch /tmp/ran"}', '{"command":"true","env":{"A":"1","A":"2"}}', '{"command":"true","x":[{"a":1,"a":1}]}', '{"command":"true","\\u0063ommand":"touch /tmp/ran"}'])
		refused(await execute(box, body), 400, 'VALIDATION_FAILED');
});

test('nesting of 100,000 levels answers 400', async t => {
	const box = await daemon.box(t);
	for (const [open, close] of [['[', ']'], ['{"a":', '}']]) {
		const deep = open.repeat(100_000) + '1' + close.repeat(100_000);
		refused(await execute(box, `{"command":"true","x":${deep}}`), 400, 'VALIDATION_FAILED');
		refused(await execute(box, open.repeat(100_000)), 400, 'VALIDATION_FAILED');
	}
});

test('huge and odd numbers are bounded', async t => {
	const box = await daemon.box(t);
	for (const number of ['1e999', '-1', '9223372036854775808', `${'9'.repeat(10_000)}`, '1e-400', '0.5', '-0'])
		assert.ok([200, 400, 500].includes((await execute(box, `{"command":"true","timeoutMs":${number}}`)).status), number.slice(0, 30)); // 500: a millisecond can be too short
	refused(await execute(box, '{"command":"true","timeoutMs":-1}'), 400, 'VALIDATION_FAILED');
});

test('NUL in a command, a directory, a value or a session answers 400', async t => {
	const box = await daemon.box(t);
	for (const body of [{ command: 'echo a\0b' }, { command: '\0' }, { command: 'true', cwd: '/tmp\0/x' }, { command: 'true', env: { A: 'x\0y' } }, { command: 'true', sessionId: 'a\0b' }])
		refused(await execute(box, body), 400, 'VALIDATION_FAILED');
});

test('a command larger than any command may be is refused', async t => {
	const box = await daemon.box(t);
	refusedAs4xx(await execute(box, { command: `: ${'x'.repeat(100_000_000)}` }, { deadline: 60_000 }));
	assert.equal(await box.out('echo fine'), 'fine\n');
});

test('an endless cwd or value is refused or fails in its command', async t => {
	const box = await daemon.box(t);
	const long = await execute(box, { command: 'true', cwd: `/${'d'.repeat(1_000_000)}` });
	assert.ok(long.status === 400 || (long.status === 200 && long.body.exitCode === 1), `${long.status}`);
	const value = await execute(box, { command: 'echo ${#A}', env: { A: 'v'.repeat(1_000_000) } });
	assert.ok(value.status === 400 || value.body.stdout === '1000000\n');
	assert.equal(await box.out('echo fine'), 'fine\n');
});

// ---- size ----

test('a body over 128 MiB answers 413, announced or not', async t => {
	const box = await daemon.box(t);
	const announced = await daemon.client.raw();
	announced.send(`POST /sandboxes/${box.id}/api/execute HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${daemon.token}\r\nContent-Length: ${128 * 2 ** 20 + 1}\r\n\r\n`);
	const first = await announced.answer();
	assert.equal(first.status, 413);
	assert.match(first.text, /"code":"BODY_TOO_LARGE"/);
	assert.ok(first.closed);
	const chunked = await daemon.client.raw();
	chunked.send(`POST /sandboxes/${box.id}/api/execute HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${daemon.token}\r\nTransfer-Encoding: chunked\r\n\r\n`);
	const mebibyte = Buffer.concat([Buffer.from('100000\r\n'), Buffer.alloc(2 ** 20, ' '), Buffer.from('\r\n')]);
	for (let i = 0; i < 130 && chunked.socket.writable; i++) {
		chunked.send(mebibyte);
		if (chunked.socket.writableNeedDrain)
			await Promise.race([new Promise(resolve => chunked.socket.once('drain', resolve)), chunked.closed]);
	}
	const second = await chunked.answer();
	assert.ok(second.status === 413 || (second.status === null && second.closed), `${second.status}`);
});

test('announcing a large body costs no memory before it comes', async t => {
	const box = await daemon.box(t);
	await box.run('true');
	const pid = daemon.siltd();
	resetPeak(pid);
	const before = processInfo(pid).residentKiB;
	const connections = await Promise.all(Array.from({ length: 50 }, () => daemon.client.raw()));
	t.after(() => connections.forEach(c => c.destroy()));
	for (const connection of connections)
		connection.send(`POST /sandboxes/${box.id}/api/execute HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${daemon.token}\r\nContent-Length: 134217728\r\n\r\n{"command":"`);
	await box.run('true');
	assert.ok(processInfo(pid).peakKiB - before < 16 * 1024);
});

test('large bodies of some keep nobody from sending small ones', async t => {
	const box = await daemon.box(t);
	const large = Buffer.alloc(100 << 20, 'x');
	const connections = await Promise.all(Array.from({ length: 3 }, () => daemon.client.raw()));
	t.after(() => connections.forEach(c => c.destroy()));
	for (const { socket } of connections) {
		socket.write(`POST /sandboxes/${box.id}/api/write HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${daemon.token}\r\nContent-Length: 134217728\r\n\r\n{"content":"`);
		await new Promise(resolve => socket.write(large, resolve));
	}
	await box.run('true');
	connections.forEach(c => c.destroy());
});

test('a body without a token is not read', async () => {
	const raw = await daemon.client.raw();
	raw.send('POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n{');
	await raw.received(/^HTTP\/1\.1 401 /);
	raw.destroy();
});

// ---- never 503 ----

test('no permanent failure answers 503', async t => {
	const box = await daemon.box(t);
	const answers = await Promise.all([
		execute(box, '{'), execute(box, {}), box.api('GET', '/api/none'), daemon.api('GET', '/v1/sandboxes/none'), daemon.api('POST', '/v1/sandboxes', { image: 'none' }),
		daemon.api('GET', '/healthz?x'), box.exec('exit 1'), box.api('POST', '/api/session/delete', { sessionId: 'none' }),
	]);
	for (const answer of answers)
		assert.notEqual(answer.status, 503);
});

// ---- images ----

test('images are refused when name or bytes are wrong', async () => {
	for (const name of ['.x', 'a..b/', '-x', 'UPPER', 'a%2fb', '%00', 'x'.repeat(200)])
		refusedAs4xx(await daemon.api('PUT', `/v1/images/${name}`, Buffer.alloc(1024), { headers: { 'content-type': 'application/x-tar' } }));
	for (const bytes of [Buffer.from('this is no tar'), Buffer.alloc(100), Buffer.alloc(5120, 0xff)])
		refusedAs4xx(await daemon.api('PUT', '/v1/images/broken-image', bytes, { headers: { 'content-type': 'application/x-tar' } }));
	const { body } = await daemon.api('GET', '/v1/images');
	assert.ok(!body.images.some(image => image.name === 'broken-image'));
	assert.deepEqual((await daemon.api('DELETE', '/v1/images/broken-image')).body, { name: 'broken-image', deleted: false });
});
