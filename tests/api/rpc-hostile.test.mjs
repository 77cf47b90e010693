// SPDX-License-Identifier: Apache-2.0
// What no client of capnweb would say: it costs the connection, and nothing else.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { atRest, connect } from '../lib/rpc.mjs';
import { until, within } from '../lib/wait.mjs';
import { frame, Socket } from '../lib/ws.mjs';

let daemon, box, pid;
before(async () => {
	daemon = await startDaemon();
	box = await daemon.box();
	await box.out('echo here > /workspace/witness');
	pid = daemon.siltd();
});
after(() => daemon?.stop());

async function open(t) {
	const socket = await Socket.open(daemon, `/sandboxes/${box.id}/rpc`);
	t.after(() => socket.destroy());
	return socket;
}

/** The sandbox and the daemon are as they were. */
async function unharmed() {
	assert.equal(await box.out('cat /workspace/witness', { sessionId: '__DISABLE_SESSION__' }), 'here\n');
	assert.equal(daemon.siltd(), pid);
}

/** Reads on to an abort; its message. */
async function aborted(socket) {
	for (;;) {
		const message = await socket.json();
		if (message[0] !== 'abort')
			continue;
		assert.deepEqual(message[1].slice(0, 2), ['error', 'Error']);
		const { code, reason } = await socket.closed();
		assert.equal(code, 3000);
		assert.equal(message[1][2].startsWith(reason) || reason.startsWith(message[1][2].slice(0, 100)), true, `${reason} | ${message[1][2]}`);
		return message[1][2];
	}
}

const call = (domain, method, ...args) => ['push', ['pipeline', 0, [domain, method], args]];

test('a worked exchange has exactly these frames', async t => {
	const socket = await open(t);
	socket.send(call('utils', 'ping'));
	socket.send(['pull', 1]);
	assert.deepEqual(await socket.json(), ['resolve', 1, 'healthy']);
	socket.send(['release', 1, 1]);
	socket.send(call('utils', 'getCommands'));
	socket.send(['pull', 2]);
	assert.deepEqual(await socket.json(), ['resolve', 2, [[]]]);
	socket.send(call('interpreter', 'deleteCodeContext', 'nobody'));
	socket.send(['pull', 3]);
	const error = await socket.json();
	assert.deepEqual(error, ['reject', 3, ['error', 'Error', 'Context nobody not found', null, { code: 'CONTEXT_NOT_FOUND', details: { contextId: 'nobody' } }]]);
	socket.send(Buffer.from(JSON.stringify(call('utils', 'ping'))));
	socket.send(Buffer.from('["pull",4]'));
	assert.deepEqual(await socket.json(), ['resolve', 4, 'healthy']);
});

test('an answer waits for its pull, and none comes after a release', async t => {
	const socket = await open(t);
	socket.send(call('utils', 'ping'));
	socket.send(call('commands', 'nope'));
	socket.send(call('commands', 'executeStream', 'echo hi', 'default'));
	socket.send(call('utils', 'ping'));
	socket.send(['release', 4, 1]);
	await box.out('sleep 0.5');
	socket.send(['pull', 2]);
	assert.deepEqual(await socket.json(), ['reject', 2, ['error', 'TypeError', "'commands.nope' is not a function."]]);
	socket.send(['pull', 1]);
	assert.deepEqual(await socket.json(), ['resolve', 1, 'healthy']);
	socket.send(['pull', 3]);
	assert.deepEqual(await socket.json(), ['pipe']);
	assert.deepEqual(await socket.json(), ['resolve', 3, ['readable', 1]]);
	const [kind, [, pipe, path, args]] = await socket.json();
	assert.deepEqual([kind, pipe, path, args[0][0]], ['stream', 1, ['write'], 'bytes']);
	assert.match(Buffer.from(args[0][1], 'base64').toString(), /^event: start\n/);
});

