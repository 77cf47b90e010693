// SPDX-License-Identifier: Apache-2.0
// Servers in the world that carry other things than they seem to: node tunnels.mjs ADDRESS... Datagrams to port 443 come back; port 3128 takes CONNECT.

import dgram from 'node:dgram';
import http from 'node:http';
import net from 'node:net';

const listening = [];
const on = server => listening.push(new Promise(resolve => server.once('listening', resolve)));

for (const address of process.argv.slice(2)) {
	const udp = dgram.createSocket(address.includes(':') ? 'udp6' : 'udp4');
	udp.on('message', (bytes, from) => udp.send(bytes, from.port, from.address));
	on(udp.bind(443, address));
	const proxy = http.createServer((request, response) => response.end(`plain ${request.url}\n`));
	proxy.on('connect', (request, socket) => {
		const at = net.connect(443, address, () => { // whoever is asked for: this address answers for all
			socket.write('HTTP/1.1 200 Connected\r\n\r\n');
			socket.pipe(at).pipe(socket);
		});
		for (const end of [at, socket])
			end.on('error', () => {});
	});
	on(proxy.listen(3128, address));
}
await Promise.all(listening);
process.stdout.write('ready\n');
