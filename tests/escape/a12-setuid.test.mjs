// SPDX-License-Identifier: Apache-2.0
// A12: setuid programs and file capabilities give nothing.
import assert from 'node:assert/strict';
import { bothWays } from '../lib/escape.mjs';

export const without = ['nnp'];

export async function attack(box) {
	const gain = await box.install('gain');
	const found = {
		setuid: await box.out(`cp ${gain} /usr/local/bin/gain-suid 2>/dev/null || cp ${gain} /opt/gain-suid; f=$(ls /usr/local/bin/gain-suid /opt/gain-suid 2>/dev/null); chown 0:0 $f; chmod 6755 $f; ${gain} run $f`),
		inTmp: await box.out(`cp ${gain} /tmp/gain-suid; chmod 6755 /tmp/gain-suid; ${gain} run /tmp/gain-suid`),
		capable: await box.out(`cp ${gain} /tmp/gain-cap; ${gain} setcap /tmp/gain-cap; ${gain} run /tmp/gain-cap || echo refused by the kernel`), // without nnp: EPERM, the set is larger than the bounding set
	};
	return { succeeded: /euid 0\n/.test(found.setuid) || /euid 0\n/.test(found.inTmp), ...found };
}

bothWays('A12 setuid programs and file capabilities', {
	context: true,
	without,
	attack,
	async repelled(evidence, box) {
		for (const way of ['setuid', 'inTmp', 'capable']) {
			assert.match(evidence[way], /uid 1000 euid 1000\n/, way);
			assert.match(evidence[way], /effective 0000000000000000\n/, way);
		}
		assert.match(await box.out('cat /proc/self/status'), /^NoNewPrivs:\s+1$/m);
	},
});