test('a stream ends with close and the release of its pipe', async t => {
	const socket = await open(t);
	socket.send(call('files', 'readFile', '/workspace/witness', 'default', { encoding: 'none' }));
	socket.send(['pull', 1]);
	assert.deepEqual(await socket.json(), ['pipe']);
	const resolve = await socket.json();
	assert.deepEqual([resolve[0], resolve[1], resolve[2].content, resolve[2].size], ['resolve', 1, ['readable', 1], 5]);
	assert.deepEqual(await socket.json(), ['stream', ['pipeline', 1, ['write'], [['bytes', Buffer.from('here\n').toString('base64').replace(/=+$/, '')]]]]);
	assert.deepEqual(await socket.json(), ['stream', ['pipeline', 1, ['close'], []]]);
	socket.send(['resolve', 2, ['undefined']]);
	socket.send(['resolve', 3, ['undefined']]);
	assert.deepEqual(await socket.json(), ['release', 1, 1]);
	socket.send(['release', 1, 1]);
	socket.send(call('utils', 'ping'));
	socket.send(['pull', 2]);
	assert.deepEqual(await socket.json(), ['resolve', 2, 'healthy']);
});

for (const [name, text] of Object.entries({
	'no JSON': 'hello',
	'half of JSON': '["push",["pipeline",0',
	'no array': '{"push":1}',
	'an empty array': '[]',
	'an unknown kind': '["bogus"]',
	'a push of nothing': '["push"]',
	'a pull of no number': '["pull","x"]',
	'a pull of a fraction': '["pull",1.5]',
	'a pull of nobody': '["pull",77]',
	'a call of nobody': '["push",["pipeline",77,["a"],[]]]',
	'a call of an export': '["push",["pipeline",-1,["a"],[]]]',
	'a write to nobody': '["stream",["pipeline",9,["write"],[["bytes","AA"]]]]',
	'a stream of no call': '["stream",1]',
	'an unknown value': '["push",["pipeline",0,["utils","ping"],[["what",1]]]]',
	'an array that is not framed': '["push",["pipeline",0,["utils","ping"],[[1,2]]]]',
	'bytes that are none': '["push",["pipeline",0,["utils","ping"],[["bytes",1]]]]',
	'a pipe that is none': '["push",["pipeline",0,["files","writeFileStream"],["/x",["readable",5],"default"]]]',
	'an answer that is no value': '["resolve",1,["what"]]',
	'a release of no count': '["release",1]',
	'a negative release': '["release",1,-1]',
	'a number beyond all numbers': '["pull",1e400]',
	'a lone surrogate': '["push",["pipeline",0,["utils","ping"],["\\ud800"]]]',
	'too many levels': `["push",${'['.repeat(70)}${']'.repeat(70)}]`,
	'too many functions': `["push",["pipeline",0,["utils","ping"],[[[${Array.from({ length: 65 }, (_, i) => `["export",${-1 - i}]`)}]]]]]`,
	'one name twice': '["push",["pipeline",0,["utils","ping"],[{"a":1,"a":2}]]]',
}))
	test(`${name} is answered with an abort`, async t => {
		const socket = await open(t);
		socket.send(text);
		assert.notEqual(await aborted(socket), '');
		await unharmed();
	});

test('the words of an abort are those of the protocol', async t => {
	for (const [text, words] of [['["bogus"]', 'bad RPC message: ["bogus"]'], ['["push",["pipeline",77,[],[]]]', 'no such entry on exports table: 77'], ['["pull",5]', 'no such export ID: 5']]) {
		const socket = await open(t);
		socket.send(text);
		assert.equal(await aborted(socket), words);
	}
});

test('an abort of the client closes the connection', async t => {
	const socket = await open(t);
	socket.send(call('commands', 'executeStream', 'yes', 'default'));
	socket.send(['pull', 1]);
	assert.deepEqual(await socket.json(), ['pipe']);
	socket.send(['abort', ['error', 'Error', 'enough']]);
	assert.equal((await socket.closed()).code, 3000);
	await unharmed();
	await box.api('DELETE', '/api/process/kill-all');
});

