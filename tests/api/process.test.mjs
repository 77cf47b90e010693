// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SESSIONLESS } from '../lib/box.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { refused, TIME } from '../lib/expect.mjs';
import { ended, follow, kill, list, logs, look, runToEnd, start } from '../lib/process.mjs';
import { collect } from '../lib/sse.mjs';
import { until, within } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

test('a start answers with id, pid and command as soon as it runs', async t => {
	const box = await daemon.box(t);
	for (const sessionId of [undefined, 'named', SESSIONLESS]) {
		const body = await start(box, 'echo hi; sleep 1000', { sessionId });
		assert.deepEqual(Object.keys(body), ['success', 'processId', 'pid', 'command', 'timestamp']);
		assert.match(body.processId, /^proc_\d{13}_[a-z0-9]{6}$/);
		assert.ok(body.success && body.pid > 1 && body.command === 'echo hi; sleep 1000');
		assert.match(body.timestamp, TIME);
		assert.equal(await box.out(`kill -0 ${body.pid} && echo alive`), 'alive\n');
		const record = await look(box, body.processId);
		assert.deepEqual(Object.keys(record), ['id', 'pid', 'command', 'status', 'startTime']);
		assert.deepEqual([record.pid, record.status], [body.pid, 'running']);
	}
});

test('a process has the state of its session and leaves it alone', async t => {
	const box = await daemon.box(t);
	await box.out('plain=1; export exported=2; f() { echo f; }; cd /var; umask 027', { sessionId: 's' });
	const { processId } = await start(box, 'echo $plain $exported $(f) $PWD $(umask) $EXTRA; plain=9; cd /', { sessionId: 's', env: { EXTRA: 'x y', NONE: null } });
	assert.equal((await ended(box, processId)).status, 'completed');
	assert.equal((await logs(box, processId)).stdout, '1 2 f /var 0027 x y\n');
	assert.equal(await box.out('echo $plain $PWD [$EXTRA]', { sessionId: 's' }), '1 /var []\n');
	const there = await start(box, 'pwd', { sessionId: 's', cwd: '/usr' });
	await ended(box, there.processId);
	assert.equal((await logs(box, there.processId)).stdout, '/usr\n');
});

test('exit codes are real', async t => {
	const box = await daemon.box(t);
	const cases = [['true', 0, 'completed'], ['false', 1, 'failed'], ['exit 7', 7, 'failed'], ['sh -c "exit 42"', 42, 'failed'], ['kill -9 $BASHPID', 137, 'killed'], ['kill -TERM $BASHPID', 143, 'killed'], ['kill -USR1 $BASHPID', 138, 'failed'], ['/missing/program', 127, 'failed']];
	for (const sessionId of [undefined, SESSIONLESS]) {
		for (const [command, exitCode, status] of cases) {
			const record = await runToEnd(box, command, { sessionId });
			assert.deepEqual([record.exitCode, record.status], [exitCode, status], command);
			assert.match(record.endTime, TIME);
			assert.ok(record.endTime >= record.startTime);
		}
	}
});

test('the list has running ones first, then finished ones, and filters by status', async t => {
	const box = await daemon.box(t);
	assert.deepEqual(await list(box), []);
	await runToEnd(box, 'true', { processId: 'done' });
	await runToEnd(box, 'exit 3', { processId: 'failed' });
	for (const processId of ['one', 'two'])
		await start(box, 'sleep 1000', { processId });
	const all = await list(box);
	assert.deepEqual(all.slice(0, 2).map(p => p.id), ['one', 'two']);
	assert.deepEqual(all.slice(2).map(p => p.id).sort(), ['done', 'failed']);
	const failed = all.find(p => p.id === 'failed');
	assert.deepEqual(Object.keys(failed), ['id', 'pid', 'command', 'status', 'startTime', 'exitCode']);
	assert.equal(failed.exitCode, 3);
	assert.deepEqual((await list(box, '?status=running')).map(p => p.id), ['one', 'two']);
	assert.deepEqual((await list(box, '?status=completed')).map(p => p.id), ['done']);
	assert.deepEqual(await list(box, '?status=nothing'), []);
});

