// SPDX-License-Identifier: Apache-2.0
// B7: taking more than its share of the processors.
import assert from 'node:assert/strict';
import { SESSIONLESS } from '../lib/box.mjs';
import { bothWays } from '../lib/escape.mjs';

export const without = ['cpu_limit'];

const SHARE = 0.1; // of one processor
const SECONDS = 3;

/** Four loops at once for some seconds: processor time by time. */
async function burn(box) {
	const text = await box.out(`s=$(date +%s.%N); for i in 1 2 3 4; do timeout ${SECONDS} sh -c 'while :; do :; done' & done; wait; e=$(date +%s.%N); times; echo "$s $e"`, { sessionId: SESSIONLESS });
	const [user, system] = [...text.matchAll(/(\d+)m([\d.]+)s/g)].slice(2).map(([, minutes, seconds]) => minutes * 60 + Number(seconds)); // the second line is of its children
	const [, start, end] = /([\d.]+) ([\d.]+)\n$/.exec(text);
	return (user + system) / (end - start);
}

/** Ways to the front of the queue. */
const CLIMB = `
import ctypes, os
ways = {
    'nice': lambda: os.setpriority(os.PRIO_PROCESS, 0, -20),
    'fifo': lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
    'round robin': lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(99)),
    'nice of pid 1': lambda: os.setpriority(os.PRIO_PROCESS, 1, -20),
}
for name, way in ways.items():
    try:
        way()
        print(name)
    except OSError:
        pass
`;

export async function attack(box) {
	const climbed = (await box.out(`python3 - <<'END'\n${CLIMB}\nEND`)).split('\n').filter(Boolean);
	const taken = await burn(box);
	return { succeeded: taken > 2 * SHARE, taken, climbed };
}

bothWays('B7 more than its share of the processors', {
	without,
	attack,
	sandbox: { limits: { cpu: SHARE } },
	repelled(evidence) {
		assert.deepEqual(evidence.climbed, [], 'no priority above the others');
		assert.ok(evidence.taken > 0 && evidence.taken < 1.5 * SHARE, `${evidence.taken} processors`);
	},
});
