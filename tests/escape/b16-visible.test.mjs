// SPDX-License-Identifier: Apache-2.0
// B16: every file of /proc and /sys that root inside can read is in visible.txt, with a reason.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { bothWays } from '../lib/escape.mjs';

export const without = ['infoleaks'];

const here = import.meta.dirname;
const PROGRAM = fs.readFileSync(path.join(here, 'attacks/visible.py'));

const rules = fs.readFileSync(path.join(here, 'visible.txt'), 'utf8').split('\n').filter(line => line && !line.startsWith('#')).map(line => {
	const [, pattern, reason] = /^(\S+)  (\S.*)$/.exec(line) ?? assert.fail(`pattern, two spaces, reason: ${line}`);
	const text = pattern.replace(/[.+]/g, '\\$&').replace(/\*\*|\*/g, stars => stars === '**' ? '.*' : '[^/]*');
	return { pattern, reason, matches: new RegExp(`^${text}$`) };
});

export async function attack(box) {
	await box.put('/tmp/visible.py', PROGRAM);
	const seen = (await box.out('python3 /tmp/visible.py', {}, { deadline: 120_000 })).trim().split('\n');
	const unlisted = seen.filter(name => !rules.some(rule => rule.matches.test(name)));
	return { succeeded: unlisted.length > 0, unlisted: unlisted.slice(0, 100), count: seen.length };
}

bothWays('B16 files of /proc and /sys that nobody has a reason to see', {
	context: true,
	without,
	attack,
	async repelled(evidence, box) {
		assert.ok(evidence.count > 100, `${evidence.count} files were looked at`);
		for (const command of ['nproc', 'free', 'ps aux', 'uptime', 'uname -a', 'python3 -c "import os; os.cpu_count(); os.sysconf(\'SC_PAGESIZE\')"', 'ls /sys/class/net/lo/mtu', 'cat /sys/devices/system/cpu/online', 'cat /proc/sys/kernel/pid_max'])
			assert.equal((await box.run(command)).exitCode, 0, command);
	},
	broken(evidence) {
		for (const name of ['/proc/cmdline', '/proc/vmstat', '/proc/partitions', '/proc/diskstats', '/proc/sys/fs/file-nr', '/sys/kernel/uevent_seqnum'])
			assert.ok(evidence.unlisted.includes(name) || evidence.unlisted.length === 100, name);
	},
});
