// SPDX-License-Identifier: Apache-2.0
// The instance lives in a mount namespace of its own, which began as a copy of the machine's: what others have mounted must not
// stay busy because of it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import * as host from '../lib/host.mjs';
import { until } from '../lib/wait.mjs';

const run = (...words) => execFileSync(words[0], words.slice(1), { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-mounts-'));
const [disk, file, later] = ['a disk', 'disk.img', 'later'].map(name => path.join(directory, name));
const unmount = at => { try { run('umount', at); } catch { /* it was */ } };
let daemon;

before(async () => {
	fs.mkdirSync(disk);
	fs.mkdirSync(later);
	fs.closeSync(fs.openSync(file, 'w'));
	fs.truncateSync(file, 128 * 2 ** 20);
	run('mkfs.btrfs', '-q', file);
	run('mount', '-o', 'loop', file, disk); // the loop device goes with its last user
	daemon = await startDaemon();
});

after(async () => {
	await daemon?.stop();
	unmount(disk);
	unmount(later);
	fs.rmSync(directory, { recursive: true, force: true });
});

const programs = () => [daemon.pid, ...['siltd', 'silt-priv', 'silt-preview'].flatMap(name => daemon.programs(name))];

test('no program of the instance has a mount that only others need', () => {
	assert.ok(programs().length >= 4);
	for (const pid of programs())
		assert.deepEqual(host.mountsWith(directory, pid), [], host.processInfo(pid).name);
});

test('a disk that was mounted before the start is free when it is unmounted', async () => {
	assert.notEqual(run('losetup', '-j', file), '');
	run('umount', disk);
	await until('the loop device is free', () => run('losetup', '-j', file) === '', 10_000);
});

test('what is mounted later does not come in', () => {
	run('mount', '-t', 'tmpfs', 'silt-test', later);
	for (const pid of programs())
		assert.deepEqual(host.mountsWith(directory, pid), [], host.processInfo(pid).name);
	run('umount', later);
});

test('sandboxes work there', async t => {
	const box = await daemon.box(t);
	assert.equal(await box.out('echo fine'), 'fine\n');
});
