// SPDX-License-Identifier: Apache-2.0
// Logs of processes: replay, live, cursors, gaps, limits; and what is left of them after restarts and stops.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import { Box, SESSIONLESS } from '../lib/box.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { refused, TIME } from '../lib/expect.mjs';
import { ended, follow, kill, list, logs, look, openLog, runToEnd, start } from '../lib/process.mjs';
import { collect, events } from '../lib/sse.mjs';
import { until, within } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const RING = 16 << 20;

/** Ends siltd and waits for its successor. */
async function restartSiltd(meanwhile = () => {}) {
	const pid = daemon.siltd();
	process.kill(pid, 'SIGKILL');
	await meanwhile();
	await until('another siltd', () => daemon.programs('siltd').some(p => p !== pid) && !daemon.programs('siltd').includes(pid));
	await daemon.healthy();
}

const isOutput = e => e.event === 'stdout' || e.event === 'stderr';

test('a log stream is process_info, what was, what comes, exit; every event has data, timestamp and cursor', async t => {
	const box = await daemon.box(t);
	await box.out('mkfifo /tmp/gate');
	await start(box, 'echo before; echo err >&2; read x < /tmp/gate; echo after; exit 3', { processId: 'p' });
	await until('its first output', async () => { const l = await logs(box, 'p'); return l.stdout && l.stderr; });
	const stream = follow(box, 'p');
	const seen = [];
	while (seen.filter(isOutput).length < 2)
		seen.push((await stream.next()).value);
	await box.out('echo go > /tmp/gate');
	const rest = await collect(stream);
	const all = [...seen, ...rest.all];
	assert.equal(all[0].event, 'process_info');
	assert.deepEqual([all[0].data.processId, all[0].data.status], ['p', 'running']);
	assert.match(all[0].data.command, /^echo before/);
	assert.equal(rest.stdout, 'after\n');
	const last = all.at(-1);
	assert.deepEqual([last.event, last.data.exitCode, last.data.processId, last.data.data], ['exit', 3, 'p', 'Process failed with exit code 3']);
	for (const { data } of all) {
		assert.equal(typeof data.data, 'string');
		assert.match(data.timestamp, TIME);
		assert.ok(Number.isSafeInteger(data.cursor), JSON.stringify(data));
		assert.equal(data.processId, 'p');
	}
	const again = await collect(follow(box, 'p'));
	assert.deepEqual([again.stdout, again.stderr, again.exitCode], ['before\nafter\n', 'err\n', 3]);
	assert.equal((await runToEnd(box, 'true', { processId: 'q' })).exitCode, 0);
	assert.equal((await collect(follow(box, 'q'))).all.at(-1).data.data, 'Process completed with exit code 0');
});

test('logs are byte exact but for NUL and what is not UTF-8', async t => {
	const box = await daemon.box(t);
	const cases = { 'printf a': 'a', "printf 'a\\n\\n'": 'a\n\n', "printf '\\r\\n \\t'": '\r\n \t', "printf 'a\\0b'": 'ab', "printf 'ü\\377😀'": 'ü\ufffd😀', "printf '\\342\\202'; sleep 0.05; printf '\\254'": '€', true: '' };
	for (const sessionId of [undefined, SESSIONLESS]) {
		for (const [command, expected] of Object.entries(cases)) {
			await runToEnd(box, command, { processId: 'p', sessionId });
			assert.equal((await logs(box, 'p')).stdout, expected, command);
			assert.equal((await collect(follow(box, 'p'))).stdout, expected, command);
		}
	}
});

test('two million lines arrive whole through a log stream', async t => {
	const box = await daemon.box(t);
	await box.out('mkfifo /tmp/gate');
	await start(box, 'read x < /tmp/gate; seq 1 2000000', { processId: 'p', sessionId: SESSIONLESS });
	const reading = (async () => {
		const hash = createHash('sha256');
		for await (const { event, data } of follow(box, 'p')) {
			assert.notEqual(event, 'gap');
			if (event === 'stdout')
				hash.update(data.data);
		}
		return hash.digest('hex');
	})();
	const expected = (await box.out('seq 1 2000000 | sha256sum')).split(' ')[0];
	await box.out('echo go > /tmp/gate');
	assert.equal(await within(60_000, 'all of it', reading), expected);
	const body = await logs(box, 'p');
	assert.equal(createHash('sha256').update(body.stdout).digest('hex'), expected);
	assert.ok(!('truncated' in body));
});

