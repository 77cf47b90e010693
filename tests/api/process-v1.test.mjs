// SPDX-License-Identifier: Apache-2.0
// Our own routes of processes: argv, users, stdin, waiting, raw output.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { refused, TIME } from '../lib/expect.mjs';
import { events } from '../lib/sse.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const url = (box, path = '') => `/v1/sandboxes/${box.id}/processes${path}`;

async function start(box, fields) {
	const answer = await daemon.api('POST', url(box), fields);
	assert.equal(answer.status, 201, answer.raw.toString());
	return answer.body;
}

async function get(box, path, status = 200) {
	const answer = await daemon.api('GET', url(box, path), undefined, { deadline: 60_000 });
	assert.equal(answer.status, status, answer.raw.toString().slice(0, 1000));
	return answer;
}

const exit = async (box, id) => (await get(box, `/${id}/wait?for=exit&timeoutMs=50000`)).body;
const stdout = async (box, id) => (await get(box, `/${id}/logs?stream=stdout`)).raw.toString();

test('argv runs a program without a shell', async t => {
	const box = await daemon.box(t, {});
	const words = ['printf', '%s|', '$HOME', '*', 'a b', '', "it's", '"', '\\', '\n', 'ü'];
	const record = await start(box, { argv: words, processId: 'p' });
	assert.ok(record.id === 'p' && record.pid > 1 && record.autoCleanup === false && !('sessionId' in record));
	assert.match(record.startedAt, TIME);
	const end = await exit(box, 'p');
	assert.deepEqual([end.reached, end.status, end.exitCode], [true, 'completed', 0]);
	assert.equal(await stdout(box, 'p'), words.slice(2).map(w => `${w}|`).join(''));
	const missing = await daemon.api('POST', url(box), { argv: ['no-such-program'] });
	refused(missing, 500, 'STREAM_START_ERROR');
});

test('wrong fields of a start are refused', async t => {
	const box = await daemon.box(t, {});
	for (const body of [{ argv: [] }, { argv: 'ls' }, { argv: ['a\0b'] }, { argv: [5] }, { argv: [''] }, { argv: ['ls'], command: 'ls' }, { argv: ['ls'], session: 's' }, { command: 'true', session: ' ' }, { command: 'true', stdin: 1 }, { command: 'true', user: 5 }, { command: 'true', processId: 'a/b' }, { command: 'true', cwd: 'x'.repeat(5000) }])
		refused(await daemon.api('POST', url(box), body), 400, 'VALIDATION_FAILED');
	for (const body of [{}, { command: ' ' }])
		refused(await daemon.api('POST', url(box), body), 400, 'INVALID_COMMAND');
	refused(await daemon.api('POST', '/v1/sandboxes/nobody-made-this/processes', { command: 'true' }), 404, 'SANDBOX_NOT_FOUND');
	refused(await daemon.api('GET', '/v1/sandboxes/nobody-made-this/processes'), 404, 'SANDBOX_NOT_FOUND');
});

test('a process runs in a session or on its own, as any user of the image', async t => {
	const box = await daemon.box(t, { env: { OF_THE_BOX: '1' } });
	await box.out('X=set; cd /var', { sessionId: 's' });
	const shared = await start(box, { command: 'echo $X $PWD $E $OF_THE_BOX', sessionId: 's', env: { E: 'e' }, processId: 'a' });
	assert.equal(shared.sessionId, 's');
	await exit(box, 'a');
	assert.equal(await stdout(box, 'a'), 'set /var e 1\n');
	await start(box, { command: 'echo [$X] $PWD $OF_THE_BOX', processId: 'b' });
	await exit(box, 'b');
	assert.equal(await stdout(box, 'b'), '[] /workspace 1\n');
	for (const [user, expected] of [['nobody', '65534 65534\n'], ['1234', '1234'], ['1234:77', '1234 77\n'], ['0', '0 0\n']]) {
		await start(box, { argv: ['sh', '-c', 'echo $(id -u) $(id -g)'], user, processId: 'u' });
		await exit(box, 'u');
		assert.ok((await stdout(box, 'u')).startsWith(expected), user);
	}
	refused(await daemon.api('POST', url(box), { command: 'true', user: 'no-such-user' }), 500, 'STREAM_START_ERROR');
	for (const user of ['+0', '-1', ' root', 'root ', '1000abc', 'nobody:root', ':', 'root:', '0:', '65536', '0:65536', '4294967295', '99999999999999999999', '0x0', '００'])
		refused(await daemon.api('POST', url(box), { command: 'true', user }), 400, 'VALIDATION_FAILED');
});

test('stdin is written in pieces, byte for byte, and closed', async t => {
	const box = await daemon.box(t, {});
	await start(box, { argv: ['sha256sum'], stdin: true, processId: 'p' });
	const hash = createHash('sha256');
	for (const [size, last] of [[1, false], [0, false], [70_000, false], [3_000_000, true]]) {
		const bytes = randomBytes(size);
		hash.update(bytes);
		const answer = await daemon.api('PUT', url(box, `/p/stdin${last ? '?close=true' : ''}`), bytes);
		assert.deepEqual([answer.status, answer.body], [200, { id: 'p', bytes: size, closed: last }], answer.raw.toString());
	}
	assert.equal((await exit(box, 'p')).exitCode, 0);
	assert.equal(await stdout(box, 'p'), `${hash.digest('hex')}  -\n`);
});

