// SPDX-License-Identifier: Apache-2.0
// B4: TIOCSTI and TIOCLINUX.
import assert from 'node:assert/strict';
import { SESSIONLESS } from '../lib/box.mjs';
import { bothWays, outcomes } from '../lib/escape.mjs';

export const without = ['tiocsti'];

export async function attack(box) {
	const program = await box.install('tiocsti');
	const results = outcomes(await box.out(program));
	const sessionless = outcomes(await box.out(program, { sessionId: SESSIONLESS }));
	return { succeeded: results['own-ctty'] === 'ok' && results.tiocsti !== 'EPERM', results, sessionless };
}

bothWays('B4 putting words into a terminal', {
	without,
	attack,
	repelled({ results, sessionless }) {
		for (const found of [results, sessionless]) {
			assert.equal(found['controlling-tty'], 'ENXIO', 'a command has no terminal');
			assert.notEqual(found['is-a-tty'], 'ok');
			assert.equal(found['own-ctty'], 'ok', 'the attempt was a real one');
			for (const name of ['tiocsti', 'tiocsti-high-bits', 'tiocsti-sign', 'tioclinux', 'tioclinux-high-bits'])
				assert.equal(found[name], 'EPERM', name);
		}
	},
});