test('fifty readers of one log all get the same bytes', async t => {
	const box = await daemon.box(t);
	await box.out('mkfifo /tmp/gate');
	await start(box, 'seq 1 1000; read x < /tmp/gate; for i in $(seq 1 200); do echo line $i; echo err $i >&2; done', { processId: 'p' });
	const readers = Array.from({ length: 50 }, () => (async () => {
		const out = createHash('sha256');
		const err = createHash('sha256');
		for await (const { event, data } of follow(box, 'p'))
			if (isOutput({ event }))
				(event === 'stdout' ? out : err).update(data.data);
		return out.digest('hex') + err.digest('hex');
	})());
	await box.out('echo go > /tmp/gate');
	const all = await within(60_000, 'all readers', Promise.all(readers));
	const lines = n => Array.from({ length: n }, (_, i) => i + 1);
	const sum = text => createHash('sha256').update(text).digest('hex');
	const expected = sum(lines(1000).map(i => `${i}\n`).join('') + lines(200).map(i => `line ${i}\n`).join('')) + sum(lines(200).map(i => `err ${i}\n`).join(''));
	assert.deepEqual(new Set(all), new Set([expected]));
});

test('a reader may leave and come back at any cursor: nothing is lost, nothing comes twice', async t => {
	const box = await daemon.box(t);
	await start(box, 'for i in $(seq 1 400); do echo $i; [ $((i % 7)) = 0 ] && echo e$i >&2; [ $((i % 50)) = 0 ] && sleep 0.02; done; exit 5', { processId: 'p' });
	const text = { stdout: '', stderr: '' };
	let cursor;
	let exit;
	for (let round = 0; exit === undefined; round++) {
		assert.ok(round < 500);
		let taken = 0;
		for await (const { event, data } of follow(box, 'p', cursor === undefined ? '' : `?cursor=${cursor}`)) {
			assert.notEqual(event, 'gap');
			if (event === 'exit')
				exit = data.exitCode;
			if (!isOutput({ event }))
				continue;
			text[event] += data.data;
			cursor = data.cursor;
			if (++taken > round % 5)
				break;
		}
	}
	const all = Array.from({ length: 400 }, (_, i) => i + 1);
	assert.equal(text.stdout, all.map(i => `${i}\n`).join(''));
	assert.equal(text.stderr, all.filter(i => i % 7 === 0).map(i => `e${i}\n`).join(''));
	assert.equal(exit, 5);
	const end = await collect(follow(box, 'p', `?cursor=${(await logs(box, 'p')).cursor}`));
	assert.deepEqual(end.names, ['process_info', 'exit']);
});

test('a cursor behind the words of a timeout does not tell them twice', async t => {
	const box = await daemon.box(t);
	await runToEnd(box, 'echo x; sleep 1000', { processId: 'p', timeoutMs: 4_000 });
	const events = (await collect(follow(box, 'p'))).all;
	const remark = events.find(e => e.event === 'stderr');
	assert.equal(remark.data.data, 'Command timed out after 4000ms\n');
	assert.deepEqual((await collect(follow(box, 'p', `?cursor=${remark.data.cursor}`))).names, ['process_info', 'exit']);
	assert.deepEqual((await collect(follow(box, 'p', `?cursor=${events[1].data.cursor}`))).names, ['process_info', 'stderr', 'exit']);
});

test('a cursor that no event told is refused', async t => {
	const box = await daemon.box(t);
	await runToEnd(box, 'echo hello', { processId: 'p' });
	for (const cursor of ['1', '8', '24', '32', '48', '4096', '999999999', '-1', 'x', '', '1e3', '99999999999999999999'])
		refused(await box.api('GET', `/api/process/p/stream?cursor=${cursor}`), 400, 'VALIDATION_FAILED');
	assert.equal((await collect(follow(box, 'p', '?cursor=0'))).stdout, 'hello\n');
});

