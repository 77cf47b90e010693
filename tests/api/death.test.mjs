// SPDX-License-Identifier: Apache-2.0
// Ends are explained: out of memory, limits, signals.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SESSIONLESS } from '../lib/box.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { envelope, refused, TIME } from '../lib/expect.mjs';
import { silt } from '../lib/silt.mjs';
import { until } from '../lib/wait.mjs';

const MIB = 2 ** 20;
const EAT = "x=$(head -c 400000000 /dev/zero | tr '\\0' x); echo survived ${#x}"; // the shell itself grows

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

function explainsMemory(where, limit) {
	assert.equal(where.cause, 'oom');
	assert.equal(where.limitBytes, limit);
	assert.ok(where.peakBytes > limit * 0.8 && where.peakBytes <= limit * 1.05, `peak ${where.peakBytes}`);
}

test('a shell that runs out of memory is explained in the error and in the sandbox', async t => {
	const box = await daemon.box(t, { limits: { memoryMiB: 64 } });
	await box.out('echo kept > /workspace/file');
	const context = refused(await box.exec(EAT), 410, 'SESSION_TERMINATED');
	assert.equal(context.exitCode, 137);
	explainsMemory(context, 64 * MIB);
	const { lastDeath } = await box.info();
	explainsMemory(lastDeath, 64 * MIB);
	assert.match(lastDeath.at, TIME);
	assert.match(lastDeath.message, /memory/i);
	assert.equal(await box.out('cat /workspace/file'), 'kept\n');
});

test('a child that runs out of memory ends with 137 and the session goes on', async t => {
	const box = await daemon.box(t, { limits: { memoryMiB: 64 } });
	await box.out('X=kept');
	for (const sessionId of ['default', SESSIONLESS])
		assert.equal((await box.run('head -c 400000000 /dev/zero | tail -n 1', { sessionId })).exitCode, 137);
	assert.equal(await box.out('echo $X'), 'kept\n');
	explainsMemory((await box.info()).lastDeath, 64 * MIB);
});

test('running out of memory in one sandbox is nothing to its neighbour', async t => {
	const small = await daemon.box(t, { limits: { memoryMiB: 64 } });
	const neighbour = await daemon.box(t);
	await neighbour.out('X=kept');
	const [, out] = await Promise.all([small.exec(EAT), neighbour.out('sleep 0.2; echo $X')]);
	assert.equal(out, 'kept\n');
	assert.equal((await neighbour.info()).lastDeath, null);
});

test('the pids limit refuses processes inside and nothing else', async t => {
	const box = await daemon.box(t, { limits: { pids: 40 } });
	await box.run('true');
	const fill = await box.api('POST', '/api/execute', { command: 'i=0; while [ $i -lt 60 ]; do sleep 1000.33 & i=$((i+1)); done', sessionId: SESSIONLESS, timeoutMs: 3_000 });
	assert.ok(fill.status === 200 || fill.status === 500);
	const other = await daemon.box(t);
	assert.equal(await other.out('echo fine'), 'fine\n');
});

test('a command refused by the pids limit says so', async t => {
	const box = await daemon.box(t, { limits: { pids: 20 } });
	// One process that forks until it is refused, tells how far it came, and stays.
	const forker = 'i=0; while (sleep 1000.34 & ) 2>/dev/null && [ $i -lt 60 ]; do i=$((i+1)); done; echo $i';
	const stream = await box.open(forker, { sessionId: SESSIONLESS });
	t.after(() => stream.destroy());
	await until('the sandbox is full', async () => (await box.info()).usage.pids >= 18);
	assert.ok((await box.info()).usage.pids <= 20);
	const answer = await box.exec('/bin/true; /bin/true', { sessionId: SESSIONLESS, timeoutMs: 5_000 }, { deadline: 40_000 });
	if (answer.status !== 200) {
		envelope(answer);
		assert.equal(answer.body.context.cause, 'pids');
		assert.notEqual(answer.status, 503);
	}
});

test('a full disk is an error of the program that writes, the session goes on', async t => {
	const box = await daemon.box(t, { limits: { diskMiB: 64 } });
	const body = await box.run('X=kept; head -c 200000000 /dev/urandom > /workspace/big');
	assert.equal(body.exitCode, 1);
	assert.match(body.stderr, /quota exceeded|No space left/i);
	assert.equal(await box.out('echo $X; rm /workspace/big; sync; echo small > /workspace/small; cat /workspace/small'), 'kept\nsmall\n');
	const neighbour = await daemon.box(t);
	await neighbour.out('head -c 10000000 /dev/urandom > /workspace/fine');
});

test('a disk that is full does not keep a sandbox from being used, woken or destroyed', async t => {
	const box = await daemon.box(t, { limits: { diskMiB: 64 } });
	await box.run('head -c 200000000 /dev/urandom > /workspace/big');
	await box.stop();
	assert.equal(await box.out('echo awake'), 'awake\n');
	assert.equal((await box.destroy()).destroyed, true);
});