test('custom ids are checked, and one of a finished process may be used again', async t => {
	const box = await daemon.box(t);
	for (const processId of ['start', 'list', 'kill-all', '.', '..', '', 'a b', 'a/b', 'ä', 'x'.repeat(129), 'a\nb', '%41'])
		refused(await box.api('POST', '/api/process/start', { command: 'true', processId }), 400, 'VALIDATION_FAILED');
	refused(await box.api('POST', '/api/process/start', { command: 'true', processId: 5 }), 400, 'VALIDATION_FAILED');
	for (const processId of ['a', 'A.b_c:d@e-9', '-', 'x'.repeat(128)])
		assert.equal((await runToEnd(box, 'true', { processId })).id, processId);
	await runToEnd(box, 'echo first', { processId: 'again' });
	await start(box, 'echo second; sleep 1000', { processId: 'again' });
	const context = refused(await box.api('POST', '/api/process/start', { command: 'true', processId: 'again' }), 409, 'RESOURCE_BUSY');
	assert.deepEqual(context, { processId: 'again' });
	assert.equal((await list(box)).filter(p => p.id === 'again').length, 1);
	await until('its own log', async () => (await logs(box, 'again')).stdout === 'second\n');
});

test('a missing or blank command is refused, and so is what is no start at all', async t => {
	const box = await daemon.box(t);
	for (const command of ['', '  ', '\n'])
		assert.deepEqual(refused(await box.api('POST', '/api/process/start', { command }), 400, 'INVALID_COMMAND'), {});
	refused(await box.api('POST', '/api/process/start', {}), 400, ['INVALID_COMMAND', 'VALIDATION_FAILED']);
	for (const body of ['{', '[]', { command: 5 }, { command: 'a\0b' }, { command: 'true', env: { 'A-B': 'x' } }, { command: 'true', autoCleanup: 'yes' }])
		refused(await box.api('POST', '/api/process/start', body), 400, 'VALIDATION_FAILED');
	for (const sessionId of ['', '  '])
		assert.equal(refused(await box.api('POST', '/api/process/start', { command: 'true', sessionId }), 500, 'STREAM_START_ERROR').command, 'true');
});

test('what cannot be started has a record that says why', async t => {
	const box = await daemon.box(t);
	const context = refused(await box.api('POST', '/api/process/start', { command: 'true', processId: 'bad', sessionId: SESSIONLESS, cwd: '/missing' }), 500, 'STREAM_START_ERROR');
	assert.equal(context.command, 'true');
	assert.match(context.stderr, /\/missing/);
	const record = await look(box, 'bad');
	assert.equal(record.status, 'error');
	assert.ok(!('exitCode' in record) && !('pid' in record) && record.endTime);
	assert.match((await logs(box, 'bad')).stderr, /\/missing/);
	const end = await collect(follow(box, 'bad'));
	assert.match(end.stderr, /\/missing/);
	assert.ok(end.names.at(-1) === 'exit' && !('exitCode' in end.all.at(-1).data));
});

test('a bad cwd in a session ends the process with 1 and a line on stderr', async t => {
	const box = await daemon.box(t);
	const record = await runToEnd(box, 'echo never', { processId: 'p', cwd: '/missing' });
	assert.deepEqual([record.status, record.exitCode], ['failed', 1]);
	const { stdout, stderr } = await logs(box, 'p');
	assert.deepEqual([stdout, stderr], ['', "Failed to change directory to '/missing'\n"]);
});

test('the shell of the session had ended: 410 once, then a fresh one', async t => {
	const box = await daemon.box(t);
	const pid = (await box.out('echo $$', { sessionId: 's' })).trim();
	await box.out(`kill -9 ${pid}; until ! kill -0 ${pid} 2>/dev/null; do sleep 0.01; done`, { sessionId: 'other' });
	const answer = await until('the death is noticed', async () => {
		const one = await box.api('POST', '/api/process/start', { command: 'true', sessionId: 's' });
		return one.status !== 200 && one;
	});
	assert.equal(refused(answer, 410, 'SESSION_TERMINATED').sessionId, 's');
	assert.equal((await runToEnd(box, 'true', { sessionId: 's' })).exitCode, 0);
});

test('an unknown process is 404 on every route', async t => {
	const box = await daemon.box(t);
	for (const [method, path] of [['GET', ''], ['DELETE', ''], ['GET', '/logs'], ['GET', '/stream']]) {
		assert.deepEqual(refused(await box.api(method, `/api/process/nobody${path}`), 404, 'PROCESS_NOT_FOUND'), { processId: 'nobody' });
		await box.run('true'); // now the sandbox exists
		refused(await box.api(method, `/api/process/nobody${path}`), 404, 'PROCESS_NOT_FOUND');
	}
});

