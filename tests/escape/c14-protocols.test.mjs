// SPDX-License-Identifier: Apache-2.0
// C14: tunnels in other protocols, ICMP that is no ping, IPv6 extension headers. The guest has no right to send such packets; here the machine's root does it in
// the guest's place, inside its namespace. A listener in the world tells what arrived.
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { bothWays } from '../lib/escape.mjs';
import { Internet, NETWORK, PUBLIC, inside } from '../lib/internet.mjs';
import { until } from '../lib/wait.mjs';

export const without = ['net_protocols'];

const internet = await Internet.start();
after(() => internet.stop());

const LISTEN = String.raw`
import re, socket
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)); wire.bind(('eth0', 3))
print('listening', flush=True)
while True:
    for name in re.findall(rb'<<([a-z0-9-]+)>>', wire.recv(65536)):
        print(name.decode(), flush=True)
`;

/** Each packet carries its name. The last is an honest one: when it has arrived, so have all before it that were let through, or they come a moment later. */
const SEND = String.raw`
import os, socket, struct, sys
four, six, last = sys.argv[1:]
def total(data):
    data += b'\0' * (len(data) % 2)
    s = sum(struct.unpack('!%dH' % (len(data) // 2), data))
    while s >> 16: s = (s & 0xffff) + (s >> 16)
    return ~s & 0xffff
def mark(name): return b'<<' + name.encode() + b'>>'
for name, protocol in dict(ipip=4, gre=47, sixinfour=41, other=253).items():
    socket.socket(socket.AF_INET, socket.SOCK_RAW, protocol).sendto(bytes(8) + mark(name + '4'), (four, 0))
    socket.socket(socket.AF_INET6, socket.SOCK_RAW, protocol).sendto(bytes(8) + mark(name + '6'), (six, 0))
for name, kind in dict(timestamp=13, mask=17).items():
    body = struct.pack('!BBHHH', kind, 0, 0, 7, 1) + mark(name)
    socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).sendto(body[:2] + struct.pack('!H', total(body)) + body[4:], (four, 0))
udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
udp.setsockopt(41, 59, bytes([0, 0, 1, 4, 0, 0, 0, 0])) # destination options
udp.sendto(mark('options'), (six, 7))
udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
udp.setsockopt(41, 54, bytes([0, 0, 1, 4, 0, 0, 0, 0])) # hop by hop
udp.sendto(mark('hops'), (six, 7))
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(mark(last), (four, 7))
`;
const NAMES = ['ipip4', 'ipip6', 'gre4', 'gre6', 'sixinfour4', 'sixinfour6', 'other4', 'other6', 'timestamp', 'mask', 'options', 'hops'];

let arrived = '';
const listener = internet.spawn(['python3', '-c', LISTEN], { stdio: ['ignore', 'pipe', 'inherit'] });
listener.stdout.setEncoding('utf8').on('data', text => { arrived += text; });
after(() => listener.kill('SIGKILL'));
await until('the listener', () => arrived.includes('listening'));

let round = 0;

export async function attack(box) {
	arrived = '';
	const last = `last-${++round}`;
	const sent = inside(await box.init(), 'python3', '-c', SEND, PUBLIC[4], PUBLIC[6], last);
	assert.equal(sent.status, 0, sent.stderr);
	await until('the honest packet', () => arrived.includes(last));
	const seen = () => new Set(arrived.trim().split('\n').filter(name => !name.startsWith('last')));
	await until('all of them', () => seen().size === NAMES.length, 3_000).catch(() => {}); // packets of two processors may overtake each other
	const names = seen();
	return { succeeded: names.size > 0, arrived: [...names].sort() };
}

bothWays('C14 packets that are neither TCP nor UDP nor a ping', { without, attack, daemon: NETWORK, broken: evidence => assert.deepEqual(evidence.arrived, [...NAMES].sort()) });
