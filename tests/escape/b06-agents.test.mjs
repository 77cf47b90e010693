// SPDX-License-Identifier: Apache-2.0
// B6: the silt-inits live outside of their guests' memory groups, in one that all of them share (version 1 of control groups).
// A guest that takes its silt-init over must not eat the machine from there. A program of the test's plays such a silt-init.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import { bothWays } from '../lib/escape.mjs';

export const without = ['agents_memory'];

const SLOTS = 256;
const CEILING_MIB = Math.min(256 + SLOTS, os.totalmem() / 4 / 2 ** 20);

export async function attack(box, daemon) {
	const group = `/sys/fs/cgroup/memory/${daemon.instance}/agents`;
	const agent = await box.init();
	const eater = spawnSync('/bin/sh', ['-c', `echo 0 > ${group}/tasks && exec dd if=/dev/zero of=/dev/null count=1 bs=${Math.ceil(CEILING_MIB) + 16}M`], { encoding: 'utf8', timeout: 60_000 });
	return { succeeded: eater.status === 0, signal: eater.signal, sameAgent: agent === await box.init(), stderr: eater.stderr };
}

const version2 = fs.existsSync('/sys/fs/cgroup/cgroup.controllers'); // a group for each: tests/unit/engine/test_cgroup.c

version2 || bothWays('B6 memory of silt-inits', {
	without,
	attack,
	daemon: { flags: { 'ids.count': SLOTS } },
	repelled(evidence) {
		assert.equal(evidence.signal, 'SIGKILL', JSON.stringify(evidence));
		assert.equal(evidence.sameAgent, true, 'the silt-inits beside it live');
	},
});