test('stdin that nobody reads holds its writer back, and is told as such when it cannot go', async t => {
	const box = await daemon.box(t, {});
	await box.out('mkfifo /tmp/gate');
	const { id } = await start(box, { command: 'read go < /tmp/gate; wc -c', stdin: true, processId: 'slow' });
	const writing = daemon.api('PUT', url(box, `/${id}/stdin?close=true`), Buffer.alloc(5_000_000, 'x'));
	let more = 0;
	refused(await until('the first writer is at it', async () => {
		const second = await daemon.api('PUT', url(box, `/${id}/stdin`), 'y');
		more += second.status === 200 ? 1 : 0; // it was there first
		return second.status === 409 && second;
	}), 409, 'RESOURCE_BUSY');
	await box.out('echo go > /tmp/gate');
	assert.equal((await writing).body.bytes, 5_000_000);
	await exit(box, id);
	assert.equal((await stdout(box, id)).trim(), String(5_000_000 + more));
	await start(box, { command: 'sleep 1000', processId: 'deaf' });
	refused(await daemon.api('PUT', url(box, '/deaf/stdin'), 'x'), 409, 'STDIN_CLOSED');
	await start(box, { command: 'exec <&-; echo closed; sleep 1000', stdin: true, processId: 'closed' });
	await get(box, '/closed/wait?for=line&text=closed');
	refused(await daemon.api('PUT', url(box, '/closed/stdin'), 'x'), 409, 'STDIN_CLOSED');
	await start(box, { command: 'true', stdin: true, processId: 'over' });
	await exit(box, 'over');
	refused(await daemon.api('PUT', url(box, '/over/stdin'), 'x'), 404, 'COMMAND_NOT_FOUND');
	refused(await daemon.api('PUT', url(box, '/nobody/stdin'), 'x'), 404, 'PROCESS_NOT_FOUND');
});

test('a wait for a line answers when it is there, also when it has no end yet', async t => {
	const box = await daemon.box(t, {});
	await box.out('mkfifo /tmp/gate');
	await start(box, { command: 'echo one; echo two three >&2; read x < /tmp/gate; printf "ready> "; sleep 1000', processId: 'p' });
	assert.equal((await get(box, '/p/wait?for=line&text=one')).body.line, 'one');
	assert.equal((await get(box, '/p/wait?for=line&text=o%20thr')).body.line, 'two three');
	const waiting = get(box, '/p/wait?for=line&pattern=rea*y%3E*&timeoutMs=20000');
	await box.out('echo go > /tmp/gate');
	const { body } = await waiting;
	assert.deepEqual([body.reached, body.line, body.status], [true, 'ready> ', 'running']);
	assert.ok(body.cursor > 0);
	const late = await get(box, `/p/wait?for=line&text=one&timeoutMs=100&cursor=${body.cursor}`);
	assert.deepEqual([late.body.reached, late.body.reason], [false, 'timeout']);
});

test('a wait tells timeout from exit', async t => {
	const box = await daemon.box(t, {});
	await start(box, { command: 'echo nothing; sleep 1000', processId: 'p' });
	for (const query of ['for=exit', 'for=line&text=never', 'for=line&pattern=never*'])
		assert.deepEqual((await get(box, `/p/wait?${query}&timeoutMs=50`)).body, { reached: false, reason: 'timeout', status: 'running' });
	const line = get(box, '/p/wait?for=line&text=never');
	const end = get(box, '/p/wait?for=exit');
	assert.equal((await daemon.api('DELETE', url(box, '/p'))).body.status, 'killed');
	assert.deepEqual((await line).body, { reached: false, reason: 'exited', status: 'killed', exitCode: 143 });
	assert.deepEqual((await end).body, { reached: true, status: 'killed', exitCode: 143 });
	for (const query of ['for=nothing', 'for=line', 'for=line&text=a&pattern=b', 'for=line&text=', 'for=exit&timeoutMs=x', 'for=exit&timeoutMs=600001', 'for=line&text=a&cursor=-1', `for=line&text=${'x'.repeat(257)}`])
		refused(await daemon.api('GET', url(box, `/p/wait?${query}`)), 400, 'VALIDATION_FAILED');
});

test('globs match whole lines', async t => {
	const box = await daemon.box(t, {});
	await start(box, { command: 'echo "server listening on 8080"; sleep 1000', processId: 'p' });
	const reached = async (pattern, ms) => (await get(box, `/p/wait?for=line&timeoutMs=${ms}&pattern=${encodeURIComponent(pattern)}`)).body.reached;
	await get(box, '/p/wait?for=line&text=listening');
	for (const pattern of ['*listening*', 'server*', '*8080', 'server listening on 8080', 'server ????????? on *', '*', '**l*n*0**'])
		assert.equal(await reached(pattern, 20_000), true, pattern);
	for (const pattern of ['listening', 'server', '*808', '?', 'server listening on 8080?', '*LISTENING*'])
		assert.equal(await reached(pattern, 60), false, pattern);
});

