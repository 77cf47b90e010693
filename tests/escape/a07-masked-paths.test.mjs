// SPDX-License-Identifier: Apache-2.0
// A7: what procfs and sysfs would show and take.
import assert from 'node:assert/strict';
import { bothWays } from '../lib/escape.mjs';

export const without = ['masks'];

const READ = ['/proc/kcore', '/proc/keys', '/proc/timer_list', '/proc/sched_debug', '/proc/latency_stats', '/proc/scsi/scsi', '/proc/kmsg', '/proc/kpagecount', '/proc/vmallocinfo', '/proc/slabinfo'];
const LIST = ['/sys/firmware', '/sys/fs/bpf', '/sys/kernel/debug', '/sys/kernel/security', '/sys/kernel/tracing', '/proc/acpi', '/proc/asound', '/sys/devices/virtual/powercap'];
const WRITE = ['/proc/sysrq-trigger', '/proc/sys/kernel/core_pattern', '/proc/sys/kernel/modprobe', '/proc/sys/kernel/shmmax', '/proc/sys/kernel/msgmax', '/proc/sys/vm/drop_caches', '/proc/sys/vm/panic_on_oom', '/proc/sys/fs/binfmt_misc/register',
	'/proc/sys/kernel/hostname', '/proc/sys/net/ipv4/ip_forward', '/proc/irq/default_smp_affinity', '/proc/mtrr', '/proc/timer_list', '/sys/kernel/uevent_helper', '/sys/power/state', '/sys/kernel/mm/ksm/run', '/sys/module/kernel/parameters/crash_kexec_post_notifiers'];

export async function attack(box) {
	const lines = async command => (await box.out(command)).split('\n').filter(Boolean);
	const found = {
		// Opened for appending, never written: on an unprotected machine nothing is broken by looking.
		writable: await lines(`for f in ${WRITE.join(' ')}; do ( : >> $f ) 2>/dev/null && echo $f; done; true`),
		readable: await lines(`for f in ${READ.join(' ')}; do n=$(head -c 100 $f 2>/dev/null | wc -c); [ $n -gt 0 ] && echo $f; done; true`),
		listable: await lines(`for d in ${LIST.join(' ')}; do [ -n "$(ls -A $d 2>/dev/null)" ] && echo $d; done; true`),
		// What is not mounted over has procfs's own device number.
		unmasked: await lines(`proc=$(stat -c %d /proc); for f in ${READ.join(' ')}; do [ "$(stat -c %d $f 2>/dev/null)" = $proc ] && [ -r $f ] && ( : < $f ) 2>/dev/null && echo $f; done; true`),
		written: await lines("v=$(cat /proc/sys/kernel/shmmax) && ( echo $v > /proc/sys/kernel/shmmax ) 2>/dev/null && echo shmmax; true"),
	};
	return { succeeded: Object.values(found).some(list => list.length > 0), ...found };
}

bothWays('A7 masked and read-only paths of /proc and /sys', {
	context: true,
	without,
	attack,
	async repelled(evidence, box) {
		for (const fs of ['/proc/sys', '/sys'])
			assert.match(await box.out('cat /proc/self/mounts'), new RegExp(`^\\S+ ${fs} \\S+ ro[, ]`, 'm'), `${fs} is read-only`);
	},
});