test('what is nowhere taken is a TypeError, and what came along is let go', async t => {
	const socket = await open(t);
	socket.send(['pipe']);
	socket.send(['push', ['pipeline', 0, ['utils', 'ping'], [['export', -1], { f: ['export', -2], g: [[['export', -2]]] }, ['readable', 1]]]]);
	const released = [await socket.json(), await socket.json(), await socket.json()];
	assert.deepEqual(released.map(m => m.slice(0, 2)), [['release', -1], ['release', -2], ['release', -2]]);
	socket.send(['pull', 2]);
	assert.deepEqual(await socket.json(), ['resolve', 2, 'healthy']);
	socket.send(['stream', ['pipeline', 1, ['write'], [['bytes', 'AA']]]]);
	const refused = await socket.json();
	assert.deepEqual([refused[0], refused[1], refused[2][0]], ['reject', 3, 'error']);
	for (const value of [['import', 0], ['pipeline', 2], ['remap', 0, [], [], []], ['request', 'http://x', {}], ['promise', -7]]) {
		socket.send(['push', ['pipeline', 0, ['utils', 'ping'], [value]]]);
		const id = 4 + [['import'], ['pipeline'], ['remap'], ['request'], ['promise']].findIndex(([tag]) => tag === value[0]);
		socket.send(['pull', id]);
		let message = await socket.json();
		if (value[0] === 'promise') {
			assert.deepEqual(message, ['release', -7, 1]);
			message = await socket.json();
		}
		assert.deepEqual([message[0], message[1], message[2][1]], ['reject', id, 'TypeError']);
	}
	socket.send(['push', 5]);
	socket.send(['pull', 9]);
	assert.equal((await socket.json())[2][1], 'TypeError');
	socket.send(['stream', ['pipeline', 0, ['utils', 'ping'], []]]);
	assert.deepEqual((await socket.json()).slice(0, 2), ['reject', 10]);
	socket.send(['release', 99, 1]);
	socket.send(['resolve', 99, 1]);
	socket.send(call('utils', 'ping'));
	socket.send(['pull', 11]);
	assert.deepEqual(await socket.json(), ['resolve', 11, 'healthy']);
});

test('tables have a ceiling: calls, entries, pipes, writes', async t => {
	const many = await open(t);
	await box.out('mkfifo /tmp/table');
	await box.out('true', { sessionId: 'table' });
	many.send(call('commands', 'execute', 'cat /tmp/table', 'table'));
	many.say(...Array.from({ length: 1099 }, () => frame('text', JSON.stringify(call('files', 'exists', '/tmp', 'table')))));
	many.send(['pull', 1100]);
	let message;
	do
		message = await many.json();
	while (message[1] !== 1100);
	assert.deepEqual([message[0], message[2][4].code, message[2][4].details.code], ['reject', 'INTERNAL_ERROR', 'LIMIT_REACHED']);
	many.destroy();
	await box.out('echo > /tmp/table', { sessionId: '__DISABLE_SESSION__' });

	const entries = await open(t);
	entries.say(...Array.from({ length: 4200 }, () => frame('text', '["push",1]')));
	assert.match(await aborted(entries), /entries/);
	const pipes = await open(t);
	pipes.say(...Array.from({ length: 70 }, () => frame('text', '["pipe"]')));
	assert.match(await aborted(pipes), /pipes/);
	const writes = await open(t);
	writes.say(frame('text', '["pipe"]'), ...Array.from({ length: 17_000 }, () => frame('text', '["stream",["pipeline",1,["write"],[["bytes",""]]]]')));
	assert.match(await aborted(writes), /writes/);
	await unharmed();
});

