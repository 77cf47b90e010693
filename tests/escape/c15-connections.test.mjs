// SPDX-License-Identifier: Apache-2.0
// C15: one sandbox opens more connections than it may, to leave none for the others.
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { bothWays } from '../lib/escape.mjs';
import { Internet, NETWORK, PUBLIC, get } from '../lib/internet.mjs';

export const without = ['net_limit'];

const internet = await Internet.start();
after(() => internet.stop());

const MOST = 50;
const options = { ...NETWORK, flags: { ...NETWORK.flags, 'network.connections': MOST } };

export async function attack(box) {
	const { stdout } = await box.run(`n=0; for i in $(seq 100); do { exec {fd}<>/dev/tcp/${PUBLIC[4]}/7; } 2>/dev/null && n=$((n + 1)); done; echo $n`);
	return { succeeded: Number(stdout) > MOST, opened: Number(stdout) };
}

bothWays('C15 opening too many connections', {
	without,
	attack,
	daemon: options,
	async repelled(evidence, box, daemon, t) {
		assert.equal(evidence.opened, MOST);
		const neighbour = await daemon.box(t, {});
		assert.match(await neighbour.out(get(PUBLIC[4])), /world/);
	},
});
