// SPDX-License-Identifier: Apache-2.0
// C15: many sandboxes together open as many connections as they can, to leave none for the others and for the machine itself.
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { bothWays } from '../lib/escape.mjs';
import { Internet, NETWORK, PUBLIC, get } from '../lib/internet.mjs';

export const without = ['net_crowd'];

const internet = await Internet.start();
after(() => internet.stop());

const ALL = 100;
const EACH = 60;
const options = { ...NETWORK, flags: { ...NETWORK.flags, 'network.connections': EACH, 'network.connections_all': ALL } };

export async function attack(first, daemon, t) {
	const boxes = [first, ...await Promise.all(Array.from({ length: 3 }, () => daemon.box(t, {})))];
	const opened = [];
	for (const [i, box] of boxes.entries()) {
		const { stdout } = await box.run(`n=0; for i in $(seq ${EACH}); do { exec {fd}<>/dev/tcp/${PUBLIC[i % 2 ? 6 : 4]}/7; } 2>/dev/null && n=$((n + 1)); done; echo $n`);
		opened.push(Number(stdout));
	}
	return { succeeded: opened.reduce((sum, n) => sum + n) > 2 * ALL, opened };
}

bothWays('C15 opening too many connections together', {
	without,
	attack,
	daemon: options,
	async repelled({ opened }, box, daemon, t) {
		assert.ok(opened[0] >= ALL / 4, `the first had room: ${opened}`);
		assert.ok(opened.every(n => n > 0), `nobody was left without: ${opened}`);
		const neighbour = await daemon.box(t, {});
		assert.match(await neighbour.out(get(PUBLIC[4])), /world/);
	},
});
