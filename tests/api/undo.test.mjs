// SPDX-License-Identifier: Apache-2.0
// A snapshot before each command, the history of commands, and going back to before one of them.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { refused, TIME } from '../lib/expect.mjs';
import { namesIn } from '../lib/host.mjs';
import { silt } from '../lib/silt.mjs';
import { until } from '../lib/wait.mjs';

const AUTOMATIC_MAX = 50;

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const history = async (box, d = daemon) => (await d.api('GET', `/v1/sandboxes/${box.id}/history`)).body.history;
const undo = (box, steps) => daemon.api('POST', `/v1/sandboxes/${box.id}/undo`, steps === undefined ? undefined : { steps });
const list = async (box, query = '') => (await daemon.api('GET', `/v1/sandboxes/${box.id}/snapshots${query}`)).body.snapshots;
const automatic = box => list(box, '?automatic=true');
const exec = (box, command, fields) => daemon.api('POST', `/v1/sandboxes/${box.id}/exec`, { command, ...fields });
const layers = () => namesIn(path.join(daemon.state, 'pool', 'l'), daemon.pid);

async function run(box, command, fields) {
	const answer = await exec(box, command, fields);
	assert.equal(answer.status, 200, answer.raw.toString());
	return answer.body.stdout;
}

async function undone(box, steps) {
	const answer = await undo(box, steps);
	assert.equal(answer.status, 200, answer.raw.toString());
	return answer.body;
}

test('each command has a snapshot from before it, and undo goes back to that', async t => {
	const box = await daemon.box(t, { autoSnapshot: 'command' });
	assert.equal((await box.info()).autoSnapshot, 'command');
	await run(box, 'echo 1 > /workspace/file');
	await run(box, 'echo 2 > /workspace/file; (exit 7)');
	await daemon.api('POST', `/v1/sandboxes/${box.id}/exec`, { argv: ['sh', '-c', 'echo 3 > /workspace/file'] });
	const entries = await history(box);
	assert.deepEqual(entries.map(h => h.command), ['echo 1 > /workspace/file', 'echo 2 > /workspace/file; (exit 7)', 'sh -c echo 3 > /workspace/file']);
	assert.deepEqual(entries.map(h => [h.exitCode, h.problem]), [[0, null], [7, null], [0, null]]);
	assert.equal(new Set(entries.map(h => h.snapshotId)).size, 3);
	for (const h of entries)
		assert.match(h.at, TIME);
	assert.deepEqual(await list(box), [], 'hidden unless asked for');
	assert.deepEqual((await automatic(box)).map(s => [s.id, s.automatic]), entries.map(h => [h.snapshotId, true]));
	await box.api('POST', '/api/process/start', { command: 'sleep 1000', processId: 'long' });
	const last = await undone(box);
	assert.deepEqual([last.id, last.snapshotId, last.undone], [box.id, entries[2].snapshotId, [entries[2]]]);
	assert.deepEqual([last.ended.processes, last.ended.terminals, last.ended.contexts], [['long'], 0, 0]);
	assert.ok(last.ended.sessions >= 1);
	assert.deepEqual([(await box.info()).state, (await box.info()).lastDeath.cause], ['stopped', 'rolledBack']);
	assert.deepEqual(await history(box), entries.slice(0, 2));
	await daemon.api('PATCH', `/v1/sandboxes/${box.id}`, { autoSnapshot: 'off' });
	assert.equal(await run(box, 'cat /workspace/file'), '2\n');
	assert.deepEqual(await history(box), entries.slice(0, 2), 'off: nothing is added');
	assert.equal((await undone(box, 2)).undone.length, 2);
	assert.equal(await run(box, 'cat /workspace/file || echo none'), 'none\n');
	assert.deepEqual(await history(box), []);
	await box.destroy();
	await until('the snapshots went with it', () => layers().length === 0);
	assert.deepEqual((await daemon.api('GET', '/v1/snapshots?automatic=true')).body.snapshots, []);
});