test('a pipe that nobody reads takes a little only, and one that is let go fails its reader', async t => {
	const socket = await open(t);
	socket.send(['pipe']);
	const block = Buffer.alloc(300_000).toString('base64');
	for (let i = 0; i < 4; i++)
		socket.send(['stream', ['pipeline', 1, ['write'], [['bytes', block]]]]);
	for (let id = 2; id <= 5; id++)
		assert.deepEqual((await socket.json()).slice(0, 2), ['reject', id]);
	socket.send(['release', 1, 1]);
	socket.send(['pipe']); /* 6 */
	socket.send(call('files', 'writeFileStream', '/workspace/never', ['readable', 6], 'default')); /* 7 */
	socket.send(['pull', 7]);
	socket.send(['stream', ['pipeline', 6, ['write'], [['bytes', 'AAAA']]]]); /* 8 */
	assert.deepEqual(await socket.json(), ['resolve', 8, ['undefined']]);
	socket.send(['stream', ['pipeline', 6, ['write'], ['text']]]);
	assert.deepEqual((await socket.json()).slice(0, 2), ['reject', 9]);
	socket.send(['stream', ['pipeline', 6, ['flush'], []]]);
	assert.deepEqual((await socket.json()).slice(0, 2), ['reject', 10]);
	socket.send(['release', 6, 1]);
	assert.deepEqual((await socket.json()).slice(0, 2), ['reject', 7]);
	await until('nothing of it is left', async () => await box.out('ls -A /workspace') === 'witness\n');
	await unharmed();
});

test('an acknowledgement takes a millisecond at least: with a faster one the client\'s window is no number', async t => {
	const socket = await open(t);
	socket.send(['pipe']);
	socket.send(call('files', 'writeFileStream', '/workspace/slow', ['readable', 1], 'default')); /* 2 */
	socket.send(['pull', 2]);
	const times = [];
	for (let id = 3; id < 43; id++) {
		const began = performance.now();
		socket.send(['stream', ['pipeline', 1, ['write'], [['bytes', 'AAAA']]]]);
		assert.deepEqual(await socket.json(), ['resolve', id, ['undefined']]);
		times.push(performance.now() - began);
	}
	assert.ok(Math.min(...times) >= 1.5, `${Math.min(...times)} ms`);
	for (let id = 43; id < 53; id++)
		socket.send(['stream', ['pipeline', 1, ['write'], [['bytes', 'AAAA']]]]);
	socket.send(['stream', ['pipeline', 1, ['close'], []]]); /* 53 */
	const answers = [];
	while (answers.length < 12)
		answers.push(await socket.json());
	assert.deepEqual(answers.filter(([, id]) => id > 2).map(([kind, id]) => [kind, id]), Array.from({ length: 11 }, (_, i) => ['resolve', 43 + i]), 'in order');
	assert.equal(answers.find(([, id]) => id === 2)[2].bytesWritten, 150);
	await box.out('rm /workspace/slow');
	await unharmed();
});

test('a client that writes without minding anybody is held back', async t => {
	const socket = await open(t);
	socket.send(['pipe']);
	await box.out('mkfifo /tmp/fifo-lock');
	socket.send(call('commands', 'execute', 'cat /tmp/fifo-lock', 'held')); /* 2: has the session's turn */
	socket.send(call('files', 'writeFileStream', '/workspace/held', ['readable', 1], 'held')); /* 3 */
	socket.send(['pull', 3]);
	const text = frame('text', JSON.stringify(['stream', ['pipeline', 1, ['write'], [['bytes', Buffer.alloc(1 << 20).toString('base64')]]]]));
	let sent = 0;
	await until('it is not read any more', async () => {
		while (!socket.raw.writableNeedDrain && sent < 200) {
			socket.raw.write(text);
			sent++;
		}
		await new Promise(resolve => setTimeout(resolve, 200));
		return socket.raw.writableNeedDrain || sent === 200;
	});
	assert.ok(sent < 100, `${sent} MiB were taken`);
	await box.out('echo x > /tmp/fifo-lock', { sessionId: '__DISABLE_SESSION__' });
	const first = await socket.json();
	assert.deepEqual(first, ['resolve', 4, ['undefined']]);
	socket.destroy();
	await unharmed();
});

