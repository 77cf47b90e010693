// SPDX-License-Identifier: Apache-2.0
// B16: what the kernel and the host would tell.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import { bothWays } from '../lib/escape.mjs';

export const withoutMasks = ['infoleaks'];
export const withoutUts = ['uts'];

const hostUptime = () => Number(fs.readFileSync('/proc/uptime', 'utf8').split(' ')[0]);
const hostBoot = () => Number(/^btime (\d+)$/m.exec(fs.readFileSync('/proc/stat', 'utf8'))[1]);

export async function lookAround(box) {
	const number = async command => Number((await box.out(command)).trim());
	const found = {
		symbols: await number('cat /proc/kallsyms 2>/dev/null | wc -l'),
		config: await number('cat /proc/config.gz /boot/config-* 2>/dev/null | wc -c'),
		debug: await number('ls -A /sys/kernel/debug /sys/kernel/tracing 2>/dev/null | grep -v : | grep -c . || true'),
		facts: await number('cat /proc/cmdline /proc/locks /proc/partitions /proc/diskstats /sys/kernel/uevent_seqnum 2>/dev/null | wc -c'),
		disks: await number('ls -A /sys/block /sys/class/block /sys/fs/btrfs 2>/dev/null | grep -v : | grep -c . || true'),
		sameBootId: (await box.out('cat /proc/sys/kernel/random/boot_id')) === fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'),
		messages: await number('dmesg 2>/dev/null | wc -l'),
		uptime: Number((await box.out('cat /proc/uptime')).split(' ')[0]),
		boot: Number((/^btime (\d+)$/m.exec(await box.out('cat /proc/stat')) ?? [])[1] ?? 0),
	};
	const sameUptime = Math.abs(found.uptime - hostUptime()) < 30;
	const sameBoot = Math.abs(found.boot - hostBoot()) < 30;
	return { succeeded: (found.symbols > 1000 || found.config > 0) && found.facts > 0 && found.disks > 0 && found.sameBootId && sameUptime, sameUptime, sameBoot, ...found };
}

export async function hostName(box) {
	const names = (await box.out('uname -n; cat /proc/sys/kernel/hostname /etc/hostname 2>/dev/null; echo $HOSTNAME')).split('\n').filter(Boolean);
	return { succeeded: names[0] === os.hostname(), names };
}

bothWays('B16 kernel and host information', {
	context: true,
	without: withoutMasks,
	attack: lookAround,
	repelled(evidence) {
		assert.deepEqual([evidence.symbols, evidence.config, evidence.debug, evidence.facts, evidence.disks, evidence.messages], [0, 0, 0, 0, 0, 0]);
		assert.ok(!evidence.sameUptime && !evidence.sameBoot && !evidence.sameBootId, 'the age of the host is not told');
	},
});

bothWays('B16 host name', {
	context: true,
	without: withoutUts,
	attack: hostName,
	repelled(evidence, box) {
		assert.ok(!evidence.names.includes(os.hostname()));
		assert.equal(evidence.names[0], box.id);
	},
});