test('a command after one that wrote nothing shares its snapshot; what is written in any way is noticed', async t => {
	const box = await daemon.box(t, { autoSnapshot: 'command' });
	await run(box, 'echo 1 > /workspace/file; ln -s file /workspace/link');
	await run(box, 'true');
	await run(box, 'echo $((1 + 1))');
	await run(box, 'pwd');
	let entries = await history(box);
	assert.notEqual(entries[1].snapshotId, entries[0].snapshotId);
	assert.deepEqual(entries.slice(2).map(h => h.snapshotId), [entries[1].snapshotId, entries[1].snapshotId]);
	assert.equal((await automatic(box)).length, 2);
	const changes = ['echo 2 > /workspace/file', 'chmod 600 /workspace/file', 'rm /workspace/link', 'mkdir /opt/new', 'rm -rf /srv', 'echo 3 1<> /workspace/file'];
	for (const change of changes) {
		await run(box, 'true');
		await run(box, change);
		await run(box, 'true');
		entries = await history(box);
		assert.notEqual(entries.at(-1).snapshotId, entries.at(-2).snapshotId, change);
	}
	assert.ok(entries.every(h => h.snapshotId !== null && h.problem === null));
});

test('the compatible routes and silt exec count, processes and files do not', async t => {
	const box = await daemon.box(t, { autoSnapshot: 'command' });
	await box.api('POST', '/api/execute', { command: 'echo 1 > /workspace/file' });
	const end = await silt(daemon, ['exec', box.id, '--', 'sh', '-c', 'echo 2 > /workspace/file; exit 3']);
	assert.equal(end.code, 3, end.stderr);
	await box.api('POST', '/api/process/start', { command: 'sleep 1000', processId: 'long' });
	await box.api('POST', '/api/write', { path: '/workspace/other', content: 'x' });
	const entries = await until('its end is known', async () => { const all = await history(box); return all.at(-1).exitCode !== null && all; });
	assert.deepEqual(entries.map(h => [h.exitCode, h.snapshotId !== null]), [[0, true], [3, true]]);
	const long = await silt(daemon, ['history', box.id]);
	assert.match(long.stdout, /^ +N .*COMMAND\n +2 .* 0  snap_\w+ +echo 1 > \/workspace\/file\n +1 .* 3  snap_\w+ +sh -c .*\n$/, long.stderr);
	assert.equal(JSON.parse((await silt(daemon, ['history', box.id, '--json'])).stdout).length, 2);
	const back = await silt(daemon, ['undo', box.id]);
	assert.match(back.stdout, /\n +1 .* 3  snap_\w+ +sh -c .*\nended: \d+ sessions, 0 terminals, 0 contexts, 1 processes\n  long\n$/, back.stderr);
	assert.equal((await silt(daemon, ['update', box.id, '--auto-snapshot', 'off'])).code, 0);
	assert.equal(await run(box, 'cat /workspace/file; ls /workspace'), '1\nfile\n');
	assert.equal((await silt(daemon, ['undo', box.id, '0'])).code, 125);
	assert.equal((await silt(daemon, ['undo', box.id, '5'])).code, 125);
	assert.equal((await silt(daemon, ['update', box.id, '--auto-snapshot', 'on'])).code, 125);
});

test('the oldest ones go, and what they held is out of reach', async t => {
	const box = await daemon.box(t, { autoSnapshot: 'command' });
	for (let i = 0; i < AUTOMATIC_MAX + 3; i++)
		await run(box, `echo ${i} > /workspace/file`);
	const entries = await history(box);
	assert.equal((await automatic(box)).length, AUTOMATIC_MAX);
	assert.deepEqual(entries.map(h => h.snapshotId !== null), entries.map((_, i) => i >= 3));
	refused(await undo(box, AUTOMATIC_MAX + 1), 404, 'SNAPSHOT_NOT_FOUND');
	assert.equal((await box.info()).state, 'running', 'nothing was ended');
	await undone(box, AUTOMATIC_MAX);
	assert.equal(await run(box, 'cat /workspace/file'), '2\n');
});

