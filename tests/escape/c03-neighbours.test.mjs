// SPDX-License-Identifier: Apache-2.0
// C3: from one sandbox to another.
import '../lib/inside.mjs';
import { after } from 'node:test';
import { bothWays } from '../lib/escape.mjs';
import { Internet, NETWORK, addresses } from '../lib/internet.mjs';

export const without = ['net_neighbours', 'net_closed'];

const internet = await Internet.start();
after(() => internet.stop());

const LISTEN = `python3 -c '
import socket
s = socket.create_server(("::", 5000), family=socket.AF_INET6, dualstack_ipv6=True)
print("listening", flush=True)
while True:
    c, _ = s.accept(); c.sendall(b"of the neighbour\\n"); c.close()' > /tmp/out 2>&1 & until grep -q listening /tmp/out; do sleep 0.01; done`;

export async function attack(box, daemon, t) {
	const neighbour = await daemon.box(t, {});
	await neighbour.out(LISTEN);
	const reached = [];
	for (const address of addresses(await neighbour.init())) {
		const { stdout } = await box.run(`(exec 3<>/dev/tcp/${address}/5000 && cat <&3) 2>&1`);
		if (stdout.includes('of the neighbour'))
			reached.push(address);
	}
	return { succeeded: reached.length > 0, reached };
}

bothWays('C3 reaching a neighbour', { without, attack, daemon: NETWORK });
