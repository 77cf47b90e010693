// SPDX-License-Identifier: Apache-2.0
// A2: descriptors of the host left open, and working directories through them.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { SESSIONLESS } from '../lib/box.mjs';
import { bothWays } from '../lib/escape.mjs';
import { collect } from '../lib/sse.mjs';

export const without = ['close_fds'];

const LOOK = "sh -c 'for fd in /proc/$$/fd/*; do [ -L $fd ] && echo ${fd##*/}; done; true'";

export async function attack(box, daemon) {
	const secret = path.join(daemon.home, 'secret');
	fs.writeFileSync(secret, 'of the host', { mode: 0o644 });
	const read = `for dir in /proc/self/fd/* /proc/1/fd/* /proc/1/cwd /proc/1/root; do cat $dir${secret} $dir/../../../../..${secret} 2>/dev/null; done; true`;
	const found = {
		session: await box.out(LOOK),
		sessionless: await box.out(LOOK, { sessionId: SESSIONLESS }),
		streamed: (await collect(box.stream(LOOK))).stdout,
		text: await box.out(`${read}; sh -c '${read}'`),
	};
	for (let n = 3; n < 20; n++) {
		for (const pid of ['self', '1']) {
			for (const sessionId of ['cwd', SESSIONLESS]) {
				const answer = await box.exec(`cat .${secret} ../../../../..${secret} 2>/dev/null; pwd`, { sessionId, cwd: `/proc/${pid}/fd/${n}` });
				found.text += answer.body.stdout ?? '';
			}
		}
	}
	return { succeeded: found.text.includes('of the host'), ...found };
}

bothWays('A2 reaching the host through open descriptors', {
	context: true,
	without,
	attack,
	repelled(evidence) {
		for (const way of ['session', 'sessionless', 'streamed'])
			assert.equal(evidence[way], '0\n1\n2\n', way);
	},
});
