// SPDX-License-Identifier: Apache-2.0
// The multiplexed WebSocket: many requests on one socket, and what no client should send.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { until, within } from '../lib/wait.mjs';
import { frame, Socket } from '../lib/ws.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

async function open(t, box, options = {}) {
	const socket = await Socket.open(daemon, `/sandboxes/${box.id}${options.path ?? '/ws'}`, options);
	t.after(() => socket.destroy());
	return socket;
}

/** What comes for one id, up to its last frame. */
async function answer(socket, id) {
	const streams = [];
	for (;;) {
		const message = await socket.json();
		assert.equal(message.id, id);
		if (message.type !== 'stream')
			return { ...message, streams };
		streams.push(JSON.parse(message.data));
	}
}

let serial = 0;
function ask(socket, method, path, body, more = {}) {
	const id = `r${++serial}`;
	socket.send({ type: 'request', id, method, path, ...(body !== undefined && { body }), ...more });
	return id;
}

test('a request is answered as by HTTP, on both paths', async t => {
	const box = await daemon.box(t);
	for (const path of ['/ws', '/api/ws']) {
		const socket = await open(t, box, { path });
		const pong = await answer(socket, ask(socket, 'GET', '/api/ping'));
		assert.deepEqual([pong.type, pong.status, pong.done, pong.body.success, pong.body.status], ['response', 200, true, true, 'healthy']);
		const run = await answer(socket, ask(socket, 'POST', '/api/execute', { command: 'echo out; echo err >&2; (exit 3)' }));
		assert.deepEqual([run.status, run.body.stdout, run.body.stderr, run.body.exitCode], [200, 'out\n', 'err\n', 3]);
		const write = await answer(socket, ask(socket, 'POST', '/api/write', { path: '/workspace/ü.txt', content: 'käse "q" \\ \n' }));
		assert.equal(write.status, 200);
		const read = await answer(socket, ask(socket, 'POST', '/api/read', { path: '/workspace/ü.txt' }));
		assert.equal(read.body.content, 'käse "q" \\ \n');
		const session = await answer(socket, ask(socket, 'GET', '/api/session/list?x=1'));
		assert.equal(session.status, 200);
	}
});

test('HTTP errors are responses, and an answer without JSON has no body', async t => {
	const box = await daemon.box(t);
	const socket = await open(t, box);
	const lost = await answer(socket, ask(socket, 'GET', '/nope'));
	assert.deepEqual([lost.type, lost.status, lost.body.code], ['response', 404, 'UNKNOWN_ERROR']);
	const method = await answer(socket, ask(socket, 'DELETE', '/api/ping'));
	assert.deepEqual([method.status, method.body.code], [405, 'METHOD_NOT_ALLOWED']);
	const invalid = await answer(socket, ask(socket, 'POST', '/api/execute', { command: 5 }));
	assert.deepEqual([invalid.status, invalid.body.code], [400, 'VALIDATION_FAILED']);
	const empty = await answer(socket, ask(socket, 'POST', '/api/execute'));
	assert.equal(empty.status, 400);
	const missing = await answer(socket, ask(socket, 'POST', '/api/read', { path: '/none' }));
	assert.deepEqual([missing.status, missing.body.code], [404, 'FILE_NOT_FOUND']);
	const root = await answer(socket, ask(socket, 'GET', '/'));
	assert.deepEqual([root.status, 'body' in root], [200, false]);
	const nested = await answer(socket, ask(socket, 'GET', '/ws', undefined, { headers: { Upgrade: 'websocket', Connection: 'Upgrade' } }));
	assert.equal(nested.status, 404);
	const other = await answer(socket, ask(socket, 'GET', '/../../v1/sandboxes'));
	assert.equal(other.status, 404);
});

test('requests run at the same time and are answered in any order', async t => {
	const box = await daemon.box(t);
	const socket = await open(t, box);
	await box.out('mkfifo /tmp/gate');
	const slow = ask(socket, 'POST', '/api/execute', { command: 'cat /tmp/gate', sessionId: 'a' });
	const quick = ask(socket, 'POST', '/api/execute', { command: 'echo quick', sessionId: 'b' });
	assert.equal((await answer(socket, quick)).body.stdout, 'quick\n');
	const opener = ask(socket, 'POST', '/api/execute', { command: 'echo open > /tmp/gate', sessionId: 'b' });
	const both = [await socket.json(), await socket.json()];
	assert.deepEqual(both.map(m => m.id).sort(), [slow, opener].sort());
	assert.equal(both.find(m => m.id === slow).body.stdout, 'open\n');
});