test('a log keeps the last 16 MiB and says what it dropped', async t => {
	const box = await daemon.box(t);
	const total = 40_000_000;
	const record = await runToEnd(box, `yes 0123456789abcde | head -c ${total}; echo the end >&2`, { processId: 'p', sessionId: SESSIONLESS });
	assert.equal(record.exitCode, 0);
	const body = await logs(box, 'p', { deadline: 60_000 });
	const match = /^\[(\d+) bytes dropped\]\n/.exec(body.stdout);
	assert.ok(match && body.truncated === true, body.stdout.slice(0, 100));
	const kept = body.stdout.length - match[0].length;
	assert.equal(kept + Number(match[1]), total);
	assert.ok(kept > RING * 0.9 && kept < RING, `${kept} bytes are kept`);
	assert.equal(body.stderr, 'the end\n');
	const end = await collect(follow(box, 'p'));
	const gaps = end.all.filter(e => e.event === 'gap');
	assert.equal(gaps.length, 1);
	assert.deepEqual([gaps[0].data.droppedBytes, gaps[0].data.data, 'expired' in gaps[0].data], [Number(match[1]), '', false]);
	assert.equal(end.stdout.length, kept);
	const old = await collect(follow(box, 'p', '?cursor=0'));
	const [gap] = old.all.filter(e => e.event === 'gap');
	assert.ok(gap.data.expired === true && gap.data.droppedBytes > 0 && old.names.indexOf('gap') === 1);
	assert.equal(old.stdout.length, kept);
});

test('a reader that falls behind gets a gap, and the process does not wait for it', async t => {
	const box = await daemon.box(t);
	await box.out('mkfifo /tmp/gate');
	const total = 200_000_000;
	await start(box, `echo begin; read x < /tmp/gate; yes 0123456789abcde | head -c ${total}`, { processId: 'p', sessionId: SESSIONLESS });
	const response = await openLog(box, 'p');
	response.pause();
	await box.out('echo go > /tmp/gate');
	assert.equal((await ended(box, 'p', 60_000)).exitCode, 0, 'it ran to its end while nobody read');
	let data = 0;
	let dropped = 0;
	let gaps = 0;
	for await (const event of events(response)) {
		if (event.event === 'stdout')
			data += event.data.data.length;
		if (event.event === 'gap') {
			gaps++;
			dropped += event.data.droppedBytes;
			assert.ok(Number.isSafeInteger(event.data.cursor) && event.data.data === '');
		}
	}
	assert.ok(gaps >= 1 && dropped > 0);
	assert.equal(data + dropped, total + 'begin\n'.length, 'what is missing is told to the byte');
});

test('a reader that never reads holds nobody else back', async t => {
	const box = await daemon.box(t);
	await start(box, 'yes; true', { processId: 'p', sessionId: SESSIONLESS });
	const response = await openLog(box, 'p');
	response.pause();
	t.after(() => response.destroy());
	assert.equal(await box.out('echo free'), 'free\n');
	assert.equal((await kill(box, 'p')).status, 200);
});

test('HEAD of a log stream is over with its head, and the connection takes the next request', async t => {
	const box = await daemon.box(t);
	await start(box, 'echo x; sleep 1000', { processId: 'p' });
	for (const url of [`/sandboxes/${box.id}/api/process/p/stream`, `/v1/sandboxes/${box.id}/processes/p/stream`]) {
		const answer = await daemon.api('HEAD', url);
		assert.deepEqual([answer.status, answer.headers['content-type'], answer.raw.length], [200, 'text/event-stream', 0]);
		assert.equal((await look(box, 'p')).status, 'running');
	}
});

test('hundreds of readers of a long log leave time for other sandboxes', async t => {
	const box = await daemon.box(t);
	const other = await daemon.box(t);
	await other.run('true');
	await start(box, `yes ${'x'.repeat(30)} | head -c ${RING}; echo; echo written; sleep 1000`, { processId: 'p' });
	await until('it is written', async () => (await logs(box, 'p')).stdout.endsWith('written\n'));
	let over = false;
	const waits = Promise.all(Array.from({ length: 300 }, () => daemon.api('GET', `/v1/sandboxes/${box.id}/processes/p/wait?for=line&text=nowhere&timeoutMs=4000`, undefined, { deadline: 60_000 })));
	waits.finally(() => { over = true; });
	let commands = 0;
	for (; !over; commands++)
		await other.run('true');
	assert.ok(commands >= 60, `${commands} commands in another sandbox meanwhile`);
	assert.ok((await waits).every(a => a.status === 200 && a.body.reached === false));
});

test('the thousand newest records are kept, the oldest finished ones go first', async t => {
	const box = await daemon.box(t);
	await start(box, 'sleep 1000', { processId: 'runs' });
	const many = Array.from({ length: 1_010 }, (_, i) => `p${i}`);
	for (let at = 0; at < many.length; at += 20)
		await Promise.all(many.slice(at, at + 20).map(processId => runToEnd(box, 'echo x', { processId, sessionId: SESSIONLESS })));
	const all = await list(box);
	assert.ok(all.length <= 1_000 && all.length >= 980, `${all.length} records`);
	assert.equal(all[0].id, 'runs');
	assert.equal(await look(box, 'p0'), null);
	assert.equal((await look(box, many.at(-1))).exitCode, 0);
});

