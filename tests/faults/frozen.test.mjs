// SPDX-License-Identifier: Apache-2.0
// A process that waits for a dead disk cannot be frozen: a sandbox that has one is not paused, and runs on as a whole.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { makeDisk } from '../lib/disk.mjs';
import { refused } from '../lib/expect.mjs';
import * as host from '../lib/host.mjs';
import { until } from '../lib/wait.mjs';

const version2 = fs.existsSync(`${host.CGROUPS}/cgroup.controllers`);
const run = (program, ...words) => execFileSync(program, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();
const stateOf = pid => fs.readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/.*\) /s, '')[0];

/** A disk within a file of another disk: while that one stands still, so does this one. */
function makeDeadlyDisk(t) {
	const below = makeDisk(t, 'ext4', 64);
	const image = path.join(below.directory, 'image');
	fs.writeFileSync(image, Buffer.alloc(2 ** 20));
	const device = run('losetup', '--find', '--show', image);
	let still = false;
	const setStill = wanted => {
		if (still !== wanted)
			run('fsfreeze', wanted ? '--freeze' : '--unfreeze', below.directory);
		still = wanted;
	};
	const users = [];
	below.usedBy(async () => {
		setStill(false);
		for (const end of users)
			await end();
		run('losetup', '--detach', device);
	});
	return { device, setStill, usedBy: end => users.push(end) };
}

/** A process of the sandbox's control group that waits for the disk. What moves it there is the machine's root: a guest has no disk that dies. */
async function waiter(daemon, disk) {
	const groups = host.cgroupsOf(daemon.instance).filter(group => version2 ? /\/s\d+\/guest$/.test(group) : /\/freezer\/.*\/s\d+$/.test(group));
	assert.equal(groups.length, 1, `${groups}`);
	const child = spawn('/bin/sh', ['-c', 'read go; exec dd if=/dev/zero "of=$1" oflag=direct bs=4096 count=1', 'sh', disk.device], { stdio: ['pipe', 'ignore', 'ignore'] });
	const ended = once(child, 'exit');
	disk.usedBy(() => {
		child.stdin.destroy();
		return ended;
	});
	fs.writeFileSync(`${groups[0]}/cgroup.procs`, String(child.pid));
	disk.setStill(true);
	child.stdin.write('go\n');
	await until('it waits for the disk', () => stateOf(child.pid) === 'D');
	return { ended }; // not the promise itself: it would be awaited
}

test('a sandbox in which a process cannot be frozen is not paused, says so, and runs on', { timeout: 120_000 }, async t => {
	const disk = makeDeadlyDisk(t);
	const daemon = await startDaemon({ flags: { 'pool.sandboxes': 0 } });
	t.after(() => daemon.stop());
	const box = await daemon.box(null, {});
	await box.out('x=kept');
	await box.api('POST', '/api/process/start', { command: 'i=0; while sleep 0.01; do i=$((i+1)); echo $i > /tmp/count; done', processId: 'counter' });
	const { incarnation } = await box.info();
	const { ended } = await waiter(daemon, disk);

	const began = Date.now();
	const answer = await daemon.api('POST', `/v1/sandboxes/${box.id}/pause`);
	refused(answer, 409, 'RESOURCE_BUSY');
	assert.ok(Date.now() - began >= 1000, 'it had its second');
	assert.match(answer.body.message, /did not freeze within 1000 ms/);
	const told = await box.info();
	assert.deepEqual([told.state, told.incarnation], ['running', incarnation]);
	assert.match(told.stateReason, /could not be paused: .*did not freeze within 1000 ms/);
	assert.equal(await box.out('echo $x'), 'kept\n', 'its shell runs');
	const count = Number(await box.out('cat /tmp/count'));
	await until('its process runs', async () => Number(await box.out('cat /tmp/count')) > count);

	disk.setStill(false);
	await ended;
	const paused = await box.change('pause');
	assert.deepEqual([paused.state, paused.stateReason ?? ''], ['paused', '']);
	assert.equal(await box.out('echo $x'), 'kept\n');
	assert.equal((await box.info()).incarnation, incarnation);
});