test('a hundred requests at once are each answered once', async t => {
	const box = await daemon.box(t);
	const socket = await open(t, box);
	const ids = Array.from({ length: 100 }, (_, i) => ask(socket, 'POST', '/api/write', { path: `/tmp/${i}`, content: 'x'.repeat(i) }));
	const got = [];
	while (got.length < ids.length)
		got.push(await socket.json());
	assert.deepEqual(got.map(m => m.id).sort(), ids.sort());
	assert.ok(got.every(m => m.status === 200 && m.type === 'response'));
});

test('more requests than a socket may have are refused', async t => {
	const box = await daemon.box(t);
	const socket = await open(t, box);
	await box.out('mkfifo /tmp/gate');
	const ids = Array.from({ length: 300 }, () => ask(socket, 'POST', '/api/execute', { command: 'read x < /tmp/gate', sessionId: 'one' }));
	const refused = await socket.json();
	assert.deepEqual([refused.status, refused.body.code], [429, 'LIMIT_REACHED']);
	assert.ok(ids.includes(refused.id));
});

test('a stream is one frame an event, then a response', async t => {
	const box = await daemon.box(t);
	const socket = await open(t, box);
	const end = await answer(socket, ask(socket, 'POST', '/api/execute/stream', { command: 'echo a; echo "b \\"q\\"" >&2; exit 2' }));
	assert.deepEqual([end.type, end.status, end.done, 'body' in end], ['response', 200, true, false]);
	assert.equal(end.streams[0].type, 'start');
	assert.deepEqual(end.streams.filter(e => e.type === 'stdout').map(e => e.data).join(''), 'a\n');
	assert.deepEqual(end.streams.filter(e => e.type === 'stderr').map(e => e.data).join(''), 'b "q"\n');
	assert.deepEqual([end.streams.at(-1).type, end.streams.at(-1).exitCode], ['complete', 2]);
	const bad = await answer(socket, ask(socket, 'POST', '/api/execute/stream', { command: ' ' }));
	assert.deepEqual([bad.type, bad.status, bad.streams.length], ['response', 400, 0]);
});

test('a cancelled stream ends at once and its command runs on', async t => {
	const box = await daemon.box(t);
	const socket = await open(t, box);
	const id = ask(socket, 'POST', '/api/execute/stream', { command: 'echo begun; while [ ! -e /tmp/go ]; do sleep 0.05; done; touch /tmp/done' });
	for (;;) {
		const message = await socket.json();
		if (JSON.parse(message.data).type === 'stdout')
			break;
	}
	socket.send({ type: 'cancel', id });
	const end = await answer(socket, id);
	assert.deepEqual([end.type, end.status, end.done], ['response', 200, true]);
	socket.send({ type: 'cancel', id });
	socket.send({ type: 'cancel', id: 'never' });
	await box.out('touch /tmp/go', { sessionId: 'other' });
	await until('the command is done', async () => (await box.exec('test -e /tmp/done', { sessionId: 'other' })).body.exitCode === 0);
	const slow = ask(socket, 'POST', '/api/execute', { command: 'sleep 0.3; echo whole' });
	socket.send({ type: 'cancel', id: slow });
	assert.equal((await answer(socket, slow)).body.stdout, 'whole\n');
});

test('a socket that is closed cancels its streams and leaves commands running', async t => {
	const box = await daemon.box(t);
	const socket = await open(t, box);
	ask(socket, 'POST', '/api/execute/stream', { command: 'echo begun; while [ ! -e /tmp/go ]; do sleep 0.05; done; touch /tmp/done' });
	while (JSON.parse((await socket.json()).data).type !== 'stdout');
	socket.destroy();
	await box.out('touch /tmp/go', { sessionId: 'other' });
	await until('the command is done', async () => (await box.exec('test -e /tmp/done', { sessionId: 'other' })).body.exitCode === 0);
});