test('128 MiB of logs are kept per sandbox', async t => {
	const box = await daemon.box(t);
	for (let i = 0; i < 11; i++)
		await runToEnd(box, 'head -c 17000000 /dev/zero | tr "\\0" x', { processId: `p${i}`, sessionId: SESSIONLESS });
	const ids = (await list(box)).map(p => p.id);
	assert.ok(!ids.includes('p0') && ids.includes('p10') && ids.length <= 9, ids.join());
	refused(await box.api('GET', '/api/process/p0/logs'), 404, 'PROCESS_NOT_FOUND');
});

test('a full disk costs output, not the process: the gap is told', async t => {
	const box = await daemon.box(t, { limits: { diskMiB: 64 } });
	await box.out('mkfifo /dev/shm/gate');
	const line = '0123456789abcdef'.repeat(3) + '0123456789abcde';
	await start(box, `read x < /dev/shm/gate; i=0; while [ $i -lt 3000 ]; do echo ${line}; i=$((i+1)); done; rm /workspace/fill; sync; until head -c 1000000 /dev/zero > /workspace/room; do sleep 0.05; done 2> /dev/null; rm /workspace/room; echo the end`, { processId: 'p', sessionId: SESSIONLESS });
	await box.exec('head -c 200000000 /dev/zero > /workspace/fill; sync', { sessionId: SESSIONLESS });
	const no = refused(await box.api('POST', '/api/process/start', { command: 'true' }), 507, 'NO_SPACE');
	assert.equal(no.command, 'true');
	await box.exec('echo go > /dev/shm/gate', { sessionId: SESSIONLESS });
	const record = await ended(box, 'p', 30_000);
	assert.equal(record.exitCode, 0);
	const end = await collect(follow(box, 'p'));
	const gaps = end.all.filter(e => e.event === 'gap');
	assert.ok(gaps.length >= 1, 'a gap is told');
	const dropped = gaps.reduce((sum, e) => sum + e.data.droppedBytes, 0);
	assert.equal(end.stdout.length + dropped, 3000 * 64 + 'the end\n'.length);
	assert.ok(end.stdout.endsWith('the end\n'));
	const body = await logs(box, 'p');
	assert.ok(body.truncated && body.stdout.startsWith(`[${dropped} bytes dropped]\n`));
});

test('siltd killed while twenty processes log: all still run and no line is missing', async t => {
	const box = await daemon.box(t);
	for (let i = 0; i < 20; i++)
		await start(box, `i=0; while [ ! -e /tmp/stop ]; do echo $i; i=$((i+1)); sleep 0.01; done; exit ${i}`, { processId: `p${i}`, sessionId: i % 2 ? SESSIONLESS : 's' });
	const before = await list(box);
	for (let round = 0; round < 2; round++) {
		await restartSiltd();
		const now = await list(box);
		assert.deepEqual(now.map(p => [p.id, p.pid, p.status]), before.map(p => [p.id, p.pid, 'running']));
		const [one] = await Promise.all([logs(box, 'p7')]);
		await until('it goes on', async () => (await logs(box, 'p7')).stdout.length > one.stdout.length);
	}
	const live = collect(follow(box, 'p4'));
	await box.out('touch /tmp/stop', { sessionId: 'other' });
	for (let i = 0; i < 20; i++) {
		assert.equal((await ended(box, `p${i}`)).exitCode, i);
		const numbers = (await logs(box, `p${i}`)).stdout.trimEnd().split('\n').map(Number);
		assert.deepEqual(numbers, numbers.map((_, n) => n), `p${i} has every line`);
	}
	assert.equal((await live).exitCode, 4);
});

test('a process that ended while siltd was away has its exit code and log', async t => {
	const box = await daemon.box(t);
	await start(box, 'sleep 1000.19; echo last words; exit 9', { processId: 'p', sessionId: SESSIONLESS });
	const [sleep] = await until('it sleeps', () => daemon.marked('1000.19').some(p => p.command[0] === 'sleep') && daemon.marked('1000.19').filter(p => p.command[0] === 'sleep'));
	await restartSiltd(() => process.kill(sleep.pid, 'SIGKILL'));
	const record = await ended(box, 'p');
	assert.deepEqual([record.status, record.exitCode], ['failed', 9]);
	assert.ok(record.endTime >= record.startTime);
	assert.equal((await logs(box, 'p')).stdout, 'last words\n');
	assert.equal((await collect(follow(box, 'p'))).exitCode, 9);
});

