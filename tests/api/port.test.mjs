// SPDX-License-Identifier: Apache-2.0
// Waiting for ports, as a stream and as one answer.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { refused } from '../lib/expect.mjs';
import * as host from '../lib/host.mjs';
import { collect, events } from '../lib/sse.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

/** The stream of a port watch, after its `watching` event. */
async function watch(box, body) {
	const response = await daemon.client.open('POST', `/sandboxes/${box.id}/api/port-watch`, body);
	assert.equal(response.statusCode, 200);
	const stream = events(response);
	const { value } = await stream.next();
	assert.deepEqual(value.data, { type: 'watching', port: body.port });
	return { response, end: async () => (await collect(stream)).all.map(e => e.data) };
}

const waitFor = (box, body) => daemon.api('POST', `/v1/sandboxes/${box.id}/ports/wait`, body);
const node = (box, code) => box.run(`node -e '${code}'`, { background: true, sessionId: 'server' });

/** A web server inside whose path /set/<status> chooses what every other path answers. */
const SERVER = 'let s = 503; require("http").createServer((q, r) => { const m = /^\\/set\\/(\\d+)/.exec(q.url); if (m) s = +m[1]; r.writeHead(m ? 200 : s, { location: "/target" }); r.end(); }).listen(8080, "127.0.0.1")';

test('tcp: ready once something listens', async t => {
	const box = await daemon.box(t);
	const { end } = await watch(box, { port: 4000, mode: 'tcp' });
	await node(box, 'require("net").createServer().listen(4000, "127.0.0.1")');
	assert.deepEqual(await end(), [{ type: 'ready', port: 4000 }]);
	const again = await watch(box, { port: 4000, mode: 'tcp' });
	assert.deepEqual(await again.end(), [{ type: 'ready', port: 4000 }]);
});

test('tcp: a server on ::1 counts, one on port 3000 too', async t => {
	const box = await daemon.box(t);
	await node(box, 'require("net").createServer().listen(3000, "::1")');
	assert.deepEqual(await (await watch(box, { port: 3000, mode: 'tcp' })).end(), [{ type: 'ready', port: 3000 }]);
});

test('http: ready with the first status in the range', async t => {
	const box = await daemon.box(t);
	const { end } = await watch(box, { port: 8080, path: 'health', interval: 100 });
	await node(box, SERVER);
	assert.equal((await waitFor(box, { port: 8080, mode: 'tcp' })).body.reached, true);
	await box.out(`node -e 'require("http").get("http://127.0.0.1:8080/set/204")'`);
	assert.deepEqual(await end(), [{ type: 'ready', port: 8080, statusCode: 204 }]);
	const exact = await watch(box, { port: 8080, mode: 'http', path: '/', statusMin: 418, statusMax: 418, interval: 0, processId: null });
	await box.out(`node -e 'require("http").get("http://127.0.0.1:8080/set/418")'`);
	assert.deepEqual(await exact.end(), [{ type: 'ready', port: 8080, statusCode: 418 }]);
});

test('http: redirects are followed on the same host and port, others are their own answer', async t => {
	const box = await daemon.box(t);
	await node(box, 'require("http").createServer((q, r) => { const to = { "/a": "/b", "/b": "http://localhost:8081/c", "/out": "http://example.com/", "/loop": "/loop" }[q.url]; r.writeHead(to ? 302 : q.url === "/c" ? 201 : 404, to && { location: to }); r.end(); }).listen(8081)');
	assert.deepEqual((await waitFor(box, { port: 8081, path: '/a' })).body, { reached: true, statusCode: 201 });
	assert.deepEqual((await waitFor(box, { port: 8081, path: '/out' })).body, { reached: true, statusCode: 302 });
	assert.deepEqual((await waitFor(box, { port: 8081, path: '/loop' })).body, { reached: true, statusCode: 302 });
	assert.deepEqual((await waitFor(box, { port: 8081, path: '/missing', timeoutMs: 200 })).body, { reached: false });
});