test('a kill answers when the whole tree is gone, also after a double fork and setsid', async t => {
	const box = await daemon.box(t);
	for (const sessionId of [undefined, SESSIONLESS]) {
		const marker = `1000.${sessionId ? 1 : 2}7`;
		const { processId } = await start(box, `(setsid sleep ${marker} &); (trap '' TERM; sleep ${marker}) & (setsid sh -c '(sleep ${marker} &)' &); echo up; sleep ${marker}`, { sessionId });
		await until('all of it runs', () => daemon.marked(marker).length >= 4);
		const answer = await kill(box, processId, '?signal=SIGKILL');
		assert.equal(answer.status, 200, answer.raw.toString());
		assert.deepEqual(daemon.marked(marker), []);
		assert.equal(answer.body.processId, processId);
		const record = await look(box, processId);
		assert.deepEqual([record.status, record.exitCode], ['killed', 137]);
	}
});

test('a kill is SIGTERM, and SIGKILL for what is left after 5 s', async t => {
	const box = await daemon.box(t);
	await start(box, 'sleep 1000.31', { processId: 'meek' });
	assert.equal((await kill(box, 'meek')).status, 200);
	assert.equal((await look(box, 'meek')).exitCode, 143);
	await start(box, "trap '' TERM; echo ready; while :; do sleep 1000.32; done", { processId: 'tough' });
	await until('its trap is set', async () => (await logs(box, 'tough')).stdout === 'ready\n');
	const began = Date.now();
	assert.equal((await kill(box, 'tough')).status, 200);
	const took = Date.now() - began;
	assert.ok(took >= 4_500 && took < 60_000, `${took} ms`);
	const record = await look(box, 'tough');
	assert.deepEqual([record.status, record.exitCode], ['killed', 137]);
	assert.deepEqual(daemon.marked('1000.32'), []);
});

test('a process may tidy up on SIGTERM and keeps its exit code', async t => {
	const box = await daemon.box(t);
	await start(box, "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.05; done", { processId: 'p' });
	await until('its trap is set', async () => (await logs(box, 'p')).stdout === 'ready\n');
	assert.equal((await kill(box, 'p')).status, 200);
	const record = await look(box, 'p');
	assert.deepEqual([record.status, record.exitCode], ['killed', 5]);
	assert.equal((await logs(box, 'p')).stdout, 'ready\nbye\n');
});

test('what took SIGKILL says 137, also when a shell around it died of SIGTERM', async t => {
	const box = await daemon.box(t);
	const stubborn = mark => `bash -c 'trap "" TERM; echo ready; while :; do sleep ${mark}; done'`;
	const ids = ['session', 'alone', 'tidy', 'all'];
	await start(box, `${stubborn('1000.51')}; true`, { processId: 'session' });
	await start(box, `${stubborn('1000.52')}; true`, { processId: 'alone', sessionId: SESSIONLESS });
	await start(box, `trap 'exit 5' TERM; ${stubborn('1000.53')} & wait`, { processId: 'tidy' });
	await start(box, `${stubborn('1000.54')}; true`, { processId: 'all' });
	for (const id of ids)
		await until(`${id} has set its trap`, async () => (await logs(box, id)).stdout === 'ready\n');
	const kills = ['session', 'alone', 'tidy'].map(id => kill(box, id));
	kills.push(box.api('DELETE', '/api/process/kill-all'));
	for (const answer of await Promise.all(kills))
		assert.equal(answer.status, 200, answer.raw.toString());
	const records = await Promise.all(ids.map(id => look(box, id)));
	assert.deepEqual(records.map(p => [p.id, p.status, p.exitCode]), [['session', 'killed', 137], ['alone', 'killed', 137], ['tidy', 'killed', 5], ['all', 'killed', 137]]);
	assert.deepEqual([51, 52, 53, 54].flatMap(n => daemon.marked(`1000.${n}`)), []);
});

test('a killed process that is killed again is 404', async t => {
	const box = await daemon.box(t);
	for (const [processId, sessionId, said] of [['p', undefined, 'default'], ['q', 's', 's'], ['r', SESSIONLESS, SESSIONLESS]]) {
		await start(box, 'sleep 1000', { processId, sessionId });
		await kill(box, processId);
		const answer = await kill(box, processId);
		assert.deepEqual(refused(answer, 404, 'COMMAND_NOT_FOUND'), { command: processId });
		assert.equal(answer.body.message, `Command '${processId}' not found or already completed in session '${said}'`);
	}
});

