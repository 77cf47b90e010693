// SPDX-License-Identifier: Apache-2.0
// B2: silt-init lives outside of the guest's memory group; the limits of its own that bound it instead stay.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { bothWays, outcomes } from '../lib/escape.mjs';

export const without = ['init_limits'];

const dataLimit = pid => fs.readFileSync(`/proc/${pid}/limits`, 'utf8').match(/^Max data size +(\S+)/m)[1];

export async function attack(box) {
	const program = await box.install('limits');
	const agent = await box.init();
	const before = dataLimit(agent);
	const attempts = outcomes(await box.out(program));
	return { succeeded: dataLimit(agent) !== before, before, after: dataLimit(agent), attempts };
}

bothWays('B2 resource limits of silt-init', {
	without,
	attack,
	context: true,
	repelled({ attempts, before }) {
		assert.equal(before, String(16 << 20));
		for (const harmless of ['own', 'own-pid', 'read'])
			assert.equal(attempts[harmless], 'ok', harmless);
		for (const way of ['x64', 'x64-both', 'x64-high-bits'])
			assert.equal(attempts[way], 'errno 1', way);
		for (const way of ['x32', 'i386'])
			assert.match(attempts[way], /^errno (1|38)$/, way);
	},
});
