// SPDX-License-Identifier: Apache-2.0
// C1: the metadata services of clouds, and private networks, by address, by name, by redirect, and in every way an address can be written.
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { bothWays } from '../lib/escape.mjs';
import { CLOSED, Internet, NETWORK, PUBLIC, get } from '../lib/internet.mjs';

export const without = ['net_closed', 'net_answers'];

const internet = await Internet.start();
after(() => internet.stop());

const SPELLED = ['0xa9fea9fe', '2852039166', '0251.0376.0251.0376', '::ffff:169.254.169.254', '::ffff:a9fe:a9fe', 'metadata.example.test', 'metadata6.example.test'];
const WAYS = {
	...Object.fromEntries([...CLOSED, ...SPELLED].map(way => [way, `(${get(way)}) 2>&1`])),
	redirect: `curl -sS -L -m 20 http://${PUBLIC[4]}/to/169.254.169.254 2>&1`,
	redirect6: `curl -sS -L -m 20 'http://[${PUBLIC[6]}]/to/[fd00:ec2::254]' 2>&1`,
};

export async function attack(box) {
	const reached = [];
	for (const [way, command] of Object.entries(WAYS)) {
		const { stdout } = await box.run(command);
		if (stdout.includes('world'))
			reached.push(way);
	}
	return { succeeded: reached.length > 0, reached };
}

bothWays('C1 reaching metadata and private networks', { without, attack, daemon: NETWORK, broken: evidence => assert.deepEqual(evidence.reached, Object.keys(WAYS)) });
