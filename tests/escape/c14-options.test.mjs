// SPDX-License-Identifier: Apache-2.0
// C14: packets with IPv4 options, which no right is needed for: source routes lead around filters, the rest has no business here.
import '../lib/inside.mjs';
import { after } from 'node:test';
import { bothWays } from '../lib/escape.mjs';
import { Internet, NETWORK, PUBLIC } from '../lib/internet.mjs';

export const without = ['net_options'];

const internet = await Internet.start();
after(() => internet.stop());

const PROGRAM = `import socket
for name, option in (("record", bytes([7, 7, 4, 0, 0, 0, 0, 0])), ("timestamp", bytes([68, 8, 5, 0, 0, 0, 0, 0]))):
    try:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5)
        s.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, option)
        s.connect(("${PUBLIC[4]}", 7)); s.send(b"x"); s.recv(10)
        print(name)
    except OSError as e:
        pass`;

export async function attack(box) {
	const reached = (await box.out(`python3 -c '${PROGRAM}'`)).split('\n').filter(Boolean);
	return { succeeded: reached.length > 0, reached };
}

bothWays('C14 packets with IPv4 options', { without, attack, daemon: NETWORK });