test('what is no request is told, and harms nothing', async t => {
	const box = await daemon.box(t);
	const socket = await open(t, box);
	const tell = async message => { socket.send(message); return socket.json(); };
	assert.deepEqual(await tell('junk'), { type: 'error', code: 'PARSE_ERROR', message: 'Invalid JSON message', status: 400 });
	for (const message of ['5', '{}', '{"type":"hello","id":"1"}', '{"type":"request"}', '{"type":"request","id":7}', '[]']) {
		const error = await tell(message);
		assert.deepEqual([error.type, error.code, error.status, 'id' in error], ['error', 'INVALID_REQUEST', 400, false]);
	}
	for (const [method, path] of [['PATCH', '/api/ping'], ['get', '/api/ping'], ['GET', 'api/ping'], ['GET', '/a b'], ['GET', '/a\r\nX: y'], ['GET', undefined], [undefined, '/'], ['GET', '/ü'], ['GET', `/${'x'.repeat(20_000)}`]]) {
		const error = await answer(socket, ask(socket, method, path));
		assert.deepEqual([error.type, error.code, error.status], ['error', 'INTERNAL_ERROR', 500], `${method} ${path}`.slice(0, 50));
	}
	for (const headers of [{ 'x-a': 'b\r\nx: y' }, { 'a b': 'c' }, { 'a:b': 'c' }]) {
		const error = await answer(socket, ask(socket, 'GET', '/api/ping', undefined, { headers }));
		assert.equal(error.code, 'INTERNAL_ERROR');
	}
	const fine = await answer(socket, ask(socket, 'GET', '/api/ping', undefined, { headers: { 'Content-Length': '9', 'Transfer-Encoding': 'chunked', Host: 'x', 'x-n': 5, 'X-Session-Id': 's' } }));
	assert.equal(fine.status, 200);
	socket.say(frame('binary', JSON.stringify({ type: 'request', id: 'b', method: 'GET', path: '/api/ping' })));
	assert.equal((await answer(socket, 'b')).status, 200);
});

test('the header of a session counts', async t => {
	const box = await daemon.box(t);
	const socket = await open(t, box);
	await answer(socket, ask(socket, 'POST', '/api/execute', { command: 'x=5' }, { headers: { 'X-Session-Id': 'mine' } }));
	const got = await answer(socket, ask(socket, 'POST', '/api/execute', { command: 'echo $x', sessionId: 'mine' }));
	assert.equal(got.body.stdout, '5\n');
});

test('large bodies and large answers pass', async t => {
	const box = await daemon.box(t);
	const socket = await open(t, box);
	const content = 'abcdefghij'.repeat(1_000_000);
	assert.equal((await answer(socket, ask(socket, 'POST', '/api/write', { path: '/tmp/large', content }))).status, 200);
	const read = await answer(socket, ask(socket, 'POST', '/api/read', { path: '/tmp/large' }));
	assert.equal(read.body.content, content);
	const run = await answer(socket, ask(socket, 'POST', '/api/execute', { command: 'cat /tmp/large' }));
	assert.equal(run.body.stdout, content);
	const stream = await answer(socket, ask(socket, 'POST', '/api/execute/stream', { command: 'cat /tmp/large' }));
	assert.equal(stream.streams.filter(e => e.type === 'stdout').map(e => e.data).join(''), content);
});

test('a client that does not read holds its streams back, not the memory of the daemon', async t => {
	const box = await daemon.box(t);
	const socket = await open(t, box);
	socket.raw.pause();
	ask(socket, 'POST', '/api/execute/stream', { command: 'head -c 12000000 /dev/zero | tr "\\0" x; touch /tmp/written' });
	await until('its command is held back or done', async () => (await box.exec('test -e /tmp/written', { sessionId: 'other' })).body.exitCode === 0, 60_000);
	socket.raw.resume();
	let bytes = 0;
	for (;;) {
		const message = await socket.json();
		if (message.type !== 'stream')
			break;
		const event = JSON.parse(message.data);
		bytes += event.type === 'stdout' ? event.data.length : 0;
	}
	assert.equal(bytes, 12_000_000);
});

