// SPDX-License-Identifier: Apache-2.0
// C1: the metadata services of clouds, and private networks, by address, by name, and in every way an address can be written.
import '../lib/inside.mjs';
import { after } from 'node:test';
import { bothWays } from '../lib/escape.mjs';
import { Internet, NETWORK, get } from '../lib/internet.mjs';

export const without = ['net_closed'];

const internet = await Internet.start();
after(() => internet.stop());

const WAYS = ['169.254.169.254', '0xa9fea9fe', '2852039166', '0251.0376.0251.0376', '::ffff:169.254.169.254', 'metadata.example.test', 'fd00:ec2::254', '10.1.2.3', '192.168.7.7'];

export async function attack(box) {
	const reached = [];
	for (const way of WAYS) {
		const { stdout } = await box.run(`(${get(way)}) 2>&1`);
		if (stdout.includes('world'))
			reached.push(way);
	}
	return { succeeded: reached.length > 0, reached };
}

bothWays('C1 reaching metadata and private networks', { without, attack, daemon: NETWORK });
