// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { descriptors, processInfo } from '../lib/host.mjs';
import { collect } from '../lib/sse.mjs';
import { median, milliseconds, until } from '../lib/wait.mjs';

const HEAD_MS = 4_000; // for those who are only slow
const BODY_MS = 4_000;
const IDLE_MS = 900;
const LONG_S = 5;

let daemon;
before(async () => {
	daemon = await startDaemon({ keepAlive: false, flags: { 'http.head_timeout_ms': HEAD_MS, 'http.body_timeout_ms': BODY_MS, 'http.idle_timeout_ms': IDLE_MS } });
});
after(() => daemon?.stop());

const auth = () => `Host: x\r\nAuthorization: Bearer ${daemon.token}\r\n`;

/** Sends a byte every 100 ms for as long as the server listens. */
function drip(connection, text) {
	let at = 0;
	const timer = setInterval(() => (connection.socket.writable ? connection.send(text[at++ % text.length]) : clearInterval(timer)), 100);
	connection.closed.then(() => clearInterval(timer));
}

test('a head that does not come is cut off', async () => {
	await Promise.all(['', 'GET', 'GET /healthz HTTP/1.1\r\n', 'GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: '].map(async start => {
		const raw = await daemon.client.raw();
		raw.send(start);
		const answer = await raw.answer();
		assert.ok(answer.closed, JSON.stringify(start));
		assert.ok([null, 408].includes(answer.status), `${answer.status}`);
	}));
});

test('a head that comes byte by byte is cut off all the same', async () => {
	const raw = await daemon.client.raw();
	raw.send('GET /healthz HTTP/1.1\r\nHost: x\r\n');
	drip(raw, 'X-A: aaaaaaaaaaaa\r\n');
	assert.ok((await raw.answer()).closed);
});

test('a body that does not come is cut off', async t => {
	const box = await daemon.box(t);
	await Promise.all(['Content-Length: 100\r\n\r\n', 'Content-Length: 100\r\n\r\n{"command":', 'Transfer-Encoding: chunked\r\n\r\n', 'Transfer-Encoding: chunked\r\n\r\n5\r\n{"c'].map(async rest => {
		const raw = await daemon.client.raw();
		raw.send(`POST /sandboxes/${box.id}/api/execute HTTP/1.1\r\n${auth()}${rest}`);
		const answer = await raw.answer();
		assert.ok(answer.closed, JSON.stringify(rest));
		assert.ok([null, 408].includes(answer.status), `${answer.status}`);
	}));
});

test('a connection on which nothing happens is closed', async () => {
	const raw = await daemon.client.raw();
	raw.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
	await raw.received(/^HTTP\/1\.1 200 /);
	const answer = await raw.answer();
	assert.ok(answer.closed);
	assert.equal(answer.answers, 1);
});

test('a stream that is silent for longer is not closed', async t => {
	const box = await daemon.box(t);
	const end = await collect(box.stream(`sleep ${LONG_S}; echo at last`));
	assert.deepEqual([end.stdout, end.exitCode], ['at last\n', 0]);
});

test('a command that takes longer is not cut off', async t => {
	const box = await daemon.box(t);
	assert.equal(await box.out(`sleep ${LONG_S}; echo at last`), 'at last\n');
});

test('a client that half-closes still gets its answer', async t => {
	const box = await daemon.box(t);
	const raw = await daemon.client.raw();
	const body = JSON.stringify({ command: 'sleep 0.2; echo answered' });
	raw.send(`POST /sandboxes/${box.id}/api/execute HTTP/1.1\r\n${auth()}Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`);
	raw.socket.end();
	assert.match((await raw.answer()).text, /answered/);
});

test('2,000 idle connections change nothing', async t => {
	const other = await startDaemon(); // with ordinary timeouts
	t.after(() => other.stop());
	const box = await other.box(undefined);
	await box.run('true');
	const latency = async () => {
		const times = [];
		for (let i = 0; i < 60; i++)
			times.push(await milliseconds(() => box.run(':')));
		return median(times);
	};
	await latency();
	const before = await latency();
	await other.atRest(); // ready sandboxes are made in the background, and have descriptors too
	const pid = other.siltd();
	const memory = processInfo(pid).residentKiB;
	const open = descriptors(pid);
	const idle = [];
	for (let i = 0; i < 20; i++)
		idle.push(...await Promise.all(Array.from({ length: 100 }, () => other.client.raw())));
	await until('all are accepted', () => descriptors(pid) >= open + 2000);
	await until('a command takes as long as before', async () => await latency() <= before * 2 + 1, 180_000); // now and then others are busy, too
	const growth = processInfo(pid).residentKiB - memory;
	assert.ok(growth < 24 * 1024, `siltd grew by ${growth} KiB`);
	assert.equal(idle.filter(c => c.socket.destroyed).length, 0, 'none was closed');
	idle.forEach(c => c.destroy());
	await until('all are gone', () => descriptors(pid) <= open + 1);
});
