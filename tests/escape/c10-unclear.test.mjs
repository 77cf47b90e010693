// SPDX-License-Identifier: Apache-2.0
// C10: connections of which nobody can tell to whom they lead: TLS without a name or with a hidden one, a name in pieces, no protocol of the web on its port.
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { bothWays } from '../lib/escape.mjs';
import { NETWORK } from '../lib/internet.mjs';
import { HELLO, SITES, Services } from '../lib/services.mjs';
import { reached, request, talk } from '../lib/talk.mjs';

export const without = ['allow_clear'];
export const withoutNames = ['allow_hosts'];

const services = await Services.start();
after(() => services.stop());

const NAME = 'www.example.test';
const OTHER = 'other.test';
const sandbox = { network: { mode: 'allow', allow: [NAME] } };
const each = make => [4, 6].flatMap(family => make(family).map(one => ({ ...one, name: `${one.name} ${family}`, to: [SITES[NAME][family], one.port ?? 443] })));

export async function attack(box) {
	await box.out(`getent ahosts ${NAME}`);
	const names = reached(await talk(box, each(() => [
		{ name: 'no name', tls: null, send: [request(NAME)] },
		{ name: 'hidden name', tls: NAME, hidden: true },
		{ name: 'no TLS', port: 443, send: ['GET / HTTP/1.0\r\n\r\n'] },
		{ name: 'no host', port: 80, send: ['GET / HTTP/1.0\r\n\r\n'] },
		{ name: 'no version', port: 80, send: ['GET /\r\n'] },
		{ name: 'an address as host', port: 80, send: [request(SITES[NAME][4])] },
	])), said => /hello|nginx/.test(said));
	return { succeeded: names.length > 0, names };
}

bothWays('C10 connections that nobody can read', {
	without,
	attack,
	daemon: NETWORK,
	sandbox,
	broken: evidence => assert.equal(evidence.names.length, 12, evidence.names.join()),
});

/** The same name, each time cut differently. */
const cut = name => each(() => [
	...[1, 7, 100].map(split => ({ name: `records of ${split}`, tls: name, split, send: [request(name)] })),
	...[1, 50].map(pieces => ({ name: `writes of ${pieces}`, tls: name, pieces, send: [request(name)] })),
	{ name: 'a request in pieces', port: 80, pieces: 3, send: [request(name)] },
]);

export async function attackInPieces(box) {
	await box.out(`getent ahosts ${NAME}`);
	const honest = await talk(box, cut(NAME));
	assert.equal(reached(honest, HELLO).length, 12, `an allowed name may be cut: ${JSON.stringify(honest)}`);
	const names = reached(await talk(box, cut(OTHER)), `this is ${OTHER}`);
	return { succeeded: names.length > 0, names };
}

bothWays('C10 a name in pieces', { without: withoutNames, attack: attackInPieces, daemon: NETWORK, sandbox, broken: evidence => assert.equal(evidence.names.length, 12, evidence.names.join()) });