test('writes without bytes take room, too: who sends a million is held back', async t => {
	const socket = await open(t);
	const resident = () => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
	const before = resident();
	socket.say(...Array.from({ length: 64 }, () => frame('text', '["pipe"]')));
	let pipe = 0;
	const fill = async () => {
		while (pipe < 64) {
			const one = frame('text', `["stream",["pipeline",${++pipe},["write"],[["bytes",""]]]]`);
			await new Promise(resolve => socket.raw.write(Buffer.concat(Array(16_000).fill(one)), resolve));
		}
	};
	const filled = fill();
	await until('it is not read any more, or all was taken', async () => {
		const was = pipe;
		return await Promise.race([filled.then(() => true), new Promise(resolve => setTimeout(resolve, 500, false))]) || was === pipe;
	});
	const grown = (resident() - before) / 1024;
	socket.destroy();
	assert.ok(grown < 24, `${grown} MiB for ${pipe} pipes`);
	await unharmed();
});

test('a message of more than 64 MiB costs the connection', async t => {
	const socket = await open(t);
	socket.say(frame('text', '', { length: (64 << 20) + 1 }).subarray(0, 14));
	assert.equal((await socket.closed()).code, 1009);
	await unharmed();
});

test('a handshake that is none is answered as on every socket', async () => {
	const plain = await box.api('GET', '/rpc');
	assert.deepEqual([plain.status, plain.body.code], [404, 'UNKNOWN_ERROR']);
	await assert.rejects(Socket.open(daemon, `/sandboxes/${box.id}/rpc`, { token: 'wrong' }), { status: 401 });
	await assert.rejects(Socket.open(daemon, '/sandboxes/..bad/rpc'), { status: 400 });
});

test('a client that neither reads nor acknowledges holds little, and others are served', async t => {
	const socket = await open(t);
	for (let i = 0; i < 12; i++)
		socket.send(call('commands', 'executeStream', 'yes', '__DISABLE_SESSION__'));
	for (let i = 1; i <= 12; i++)
		socket.send(['pull', i]);
	socket.raw.pause();
	const link = await connect(t, box);
	for (let i = 0; i < 20; i++)
		assert.equal(await within(60_000, 'a ping', link.api.utils.ping()), 'healthy');
	await atRest(link);
	socket.destroy();
	await box.api('DELETE', '/api/process/kill-all');
	await unharmed();
});

test('messages behind a long one, which is read aside, are taken in their order', async t => {
	const socket = await open(t);
	const content = 'a line "quoted" \\ and more\n'.repeat(40_000); // about 1 MiB
	const say = message => frame('text', JSON.stringify(message));
	const many = Array.from({ length: 50 }, (_, i) => [say(call('utils', 'ping')), say(['pull', i + 2])]).flat();
	socket.say(Buffer.concat([say(call('files', 'writeFile', '/tmp/long', content, '__DISABLE_SESSION__')), say(['pull', 1]), ...many, say(call('files', 'writeFile', '/tmp/long2', content, '__DISABLE_SESSION__')), say(['pull', 52])]));
	const answers = new Map();
	while (answers.size < 52) {
		const [kind, id, value] = await socket.json();
		assert.equal(kind, 'resolve', JSON.stringify(value));
		answers.set(id, value);
	}
	assert.deepEqual([answers.get(1).bytesWritten, answers.get(52).bytesWritten], [Buffer.byteLength(content), Buffer.byteLength(content)]);
	assert.equal(await box.out('cmp /tmp/long /tmp/long2 && wc -c < /tmp/long', { sessionId: '__DISABLE_SESSION__' }), `${Buffer.byteLength(content)}\n`);
	await unharmed();
});