test('a process can be killed, waited for and read to its end after a restart of siltd', async t => {
	const box = await daemon.box(t);
	await start(box, 'echo one; (setsid sleep 1000.17 &); sleep 1000.17', { processId: 'p' });
	await restartSiltd();
	const reading = collect(follow(box, 'p'));
	assert.equal((await kill(box, 'p')).status, 200);
	assert.deepEqual(daemon.marked('1000.17'), []);
	const end = await reading;
	assert.deepEqual([end.stdout, end.exitCode], ['one\n', 143]);
});

test('logs and exit codes are there while the sandbox sleeps, and reading does not wake it', async t => {
	const box = await daemon.box(t, {});
	await runToEnd(box, 'echo kept; echo err >&2; exit 6', { processId: 'p' });
	await box.stop();
	assert.equal((await look(box, 'p')).exitCode, 6);
	assert.deepEqual((await list(box)).map(p => p.id), ['p']);
	const body = await logs(box, 'p');
	assert.deepEqual([body.stdout, body.stderr], ['kept\n', 'err\n']);
	assert.equal((await collect(follow(box, 'p'))).exitCode, 6);
	refused(await kill(box, 'p'), 404, 'COMMAND_NOT_FOUND');
	assert.equal((await box.api('DELETE', '/api/process/kill-all')).body.cleanedCount, 0);
	assert.equal((await box.info()).state, 'stopped');
	await box.run('true');
	assert.equal((await logs(box, 'p')).stdout, 'kept\n');
});

test('a sandbox that crashes takes its processes along; what they said is kept', async t => {
	const box = await daemon.box(t);
	await start(box, 'echo said; sleep 1000', { processId: 'p' });
	await until('it spoke', async () => (await logs(box, 'p')).stdout === 'said\n');
	const reading = collect(follow(box, 'p'));
	process.kill(await box.init(), 'SIGKILL');
	const record = await ended(box, 'p');
	assert.ok(record.status === 'error' && !('exitCode' in record));
	const end = await reading;
	assert.ok(end.stdout === 'said\n' && !('exitCode' in end.all.at(-1).data) && end.all.at(-1).data.cause === 'crash');
	const native = (await daemon.api('GET', `/v1/sandboxes/${box.id}/processes/p`)).body;
	assert.equal(native.cause, 'crash');
	assert.equal((await logs(box, 'p')).stdout, 'said\n');
});

test('records and logs survive an end of the whole instance', async () => {
	const first = await startDaemon();
	const box = await first.box(undefined, { id: 'survivor' });
	await runToEnd(box, 'echo done; exit 2', { processId: 'done' });
	await start(box, 'echo cut off; sleep 1000', { processId: 'cut' });
	await until('it spoke', async () => (await logs(box, 'cut')).stdout === 'cut off\n');
	await first.stop({ keep: true });
	const second = await startDaemon({ home: first.home });
	try {
		const again = new Box(second, 'survivor');
		assert.deepEqual([(await look(again, 'done')).exitCode, (await logs(again, 'done')).stdout], [2, 'done\n']);
		const cut = await ended(again, 'cut');
		assert.equal(cut.status, 'error');
		assert.equal((await second.api('GET', '/v1/sandboxes/survivor/processes/cut')).body.cause, 'daemon_restart');
		assert.equal((await logs(again, 'cut')).stdout, 'cut off\n');
		assert.equal((await again.info()).state, 'stopped');
	} finally {
		await second.stop();
	}
});

test('a destroyed sandbox takes records and logs along', async t => {
	const box = await daemon.box(t);
	await start(box, 'echo x; sleep 1000', { processId: 'p' });
	const stream = follow(box, 'p');
	await stream.next();
	const reading = collect(stream);
	await box.destroy();
	const { data } = (await within(60_000, 'end of the stream', reading)).all.at(-1);
	assert.deepEqual([data.type, data.status, data.cause], ['exit', 'error', 'destroyed']);
	assert.deepEqual(await list(box), []);
	await box.run('true');
	assert.deepEqual(await list(box), []);
	refused(await box.api('GET', '/api/process/p'), 404, 'PROCESS_NOT_FOUND');
});
