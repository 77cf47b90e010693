// SPDX-License-Identifier: Apache-2.0
// stop, start, restart, pause, resume and update of a sandbox: what is kept, what is told, what is refused.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { refused, TIME } from '../lib/expect.mjs';
import { expose, serve } from '../lib/preview.mjs';
import { silt } from '../lib/silt.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const post = (id, change) => daemon.api('POST', `/v1/sandboxes/${id}/${change}`);
const patch = (id, fields) => daemon.api('PATCH', `/v1/sandboxes/${id}`, fields);
const running = async (box, n) => (await box.api('GET', '/api/process/list')).body.processes.filter(p => p.status === 'running').length === n;

test('a stop ends the processes and keeps the files; a start is a new incarnation', async t => {
	const box = await daemon.box(t, {});
	await box.out('echo kept > /workspace/file; X=gone; (sleep 1000 &) ; true');
	const first = await box.info();
	const stopped = await box.change('stop');
	assert.equal(stopped.state, 'stopped');
	assert.match(stopped.stateSince, TIME);
	assert.match(stopped.stateReason, /stopped on request/);
	assert.equal(stopped.lastDeath.cause, 'stopped');
	assert.equal(stopped.incarnation, null);
	assert.equal(stopped.usage.pids, 0);
	assert.equal((await box.change('stop')).stateSince, stopped.stateSince, 'once more changes nothing');
	const started = await box.change('start');
	assert.equal(started.state, 'running');
	assert.notEqual(started.incarnation, first.incarnation);
	assert.ok(started.startedAt >= started.createdAt);
	assert.equal((await box.change('start')).incarnation, started.incarnation);
	assert.equal(await box.out('cat /workspace/file; echo [$X]; pgrep -c sleep || true'), 'kept\n[]\n0\n');
});

test('a restart is a stop and a start', async t => {
	const box = await daemon.box(t, {});
	await box.out('echo kept > /workspace/file');
	const { incarnation } = await box.info();
	const again = await box.change('restart');
	assert.equal(again.state, 'running');
	assert.notEqual(again.incarnation, incarnation);
	assert.equal(await box.out('cat /workspace/file'), 'kept\n');
	await box.stop();
	assert.equal((await box.change('restart')).state, 'running');
});

test('a stop works after a fork bomb and keeps the files', async t => {
	const box = await daemon.box(t, { type: 'lite' });
	await box.out('echo kept > /workspace/file');
	box.run('b() { b | b & }; b; sleep 1000', { sessionId: 'bomb' }).catch(() => {});
	await until('it is full', async () => (await box.info()).usage.pids > 200);
	await box.stop();
	assert.equal(await box.out('cat /workspace/file'), 'kept\n');
});

test('a pause loses nothing: shell, background process and port go on where they were', async t => {
	const box = await daemon.box(t, {});
	await box.out('x=kept; cd /tmp');
	await box.api('POST', '/api/process/start', { command: 'i=0; while sleep 0.01; do i=$((i+1)); echo $i > /tmp/count; done', processId: 'counter' });
	await serve(box, 8000);
	const preview = await expose(box, 8000);
	t.after(() => preview.close());
	await until('it counts', async () => Number((await box.run('cat /tmp/count')).stdout) > 0);
	const before = await box.info();
	const paused = await box.change('pause');
	assert.equal(paused.state, 'paused');
	assert.match(paused.stateSince, TIME);
	assert.equal(paused.incarnation, before.incarnation);
	const { cpuMs } = (await box.info()).usage;
	assert.equal((await box.change('pause')).state, 'paused');
	assert.equal((await box.info()).usage.cpuMs, cpuMs, 'it uses no cpu, and looking does not wake it');
	assert.equal((await box.info()).state, 'paused');
	assert.equal(await box.out('echo $x $PWD'), 'kept /tmp\n');
	const after = await box.info();
	assert.deepEqual([after.state, after.incarnation], ['running', before.incarnation]);
	assert.ok(after.stateSince > before.stateSince);
	const counted = Number(await box.out('cat /tmp/count'));
	await until('it counts on', async () => Number(await box.out('cat /tmp/count')) > counted);
	await box.change('pause');
	assert.equal((await preview.get('/who')).status, 200);
	assert.equal((await box.info()).state, 'running');
	await box.change('pause');
	assert.equal((await box.change('resume')).state, 'running');
	assert.equal((await box.change('resume')).state, 'running');
});

test('what a client sends to a command that runs wakes a paused sandbox', async t => {
	const box = await daemon.box(t, {});
	await box.api('POST', '/api/process/start', { command: 'sleep 1000', processId: 'p' });
	await box.change('pause');
	assert.equal((await box.api('DELETE', '/api/process/p')).status, 200);
	assert.equal((await box.info()).state, 'running');
	assert.ok(await running(box, 0));
});