test('a long message that is none, or of one who leaves at once, harms nobody', async t => {
	const bad = await open(t);
	bad.say(frame('text', `["push",["pipeline",0,["files","writeFile"],["/tmp/x","${'x'.repeat(1 << 20)}"]`));
	assert.match(await aborted(bad), /^bad RPC message/);
	for (let i = 0; i < 10; i++) {
		const socket = await open(t);
		socket.say(frame('text', JSON.stringify(call('files', 'writeFile', '/tmp/gone', 'x'.repeat(2 << 20), '__DISABLE_SESSION__'))));
		socket.say(frame('text', JSON.stringify(['pull', 1])));
		if (i % 2)
			socket.say(frame('text', '["nonsense"]'));
		socket.destroy();
	}
	const crowd = await open(t);
	const small = frame('text', '0');
	crowd.say(Buffer.concat([frame('text', JSON.stringify(call('utils', 'ping', 'x'.repeat(1 << 20)))), ...Array(3000).fill(small)]));
	assert.match(await aborted(crowd), /^bad RPC message/);
	await unharmed();
});

test('answers that nobody pulls have a ceiling together, however small each is', async t => {
	const [SIZE, BATCH, BATCHES] = [60_000, 400, 5]; // 120 MB, of which 96 MiB may wait
	await box.out(`head -c ${SIZE} /dev/zero | tr '\\0' x > /tmp/small`, { sessionId: '__DISABLE_SESSION__' });
	const socket = await open(t);
	const pull = async id => {
		socket.send(['pull', id]);
		for (;;) {
			const [kind, of, value] = await socket.json();
			if (of === id)
				return { kind, value };
		}
	};
	for (let i = 1; i <= BATCHES; i++) {
		for (let n = 0; n < BATCH; n++)
			socket.send(call('files', 'readFile', '/tmp/small', '__DISABLE_SESSION__'));
		await pull(i * BATCH); // by then nearly all of them are answered
	}
	assert.equal((await pull(1)).value.content.length, SIZE);
	const last = [];
	for (let id = BATCHES * BATCH - 100; id < BATCHES * BATCH; id++)
		last.push(await pull(id));
	assert.ok(last.some(({ kind, value }) => kind === 'reject' && /larger than a connection holds/.test(value[2])), JSON.stringify(last.at(-1).value).slice(0, 200));
	socket.destroy();
	await unharmed();
});

const RUDE = {
	'after its call was released, and again': [['release', 1, 1], ['resolve', 1, 1], ['resolve', 1, 1], ['reject', 1, 1]],
	'by a failure, after which its call is released': [['reject', 1, ['error', 'Error', 'no']], ['release', 1, 1], ['reject', 2, 2]],
	'with a promise, and then an abort': [['resolve', 1, ['promise', -77]], ['abort', 1]],
	'while its call is released more often than it was mentioned': [['release', 1, 99], ['release', 1, 1], ['resolve', 1, 1]],
	'a thousand times ahead': Array.from({ length: 1000 }, (_, i) => ['resolve', i + 1, 1]),
};

test('a callback that is answered at the wrong time, twice, or never harms nobody', async t => {
	const { body } = await box.api('POST', '/api/contexts', { language: 'python' });
	const run = ['push', ['pipeline', 0, ['interpreter', 'runCodeStream'], [body.contextId, 'for i in range(20): print(i, flush=True)', ['undefined'], { onStdout: ['export', -1] }]]];
	for (const [name, said] of [...Object.entries(RUDE), ['never', []]])
		for (let round = 0; round < 5; round++) {
			const socket = await open(t);
			socket.send(run);
			socket.send(['pull', 1]);
			assert.deepEqual((await socket.json())[0], 'push', name);
			socket.say(...said.map(message => frame('text', JSON.stringify(message))));
			socket.destroy();
		}
	const link = await connect(t, box);
	assert.equal(await link.api.utils.ping(), 'healthy');
	await atRest(link);
	const last = await box.api('POST', '/api/execute/code', { context_id: body.contextId, code: 'print("done")' });
	assert.match(last.raw.toString(), /done/);
	await unharmed();
});