test('a command without a snapshot runs, and the history says why', async t => {
	const box = await daemon.box(t, { autoSnapshot: 'command' });
	await run(box, 'echo 1 > /workspace/file');
	const workers = daemon.programs('silt-priv:work');
	assert.ok(workers.length > 0);
	workers.forEach(pid => process.kill(pid, 'SIGSTOP'));
	const began = Date.now();
	const answer = exec(box, 'echo 2 > /workspace/file').finally(() => workers.forEach(pid => process.kill(pid, 'SIGCONT')));
	assert.equal((await answer).status, 200, (await answer).raw.toString());
	assert.ok(Date.now() - began >= 4000);
	const [, entry] = await history(box);
	assert.deepEqual([entry.exitCode, entry.snapshotId], [0, null]);
	assert.match(entry.problem, /in time/);
	refused(await undo(box), 404, 'SNAPSHOT_NOT_FOUND');
	await until('the one that came late is gone', async () => (await automatic(box)).length === 1 && layers().length === 1);
	assert.equal((await undone(box, 2)).undone.length, 2);
	assert.equal(await run(box, 'test -e /workspace/file || echo none'), 'none\n');
});

test('half of them go when the disk of the sandbox is nearly full', async t => {
	const box = await daemon.box(t, { autoSnapshot: 'command', limits: { diskMiB: 64 } });
	for (let i = 0; i < 4; i++)
		await run(box, `head -c 15000000 /dev/urandom > /workspace/noise; sync`);
	assert.equal((await exec(box, 'rm /workspace/noise')).body.exitCode, 0);
	assert.ok((await automatic(box)).length <= 3);
	assert.equal((await history(box)).length, 5);
});

test('commands at once and a restart of siltd leave a history that works', async t => {
	const box = await daemon.box(t, { autoSnapshot: 'command' });
	await Promise.all(Array.from({ length: 8 }, (_, i) => run(box, `echo ${i} > /workspace/${i}`, { sessionId: `s${i}` })));
	const entries = await history(box);
	assert.equal(entries.length, 8);
	assert.ok(entries.every(h => h.snapshotId !== null && h.exitCode === 0));
	process.kill(daemon.siltd(), 'SIGKILL');
	await daemon.healthy();
	assert.deepEqual((await history(box)).map(h => JSON.stringify(h)).sort(), entries.map(h => JSON.stringify(h)).sort());
	assert.equal((await box.info()).autoSnapshot, 'command');
	const all = (await history(box)).length;
	await undone(box, all);
	assert.deepEqual(await history(box), []);
	await box.destroy();
});

test('requests that are wrong are refused', async t => {
	const box = await daemon.box(t, {});
	assert.equal((await box.info()).autoSnapshot, 'off');
	await run(box, 'true');
	assert.deepEqual(await history(box), []);
	refused(await undo(box), 404, 'SNAPSHOT_NOT_FOUND');
	refused(await undo({ id: 'nobody' }), 404, 'SANDBOX_NOT_FOUND');
	refused(await daemon.api('GET', '/v1/sandboxes/nobody/history'), 404, 'SANDBOX_NOT_FOUND');
	for (const steps of [0, -1, 201, 1.5, '1', []])
		refused(await undo(box, steps), 400, 'VALIDATION_FAILED');
	for (const autoSnapshot of ['on', '', true, 1])
		refused(await daemon.api('PATCH', `/v1/sandboxes/${box.id}`, { autoSnapshot }), 400, 'VALIDATION_FAILED');
	refused(await daemon.api('GET', '/v1/snapshots?automatic=maybe'), 400, 'VALIDATION_FAILED');
});
