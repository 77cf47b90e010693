// SPDX-License-Identifier: Apache-2.0
// A sandbox in mode none: TCP, UDP and names, IPv4 and IPv6.
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { bothWays } from '../lib/escape.mjs';
import { Internet, NETWORK, PUBLIC, get } from '../lib/internet.mjs';

export const without = ['net_modes'];

const internet = await Internet.start();
after(() => internet.stop());

/** A datagram, or a ping, that is echoed. */
const echo = (address, ping) => {
	const [family, protocol, first] = address.includes(':') ? ['AF_INET6', 58, 128] : ['AF_INET', 1, 8];
	return `python3 -c 'import socket; s = socket.socket(socket.${family}, socket.SOCK_DGRAM, ${ping ? protocol : 0}); s.settimeout(20); s.connect(("${address}", 7)); s.send(bytes([${first}, 0, 0, 0, 0, 0, 0, 1])); s.recv(1)'`;
};
const WAYS = {
	tcp4: get(PUBLIC[4]), tcp6: get(PUBLIC[6]), udp4: echo(PUBLIC[4]), udp6: echo(PUBLIC[6]),
	ping4: echo(PUBLIC[4], true), ping6: echo(PUBLIC[6], true), names: 'timeout 20 getent ahosts www.example.test',
};

export async function attack(box) {
	const worked = [];
	for (const [name, command] of Object.entries(WAYS))
		if ((await box.run(`(${command})`)).exitCode === 0)
			worked.push(name);
	return { succeeded: worked.length > 0, worked };
}

bothWays('getting out of mode none', {
	without,
	attack,
	sandbox: { network: { mode: 'none' } },
	daemon: NETWORK,
	broken: evidence => assert.deepEqual(evidence.worked, Object.keys(WAYS)),
});
