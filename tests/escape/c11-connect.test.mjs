// SPDX-License-Identifier: Apache-2.0
// C11: an allowed host that carries connections to others: CONNECT, then another name.
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { bothWays } from '../lib/escape.mjs';
import { NETWORK } from '../lib/internet.mjs';
import { SITES, Services } from '../lib/services.mjs';
import { reached, talk } from '../lib/talk.mjs';

export const without = ['allow_clear'];

const services = await Services.start(['tunnels']);
after(() => services.stop());

const NAME = 'www.example.test';

export async function attack(box) {
	await box.out(`getent ahosts ${NAME}`);
	const names = reached(await talk(box, [4, 6].flatMap(family => ['CONNECT', 'connect'].flatMap(method => [NAME, 'other.test'].map(host => (
		{ name: `${method} ${host} ${family}`, to: [SITES[NAME][family], 3128], send: [`${method} other.test:443 HTTP/1.1\r\nHost: ${host}:443\r\n\r\n`] }
	))))), ' 200 ');
	return { succeeded: names.length > 0, names };
}

bothWays('C11 CONNECT through an allowed host', {
	without,
	attack,
	daemon: NETWORK,
	sandbox: { network: { mode: 'allow', allow: [`${NAME}:3128`] } },
	broken: evidence => assert.ok(evidence.names.length >= 4, evidence.names.join()),
});
