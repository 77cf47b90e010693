// SPDX-License-Identifier: Apache-2.0
// What commands leave behind in the control groups of a sandbox: it is shown, it can be ended, and nothing outlives a kill of everything but
// shells that wait for their next command.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SESSIONLESS } from '../lib/box.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { silt as runSilt } from '../lib/silt.mjs';
import { milliseconds, until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const silt = (args, options) => runSilt(daemon, args, options);
const processes = async box => (await daemon.api('GET', `/v1/sandboxes/${box.id}/processes`)).body.processes;
const found = async box => (await processes(box)).filter(p => p.kind !== 'process');
const killAll = async (box, query = '') => {
	const answer = await daemon.api('DELETE', `/v1/sandboxes/${box.id}/processes${query}`);
	assert.equal(answer.status, 200, answer.raw.toString());
	return answer.body;
};
const runs = marks => until(`${marks} run`, () => marks.every(mark => daemon.marked(mark).length === 1));
const gone = (marks, why) => assert.deepEqual(marks.flatMap(mark => daemon.marked(mark)), [], why);

test('what a command leaves is in the list, with its session, and kill --all ends it', async t => {
	const box = await daemon.box(t);
	await box.run('nohup sleep 1000.701 >/dev/null 2>&1 &', { sessionId: 'a' });
	await box.run('(setsid sleep 1000.702 >/dev/null 2>&1 &)', { sessionId: SESSIONLESS });
	await silt(['exec', box.id, '--', 'nohup sleep 1000.703 >/dev/null 2>&1 &']);
	const marks = ['1000.701', '1000.702', '1000.703'];
	await runs(marks);
	const list = await found(box);
	assert.deepEqual(list.map(p => [p.kind, p.status, p.command]).sort(), [
		['leftover', 'running', 'sleep 1000.701'], ['leftover', 'running', 'sleep 1000.702'], ['leftover', 'running', 'sleep 1000.703']]);
	assert.equal(list.find(p => p.command.endsWith('701')).sessionId, 'a');
	for (const p of list) {
		assert.equal(p.id, `pid:${p.pid}`);
		assert.ok(Math.abs(Date.parse(p.startedAt) - Date.now()) < 120_000, p.startedAt);
	}
	assert.match((await silt(['ps', box.id])).stdout, /^pid:\d+ +\d+ leftover +\d{4}-\S+ +sleep 1000\.701$/m);
	assert.deepEqual((await box.api('GET', '/api/process/list')).body.processes.filter(p => p.command.startsWith('sleep')), [], 'the list of clients knows records only');
	assert.equal((await box.api('DELETE', '/api/process/kill-all')).body.cleanedCount, 0);
	assert.equal(marks.flatMap(mark => daemon.marked(mark)).length, 3, 'and so does their kill-all');
	const end = await silt(['kill', box.id, '--all']);
	assert.deepEqual([end.stderr, end.code], ['', 0]);
	assert.deepEqual(end.stdout.trim().split('\n').sort(), list.map(p => p.id).sort());
	gone(marks, 'it answers when they are gone');
	assert.deepEqual(await found(box), []);
	assert.deepEqual(await killAll(box), { count: 0, left: 0, processes: [] });
});

test('one of them can be ended by its id, or given a signal', async t => {
	const box = await daemon.box(t);
	await box.run(`nohup bash -c 'trap "" TERM; trap "echo heard >/tmp/heard" USR1; touch /tmp/ready; while :; do sleep 0.05; done' 1000.711 >/dev/null 2>&1 & nohup sleep 1000.712 >/dev/null 2>&1 &`);
	await runs(['1000.711', '1000.712']);
	const [stubborn, other] = ['1000.711', '1000.712'];
	const id = mark => found(box).then(list => list.find(p => p.command.includes(mark)).id);
	await until('it has set its traps', async () => (await box.run('[ -e /tmp/ready ]')).exitCode === 0);
	const at = `/v1/sandboxes/${box.id}/processes/${await id(stubborn)}`;
	const signalled = await daemon.api('POST', `${at}/signal`, { signal: 'SIGUSR1' });
	assert.deepEqual([signalled.status, signalled.body.signal], [200, 10]);
	await until('it has heard', async () => (await box.run('cat /tmp/heard')).stdout === 'heard\n');
	const ended = await daemon.api('DELETE', `${at}?graceMs=200`);
	assert.equal(ended.status, 200, ended.raw.toString());
	assert.equal(ended.body.kind, 'leftover');
	gone([stubborn]);
	assert.equal(daemon.marked(other).length, 1, 'nobody else');
	assert.equal((await daemon.api('DELETE', at)).status, 404);
	const end = await silt(['kill', box.id, await id(other)]);
	assert.equal(end.code, 0, end.stderr);
	gone([other]);
	const shell = (await box.out('echo $$')).trim();
	for (const pid of [1, shell, 999_999])
		assert.equal((await daemon.api('DELETE', `/v1/sandboxes/${box.id}/processes/pid:${pid}`)).status, 404, `${pid} is not one of them`);
	assert.equal((await box.out('echo $$')).trim(), shell);
	const record = await daemon.api('POST', `/v1/sandboxes/${box.id}/processes`, { command: 'sleep 1000.713 & wait' });
	await runs(['1000.713']);
	const child = (await box.out('pgrep -f "^sleep 1000.713$"')).trim();
	const part = await daemon.api('DELETE', `/v1/sandboxes/${box.id}/processes/pid:${child}`);
	assert.deepEqual([part.status, part.body.kind, part.body.command], [200, 'command', 'sleep 1000.713'], 'a child of one that has a record');
	gone(['1000.713'], `what ${record.body.id} started`);
});

test('kill --all ends records and commands that run, and leaves idle shells, contexts and terminals as they are', async t => {
	const box = await daemon.box(t);
	await box.run('cd /tmp; X=1; nohup sleep 1000.721 >/dev/null 2>&1 &', { sessionId: 'idle' });
	const shell = await box.out('echo $$', { sessionId: 'idle' });
	const record = await daemon.api('POST', `/v1/sandboxes/${box.id}/processes`, { command: 'sleep 1000.722', processId: 'p' });
	assert.equal(record.status, 201, record.raw.toString());
	const plain = box.exec('sleep 1000.723', { sessionId: SESSIONLESS });
	await box.run('Y=2', { sessionId: 'busy' });
	const timed = box.exec('Y=3; sleep 1000.724; touch /tmp/went-on', { sessionId: 'busy', timeoutMs: 600_000 });
	const untimed = box.exec('sleep 1000.725; touch /tmp/went-on', { sessionId: 'other' });
	const marks = [721, 722, 723, 724, 725].map(n => `1000.${n}`);
	await runs(marks);
	assert.deepEqual((await found(box)).map(p => `${p.kind} ${p.command} ${p.sessionId}`).sort(), [
		'command sleep 1000.723 undefined', 'command sleep 1000.724 busy', 'command sleep 1000.725 other', 'leftover sleep 1000.721 idle']);
	const ended = await killAll(box);
	assert.deepEqual([ended.count, ended.left], [5, 0]);
	assert.deepEqual(ended.processes.filter(p => p.kind === 'process').map(p => [p.id, p.status, p.exitCode]), [['p', 'killed', 143]]);
	gone(marks);
	assert.equal((await plain).body.exitCode, 143);
	assert.equal((await timed).body.exitCode, 137);
	assert.notEqual((await untimed).status, 200, 'its shell ended with it, and that is told');
	assert.equal(await box.out('echo $$', { sessionId: 'idle' }), shell);
	assert.equal(await box.out('echo $PWD $X', { sessionId: 'idle' }), '/tmp 1\n');
	assert.equal(await box.out('echo $Y', { sessionId: 'busy' }), '2\n', 'the state from before the command');
	assert.equal(await box.out('echo new', { sessionId: 'other' }), 'new\n');
	await assert.rejects(box.out('cat /tmp/went-on'), undefined, 'no script went on');
	assert.equal((await killAll(box, '?state=ended')).count, 1);
	assert.deepEqual(await processes(box), []);
	assert.equal((await daemon.api('DELETE', `/v1/sandboxes/${box.id}/processes?state=all`)).status, 400);
	assert.equal((await daemon.api('DELETE', '/v1/sandboxes/nobody/processes')).status, 404);
});

test('a session that is deleted takes along what its commands left, and nothing of others', async t => {
	const box = await daemon.box(t);
	await box.run('nohup sleep 1000.731 >/dev/null 2>&1 &', { sessionId: 's' });
	await box.run('nohup sleep 1000.732 >/dev/null 2>&1 &', { sessionId: 'other' });
	for await (const event of box.stream('(trap "" TERM HUP; setsid sleep 1000.733 >/dev/null 2>&1 &)', { sessionId: 's' }))
		assert.ok(event);
	await runs(['1000.731', '1000.732', '1000.733']);
	const answer = await box.api('POST', '/api/session/delete', { sessionId: 's' });
	assert.equal(answer.status, 200, answer.raw.toString());
	gone(['1000.731', '1000.733'], 'also what a streamed command left, in a group of its own');
	assert.equal(daemon.marked('1000.732').length, 1);
});

test('a command that comes while everything is killed runs afterwards, untouched', async t => {
	const box = await daemon.box(t);
	await box.run(`nohup bash -c 'trap "" TERM; while :; do sleep 0.05; done' 1000.741 >/dev/null 2>&1 &`);
	await runs(['1000.741']);
	const kill = killAll(box, '?graceMs=700');
	await new Promise(resolve => setTimeout(resolve, 100));
	const command = box.run('sleep 0.3; echo whole');
	const elsewhere = box.run('sleep 1.2; echo whole', { sessionId: SESSIONLESS });
	assert.equal((await kill).left, 0);
	assert.equal((await command).stdout, 'whole\n');
	assert.equal((await elsewhere).stdout, 'whole\n');
	gone(['1000.741']);
});

for (const [name, start] of [
	['a session', box => box.run('bomb() { bomb | bomb & }; bomb &', { sessionId: 's' })], // one fork of its own, before there are too many
	['a streamed command', async box => (await box.open('bomb() { bomb | bomb & }; bomb; sleep 1000')).destroy()],
])
	test(`after a fork bomb of ${name} nothing but idle shells is left, within five seconds`, async t => {
		const box = await daemon.box(t, { limits: { pids: 128, cpu: 0.25 } });
		await box.run('X=kept');
		await start(box);
		await until('no more processes are allowed', async () => (await box.info()).usage.pids >= 120);
		let ended;
		const ms = await milliseconds(async () => { ended = await killAll(box); });
		t.diagnostic(`${Math.round(ms)} ms, ${ended.count} found`);
		assert.equal(ended.left, 0);
		assert.ok(ms < 5000, `${ms} ms`);
		assert.deepEqual(await found(box), []);
		assert.ok((await box.info()).usage.pids < 8);
		assert.equal(await box.out('echo $X'), 'kept\n');
	});

test('all are counted, also those that are too many to be listed', async t => {
	const box = await daemon.box(t, { limits: { pids: 1400, memoryMiB: 2048 } });
	const { body: record } = await daemon.api('POST', `/v1/sandboxes/${box.id}/processes`, { command: 'sleep 1000 & sleep 1000 & wait' });
	await box.run('mkfifo /tmp/never; exec 9<>/tmp/never; for i in $(seq 1200); do read -u 9 & done', { sessionId: 's' }, { deadline: 60_000 });
	const ended = await killAll(box);
	assert.deepEqual([ended.count, ended.left], [1201, 0]);
	const listed = ended.processes.length;
	assert.ok(listed > 1000 && listed <= 1025, `${listed} are listed: the record, and 1,024 less those that it stands for`);
	assert.ok(ended.processes.some(p => p.id === record.id));
	assert.deepEqual(await found(box), []);
});