test('signals reach the tree, and a kill takes a signal and a grace', async t => {
	const box = await daemon.box(t, {});
	await start(box, { argv: ['bash', '-c', "trap 'echo hup' HUP; trap '' TERM; echo ready; while :; do sleep 0.02; done"], processId: 'p' });
	await get(box, '/p/wait?for=line&text=ready');
	const sent = await daemon.api('POST', url(box, '/p/signal'), { signal: 'SIGHUP' });
	assert.deepEqual([sent.status, sent.body], [200, { id: 'p', signal: 1 }]);
	assert.equal((await get(box, '/p/wait?for=line&text=hup')).body.reached, true);
	for (const body of [{}, { signal: 'NOPE' }, { signal: 99 }])
		refused(await daemon.api('POST', url(box, '/p/signal'), body), 400, 'VALIDATION_FAILED');
	const answer = await daemon.api('DELETE', url(box, '/p?signal=TERM&graceMs=200'));
	assert.deepEqual([answer.status, answer.body.status, answer.body.exitCode, answer.body.cause, answer.body.signal], [200, 'killed', 137, 'signal', 9]);
	const ended = [];
	const stubborn = await Promise.all(['', '?graceMs=200'].map(async query => {
		const { id } = await start(box, { argv: ['bash', '-c', "trap '' TERM; echo ready; while :; do sleep 0.02; done"] });
		await get(box, `/${id}/wait?for=line&text=ready`);
		return { id, query };
	}));
	await Promise.all(stubborn.map(async ({ id, query }) => {
		assert.equal((await daemon.api('DELETE', url(box, `/${id}${query}`))).body.exitCode, 137);
		ended.push(query);
	}));
	assert.deepEqual(ended, ['?graceMs=200', ''], 'a grace that is shorter than the usual one');
	refused(await daemon.api('POST', url(box, '/p/signal'), { signal: 1 }), 404, 'COMMAND_NOT_FOUND');
	await start(box, { argv: ['bash', '-c', "trap '' TERM; echo ready; while :; do sleep 0.02; done"], processId: 'now' });
	await get(box, '/now/wait?for=line&text=ready');
	assert.equal((await daemon.api('DELETE', url(box, '/now?graceMs=0'), undefined)).body.exitCode, 137);
});

test('DELETE of a finished process removes record and log', async t => {
	const box = await daemon.box(t, {});
	await start(box, { command: 'echo x', processId: 'p' });
	await exit(box, 'p');
	assert.deepEqual((await daemon.api('DELETE', url(box, '/p'))).body, { id: 'p', removed: true });
	await get(box, '/p', 404);
	assert.deepEqual((await get(box, '')).body.processes, []);
});

test('raw output has every byte, a cursor to go on from, and the streams apart or together', async t => {
	const box = await daemon.box(t, {});
	await start(box, { command: "printf 'a\\0b\\377\\n'; printf 'err\\376' >&2", processId: 'p' });
	await exit(box, 'p');
	const out = await get(box, '/p/logs?stream=stdout');
	assert.equal(out.headers['content-type'], 'application/octet-stream');
	assert.deepEqual(out.raw, Buffer.from('a\0b\xff\n', 'latin1'));
	assert.equal(out.headers['x-silt-dropped'], '0');
	assert.deepEqual((await get(box, '/p/logs?stream=stderr')).raw, Buffer.from('err\xfe', 'latin1'));
	assert.equal((await get(box, '/p/logs')).raw.length, 9);
	const rest = await get(box, `/p/logs?cursor=${out.headers['x-silt-cursor']}`);
	assert.equal(rest.raw.length, 0);
	refused(await daemon.api('GET', url(box, '/p/logs?stream=both')), 400, 'VALIDATION_FAILED');
	refused(await daemon.api('GET', url(box, '/p/logs?cursor=12')), 400, 'VALIDATION_FAILED');
});

test('native events keep NUL and have bytes that are not UTF-8 in base64', async t => {
	const box = await daemon.box(t, {});
	await box.out('mkfifo /tmp/gate');
	await start(box, { command: "printf 'a\\0b'; read x < /tmp/gate; printf '\\377x'", processId: 'p' });
	const stream = events(await daemon.client.open('GET', url(box, '/p/stream')));
	const all = [];
	for await (const { event, data } of stream) {
		if (event !== 'stdout')
			continue;
		all.push(data);
		if (all.length === 1)
			await box.out('echo go > /tmp/gate');
	}
	assert.deepEqual(all.map(e => [e.data, e.base64]), [['a\0b', undefined], ['\ufffdx', '/3g=']]);
});

test('autoCleanup is remembered, and the record is there for a while', async t => {
	const box = await daemon.box(t, {});
	assert.equal((await start(box, { command: 'true', autoCleanup: true, processId: 'p' })).autoCleanup, true);
	await exit(box, 'p');
	assert.equal((await get(box, '/p')).body.status, 'completed');
});