test('any signal is honoured, from the query or the body', async t => {
	const box = await daemon.box(t);
	const script = "trap 'echo usr1' USR1; trap 'echo usr2' USR2; trap 'echo int; exit 9' INT; echo ready; while :; do sleep 0.02; done";
	await start(box, `exec bash -c ${JSON.stringify(script)}`, { processId: 'p', sessionId: SESSIONLESS });
	const says = text => until(text, async () => (await logs(box, 'p')).stdout.includes(text));
	await says('ready');
	assert.equal((await kill(box, 'p', '?signal=SIGUSR1')).status, 200);
	await says('usr1');
	assert.equal((await kill(box, 'p', '', { signal: 12 })).status, 200);
	await says('usr2');
	for (const signal of ['SIGNOTHING', 0, 65, -1, true, {}])
		refused(await kill(box, 'p', '', { signal }), 400, 'VALIDATION_FAILED');
	assert.equal((await look(box, 'p')).status, 'running');
	assert.equal((await kill(box, 'p', '', { signal: 'SIGINT' })).status, 200);
	assert.deepEqual([(await look(box, 'p')).status, (await look(box, 'p')).exitCode], ['killed', 9]);
	await start(box, 'sleep 1000', { processId: 'q' });
	assert.equal((await kill(box, 'q', '', { signal: 9 })).status, 200);
	assert.equal((await look(box, 'q')).exitCode, 137);
});

test('kill-all ends all that run at once and counts them', async t => {
	const box = await daemon.box(t);
	assert.equal((await box.api('DELETE', '/api/process/kill-all')).body.cleanedCount, 0);
	await runToEnd(box, 'true', { processId: 'done' });
	for (let i = 0; i < 10; i++)
		await start(box, i % 2 ? 'sleep 1000.41' : "trap '' TERM; echo on; while :; do sleep 1000.41; done", { processId: `p${i}` });
	for (let i = 0; i < 10; i += 2)
		await until('its trap is set', async () => (await logs(box, `p${i}`)).stdout === 'on\n');
	const began = Date.now();
	const answer = await box.api('DELETE', '/api/process/kill-all');
	assert.deepEqual([answer.status, answer.body.success, answer.body.cleanedCount], [200, true, 10]);
	assert.ok(Date.now() - began < 20_000, 'in parallel');
	assert.deepEqual(daemon.marked('1000.41'), []);
	assert.deepEqual(new Set((await list(box)).map(p => p.status)), new Set(['completed', 'killed']));
});

test('deleting a session ends its processes, which then have no exit code', async t => {
	const box = await daemon.box(t);
	await box.run('true', { sessionId: 's' });
	await start(box, '(setsid sleep 1000.51 &) ; sleep 1000.51', { processId: 'its', sessionId: 's' });
	await start(box, 'sleep 1000.52', { processId: 'other' });
	const log = collect(follow(box, 'its'));
	assert.equal((await box.api('POST', '/api/session/delete', { sessionId: 's' })).status, 200);
	const record = await ended(box, 'its');
	assert.ok(record.status === 'error' && !('exitCode' in record), JSON.stringify(record));
	await until('nothing of it is left', () => daemon.marked('1000.51').length === 0);
	const last = (await within(60_000, 'end of its log', log)).all.at(-1);
	assert.ok(last.event === 'exit' && !('exitCode' in last.data));
	assert.equal((await look(box, 'other')).status, 'running');
});

test('a shell that exits takes its processes along', async t => {
	const box = await daemon.box(t);
	await start(box, 'sleep 1000.61', { processId: 'p', sessionId: 's' });
	refused(await box.exec('exit 3', { sessionId: 's' }), 410, 'SESSION_TERMINATED');
	const record = await ended(box, 'p');
	assert.ok(record.status === 'error' && !('exitCode' in record));
	await until('it is gone', () => daemon.marked('1000.61').length === 0);
});

