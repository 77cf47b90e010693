// SPDX-License-Identifier: Apache-2.0
// A sandbox in mode none: TCP, UDP and names, IPv4 and IPv6.
import '../lib/inside.mjs';
import { after } from 'node:test';
import { bothWays } from '../lib/escape.mjs';
import { Internet, NETWORK, PUBLIC, get } from '../lib/internet.mjs';

export const without = ['net_modes'];

const internet = await Internet.start();
after(() => internet.stop());

export async function attack(box) {
	const ways = { tcp4: get(PUBLIC[4]), tcp6: get(PUBLIC[6]), names: 'timeout 5 getent ahosts www.example.test' };
	const worked = [];
	for (const [name, command] of Object.entries(ways))
		if ((await box.run(`(${command})`)).exitCode === 0)
			worked.push(name);
	return { succeeded: worked.length > 0, worked };
}

bothWays('getting out of mode none', { without, attack, sandbox: { network: { mode: 'none' } }, daemon: NETWORK });
