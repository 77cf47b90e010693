// SPDX-License-Identifier: Apache-2.0
// C2: services of the host: the API itself, and whatever else listens, by every address it has, and the network it is in.
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import net from 'node:net';
import { after } from 'node:test';
import { bothWays } from '../lib/escape.mjs';
import { HOST, Internet, NETWORK, WORLD, get, ip } from '../lib/internet.mjs';

export const without = ['net_host', 'net_closed'];

const internet = await Internet.start();
after(() => internet.stop());

const victim = net.createServer(socket => socket.end('of the host\n')).listen(8088, '::');
after(() => victim.close());

async function reach(box, addresses, ports) {
	const reached = [];
	for (const address of addresses)
		for (const port of ports) {
			const { stdout } = await box.run(`(${get(address, port)}) 2>&1`);
			if (/of the host|HTTP/.test(stdout))
				reached.push(`${address} ${port}`);
		}
	return reached;
}

export async function attack(box, daemon) {
	const uplink = ip('-brief', 'address', 'show', 'dev', `${daemon.instance}-up`).match(/[0-9a-f.:]+(?=\/)/g);
	const reached = [
		...await reach(box, [...uplink, HOST[4], HOST[6], '127.0.0.1', '::1', 'localhost'], [8088, daemon.address.split(':').at(-1)]),
		...await reach(box, [WORLD[4], WORLD[6]], [80]),
	];
	return { succeeded: reached.length > 0, reached };
}

bothWays('C2 reaching services of the host', {
	without,
	attack,
	daemon: NETWORK,
	broken(evidence) {
		for (const address of [HOST[4], HOST[6]])
			assert.ok(evidence.reached.includes(`${address} 8088`), address);
		for (const address of [WORLD[4], WORLD[6]])
			assert.ok(evidence.reached.includes(`${address} 80`), address);
	},
});