test('whole answers that nobody takes do not fill the memory of the daemon', async t => {
	const box = await daemon.box(t);
	const socket = await open(t, box);
	const count = 16;
	const ids = new Set();
	socket.raw.pause();
	for (let i = 0; i < count; i++)
		ids.add(ask(socket, 'POST', '/api/execute', { command: `head -c 10000000 /dev/zero | tr "\\0" x; echo >> /tmp/ended`, sessionId: `s${i % 4}` }));
	await until('all have ended', async () => await box.out('cat /tmp/ended 2>/dev/null | wc -l', { sessionId: 'look' }) === `${count}\n`, 400_000);
	socket.raw.resume();
	let bytes = 0, refused = 0;
	for (let i = 0; i < count; i++) {
		const message = await socket.json(240_000);
		assert.ok(ids.delete(message.id));
		bytes += message.body?.stdout.length ?? 0;
		refused += message.type === 'error' && message.code === 'INTERNAL_ERROR' ? 1 : 0;
	}
	assert.ok(refused > 0 && bytes >= 10_000_000 && bytes < 90_000_000, `${refused} refused, ${bytes} bytes`);
	const later = await answer(socket, ask(socket, 'POST', '/api/execute', { command: 'head -c 10000000 /dev/zero | tr "\\0" x' }));
	assert.equal(later.body?.stdout.length, 10_000_000, 'there is room again');
});

test('bodies that wait count as those of HTTP do', async t => {
	const box = await daemon.box(t);
	const socket = await open(t, box);
	const padding = 'x'.repeat(30 << 20);
	const send = id => { // with a mask of zeros, which changes nothing
		const text = JSON.stringify({ type: 'request', id, method: 'POST', path: '/api/execute', body: { command: 'sleep 1000', sessionId: id, padding } });
		socket.raw.write(frame('text', '', { mask: Buffer.alloc(4), length: text.length }));
		socket.raw.write(text);
	};
	for (let i = 0; i < 10; i++)
		send(`b${i}`);
	const refused = await socket.json(240_000);
	assert.deepEqual([refused.id, refused.status, refused.body.code], ['b8', 503, 'LIMIT_REACHED']);
	assert.equal((await socket.json(240_000)).id, 'b9');
	assert.equal((await answer(socket, ask(socket, 'POST', '/api/execute', { command: 'echo small' }))).body.stdout, 'small\n');
	socket.destroy();
	await until('there is room again', async () => (await box.exec(`: ${padding.slice(0, 100_000)}`, { sessionId: 'after' })).status === 200);
});

test('a stream that never runs dry does not starve the others of its socket', async t => {
	const box = await daemon.box(t);
	const socket = await open(t, box);
	const words = ['first', 'second', 'third'];
	const ids = words.map(word => ask(socket, 'POST', '/api/execute/stream', { command: `yes ${word}`, sessionId: word }));
	const got = Object.fromEntries(ids.map(id => [id, 0]));
	socket.raw.on('data', () => { // slower than any of them
		socket.raw.pause();
		setTimeout(() => socket.raw.resume(), 25);
	});
	for (let all = 0; Object.values(got).some(n => n < 1_000_000);) {
		const message = await socket.json();
		got[message.id] += message.data.length;
		all += message.data.length;
		assert.ok(all < 20_000_000, JSON.stringify(got));
	}
	for (const id of ids)
		socket.send({ type: 'cancel', id });
});

const WORKERS = 'for p in /proc/[0-9]*; do n=${p#/proc/}; [ $n != 1 ] && [ "$(readlink $p/exe)" = "$(readlink /proc/1/exe)" ] && echo $n; done; true';

test('a request that is left may answer another of the same socket', async t => {
	const box = await daemon.box(t);
	const siltd = daemon.siltd();
	const pid = Number(await box.out('echo $$', { sessionId: 'dies' }));
	for (const closing of ['closed', 'reset']) {
		const socket = await open(t, box);
		await answer(socket, ask(socket, 'POST', '/api/write', { path: '/tmp/f', content: 'x' }));
		await box.out(`for w in $(${WORKERS}); do kill -STOP $w; done`, { sessionId: 'look' });
		const shell = closing === 'closed' ? pid : Number(await box.out('echo $$', { sessionId: 'dies' }));
		ask(socket, 'POST', '/api/read', { path: '/tmp/f', sessionId: 'dies' });
		ask(socket, 'POST', '/api/execute', { command: 'echo never', sessionId: 'dies' });
		ask(socket, 'POST', '/api/read', { path: '/tmp/f', sessionId: 'dies' });
		assert.equal((await answer(socket, ask(socket, 'GET', '/api/ping'))).status, 200, 'all are under way');
		await box.out(`kill -9 ${shell}`, { sessionId: 'look' });
		await until('its shell is gone', async () => (await box.exec(`kill -0 ${shell}`, { sessionId: 'look' })).body.exitCode !== 0);
		if (closing === 'closed')
			socket.raw.end(frame('close', Buffer.from([3, 232])));
		else
			socket.raw.resetAndDestroy();
		assert.equal(await box.out('echo alive', { sessionId: 'dies' }), 'alive\n');
	}
	assert.equal(daemon.siltd(), siltd, 'the same siltd');
});