test('http: a server that takes connections and says nothing is not ready, and neither is nonsense', async t => {
	const box = await daemon.box(t);
	await node(box, 'require("net").createServer(() => {}).listen(8082); require("net").createServer(s => s.end("SSH-2.0\\n")).listen(8083); require("net").createServer(s => { const more = () => s.write("HTTP/1.1 200 OK\\r\\nX: " + "y".repeat(60000), more); s.on("error", () => {}); more(); }).listen(8084)');
	await waitFor(box, { port: 8084, mode: 'tcp' });
	for (const port of [8082, 8083, 8084])
		assert.deepEqual((await waitFor(box, { port, timeoutMs: 300, intervalMs: 100 })).body, { reached: false });
});

test('what comes up is noticed within 20 ms', async t => {
	const box = await daemon.box(t);
	const delays = [];
	for (let i = 0; i < 50 && Math.min(...delays) > 20; i++) { // once is enough: the machine may be busy
		const port = 5000 + i;
		const { end } = await watch(box, { port, mode: 'tcp', interval: 10_000 });
		await node(box, `const s = require("net").createServer().listen(${port}, () => require("fs").writeFileSync("/tmp/at", String(Date.now())))`);
		await end();
		const now = Date.now();
		delays.push(now - Number(await until('the time', () => box.out('cat /tmp/at'))));
		await box.out('rm /tmp/at');
	}
	assert.ok(Math.min(...delays) <= 20, `delays of ${delays} ms`);
});

test('many watches of a port that nobody serves never take each other for a server', async t => {
	const box = await daemon.box(t);
	await box.out('true');
	const waits = Array.from({ length: 20 }, (_, i) => waitFor(box, { port: 33_000 + i % 2, mode: 'tcp', timeoutMs: 2_000 }));
	for (const answer of await Promise.all(waits))
		assert.deepEqual(answer.body, { reached: false });
});

test('a client that leaves ends its watch', async t => {
	const box = await daemon.box(t);
	const { response } = await watch(box, { port: 6000, mode: 'tcp' });
	const init = host.processInfo(await box.init());
	const workers = () => host.processesOf(daemon.instance).filter(p => p.pidNamespace === init.pidNamespace && p.name === init.name && p.pid !== init.pid).length;
	const before = workers();
	assert.ok(before >= 1);
	response.destroy();
	await until('its worker is gone', () => workers() < before);
});

const start = async (box, processId, command) => assert.equal((await box.api('POST', '/api/process/start', { command, processId })).status, 200);

test('a process that ends ends the wait for its port', async t => {
	const box = await daemon.box(t);
	await start(box, 'gone', 'exit 3');
	await start(box, 'web', 'mkfifo /tmp/gate2; read x < /tmp/gate2; exit 5');
	const { end } = await watch(box, { port: 6100, mode: 'tcp', processId: 'web' });
	const answer = waitFor(box, { port: 6100, mode: 'tcp', processId: 'web' });
	await until('it waits', async () => (await box.run('test -p /tmp/gate2')).exitCode === 0);
	await box.out('echo > /tmp/gate2');
	assert.deepEqual(await end(), [{ type: 'process_exited', port: 6100, exitCode: 5 }]);
	assert.deepEqual((await answer).body, { reached: false, processExited: true, exitCode: 5 });
	await until('it is over', async () => (await box.api('GET', '/api/process/gone')).body.process.status !== 'running');
	assert.deepEqual(await (await watch(box, { port: 6100, processId: 'gone' })).end(), [{ type: 'process_exited', port: 6100, exitCode: 3 }]);
	assert.deepEqual((await waitFor(box, { port: 6100, processId: 'gone' })).body, { reached: false, processExited: true, exitCode: 3 });
});

test('a process that serves its port is ready, one that nobody knows is an error', async t => {
	const box = await daemon.box(t);
	const body = { port: 6200, mode: 'tcp', processId: 'web' };
	await start(box, 'web', `exec node -e 'require("net").createServer().listen(6200)'`);
	assert.deepEqual(await (await watch(box, body)).end(), [{ type: 'ready', port: 6200 }]);
	assert.deepEqual((await waitFor(box, { port: 6200, mode: 'tcp', processId: 'web' })).body, { reached: true });
	assert.deepEqual(await (await watch(box, { ...body, processId: 'stranger' })).end(), [{ type: 'error', port: 6200, error: 'Process not found' }]);
	refused(await waitFor(box, { port: 6200, processId: 'stranger' }), 404, 'PROCESS_NOT_FOUND');
});

