// SPDX-License-Identifier: Apache-2.0
// B5: fork bombs and thread bombs.
import assert from 'node:assert/strict';
import { SESSIONLESS } from '../lib/box.mjs';
import { bothWays } from '../lib/escape.mjs';
import { median, milliseconds, until } from '../lib/wait.mjs';

export const without = ['pids_limit'];

const LIMIT = 64;
const LOOKS = 5;
const WANTED = 400;
const IDLE_SHELLS = 5; // those of the sessions, one that waits for a background command, workers

const started = text => Number(/^started (\d+)/.exec(text)[1]);

export async function attack(box) {
	const program = await box.install('bomb');
	const found = {
		processes: started(await box.out(`${program} processes ${WANTED} 0`, {}, { deadline: 180_000 })),
		threads: started(await box.out(`${program} threads ${WANTED} 0`, {}, { deadline: 180_000 })),
	};
	return { succeeded: found.processes === WANTED && found.threads === WANTED, ...found };
}

async function latency(box) {
	const times = [];
	for (let i = 0; i < 40; i++)
		times.push(await milliseconds(() => box.run('/bin/true')));
	return median(times);
}

bothWays('B5 fork bomb and thread bomb', {
	without,
	attack,
	sandbox: { limits: { pids: LIMIT, cpu: 0.25 } },
	async repelled(evidence, box, daemon, t) {
		assert.ok(evidence.processes < LIMIT, `${evidence.processes} processes`);
		assert.ok(evidence.threads < LIMIT, `${evidence.threads} threads`);
		const neighbour = await daemon.box(t);
		await neighbour.run('true');
		await latency(neighbour);
		const quiet = await latency(neighbour);
		const stream = await box.open('bomb() { bomb | bomb & }; bomb; wait', { sessionId: SESSIONLESS });
		stream.resume();
		await until('the bomb went off', async () => (await box.info()).usage.pids >= LIMIT - 8);
		const looks = []; // other tests make a noise, too: most of them have to be good, not one
		await until("a neighbour's command takes as long as before", async () => {
			looks.push(await latency(neighbour));
			assert.ok((await box.info()).usage.pids <= LIMIT);
			return looks.length >= LOOKS && median(looks) <= quiet * 2 + 2;
		}, 240_000);
		stream.destroy();
		await box.run('bomb() { bomb | bomb & }; bomb', { sessionId: 'bomber' });
		const kill = await daemon.api('DELETE', `/v1/sandboxes/${box.id}/processes`);
		assert.equal(kill.body.left, 0, kill.raw.toString().slice(0, 500));
		assert.ok((await box.info()).usage.pids <= IDLE_SHELLS, 'nothing but idle shells is left');
		await box.destroy();
		assert.equal(await box.out('echo new'), 'new\n');
	},
});
