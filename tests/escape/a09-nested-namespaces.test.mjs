// SPDX-License-Identifier: Apache-2.0
// A9: a user namespace in the user namespace, and what could be mounted there.
import assert from 'node:assert/strict';
import { bothWays, outcomes, worked } from '../lib/escape.mjs';

export const without = ['userns_limit', 'seccomp'];

export async function attack(box) {
	const program = await box.install('userns');
	const results = outcomes(await box.out(`mkdir -p /mnt; ${program}`));
	return { succeeded: results['nested-tmpfs'] === 'ok', results };
}

bothWays('A9 nested user namespaces', {
	context: true,
	without,
	attack,
	async repelled(evidence, box) {
		assert.deepEqual(worked(evidence.results), []);
		for (const kind of ['user', 'mnt', 'pid', 'net', 'ipc', 'uts', 'cgroup'])
			assert.equal(await box.out(`cat /proc/sys/user/max_${kind}_namespaces`), '0\n', kind);
	},
});
