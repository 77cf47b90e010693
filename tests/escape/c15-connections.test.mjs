// SPDX-License-Identifier: Apache-2.0
// C15: one sandbox opens more connections than it may, by both families and by questions to the gateway, to leave none for the others.
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
	const open = address => `for i in $(seq 40); do { exec {fd}<>/dev/tcp/${address}; } 2>/dev/null && n=$((n + 1)); done`;
	const gateway = (await box.out('ip route show default')).split(' ')[2];
	const { stdout } = await box.run(`n=0; ${open(`${PUBLIC[4]}/7`)}; ${open(`${PUBLIC[6]}/7`)}; ${open(`${gateway}/53`)}; echo $n`);
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
	broken: evidence => assert.equal(evidence.opened, 120),
});
