// SPDX-License-Identifier: Apache-2.0
// Background processes.

import assert from 'node:assert/strict';
import { isProcess, isProcessStatus } from '@cloudflare/sandbox';
import { events, rejects, text, within } from './lib.mjs';

export async function startProcess(sandbox) {
	const process = await sandbox.startProcess('echo "begun $A $PWD"; sleep 60', { processId: 'mine', env: { A: '1' }, cwd: '/tmp' });
	assert.ok(isProcess(process) && isProcessStatus(process.status));
	assert.deepEqual([process.id, process.pid > 0], ['mine', true]);
	assert.equal((await sandbox.listProcesses()).find(p => p.id === 'mine')?.status, 'running');
	assert.equal((await sandbox.getProcess('mine')).command, 'echo "begun $A $PWD"; sleep 60');
	assert.ok(process.startTime instanceof Date);
	assert.equal((await process.waitForLog('begun', 60_000)).line.trim(), 'begun 1 /tmp');
	assert.equal(await sandbox.getProcess('nobody'), null);
	assert.equal(await process.getStatus(), 'running');
}

/** In the object itself: a Worker's functions are gone when the call that took them along has returned. */
export async function processCallbacks(sandbox) {
	assert.deepEqual(await sandbox.processWithCallbacks('echo one; exit 3'), { start: 1, out: 'one\n', exit: 3 });
}

export async function waitForLog(sandbox) {
	const process = await sandbox.startProcess('echo starting; sleep 0.2; echo "ready on 8080"; sleep 60');
	const { line, match } = await within('the log', process.waitForLog(/ready on (\d+)/, 60_000));
	assert.deepEqual([line.trim(), match?.[1]], ['ready on 8080', '8080']);
	await rejects(process.waitForLog('never', 300), 'PROCESS_READY_TIMEOUT');
	const short = await sandbox.startProcess('echo over');
	await rejects(short.waitForLog('never', 60_000), 'PROCESS_EXITED_BEFORE_READY');
}

export async function logsAtOnce(sandbox) {
	for (let i = 0; i < 30; i++) {
		const process = await sandbox.startProcess(`echo x${i}; echo y >&2`);
		const { stdout, stderr } = await process.getLogs();
		assert.deepEqual([i, stdout, stderr], [i, `x${i}\n`, 'y\n']);
		assert.equal((await sandbox.getProcessLogs(process.id)).stdout, stdout);
	}
	const lasting = await sandbox.startProcess('seq 1 10000; exec sleep 60');
	assert.ok((await lasting.getLogs()).stdout.endsWith('\n9999\n10000\n'));
	const all = Array.from({ length: 10 }, (_, i) => sandbox.startProcess(`echo z${i}`).then(process => process.getLogs()));
	assert.deepEqual((await Promise.all(all)).map(({ stdout }) => stdout), all.map((_, i) => `z${i}\n`));
}

export async function waitForPort(sandbox) {
	const process = await sandbox.startProcess('sleep 0.3; exec python3 -m http.server 8123');
	await process.waitForPort(8123, { timeout: 60_000 });
	await process.waitForPort(8123, { mode: 'tcp', timeout: 60_000 });
	await process.waitForPort(8123, { path: '/none', status: 404, timeout: 60_000 });
	await rejects(process.waitForPort(8123, { path: '/none', status: { min: 200, max: 299 }, timeout: 600, interval: 100 }), 'PROCESS_READY_TIMEOUT');
	await rejects(process.waitForPort(8124, { mode: 'tcp', timeout: 600, interval: 100 }), 'PROCESS_READY_TIMEOUT');
}