test('a wait of a process for its port: reached, too late, or the process is over', async t => {
	const box = await daemon.box(t);
	const wait = (process, query) => daemon.api('GET', `/v1/sandboxes/${box.id}/processes/${process}/wait?for=port&${query}`);
	await start(box, 'web', `exec node -e 'require("http").createServer((q, r) => r.writeHead(q.url === "/a%20b" ? 201 : 404).end()).listen(6300)'`);
	assert.deepEqual((await wait('web', 'port=6300&path=%2Fa+b')).body, { reached: true, statusCode: 201, status: 'running' });
	assert.deepEqual((await wait('web', 'port=6300&mode=tcp')).body, { reached: true, status: 'running' });
	assert.deepEqual((await wait('web', 'port=6300&timeoutMs=50')).body, { reached: false, reason: 'timeout', status: 'running' });
	assert.deepEqual((await wait('web', 'port=6300&statusMin=404&statusMax=404')).body, { reached: true, statusCode: 404, status: 'running' });
	const pending = wait('web', 'port=6301&mode=tcp');
	assert.equal((await box.api('DELETE', '/api/process/web')).status, 200);
	for (const { body } of [await pending, await wait('web', 'port=6301')])
		assert.deepEqual([body.reached, body.reason, body.status], [false, 'exited', 'killed']);
	for (const query of ['', 'port=0', 'port=65536', 'port=x', 'port=1&path=%zz', 'port=1&statusMin=x'])
		refused(await wait('web', query), 400, 'VALIDATION_FAILED');
	refused(await wait('stranger', 'port=1'), 404, 'PROCESS_NOT_FOUND');
});

test('one answer: reached, or not in time', async t => {
	const box = await daemon.box(t);
	await box.out('true');
	assert.deepEqual((await waitFor(box, { port: 7000, mode: 'tcp', timeoutMs: 50 })).body, { reached: false });
	const late = waitFor(box, { port: 7000, mode: 'tcp', timeoutMs: 20_000 });
	await node(box, 'require("net").createServer().listen(7000)');
	assert.deepEqual((await late).body, { reached: true });
	refused(await daemon.api('POST', '/v1/sandboxes/nobody-made-it/ports/wait', { port: 1 }), 404, 'SANDBOX_NOT_FOUND');
});

test('wrong fields are refused', async t => {
	const box = await daemon.box(t);
	await box.out('true');
	for (const body of [{}, { port: 'x' }, { port: 0 }, { port: 65_536 }, { port: 1.5 }, { port: -1 }, { port: 1, path: 5 }, { port: 1, mode: 5 }, { port: 1, statusMin: 'a' }, { port: 1, interval: 'x' }, { port: 1, path: 'x'.repeat(5000) }]) {
		refused(await box.api('POST', '/api/port-watch', body), 400, 'VALIDATION_FAILED');
		refused(await waitFor(box, body), 400, 'VALIDATION_FAILED');
	}
});

test('more than 32 watches and waits in one sandbox are refused', async t => {
	const box = await daemon.box(t);
	await box.out('true');
	const open = [];
	for (let i = 0; i < 32; i++)
		open.push(await watch(box, { port: 100 + i, mode: 'tcp' }));
	refused(await box.api('POST', '/api/port-watch', { port: 99 }), 429, 'LIMIT_REACHED');
	for (const { response } of open)
		response.destroy();
	await until('there is room again', async () => (await waitFor(box, { port: 99, mode: 'tcp', timeoutMs: 1 })).status === 200);
});

test('a sandbox that goes ends the watch with an error', async t => {
	const box = await daemon.box(t);
	const { end } = await watch(box, { port: 6001, mode: 'tcp' });
	await box.destroy();
	const [last] = await end();
	assert.deepEqual([last.type, last.port, typeof last.error], ['error', 6001, 'string']);
});