test('when all of the disk is full, sandboxes can be destroyed, and then there is room again', async t => {
	const small = await startDaemon({ flags: { 'disk.pool': '320M', 'pool.sandboxes': 0 } });
	t.after(() => small.stop());
	const box = await small.box(null, { limits: { diskMiB: 320 } });
	const other = await small.box(null, { limits: { diskMiB: 320 } });
	await box.run('head -c 400000000 /dev/urandom > /workspace/big; for i in $(seq 2000); do echo $i > /workspace/$i || break; done', {}, { deadline: 300_000 });
	const told = async () => (await small.api('GET', '/v1/events?follow=false&cursor=0&types=diskFull')).raw.toString();
	assert.match(await until('the pool says that it is full', async () => { const all = await told(); return all.includes('"pool"') && all; }, 60_000), /"type":"diskFull","sandbox":null,.*"scope":"pool","limitBytes":\d+\}/);
	refused(await other.api('POST', '/api/write', { path: 'file', content: 'x'.repeat(100_000) }), 507, 'NO_SPACE');
	assert.equal((await box.destroy()).destroyed, true);
	await until('there is room', async () => (await other.api('POST', '/api/write', { path: 'file', content: 'x'.repeat(100_000) })).status === 200, 180_000);
	await other.destroy();
});

test('a silt-init killed from outside in the middle of a command is explained and replaced', async t => {
	const box = await daemon.box(t);
	await box.out('echo kept > /workspace/file; X=gone');
	const before = await box.info();
	const running = box.exec('sleep 1000.35');
	await until('the command runs', () => daemon.marked('1000.35').length === 1);
	process.kill(await box.init(), 'SIGKILL');
	const answer = await running;
	assert.ok(answer.status >= 400 && answer.status !== 503, `${answer.status}`);
	envelope(answer);
	assert.ok(['crash', 'signal'].includes(answer.body.context.cause), answer.raw.toString());
	await until('nothing of it runs', () => daemon.marked('1000.35').length === 0);
	const { lastDeath } = await until('the death is noted', async () => {
		const info = await box.info();
		return info.lastDeath && info;
	});
	assert.ok(['crash', 'signal'].includes(lastDeath.cause), JSON.stringify(lastDeath));
	assert.equal(lastDeath.signal, 9);
	assert.equal(await box.out('cat /workspace/file; echo [$X]'), 'kept\n[]\n');
	assert.notEqual((await box.info()).incarnation, before.incarnation);
});

test('a shell that is new because its sandbox crashed says so, once', async t => {
	const box = await daemon.box(t);
	for (const sessionId of ['one', 'two', 'three'])
		await box.out('X=1', { sessionId });
	const before = (await box.info()).incarnation;
	process.kill(await box.init(), 'SIGKILL');
	await until('it has ended', async () => (await box.info()).lastDeath?.cause === 'crash');
	const { stdout, notice } = await box.run('echo [$X]', { sessionId: 'one' });
	assert.equal(stdout, '[]\n');
	assert.deepEqual({ ...notice, message: '', at: '' }, { code: 'SESSION_RESTARTED', cause: 'crash', message: '', at: '' });
	assert.match(notice.message, /started again.*variables/);
	assert.ok(Date.parse(notice.at) <= Date.now());
	assert.notEqual((await box.info()).incarnation, before);
	assert.equal((await box.run('true', { sessionId: 'one' })).notice, undefined, 'once');
	assert.equal((await box.run('true', { sessionId: 'new' })).notice, undefined, 'it had no shell before');
	assert.equal((await box.run('true', { sessionId: SESSIONLESS })).notice, undefined, 'it never has one');
	for await (const { data } of box.stream('true', { sessionId: 'two' }))
		assert.equal(data.notice?.code, data.type === 'start' ? 'SESSION_RESTARTED' : undefined);
	const said = await silt(daemon, ['exec', box.id, '--session', 'three', '--', 'true']);
	assert.match(said.stderr, /^silt: The sandbox ended unexpectedly.*variables.*\n$/);
});

test('a silt-init killed while nobody looks does not fail the next call for good', async t => {
	const box = await daemon.box(t);
	await box.run('true');
	const pid = await box.init();
	process.kill(pid, 'SIGKILL');
	const first = await box.exec('echo next');
	if (first.status !== 200)
		envelope(first);
	assert.equal(await box.out('echo next'), 'next\n');
	assert.ok(['crash', 'signal'].includes((await box.info()).lastDeath.cause));
});

test('a stream whose sandbox dies ends', async t => {
	const box = await daemon.box(t);
	const stream = box.stream('echo on; sleep 1000');
	await stream.next();
	process.kill(await box.init(), 'SIGKILL');
	const last = [];
	try {
		for await (const event of stream)
			last.push(event);
	} catch {
		// a cut connection is an end too
	}
	assert.notEqual(last.at(-1)?.data.exitCode, 0);
});

test('a death by signal names the signal', async t => {
	const box = await daemon.box(t);
	const context = refused(await box.exec('kill -SEGV $$'), 410, 'SESSION_TERMINATED');
	assert.equal(context.exitCode, 139);
	assert.equal(context.cause, 'signal');
	assert.equal(refused(await box.exec('exit 3'), 410, 'SESSION_TERMINATED').cause, 'exit');
});
