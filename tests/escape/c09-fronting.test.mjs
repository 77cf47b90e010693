// SPDX-License-Identifier: Apache-2.0
// C9: the address of an allowed name, which answers for others too: another name in SNI, in Host, in a later request, in the first line, hidden in a body.
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { bothWays } from '../lib/escape.mjs';
import { NETWORK } from '../lib/internet.mjs';
import { SITES, Services } from '../lib/services.mjs';
import { reached, request, talk } from '../lib/talk.mjs';

export const without = ['allow_hosts'];
export const withoutReading = ['allow_clear'];

const services = await Services.start();
after(() => services.stop());

const NAME = 'www.example.test';
const OTHER = 'other.test';
const WANTED = `this is ${OTHER}`;
const sandbox = { network: { mode: 'allow', allow: [NAME] } };

export async function attack(box) {
	await box.out(`getent ahosts ${NAME}`);
	const names = reached(await talk(box, [4, 6].flatMap(family => {
		const [http, https] = [80, 443].map(port => [SITES[NAME][family], port]);
		return [
			{ name: `host ${family}`, to: http, send: [request(OTHER)] },
			{ name: `upper ${family}`, to: http, send: [request('OTHER.test')] },
			{ name: `dot ${family}`, to: http, send: [request(`${OTHER}.`)] },
			{ name: `port ${family}`, to: http, send: [request(`${OTHER}:80`)] },
			{ name: `later ${family}`, to: http, send: [request(NAME), request(OTHER)] },
			{ name: `sni ${family}`, to: https, tls: OTHER, send: [request(OTHER)] },
		];
	})), WANTED);
	return { succeeded: names.length > 0, names };
}

bothWays('C9 another name at an allowed address', { without, attack, daemon: NETWORK, sandbox, broken: evidence => assert.equal(evidence.names.length, 12, evidence.names.join()) });

export async function attackHidden(box) {
	await box.out(`getent ahosts ${NAME}`);
	const to = [SITES[NAME][4], 80];
	const hidden = request(OTHER);
	const said = await talk(box, [
		{ name: 'line', to, send: [`GET http://${OTHER}/ HTTP/1.1\r\nHost: ${NAME}\r\n\r\n`] },
		{ name: 'piped', to, send: [request(NAME) + hidden, ''] },
		{ name: 'two hosts', to, send: [request(NAME, `Host: ${OTHER}\r\n`)] },
		{ name: 'two hosts turned', to, send: [request(OTHER, `Host: ${NAME}\r\n`)] },
		{ name: 'folded', to, send: [`GET / HTTP/1.1\r\nHost: ${NAME}\r\n ${OTHER}\r\n\r\n`] },
		{ name: 'spaced', to, send: [`GET / HTTP/1.1\r\nHost : ${OTHER}\r\nHost: ${NAME}\r\n\r\n`] },
		{ name: 'bare', to, send: [`GET / HTTP/1.1\nHost: ${OTHER}\n\n`] },
		{ name: 'before', to, send: [`\r\n${hidden}`] },
		{ name: 'length and chunks', to, send: [`POST / HTTP/1.1\r\nHost: ${NAME}\r\nContent-Length: ${hidden.length + 5}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`, ''] },
		{ name: 'two lengths', to, send: [`GET / HTTP/1.1\r\nHost: ${NAME}\r\nContent-Length: ${hidden.length}\r\nContent-Length: 0\r\n\r\n${hidden}`, ''] },
		{ name: 'chunk size', to, send: [`POST / HTTP/1.1\r\nHost: ${NAME}\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${hidden}`, ''] },
		{ name: 'old', to, send: [`GET / HTTP/1.0\r\nHost: ${OTHER}\r\n\r\n`] },
		{ name: 'http/2', to, send: ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', hidden] },
		{ name: 'upgrade', to, send: [request(NAME, 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n'), hidden] },
	]);
	const names = reached(said, WANTED);
	return { succeeded: names.length > 0, names };
}

bothWays('C9 another name where two may be read', { without: withoutReading, attack: attackHidden, daemon: NETWORK, sandbox });
