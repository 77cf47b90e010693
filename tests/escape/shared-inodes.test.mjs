// SPDX-License-Identifier: Apache-2.0
// Signals to a neighbour through files that both see: locks on them, and watches of who opens them.
import assert from 'node:assert/strict';
import { bothWays } from '../lib/escape.mjs';
import { until } from '../lib/wait.mjs';

export const without = ['own_dev'];

/** Devices, masks, copies of the machine's facts, an interpreter, a file of the image. Not /dev/null and the like: shells open them all the time. */
const FILES = ['/dev/full', '/dev/zero', '/dev/random', '/proc/vmstat', '/proc/sys/fs/nr_open', '/sys/devices/system/cpu/present', '/dev/silt-kernel/python/kernel', '/usr/lib/os-release'];

export async function attack(box, daemon, t) {
	const neighbour = await daemon.box(t, {});
	await Promise.all([box.install('inode'), neighbour.install('inode')]);
	const files = FILES.join(' ');
	const holding = neighbour.out(`/tmp/inode hold ${files}`, { sessionId: 'hold' }, { deadline: 90_000 });
	await until('the neighbour watches', async () => (await neighbour.run('test -e /tmp/ready')).exitCode === 0);
	const touched = await box.out(`/tmp/inode touch ${files}`);
	await neighbour.out('touch /tmp/stop');
	const held = await holding;
	return { succeeded: / locked$/m.test(touched) || / event$/m.test(held), complete: !/cannot/.test(touched + held), files, touched, held };
}

bothWays('locks and watches of files that a neighbour sees too', {
	context: true,
	without,
	attack,
	repelled(evidence) {
		assert.ok(evidence.complete, JSON.stringify(evidence));
	},
	broken(evidence) {
		for (const file of ['/dev/full', '/proc/vmstat', '/proc/sys/fs/nr_open'])
			assert.ok(evidence.touched.includes(`${file} locked`) && evidence.held.includes(`${file} event`), `${file}: ${JSON.stringify(evidence)}`);
	},
});