export async function waitForExit(sandbox) {
	const process = await sandbox.startProcess('sleep 0.2; exit 7');
	assert.deepEqual(await process.waitForExit(60_000), { exitCode: 7 });
	assert.equal(await process.getStatus(), 'failed');
	const good = await sandbox.startProcess('true');
	await good.waitForExit(60_000);
	assert.deepEqual((await sandbox.listProcesses()).filter(p => p.id === good.id).map(p => [p.status, p.exitCode]), [['completed', 0]]);
	const slow = await sandbox.startProcess('sleep 60');
	await rejects(slow.waitForExit(300), 'PROCESS_READY_TIMEOUT');
	await rejects(good.waitForPort(8125, { mode: 'tcp', timeout: 60_000 }), 'PROCESS_EXITED_BEFORE_READY');
}

export async function killProcess(sandbox) {
	const process = await sandbox.startProcess('sleep 60');
	await process.kill();
	assert.equal((await sandbox.getProcess(process.id)).status, 'killed');
	await sandbox.startProcess('sleep 60', { processId: 'second' });
	await sandbox.killProcess('second');
	assert.equal((await sandbox.getProcess('second')).status, 'killed');
	await rejects(sandbox.killProcess('nobody'), 'PROCESS_NOT_FOUND');
	const tree = await sandbox.startProcess('sh -c "sleep 4711 & sleep 4711"; sleep 60');
	await tree.kill();
	assert.equal((await sandbox.exec('pgrep -fc "^sleep 4711"')).stdout, '0\n');
}

/** A shell stands around each of them, and dies of SIGTERM. */
export async function killStubbornProcess(sandbox) {
	const command = `bash -c 'trap "" TERM; echo ready; while :; do sleep 1000; done'; true`;
	const [one, two] = await Promise.all([sandbox.startProcess(command), sandbox.startProcess(command)]);
	await Promise.all([one, two].map(process => process.waitForLog('ready', 60_000)));
	const exit = two.waitForExit(60_000);
	await Promise.all([one.kill(), sandbox.killProcess(two.id)]);
	assert.deepEqual(await exit, { exitCode: 137 });
	for (const { id } of [one, two])
		assert.deepEqual(await sandbox.getProcess(id).then(p => [p.status, p.exitCode]), ['killed', 137]);
}

/** In the object itself: the code does not cross to the Worker. */
export async function killEndedProcess(sandbox) {
	const process = await sandbox.startProcess('echo over', { processId: 'over' });
	await process.waitForExit(60_000);
	const said = await sandbox.failure('killProcess', 'over');
	assert.deepEqual([said.name, said.code, said.status, said.context], ['CommandNotFoundError', 'COMMAND_NOT_FOUND', 404, { command: 'over' }]);
	assert.match(said.message, /^Command 'over' not found or already completed in session 'sandbox-[\w-]+'$/);
	assert.deepEqual(await sandbox.getProcess('over').then(p => [p.status, p.exitCode]), ['completed', 0]);
}

export async function killAllProcesses(sandbox) {
	for (let i = 0; i < 3; i++)
		await sandbox.startProcess('sleep 60');
	assert.equal(await sandbox.killAllProcesses(), 3);
	assert.equal(await sandbox.cleanupCompletedProcesses(), 0);
}

export async function processLogs(sandbox) {
	const process = await sandbox.startProcess('echo out; echo err >&2');
	await process.waitForExit(60_000);
	const logs = await sandbox.getProcessLogs(process.id);
	assert.deepEqual([logs.stdout, logs.stderr], ['out\n', 'err\n']);
	assert.equal((await process.getLogs()).stdout, 'out\n');
	await rejects(sandbox.getProcessLogs('nobody'), 'PROCESS_NOT_FOUND');
}

export async function streamProcessLogs(sandbox) {
	const process = await sandbox.startProcess('for i in 1 2 3; do echo line $i; sleep 0.1; done; exit 2');
	const all = await events(await sandbox.streamProcessLogs(process.id), event => event.type === 'exit');
	assert.equal(text(all, 'stdout'), 'line 1\nline 2\nline 3\n');
	assert.equal(all.at(-1).exitCode, 2);
}
