// SPDX-License-Identifier: Apache-2.0
// C12: sockets of other families than IP, raw sockets, and changes of the network by netlink.
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { bothWays, outcomes, worked } from '../lib/escape.mjs';
import { Internet, NETWORK, PUBLIC, get } from '../lib/internet.mjs';

export const without = ['seccomp', 'caps'];

const internet = await Internet.start();
after(() => internet.stop());

const TRY = String.raw`
import errno, socket, struct
FAMILIES = dict(appletalk=5, x25=9, key=15, packet=17, rds=21, can=29, tipc=30, bluetooth=31, alg=38, nfc=39, vsock=40, kcm=41, qrtr=42, smc=43, xdp=44)
def attempt(name, work):
    try:
        work(); print(name, 'ok')
    except OSError as error:
        print(name, errno.errorcode[error.errno])
for name, family in FAMILIES.items():
    for kind in (1, 2, 3, 5):
        attempt(f'{name}/{kind}', lambda: socket.socket(family, kind, 0))
attempt('packet/all', lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)))
for name, family in dict(four=socket.AF_INET, six=socket.AF_INET6).items():
    for protocol in (1, 6, 17, 58, 255):
        attempt(f'raw/{name}/{protocol}', lambda: socket.socket(family, socket.SOCK_RAW, protocol))
for name, protocol in dict(netfilter=12, uevent=15, generic=16, crypto=21).items():
    attempt(f'netlink/{name}', lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol))
def change(kind, flags, body):
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    s.send(struct.pack('=IHHII', 16 + len(body), kind, flags | 5, 1, 0) + body)
    code = struct.unpack_from('=i', s.recv(4096), 16)[0]
    if code < 0: raise OSError(-code, '')
eth0 = socket.if_nametoindex('eth0')
attempt('netlink/down', lambda: change(16, 0, struct.pack('=BxHiII', 0, 0, eth0, 0, 1)))
attempt('netlink/address', lambda: change(20, 0x400, struct.pack('=BBBBi', 2, 32, 0, 0, eth0) + struct.pack('=HH', 8, 2) + bytes([10, 210, 9, 9])))
attempt('netlink/route', lambda: change(24, 0x400, struct.pack('=8BI', 2, 32, 0, 0, 254, 4, 253, 1, 0) + struct.pack('=HH', 8, 1) + bytes([8, 8, 8, 8]) + struct.pack('=HHi', 8, 4, eth0)))
attempt('netlink/neighbour', lambda: change(28, 0x400, struct.pack('=BxHiHBB', 2, 0, eth0, 0x80, 0, 0) + struct.pack('=HH', 8, 1) + bytes([10, 210, 0, 1])))
`;

export async function attack(box) {
	const results = outcomes(await box.out('python3 -c "$TRY"', { env: { TRY } }));
	return { succeeded: worked(results).length > 0, results };
}

bothWays('C12 other families, raw sockets and netlink', {
	without,
	attack,
	daemon: NETWORK,
	async repelled(evidence, box) {
		for (const [name, outcome] of Object.entries(evidence.results))
			assert.match(outcome, /^(EPERM|EACCES|EAFNOSUPPORT|EPROTONOSUPPORT|ESOCKTNOSUPPORT)$/, `${name} ${outcome}`);
		assert.match(await box.out(get(PUBLIC[4])), /world/, 'the link is as it was');
	},
	broken: evidence => assert.ok(worked(evidence.results).includes('netlink/generic'), 'and the right to change the network is the machine\'s alone, which no switch takes away'),
});
