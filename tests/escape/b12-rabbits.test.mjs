// SPDX-License-Identifier: Apache-2.0
// B12: processes that never stand still: each starts the next one and ends, also while they are being killed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SESSIONLESS } from '../lib/box.mjs';
import { bothWays, daemonWithout } from '../lib/escape.mjs';
import { until } from '../lib/wait.mjs';

export const without = ['kill_tree'];

const FAMILIES = 20;

const pids = async box => (await box.info()).usage.pids; // the list in /proc is too slow for them: most have moved on before they are read

const run = box => until('the rabbits run', async () => await pids(box) >= FAMILIES);

/** vfork: each execs itself anew; crowd: whoever else fits computes, so that little cpu time is left for those who are killed. */
const attackOf = how => async function attack(box) {
	const program = await box.install('rabbit');
	const left = {};
	for (const sessionId of ['s', SESSIONLESS]) {
		await box.run('true', { sessionId });
		const before = await pids(box);
		const call = box.exec(`${program} ${how} ${FAMILIES}`, { sessionId, timeoutMs: 4_000 });
		await run(box);
		await call;
		left[sessionId] = Math.max(0, await pids(box) - before);
		if (left[sessionId] > 0)
			break; // they have all of the sandbox's processes
	}
	return { succeeded: Object.values(left).some(n => n > 0), left };
};

async function repelled(evidence, box, daemon) {
	assert.deepEqual(evidence.left, { s: 0, [SESSIONLESS]: 0 });
	assert.equal(await box.out('echo still here', { sessionId: 's' }), 'still here\n');
	const before = daemon.counters().processes;
	await box.run(`/tmp/rabbit fork ${FAMILIES} >/dev/null 2>&1 &`, { sessionId: SESSIONLESS });
	await run(box);
	await box.destroy();
	await until('a destroyed sandbox has no process', () => daemon.counters().processes < before, 5_000);
}

bothWays('B12 rabbits run away from a timeout', { without, attack: attackOf('fork'), repelled, sandbox: { limits: { cpu: 1, pids: 1024 } } });

for (const how of ['vfork', 'crowd'])
	test(`B12 ${how} rabbits run away from a timeout with little cpu time: repelled`, async t => {
		const daemon = await daemonWithout([]);
		const box = await daemon.box(t, { limits: { cpu: 0.0625, pids: 256 } });
		await repelled(await attackOf(how)(box), box, daemon);
	});