test('timeoutMs ends a process and all it started, with or without a session', async t => {
	const box = await daemon.box(t);
	for (const sessionId of [undefined, SESSIONLESS]) {
		const record = await runToEnd(box, 'echo begun; (setsid sleep 1000.71 &); sleep 1000.71', { processId: 'p', sessionId, timeoutMs: 4_000 });
		assert.deepEqual([record.status, record.exitCode], ['killed', 124]);
		const { stdout, stderr } = await logs(box, 'p');
		assert.deepEqual([stdout, stderr], ['begun\n', 'Command timed out after 4000ms\n']);
		const end = await collect(follow(box, 'p'));
		assert.deepEqual([end.stderr, end.exitCode], ['Command timed out after 4000ms\n', 124]);
		await until('nothing is left', () => daemon.marked('1000.71').length === 0);
	}
});

test('stdin of a process is empty', async t => {
	const box = await daemon.box(t);
	await runToEnd(box, 'cat; read x; echo $?', { processId: 'p' });
	assert.equal((await logs(box, 'p')).stdout, '1\n');
});

test('streamed commands and those in the background are processes, too', async t => {
	const box = await daemon.box(t);
	const answer = await box.exec('echo back; sleep 1000', { background: true, processId: 'back' });
	assert.deepEqual(Object.keys(answer.body), ['success', 'processId', 'pid', 'command', 'timestamp']);
	assert.equal(answer.body.processId, 'back');
	const stream = box.stream('echo streamed; exit 4');
	const { value: first } = await stream.next();
	const end = await collect(stream);
	assert.equal(end.exitCode, 4);
	const all = await list(box);
	assert.equal(all.find(p => p.id === 'back').status, 'running');
	const streamed = all.find(p => p.id === first.data.processId);
	assert.deepEqual([streamed.command, streamed.exitCode, streamed.status], ['echo streamed; exit 4', 4, 'failed']);
	assert.equal((await logs(box, streamed.id)).stdout, 'streamed\n');
});

test('a streamed command whose reader left can be found, read and killed', async t => {
	const box = await daemon.box(t);
	let id;
	for await (const { event, data } of box.stream('echo one; sleep 1000.81')) {
		id ??= data.processId;
		if (event === 'stdout')
			break;
	}
	assert.equal((await look(box, id)).status, 'running');
	assert.equal((await logs(box, id)).stdout, 'one\n');
	assert.equal((await kill(box, id)).status, 200);
	assert.deepEqual(daemon.marked('1000.81'), []);
});

test('a long command is cut in its record only', async t => {
	const box = await daemon.box(t);
	const command = `: ${'é'.repeat(100_000)}; echo done`;
	const body = await start(box, command);
	assert.equal(body.command, command);
	const record = await ended(box, body.processId);
	assert.ok(command.startsWith(record.command) && Buffer.byteLength(record.command) > 65_000 && Buffer.byteLength(record.command) <= 65_536);
	assert.equal((await logs(box, body.processId)).stdout, 'done\n');
});

test('sixty processes at once all run and all end', async t => {
	const box = await daemon.box(t);
	await Promise.all(Array.from({ length: 60 }, (_, i) => start(box, `echo ${i}; exit ${i}`, { processId: `p${i}`, sessionId: SESSIONLESS })));
	for (let i = 0; i < 60; i++) {
		assert.equal((await ended(box, `p${i}`)).exitCode, i);
		assert.equal((await logs(box, `p${i}`)).stdout, `${i}\n`);
	}
});

test('more processes than a sandbox can run are refused soon, and its sessions go on', async t => {
	const box = await daemon.box(t);
	const answers = await Promise.all(Array.from({ length: 200 }, () => box.api('POST', '/api/process/start', { command: 'sleep 1000' })));
	const refusals = answers.filter(a => a.status !== 200);
	assert.ok(refusals.length >= 40 && refusals.length < 60, `${refusals.length} are refused`);
	for (const answer of refusals)
		refused(answer, 429, 'LIMIT_REACHED');
	await box.run('true');
	assert.equal((await box.api('DELETE', '/api/process/kill-all')).body.cleanedCount, 200 - refusals.length);
	await start(box, 'true');
});

test('out of memory is told as the cause', async t => {
	const box = await daemon.box(t, { limits: { memoryMiB: 64 } });
	await runToEnd(box, 'exec tail /dev/zero', { processId: 'p', sessionId: SESSIONLESS });
	const record = (await daemon.api('GET', `/v1/sandboxes/${box.id}`)).body;
	assert.equal(record.lastDeath.cause, 'oom');
	const end = await collect(follow(box, 'p'));
	assert.equal(end.all.at(-1).data.cause, 'oom');
});
