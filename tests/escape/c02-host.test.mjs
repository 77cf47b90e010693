// SPDX-License-Identifier: Apache-2.0
// C2: services of the host: the API itself, and whatever else listens, by every address it has.
import '../lib/inside.mjs';
import net from 'node:net';
import { after } from 'node:test';
import { bothWays } from '../lib/escape.mjs';
import { HOST, Internet, NETWORK, get, ip } from '../lib/internet.mjs';

export const without = ['net_host', 'net_closed'];

const internet = await Internet.start();
after(() => internet.stop());

export async function attack(box, daemon, t) {
	const victim = net.createServer(socket => socket.end('of the host\n')).listen(8088, '::');
	t.after(() => victim.close());
	const uplink = ip('-brief', 'address', 'show', 'dev', `${daemon.instance}-up`).match(/[0-9a-f.:]+(?=\/)/g);
	const reached = [];
	for (const address of [...uplink, HOST[4], HOST[6], '127.0.0.1', '::1'])
		for (const port of [8088, daemon.address.split(':').at(-1)]) {
			const { stdout } = await box.run(`(${get(address, port)}) 2>&1`);
			if (/of the host|HTTP/.test(stdout))
				reached.push(`${address} ${port}`);
		}
	return { succeeded: reached.length > 0, reached };
}

bothWays('C2 reaching services of the host', { without, attack, daemon: NETWORK });
