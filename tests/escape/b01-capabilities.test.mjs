// SPDX-License-Identifier: Apache-2.0
// B1: exactly the documented capabilities, everywhere.
import assert from 'node:assert/strict';
import { SESSIONLESS } from '../lib/box.mjs';
import { bothWays } from '../lib/escape.mjs';
import { collect } from '../lib/sse.mjs';

export const without = ['caps'];

const CHOWN = 0, DAC_OVERRIDE = 1, FOWNER = 3, FSETID = 4, KILL = 5, SETGID = 6, SETUID = 7, SETPCAP = 8, SYS_CHROOT = 18, SYS_ADMIN = 21, AUDIT_WRITE = 29, SETFCAP = 31;
const DOCUMENTED = [CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP, SYS_CHROOT, AUDIT_WRITE, SETFCAP];

const ASK = 'grep ^Cap /proc/self/status';

function sets(text) {
	return Object.fromEntries(text.trim().split('\n').map(line => line.split(/:\s*/)).map(([name, hex]) => [name, BigInt(`0x${hex}`)]));
}

export async function attack(box) {
	const found = {
		session: sets(await box.out(ASK)),
		sessionless: sets(await box.out(ASK, { sessionId: SESSIONLESS })),
		streamed: sets((await collect(box.stream(ASK))).stdout),
		agent: sets(await box.out('grep ^Cap /proc/1/status')),
	};
	const has = bit => Object.values(found).some(all => (all.CapEff >> BigInt(bit)) & 1n);
	return { succeeded: Boolean(has(SYS_ADMIN)), found, toJSON: () => JSON.stringify(found, (_, v) => (typeof v === 'bigint' ? v.toString(16) : v)) };
}

bothWays('B1 capability sweep', {
	context: true,
	without,
	attack,
	repelled({ found }) {
		const documented = DOCUMENTED.reduce((mask, bit) => mask | (1n << BigInt(bit)), 0n);
		for (const way of ['session', 'sessionless', 'streamed']) {
			for (const set of ['CapPrm', 'CapEff', 'CapBnd'])
				assert.equal(found[way][set].toString(16), documented.toString(16), `${set} of a ${way} command`);
			for (const set of ['CapInh', 'CapAmb'])
				assert.equal(found[way][set], 0n, `${set} of a ${way} command`);
		}
		assert.equal(found.agent.CapBnd & ~documented, 0n, 'silt-init has no more');
		assert.equal(found.agent.CapEff & ~documented, 0n, 'silt-init has no more');
	},
});