test('the global WebSocket of Node works with it', async t => {
	const box = await daemon.box(t);
	const socket = new WebSocket(`ws://${daemon.address}/sandboxes/${box.id}/ws`, { headers: { authorization: `Bearer ${daemon.token}` } });
	t.after(() => socket.close());
	const next = event => within(60_000, event, new Promise((resolve, reject) => { socket.addEventListener(event, resolve, { once: true }); socket.addEventListener('error', event => reject(event.error), { once: true }); }));
	await next('open');
	socket.send(JSON.stringify({ type: 'request', id: '1', method: 'POST', path: '/api/execute', body: { command: 'echo hi' } }));
	const message = JSON.parse((await next('message')).data);
	assert.equal(message.body.stdout, 'hi\n');
	const closed = next('close');
	socket.close(1000, 'bye');
	assert.equal((await closed).code, 1000);
});

test('a handshake that is none is refused', async t => {
	const box = await daemon.box(t);
	const refuse = async (options, status, pattern) => {
		await assert.rejects(open(t, box, options), error => {
			assert.equal(error.status, status, `${JSON.stringify(options)}: ${error}`);
			assert.match(error.head + error.body, pattern ?? /./);
			return true;
		});
	};
	await refuse({ token: false }, 401);
	await refuse({ token: 'wrong' }, 401);
	await refuse({ token: false, headers: { Origin: 'http://evil.example' } }, 401);
	await refuse({ headers: { Upgrade: undefined, Connection: undefined } }, 404);
	await refuse({ headers: { Upgrade: 'other' } }, 426);
	await refuse({ headers: { 'Sec-WebSocket-Version': '8' } }, 426, /Sec-WebSocket-Version: 13/);
	await refuse({ headers: { 'Sec-WebSocket-Version': undefined } }, 426);
	await refuse({ headers: { Connection: 'keep-alive' } }, 400);
	await refuse({ headers: { 'Sec-WebSocket-Key': undefined } }, 400);
	await refuse({ headers: { 'Sec-WebSocket-Key': 'short' } }, 400);
	await refuse({ headers: { 'Sec-WebSocket-Key': '!!!!!!!!!!!!!!!!!!!!!!==' } }, 400);
	await refuse({ headers: { 'Content-Length': '1' }, early: 'x' }, 400);
	await refuse({ method: 'POST' }, 405);
	await refuse({ version: '1.0' }, 400);
	const plain = await box.api('GET', '/ws');
	assert.deepEqual([plain.status, plain.body.code], [404, 'UNKNOWN_ERROR']);
	const foreign = await open(t, box, { headers: { Origin: 'http://evil.example' } }); // who has the token is no page
	assert.equal((await answer(foreign, ask(foreign, 'GET', '/api/ping'))).status, 200);
});

const HOSTILE = {
	'no mask': [1002, frame('text', '{}', { mask: false })],
	'no mask on a ping': [1002, frame('ping', '', { mask: false })],
	'a reserved bit': [1002, frame('text', '{}', { rsv: 0x40 })],
	'an unknown opcode': [1002, frame('text', '{}', { op: 3 })],
	'an unknown control opcode': [1002, frame('text', '', { op: 11 })],
	'a long ping': [1002, frame('ping', 'x'.repeat(126))],
	'a ping in parts': [1002, frame('ping', 'x', { fin: false })],
	'a continuation of nothing': [1002, frame('continue', 'x')],
	'a message inside a message': [1002, frame('text', '{', { fin: false }), frame('text', '}')],
	'a text that is no UTF-8': [1007, frame('text', Buffer.from([0xff]))],
	'a length beyond 63 bits': [1002, frame('binary', '', { length: 2n ** 63n })],
	'a message larger than allowed': [1009, frame('binary', '', { length: 2n ** 62n })],
	'a message a byte too large': [1009, frame('binary', '', { length: (64 << 20) + 1 })],
	'a close of one byte': [1002, frame('close', 'x')],
	'a close with a code that is none': [1002, frame('close', Buffer.from([0x03, 0xed]))],
	'a close with a bad reason': [1007, frame('close', Buffer.from([0x03, 0xe8, 0xff]))],
};
for (const [what, [code, ...frames]] of Object.entries(HOSTILE)) {
	test(`${what} ends the socket with ${code}`, async t => {
		const socket = await open(t, await daemon.box(t));
		socket.say(...frames);
		assert.equal((await socket.closed()).code, code);
		assert.equal(await socket.next(), undefined);
	});
}

