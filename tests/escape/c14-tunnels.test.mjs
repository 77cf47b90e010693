// SPDX-License-Identifier: Apache-2.0
// C14, C10: under an allow list: datagrams (QUIC and tunnels) and pings to an address that is allowed.
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { bothWays } from '../lib/escape.mjs';
import { NETWORK } from '../lib/internet.mjs';
import { SITES, Services } from '../lib/services.mjs';
import { reached, talk } from '../lib/talk.mjs';

export const without = ['net_modes'];

const services = await Services.start(['tunnels']);
after(() => services.stop());

const NAME = 'www.example.test';
const PING = String.raw`
import socket, sys
for address in sys.argv[1:]:
    six = ':' in address
    s = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM, 58 if six else 1); s.settimeout(5)
    try:
        s.connect((address, 0)); s.send(bytes([128 if six else 8, 0, 0, 0, 0, 0, 0, 1]) + b'secret'); s.recv(100); print('ping', address)
    except OSError:
        pass
`;

export async function attack(box) {
	await box.out(`getent ahosts ${NAME}`);
	const datagrams = [4, 6].flatMap(family => ['c0', '00'.repeat(3000)].map((bytes, i) => ({ name: `datagram ${i} ${family}`, to: [SITES[NAME][family], 443], udp: true, send: [bytes] })));
	const names = reached(await talk(box, datagrams), said => !said.startsWith('error'));
	const pings = (await box.out(`python3 -c "$PING" ${Object.values(SITES[NAME]).join(' ')}`, { env: { PING } })).split('\n').filter(Boolean);
	return { succeeded: names.length + pings.length > 0, names, pings };
}

bothWays('C14 tunnels through an allowed address', {
	without,
	attack,
	daemon: NETWORK,
	sandbox: { network: { mode: 'allow', allow: [NAME, SITES[NAME][4], SITES[NAME][6]] } },
	broken(evidence) {
		assert.equal(evidence.names.length, 4, JSON.stringify(evidence));
		assert.equal(evidence.pings.length, 2, JSON.stringify(evidence));
	},
});