test('a paused sandbox is stopped, restarted and destroyed like any other', async t => {
	const box = await daemon.box(t, {});
	await box.out('echo kept > /workspace/file; sleep 1000 &');
	await box.change('pause');
	await box.stop();
	assert.equal(await box.out('cat /workspace/file'), 'kept\n');
	await box.change('pause');
	assert.equal((await box.change('restart')).state, 'running');
	await box.change('pause');
	assert.equal((await box.destroy()).destroyed, true);
	refused(await post(box.id, 'pause'), 404, 'SANDBOX_NOT_FOUND');
});

test('an idle sandbox is paused, then stopped; keepAlive and running processes prevent it', async t => {
	const [box, alive, busy, lazy] = await Promise.all([{}, { keepAlive: true }, {}, { keepProcesses: false }]
		.map(more => daemon.box(t, { sleepAfter: 1, ...more })));
	await alive.out('true');
	for (const one of [busy, lazy])
		await one.api('POST', '/api/process/start', { command: 'sleep 1000', processId: 'p' });
	await until('it is paused', async () => (await box.info()).state === 'paused');
	await until('processes that may sleep do', async () => (await lazy.info()).state === 'paused');
	assert.equal((await alive.info()).state, 'running');
	assert.equal((await busy.info()).state, 'running');
	await busy.api('DELETE', '/api/process/p');
	await until('its process was all that kept it', async () => (await busy.info()).state === 'paused');
	await alive.update({ keepAlive: false });
	await until('so was that', async () => (await alive.info()).state === 'paused');
	await box.update({ stopAfter: 1 });
	await until('it is stopped', async () => (await box.info()).state === 'stopped');
	assert.equal((await box.info()).lastDeath.cause, 'idle');
});

test('a pause outlives siltd, and is over with the next use', async t => {
	const own = await startDaemon();
	let current = own;
	t.after(() => current.stop());
	const box = await own.box(null, {});
	await box.out('x=kept');
	await box.change('pause');
	const { incarnation, stateSince } = await box.info();
	process.kill(own.siltd(), 'SIGKILL');
	await own.healthy();
	const again = await until('it is known', async () => { const info = await box.info(); return info.state === 'paused' && info; });
	assert.deepEqual([again.incarnation, again.stateSince], [incarnation, stateSince]);
	assert.equal(await box.out('echo $x'), 'kept\n');
	await box.change('pause');
	await own.stop({ keep: true });
	box.daemon = current = await startDaemon({ home: own.home });
	assert.equal((await box.info()).state, 'stopped');
	await box.out('true');
});

test('pauses, wakes and stops at once leave it working', async t => {
	const box = await daemon.box(t, {});
	const { incarnation } = await box.info();
	const known = new Set([200, 409]);
	for (let round = 0; round < 5; round++) {
		const answers = await Promise.all([post(box.id, 'pause'), box.exec('echo 1'), post(box.id, 'pause'), post(box.id, 'resume'), box.exec('echo 2')]);
		for (const answer of answers)
			assert.ok(known.has(answer.status), answer.raw.toString());
		assert.equal(await box.out('echo works'), 'works\n');
	}
	assert.equal((await box.info()).incarnation, incarnation, 'no process was lost');
	await Promise.all([post(box.id, 'stop'), post(box.id, 'restart'), post(box.id, 'pause'), post(box.id, 'start')]);
	assert.equal(await box.out('echo works'), 'works\n');
});

test('an update changes what it names and nothing else', async t => {
	const box = await daemon.box(t, { labels: { a: '1', b: '2' }, env: { A: '1', B: '2' }, sleepAfter: 100 });
	const made = await box.info();
	const changed = await box.update({ labels: { b: null, c: '3' }, env: { B: null, C: '3' }, stopAfter: '2h', keepProcesses: false });
	assert.deepEqual(changed.labels, { a: '1', c: '3' });
	assert.deepEqual([changed.sleepAfter, changed.stopAfter, changed.keepProcesses, changed.keepAlive], [100, 7200, false, false]);
	assert.deepEqual(changed.limits, made.limits);
	assert.equal(changed.incarnation, made.incarnation);
	assert.equal(await box.out('echo $A-$B-$C', { sessionId: 'new' }), '1--3\n');
	await daemon.api('PATCH', `/v1/sandboxes/${box.id}`, {});
	assert.equal((await box.update({ sleepAfter: null })).sleepAfter, 600);
});

/** A program that starts so many processes, as far as it may, and says how many. */
const forks = count => `python3 -c '
import os, signal
kids = []
try:
    for i in range(${count}):
        kids.append(os.fork())
        if kids[-1] == 0:
            signal.pause()
except BlockingIOError:
    pass
print(len(kids))
for kid in kids:
    os.kill(kid, 9)'`;

