// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SESSIONLESS } from '../lib/box.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { envelope, refused } from '../lib/expect.mjs';
import { collect } from '../lib/sse.mjs';
import { milliseconds, until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

/** Runs into the timeout, checks the error, and that the session answers at once with its state. */
async function timesOut(box, command, fields = {}) {
	await box.out('X=kept; export Y=exported; cd /var; shopt -s extglob; g() { echo g; }');
	const answer = await box.exec(command, { timeoutMs: 300, ...fields });
	const context = refused(answer, 500, 'COMMAND_EXECUTION_ERROR');
	assert.match(answer.body.message, /Command timeout after 300ms/);
	assert.match(context.stderr, /Command timeout after 300ms/);
	assert.equal(context.command, command);
	assert.equal(context.cause, 'timeout');
	assert.ok(context.shellRestarted === undefined || typeof context.shellRestarted === 'boolean');
	const took = await milliseconds(async () => {
		assert.equal(await box.out('echo $X $Y $PWD $(g) $(shopt -q extglob && echo on); env | grep ^Y=', { timeoutMs: 30_000 }), 'kept exported /var g on\nY=exported\n');
	});
	assert.ok(took < 10_000, `the session is usable at once (${took} ms)`);
	return context;
}

const COMMANDS = {
	'a sleeping program': 'sleep 1000',
	'an endless loop of builtins': 'while :; do :; done',
	'endless loops in nested functions': 'a() { b; }; b() { c; }; c() { while true; do x=$((x+1)); done; }; a',
	'a loop that restarts its program': 'while true; do sleep 1000; done',
	'a pipeline': 'yes | while read x; do :; done | cat > /dev/null',
	'a wait for a job': 'sleep 1000 & wait',
	'a wait in a subshell': '(sleep 1000 & wait)',
	'a command substitution': 'x=$(sleep 1000; echo never)',
	'a read that blocks': 'mkfifo /tmp/never$$; read x < /tmp/never$$',
	'a program with all signals trapped away': "trap '' HUP INT QUIT TERM USR1 USR2 ALRM; while :; do sleep 1000; done",
	'a shell with all signals trapped away': "for s in {1..31} {34..64}; do trap '' $s 2>/dev/null; done; while :; do :; done",
	'a handler that goes on': 'trap "while :; do :; done" INT TERM; while :; do :; done',
	'an exec in a subshell': '(exec sleep 1000)',
	'a stopped program': 'sh -c "kill -STOP \\$\\$"',
	'an eval that never ends': 'eval "eval \\"while :; do :; done\\""',
	'a here-document into a program that never reads': 'sleep 1000 <<< "$(head -c 100000 /dev/zero | tr "\\0" x)"',
};

for (const [name, command] of Object.entries(COMMANDS)) {
	test(`a timeout ends ${name} and keeps the session`, async t => {
		await timesOut(await daemon.box(t), command);
	});
}

test('COMMAND_TIMEOUT_MS of the sandbox bounds commands that bring no timeout, in sessions that have none', async t => {
	const box = await daemon.box(t, { env: { COMMAND_TIMEOUT_MS: '300' } });
	assert.match((await box.exec('sleep 1000')).body.message, /Command timeout after 300ms/);
	assert.equal(await box.out('sleep 1; echo own', { timeoutMs: 60_000 }), 'own\n');
	assert.equal((await box.api('POST', '/api/session/create', { id: 'patient', commandTimeoutMs: 60_000 })).status, 200);
	assert.equal(await box.out('sleep 1; echo patient', { sessionId: 'patient' }), 'patient\n');
	for (const nonsense of ['0', '', 'soon', '-1']) {
		const other = await daemon.box(t, { env: { COMMAND_TIMEOUT_MS: nonsense } });
		assert.equal(await other.out('sleep 0.5; echo through'), 'through\n', nonsense);
		await other.destroy();
	}
});

test('traps that were set before the command survive a timeout', async t => {
	const box = await daemon.box(t);
	await box.out('trap "echo mine" USR1; trap "" INT');
	refused(await box.exec('while :; do :; done', { timeoutMs: 300 }), 500, 'COMMAND_EXECUTION_ERROR');
	assert.equal(await box.out('trap -p'), "trap -- '' SIGINT\ntrap -- 'echo mine' SIGUSR1\n");
});

test('shellRestarted is said exactly when the shell is another process', async t => {
	const box = await daemon.box(t);
	for (const command of ['sleep 1000', 'while :; do :; done']) {
		const first = await box.out('echo $BASHPID');
		const context = refused(await box.exec(command, { timeoutMs: 300 }), 500, 'COMMAND_EXECUTION_ERROR');
		assert.equal(context.shellRestarted === true, await box.out('echo $BASHPID') !== first, command);
	}
});

test('children that daemonised themselves are gone after the timeout', async t => {
	const box = await daemon.box(t);
	const marks = ['1000.11', '1000.12', '1000.13'];
	await timesOut(box, '(setsid sleep 1000.11 &); (setsid sh -c "sleep 1000.12 & sleep 1000.13" &) ; sleep 1000.14');
	assert.deepEqual([...marks, '1000.14'].flatMap(mark => daemon.marked(mark)), []);
});

test('jobs of earlier commands survive the timeout', async t => {
	const box = await daemon.box(t);
	const pid = (await box.out('sleep 1000.21 & echo $!')).trim();
	refused(await box.exec('sleep 1000.22', { timeoutMs: 300 }), 500, 'COMMAND_EXECUTION_ERROR');
	assert.equal((await box.run(`kill -0 ${pid}`)).exitCode, 0);
	assert.equal(daemon.marked('1000.21').length, 1);
	assert.equal(daemon.marked('1000.22').length, 0);
});

test('streamed commands of the session survive a timeout of another command', async t => {
	const box = await daemon.box(t);
	const stream = box.stream('sleep 1000.31', { sessionId: 'default' });
	await stream.next();
	refused(await box.exec('while :; do :; done', { timeoutMs: 300 }), 500, 'COMMAND_EXECUTION_ERROR');
	assert.equal(daemon.marked('1000.31').length, 1);
	await stream.return();
});

test('commands that wait behind a timed-out one run next, in order', async t => {
	const box = await daemon.box(t);
	await box.out('mkfifo /tmp/ready');
	const first = box.exec('echo on > /tmp/ready; while :; do :; done', { timeoutMs: 3_000 });
	await box.out('cat /tmp/ready', { sessionId: 'other' });
	const outs = await Promise.all(['a', 'b', 'c'].map(x => box.out(`echo ${x} $$`)));
	refused(await first, 500, 'COMMAND_EXECUTION_ERROR');
	assert.deepEqual(outs.map(out => out[0]), ['a', 'b', 'c']);
});

test('ten timeouts in a row leave one usable shell', async t => {
	const box = await daemon.box(t);
	await box.out('X=kept');
	for (let i = 0; i < 10; i++)
		refused(await box.exec(i % 2 ? 'sleep 1000.41' : 'while :; do :; done', { timeoutMs: 100 }), 500, 'COMMAND_EXECUTION_ERROR');
	assert.equal(await box.out('echo $X'), 'kept\n');
	await until('no process left behind', () => daemon.marked('1000.41').length === 0);
	const bashes = async () => (await box.out('grep -l "^bash" /proc/[0-9]*/comm 2>/dev/null | wc -l', { sessionId: SESSIONLESS })).trim();
	await until('no spare shells pile up', async () => Number(await bashes()) <= 3);
});

test('a command that ends in time is not touched by its timeout', async t => {
	const box = await daemon.box(t);
	assert.equal(await box.out('echo quick; sleep 1000.51 & disown', { timeoutMs: 4_000 }), 'quick\n');
	await box.out('sleep 4.5');
	assert.equal(daemon.marked('1000.51').length, 1);
});

test('state changed by a command with a timeout is kept when it ends in time', async t => {
	const box = await daemon.box(t);
	await box.out('X=new; cd /tmp; h() { echo h; }; set -o noglob', { timeoutMs: 10_000 });
	assert.equal(await box.out('echo $X $PWD $(h) *'), 'new /tmp h *\n');
});

test('exit within the timeout still ends the session', async t => {
	const box = await daemon.box(t);
	assert.equal(refused(await box.exec('exit 4', { timeoutMs: 10_000 }), 410, 'SESSION_TERMINATED').exitCode, 4);
});

test('bad timeouts are refused', async t => {
	const box = await daemon.box(t);
	for (const timeoutMs of [-1, 'x', '100', {}, [], true])
		refused(await box.exec('true', { timeoutMs }), 400, 'VALIDATION_FAILED');
});

// ---- without a session ----

test('a sessionless timeout is an ordinary result with 124', async t => {
	const box = await daemon.box(t);
	const body = await box.run('echo before; sleep 1000.61', { sessionId: SESSIONLESS, timeoutMs: 4_000 });
	assert.equal(body.exitCode, 124);
	assert.equal(body.success, false);
	assert.equal(body.stdout, 'before\n');
	assert.match(body.stderr, /^Command timed out after 4000ms\n?$/);
	assert.deepEqual(daemon.marked('1000.61'), []);
});

test('the sentence about the timeout follows what was on stderr', async t => {
	const box = await daemon.box(t);
	const body = await box.run('printf oops >&2; sleep 1000', { sessionId: SESSIONLESS, timeoutMs: 4_000 });
	assert.match(body.stderr, /^oops\nCommand timed out after 4000ms\n?$/);
});

test('a sessionless command that ignores SIGTERM is killed all the same', async t => {
	const box = await daemon.box(t);
	const body = await box.run("trap '' TERM; (setsid sleep 1000.62 &); while :; do sleep 0.05; done", { sessionId: SESSIONLESS, timeoutMs: 4_000 });
	assert.equal(body.exitCode, 124);
	assert.deepEqual(daemon.marked('1000.62'), []);
});

test('a sessionless command may clean up when it is told to end', async t => {
	const box = await daemon.box(t);
	const body = await box.run("trap 'echo cleaned; exit 0' TERM; while :; do sleep 0.05; done", { sessionId: SESSIONLESS, timeoutMs: 4_000 });
	assert.equal(body.exitCode, 124);
	assert.equal(body.stdout, 'cleaned\n');
});

test('a sessionless stream says its timeout on stderr and completes with 124', async t => {
	const box = await daemon.box(t);
	const end = await collect(box.stream('echo a; sleep 1000', { sessionId: SESSIONLESS, timeoutMs: 4_000 }));
	assert.equal(end.exitCode, 124);
	assert.equal(end.stdout, 'a\n');
	assert.equal(end.stderr, 'Command timed out after 4000ms\n');
});

test('a stream in a session keeps its timeoutMs too, and the session goes on', async t => {
	const box = await daemon.box(t);
	await box.run('X=kept');
	const end = await collect(box.stream('echo $X; sleep 30; echo later', { timeoutMs: 4_000 }));
	assert.deepEqual([end.stdout, end.stderr, end.exitCode], ['kept\n', 'Command timed out after 4000ms\n', 124]);
	assert.equal(await box.out('echo $X'), 'kept\n');
});

test('a state that could not be written whole is not loaded: the session begins anew and says so', async t => {
	const box = await daemon.box(t);
	await box.run('export FOO=1; cd /tmp; head -c 200M /dev/zero > /dev/silt/fill; true');
	const answer = await box.exec('sleep 5', { timeoutMs: 200 });
	assert.equal(answer.status, 500);
	assert.equal(answer.body.context.shellRestarted, false);
	await box.run('rm -f /dev/silt/fill', { sessionId: SESSIONLESS });
	assert.equal(await box.out('echo [$FOO] $PWD $HOME'), '[] /workspace /root\n');
});

/* A sandbox whose first process is stopped from outside while `use` waits for it. */
async function standsStill(t, use) {
	const impatient = await startDaemon({ flags: { 'agent.deadline_ms': 6_000 } });
	const box = await impatient.box(t);
	t.after(() => impatient.stop());
	await box.out('echo kept > /workspace/file; X=gone', { sessionId: 's' });
	const before = (await box.info()).incarnation;
	const init = await box.init();
	const answer = await use(box, () => process.kill(init, 'SIGSTOP'));
	assert.ok(answer.status >= 400 && answer.status !== 503, `${answer.status}`);
	envelope(answer);
	assert.match(answer.body.message, /does not answer/);
	assert.equal(await box.out('cat /workspace/file; echo [$X]', { sessionId: 's' }), 'kept\n[]\n');
	const info = await box.info();
	assert.notEqual(info.incarnation, before);
	assert.equal(info.lastDeath.cause, 'crash');
}

test('a sandbox that stands still before a command fails it in time, and the next use starts it again', t =>
	standsStill(t, (box, stop) => {
		stop();
		return box.exec('echo never', { sessionId: 's' });
	}));

test('a sandbox that stands still under a command fails it in time, and the next use starts it again', t =>
	standsStill(t, async (box, stop) => {
		const running = box.exec('touch /tmp/runs; sleep 1000', { sessionId: 's' });
		await until('the command runs', async () => (await box.run('ls /tmp/runs', { sessionId: SESSIONLESS })).exitCode === 0);
		stop();
		return running;
	}));

test('a silent command is not taken for a sandbox that stands still', async t => {
	const impatient = await startDaemon({ flags: { 'agent.deadline_ms': 3_000 } });
	const box = await impatient.box(t);
	t.after(() => impatient.stop());
	assert.equal(await box.out('sleep 8; echo done'), 'done\n');
});