test('a close is answered with its code', async t => {
	const box = await daemon.box(t);
	for (const [payload, code] of [[Buffer.from([0x03, 0xe8]), 1000], [Buffer.from([0x0f, 0xa0, 0x62]), 4000], ['', undefined]]) {
		const socket = await open(t, box);
		socket.say(frame('close', payload), frame('text', 'never read'));
		assert.deepEqual((await socket.closed()).code, code);
	}
});

test('messages come in any parts, with control frames between them', async t => {
	const box = await daemon.box(t);
	const socket = await open(t, box);
	const text = Buffer.from(JSON.stringify({ type: 'request', id: 'parts-ü', method: 'GET', path: '/api/ping' }));
	const cut = text.indexOf(0xc3) + 1; // in the middle of a character
	socket.say(frame('text', text.subarray(0, cut), { fin: false }), frame('ping', 'mid'), frame('continue', '', { fin: false }), frame('pong', 'unasked'), frame('continue', text.subarray(cut)));
	const first = await socket.next();
	const second = await socket.next();
	const pong = [first, second].find(f => f.op === 'pong');
	const reply = [first, second].find(f => f.op === 'text');
	assert.equal(pong.payload.toString(), 'mid');
	assert.equal(JSON.parse(reply.payload).id, 'parts-ü');
	const bytes = frame('text', JSON.stringify({ type: 'request', id: 'drops', method: 'GET', path: '/api/ping' }));
	for (const byte of bytes)
		socket.say(Buffer.from([byte]));
	assert.equal((await answer(socket, 'drops')).status, 200);
});

test('a request that comes with the handshake is not lost', async t => {
	const box = await daemon.box(t);
	const socket = await open(t, box, { early: frame('text', JSON.stringify({ type: 'request', id: 'early', method: 'GET', path: '/api/ping' })) });
	assert.equal((await answer(socket, 'early')).status, 200);
});

test('a flood of pings is answered in part and harms nobody', async t => {
	const box = await daemon.box(t);
	const socket = await open(t, box);
	const ping = frame('ping', 'x'.repeat(125));
	const flood = Buffer.concat(Array.from({ length: 20_000 }, () => ping));
	socket.raw.pause(); // and never reads what comes back
	socket.say(flood);
	const other = await open(t, box);
	assert.equal((await answer(other, ask(other, 'GET', '/api/ping'))).status, 200);
	socket.raw.resume();
	socket.say(frame('ping', 'last'));
	let pongs = 0;
	for (;;) {
		const pong = await socket.next();
		assert.equal(pong.op, 'pong');
		pongs++;
		if (pong.payload.toString() === 'last')
			break;
	}
	assert.ok(pongs <= 20_001, `${pongs} pongs`);
	assert.equal((await answer(socket, ask(socket, 'GET', '/api/ping'))).status, 200);
});

test('a client that is half closed or reset is let go', async t => {
	const box = await daemon.box(t);
	const connections = async () => Number(/silt_http_connections(?:\{[^}]*\})? (\d+)/.exec((await daemon.api('GET', '/metrics')).raw.toString())?.[1] ?? -1);
	const before = await connections();
	const sockets = await Promise.all(Array.from({ length: 20 }, () => open(t, box)));
	for (const [i, socket] of sockets.entries()) {
		ask(socket, 'GET', '/api/ping');
		if (i % 2)
			socket.raw.resetAndDestroy();
		else
			socket.raw.end();
	}
	if (before >= 0)
		await until('all are gone', async () => await connections() <= before);
});

test('a daemon that stops says goodbye', async t => {
	const own = await startDaemon();
	try {
		const socket = await Socket.open(own, '/sandboxes/bye/ws');
		const stopped = own.stop();
		assert.equal((await socket.closed()).code, 1001);
		await stopped;
	} catch (error) {
		await own.stop().catch(() => {});
		throw error;
	}
});