test('limits change while it runs, while it is paused and while it is stopped', async t => {
	const box = await daemon.box(t, { limits: { memoryMiB: 256, pids: 64 } });
	const { incarnation } = await box.info();
	const more = await box.update({ limits: { memoryMiB: 512 } });
	assert.deepEqual([more.limits.memoryMiB, more.limits.pids, more.type], [512, 64, null]);
	assert.equal(await box.out(`python3 -c 'x = b"x" * (350 << 20); print(len(x) >> 20)'`), '350\n');
	assert.equal((await box.info()).incarnation, incarnation);
	await box.update({ limits: { pids: 20 } });
	assert.ok(Number(await box.out(forks(40))) < 20, 'forty do not fit');
	await box.change('pause');
	assert.equal((await box.update({ limits: { pids: 30 } })).state, 'paused');
	await box.stop();
	assert.equal((await box.update({ limits: { pids: 200, memoryMiB: 300 } })).state, 'stopped');
	assert.equal(await box.out(forks(100)), '100\n');
});

test('the network changes with an update', async t => {
	const box = await daemon.box(t, {});
	await box.update({ network: { mode: 'none' } });
	assert.equal((await daemon.api('GET', `/v1/sandboxes/${box.id}/network`)).body.mode, 'none');
	assert.equal(await box.out('ls /sys/class/net'), 'lo\n');
});

test('a time to live removes it, as does a stop where that was asked for', async t => {
	const [brief, once, reprieved] = await Promise.all([{ ttl: 1 }, { removeAfterStop: true }, { ttl: 1 }].map(fields => daemon.box(t, fields)));
	assert.match((await reprieved.info()).expiresAt, TIME);
	assert.equal((await reprieved.update({ ttl: null })).expiresAt, null);
	await post(once.id, 'stop');
	const gone = async box => (await daemon.api('GET', `/v1/sandboxes/${box.id}`)).status === 404;
	await until('it is removed after its stop', () => gone(once));
	await until('it is removed after its time', () => gone(brief));
	assert.equal((await reprieved.info()).state, 'running');
});

test('changes of what is not there, or cannot be, are refused', async t => {
	const box = await daemon.box(t, {});
	for (const change of ['stop', 'start', 'restart', 'pause', 'resume'])
		refused(await post('never-made', change), 404, 'SANDBOX_NOT_FOUND');
	refused(await patch('never-made', {}), 404, 'SANDBOX_NOT_FOUND');
	assert.equal((await post(box.id, 'hibernate')).status, 404);
	await box.stop();
	refused(await post(box.id, 'pause'), 409, 'SANDBOX_STOPPED');
	for (const fields of [{ netwrok: {} }, { image: 'host' }, { sleepAfter: 'soon' }, { stopAfter: -1 }, { ttl: 0 }, { ttl: '5x' }, { keepAlive: 1 }, { labels: [] },
		{ labels: { a: 1 } }, { env: { 'A=B': 'x' } }, { limits: { memoryMiB: 1 } }, { limits: { memoryMiB: '512' } }, { network: { mode: 'loud' } },
		{ labels: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`k${i}`, 'v'])) }])
		refused(await patch(box.id, fields), 400, 'VALIDATION_FAILED');
	assert.equal((await patch(box.id, '[]')).status, 400);
});

test('silt stops, starts, pauses, resumes and updates', async t => {
	const box = await daemon.box(t, {});
	const run = async (...args) => {
		const done = await silt(daemon, args);
		assert.equal(done.code, 0, done.stderr);
		return done.stdout;
	};
	for (const [change, state] of [['pause', 'paused'], ['resume', 'running'], ['stop', 'stopped'], ['start', 'running'], ['restart', 'running']])
		assert.equal(await run(change, box.id), `${box.id} ${state}\n`);
	await run('update', box.id, '--memory', '300', '--label', 'a=b', '--sleep-after', '5m', '--keep-alive', 'on', '--ttl', '1h');
	const info = await box.info();
	assert.deepEqual([info.limits.memoryMiB, info.labels, info.sleepAfter, info.keepAlive], [300, { a: 'b' }, 300, true]);
	assert.match(info.expiresAt, TIME);
	await run('update', box.id, '--ttl', 'off');
	assert.equal((await box.info()).expiresAt, null);
	const wrong = await silt(daemon, ['update', box.id, '--keep-alive', 'perhaps']);
	assert.deepEqual([wrong.code, wrong.stderr], [125, 'silt: --keep-alive is on or off, not perhaps\n']);
	const none = await silt(daemon, ['stop', 'never-made']);
	assert.equal(none.code, 125);
	assert.match(none.stderr, /never-made/);
});
