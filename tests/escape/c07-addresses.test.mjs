// SPDX-License-Identifier: Apache-2.0
// C7, C8: addresses that no allowed name was answered with, also with an allowed name in SNI and Host.
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { bothWays } from '../lib/escape.mjs';
import { NETWORK } from '../lib/internet.mjs';
import { HELLO, SITES, Services } from '../lib/services.mjs';
import { reached, request, talk } from '../lib/talk.mjs';

export const without = ['allow_pins'];

const services = await Services.start();
after(() => services.stop());

const NAME = 'www.example.test';
const sandbox = { network: { mode: 'allow', allow: [NAME] } };
const both = (site, where) => [4, 6].flatMap(family => [
	{ name: `${where} http ${family}`, to: [SITES[site][family], 80], send: [request(NAME)] },
	{ name: `${where} tls ${family}`, to: [SITES[site][family], 443], tls: NAME, send: [request(NAME)] },
]);

export async function attackUnasked(box) {
	const names = reached(await talk(box, both(NAME, 'right')), HELLO);
	return { succeeded: names.length > 0, names };
}

bothWays('C7 an address that nobody asked for', { without, attack: attackUnasked, daemon: NETWORK, sandbox, broken: evidence => assert.equal(evidence.names.length, 4) });

export async function attackSpoofed(box) {
	await box.out(`getent ahosts ${NAME}`);
	const honest = reached(await talk(box, both(NAME, 'right')), HELLO);
	assert.equal(honest.length, 4, 'the right address is reached');
	const names = reached(await talk(box, both('other.test', 'wrong')), HELLO);
	return { succeeded: names.length > 0, names };
}

bothWays('C8 an allowed name at an address that is not its own', { without, attack: attackSpoofed, daemon: NETWORK, sandbox, broken: evidence => assert.equal(evidence.names.length, 4) });
