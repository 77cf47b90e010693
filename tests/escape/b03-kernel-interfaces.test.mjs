// SPDX-License-Identifier: Apache-2.0
// B3: io_uring, keys, bpf, perf, and reaching into processes of others.
import assert from 'node:assert/strict';
import { bothWays, outcomes, worked } from '../lib/escape.mjs';

export const without = ['seccomp'];

export async function attack(box, daemon) {
	const [keys, others] = [await box.install('keys'), await box.install('others')];
	const results = outcomes(await box.out(keys));
	const reached = outcomes(await box.out(`${others} 1 ${process.pid} ${daemon.pid}`));
	return { succeeded: results.io_uring === 'ok' && results.add_key === 'ok', results, reached };
}

bothWays('B3 kernel interfaces with a large surface', {
	context: true,
	without,
	attack,
	repelled(evidence) {
		assert.deepEqual(worked(evidence.results), []);
		for (const [name, outcome] of Object.entries(evidence.results))
			assert.match(outcome, /^(EPERM|ENOSYS)$/, name);
		assert.deepEqual(worked(evidence.reached), [], 'nothing of PID 1 or of the host can be read, traced or taken');
	},
});
