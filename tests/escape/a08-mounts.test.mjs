// SPDX-License-Identifier: Apache-2.0
// A8: changing the mount table.
import assert from 'node:assert/strict';
import { bothWays, outcomes, worked } from '../lib/escape.mjs';

export const without = ['mount_block', 'caps'];

export async function attack(box) {
	const program = await box.install('mounts');
	const before = await box.out('cat /proc/self/mounts');
	const results = outcomes(await box.out(program));
	return { succeeded: results.tmpfs === 'ok', results, before, after: await box.out('cat /proc/self/mounts') };
}

bothWays('A8 mount, umount, remount, fsopen, bind', {
	context: true,
	without,
	attack,
	repelled(evidence) {
		assert.deepEqual(worked(evidence.results), []);
		assert.equal(evidence.after, evidence.before, 'the mount table is unchanged');
	},
});
