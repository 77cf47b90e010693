// SPDX-License-Identifier: Apache-2.0
// The servers of the world (internet.mjs starts this in its namespace). HTTP on 80: who asked, and for a WebSocket the same bytes back; a line server on 7: says back what it gets.
// DNS on 53, UDP and TCP: every name of a small zone.

import dgram from 'node:dgram';
import http from 'node:http';
import net from 'node:net';
import { answer } from './dns.mjs';

const PUBLIC = { 4: '93.184.215.14', 6: '2606:4700::1111' };

const listening = [];
const on = server => listening.push(new Promise(resolve => server.once('listening', resolve)));

const web = http.createServer((request, response) => {
	const to = /^\/to\/(.*)$/.exec(request.url)?.[1];
	return to ? response.writeHead(302, { location: `http://${to}/` }).end() : response.end(`world ${request.socket.remoteAddress} ${request.headers.host}\n`);
});
web.on('upgrade', (request, socket, early) => {
	socket.on('error', () => {}).write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
	socket.write(early);
	socket.pipe(socket);
});
on(web.listen(80, '::'));
on(net.createServer(socket => socket.on('error', () => {}).pipe(socket)).listen(7, '::'));

for (const type of ['udp4', 'udp6']) { // datagrams of any size come back, from the address that every machine of the world has
	const udp = dgram.createSocket({ type, ipv6Only: type === 'udp6' });
	udp.on('message', (bytes, from) => udp.send(bytes, from.port, from.address));
	on(udp.bind(7, type === 'udp4' ? PUBLIC[4] : PUBLIC[6]));
}

for (const [type, address] of [['udp4', '0.0.0.0'], ['udp6', '::']]) {
	const udp = dgram.createSocket({ type, ipv6Only: type === 'udp6' });
	udp.on('message', (query, from) => udp.send(answer(query), from.port, from.address));
	on(udp.bind(53, address));
}
on(net.createServer(socket => {
	let bytes = Buffer.alloc(0);
	socket.on('error', () => {}).on('data', more => {
		bytes = Buffer.concat([bytes, more]);
		while (bytes.length >= 2 && bytes.length >= 2 + bytes.readUInt16BE(0)) {
			const reply = answer(bytes.subarray(2, 2 + bytes.readUInt16BE(0)), true);
			bytes = bytes.subarray(2 + bytes.readUInt16BE(0));
			const length = Buffer.alloc(2);
			length.writeUInt16BE(reply.length);
			socket.write(Buffer.concat([length, reply]));
		}
	});
}).listen(53, '::'));

process.stdin.once('end', () => process.exit()).resume();
await Promise.all(listening);
process.stdout.write('ready\n');
