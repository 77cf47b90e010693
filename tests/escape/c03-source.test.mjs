// SPDX-License-Identifier: Apache-2.0
// C3: sending from the address of a neighbour. The guest has no right to; here the machine's root does it in the guest's place, inside its namespace.
import '../lib/inside.mjs';
import { spawnSync } from 'node:child_process';
import { after } from 'node:test';
import { bothWays } from '../lib/escape.mjs';
import { Internet, NETWORK, PUBLIC, addresses } from '../lib/internet.mjs';
import { until } from '../lib/wait.mjs';

export const without = ['net_source'];

const internet = await Internet.start();
after(() => internet.stop());

/** A datagram to a port of the world where nobody is: the world's answer, an error, goes to whom the source address belongs to. */
const send = (from, to) => `import socket
s = socket.socket(socket.${from.includes(':') ? 'AF_INET6' : 'AF_INET'}, socket.SOCK_DGRAM); s.bind(('${from}', 0)); s.sendto(b'x', ('${to}', 9))`;

export async function attack(box, daemon, t) {
	const neighbour = await daemon.box(t, {});
	const received = async () => (await daemon.api('GET', `/v1/sandboxes/${neighbour.id}/network`)).body.counters.receivedPackets;
	const stolen = addresses(await neighbour.init());
	const init = String(await box.init());
	const inside = (...words) => spawnSync('nsenter', ['--target', init, '--net', ...words], { encoding: 'utf8' });
	const reached = [];
	for (const address of stolen) {
		const before = await received();
		inside('ip', 'address', 'add', address, 'dev', 'eth0', ...(address.includes(':') ? ['nodad'] : []));
		inside('python3', '-c', send(address, address.includes(':') ? PUBLIC[6] : PUBLIC[4]));
		if (await until('an answer at the neighbour', async () => await received() > before, 5_000).catch(() => false))
			reached.push(address);
	}
	return { succeeded: reached.length > 0, reached };
}

bothWays("C3 sending from a neighbour's address", { without, attack, daemon: NETWORK });
