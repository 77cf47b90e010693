// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { refused, refusedAs4xx } from '../lib/expect.mjs';
import { filesBelow } from '../lib/host.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const VALID = ['a', 'Z', '0', '_', '__x__', 'a.b', 'a_b', 'a-b', 'a--b', 'a.-b', '1.2.3', 'session-1700000000000-0.123', 'apis', 'www1', 'x'.repeat(128)];
const INVALID = ['-a', 'a-', '.a', 'a.', '.', '..', 'a..b', '...', '-', 'x'.repeat(129), 'x'.repeat(4000), 'a~b', 'a@b', 'a:b', 'a+b', 'a,b', 'a*b', "a'b", 'a!b', 'a;b', 'a=b'];
const ESCAPED = ['a%2fb', 'a%2Fb', '%2e%2e', '..%2f..%2fetc', 'a%00b', 'a%0ab', 'a%0d%0ab', 'a%20b', '%41', '%', '%zz', 'a%5cb', '%c3%a4', 'a%ff'];
const RESERVED = ['www', 'api', 'admin', 'root', 'system', 'cloudflare', 'workers', 'WWW', 'Api', 'rOOt'];

test('ids of letters, digits, dot, underscore and dash work', async t => {
	for (const id of VALID) {
		const box = await daemon.box(t, { id });
		assert.equal(await box.out('echo here'), 'here\n', id);
	}
});

test('first use of a valid id makes the sandbox', async t => {
	const box = await daemon.box(t);
	await box.run('true');
	assert.equal((await box.info()).id, box.id);
});

test('bad ids are refused in the path of both APIs', async () => {
	for (const id of [...INVALID, ...ESCAPED, ...RESERVED]) {
		refused(await daemon.api('POST', `/sandboxes/${id}/api/execute`, { command: 'true' }), 400, 'VALIDATION_FAILED');
		refusedAs4xx(await daemon.api('GET', `/v1/sandboxes/${id}`));
		refusedAs4xx(await daemon.api('DELETE', `/v1/sandboxes/${id}`));
	}
});

test('bad ids are refused in the body of a create', async () => {
	const inBody = [...INVALID, ...RESERVED, '', ' ', 'a/b', '../x', 'a\0b', 'a\nb', 'a\x7fb', 'ä', '\u{1f600}', 'a%2fb'];
	for (const id of inBody)
		refused(await daemon.api('POST', '/v1/sandboxes', { id }), 400, 'VALIDATION_FAILED');
	for (const id of [1, true, {}, [], ['a']])
		refused(await daemon.api('POST', '/v1/sandboxes', { id }), 400, 'VALIDATION_FAILED');
});

test('an empty id is no route or no id', async () => {
	refusedAs4xx(await daemon.api('GET', '/sandboxes//api/ping'));
});

test('an id of 10 MB is refused in the path and in the body', async () => {
	const raw = await daemon.client.raw();
	raw.send(`GET /sandboxes/${'a'.repeat(10_000_000)}/api/ping HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${daemon.token}\r\n\r\n`);
	const answer = await raw.answer();
	assert.ok(answer.closed, 'the connection is closed');
	assert.ok(answer.status === null || (answer.status >= 400 && answer.status < 500), `${answer.status}`);
	refused(await daemon.api('POST', '/v1/sandboxes', { id: 'a'.repeat(10_000_000) }), 400, 'VALIDATION_FAILED');
});

test('control bytes in the request line are refused', async () => {
	for (const byte of ['\0', '\x01', '\t', '\x0b', '\x7f', '\x80', '\xff']) {
		const raw = await daemon.client.raw();
		raw.send(Buffer.from(`GET /sandboxes/a${byte}b/api/ping HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${daemon.token}\r\nConnection: close\r\n\r\n`, 'latin1'));
		const { status } = await raw.answer();
		assert.ok(status === null || (status >= 400 && status < 500), `byte ${byte.charCodeAt(0)}: ${status}`);
	}
});

test('none of the bad ids made a sandbox', async () => {
	const { body } = await daemon.api('GET', '/v1/sandboxes?limit=50');
	assert.deepEqual(body.sandboxes.filter(s => [...INVALID, ...ESCAPED, ...RESERVED].includes(s.id)), []);
});

test('ids differ by case', async t => {
	const upper = await daemon.box(t, { id: 'Case-Sensitive' });
	const lower = await daemon.box(t, { id: 'case-sensitive' });
	await upper.out('echo upper > /root/which');
	assert.equal((await lower.run('cat /root/which')).exitCode, 1);
});

test('the host name inside is the first 63 characters with others as dashes', async t => {
	const ids = {
		plain: 'plain',
		'session-1700000000000-0.123': 'session-1700000000000-0-123',
		'A.b_C': 'A-b-C',
		['y'.repeat(128)]: 'y'.repeat(63),
	};
	for (const [id, hostname] of Object.entries(ids)) {
		const box = await daemon.box(t, { id });
		assert.equal(await box.out('uname -n'), `${hostname}\n`);
		assert.equal(await box.out('echo $HOSTNAME'), `${hostname}\n`);
		assert.equal((await box.info()).hostname, hostname);
	}
});

test('an id is never a file name', async t => {
	const box = await daemon.box(t, { id: 'never-a-file-name' });
	await box.run('true');
	for (const directory of [daemon.state, daemon.run])
		assert.deepEqual(filesBelow(directory, daemon.pid).filter(f => f.includes('never-a-file-name')), []);
});
