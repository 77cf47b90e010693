// SPDX-License-Identifier: Apache-2.0
// A stand-in for workerd's egress listener: whatever leaves a container is offered to it by CONNECT, and a table says what becomes of it.

import assert from 'node:assert/strict';
import net from 'node:net';
import { within } from './wait.mjs';

const HEAD_MAX = 16 << 10;

/** One listener on loopback. `on`: {"<port>" or "<name>" or "<name>:<port>" or "*": handler(offer, socket)}; a handler answers itself. */
export class Worker {
	offers = [];
	#server;
	#sockets = new Set();

	static async start(on = {}) {
		const worker = new Worker();
		worker.on = on;
		worker.#server = net.createServer({ allowHalfOpen: true }, socket => worker.#accept(socket));
		await new Promise((resolve, reject) => worker.#server.once('error', reject).listen(0, '127.0.0.1', resolve));
		worker.port = worker.#server.address().port;
		return worker;
	}

	#accept(socket) {
		let text = Buffer.alloc(0);
		this.#sockets.add(socket);
		socket.on('error', () => {}).on('close', () => this.#sockets.delete(socket));
		const onData = piece => {
			text = Buffer.concat([text, piece]);
			const end = text.indexOf('\r\n\r\n');
			assert.ok(text.length < HEAD_MAX || end >= 0);
			if (end < 0)
				return;
			socket.off('data', onData);
			socket.pause();
			if (end + 4 < text.length)
				socket.unshift(text.subarray(end + 4));
			this.#decide(read(text.subarray(0, end).toString('latin1')), socket);
		};
		socket.on('data', onData);
	}

	#decide(offer, socket) {
		this.offers.push(offer);
		const name = offer.sni ?? offer.hostname;
		const handler = this.on[`${name}:${offer.port}`] ?? this.on[name] ?? this.on[offer.port] ?? this.on['*'] ?? answer(400);
		handler(offer, socket);
	}

	/** As if it had been killed: what is open is reset. */
	stop() {
		for (const socket of this.#sockets)
			socket.resetAndDestroy();
		return within(60_000, 'end of the worker', new Promise(resolve => this.#server.close(resolve)));
	}
}

function read(head) {
	const [first, ...lines] = head.split('\r\n');
	const fields = Object.fromEntries(lines.map(line => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]));
	const [, target] = /^CONNECT (\S+) HTTP\/1\.1$/.exec(first) ?? assert.fail(first);
	assert.equal(fields.host, target);
	assert.equal(fields['x-proto'], 'tcp');
	assert.equal(fields.connection, 'close');
	assert.match(fields['x-forwarded-for'], /:\d+$/);
	return { target, port: Number(/:(\d+)$/.exec(target)[1]), sni: fields['x-tls-sni'], hostname: fields['x-hostname'] };
}

const TEXTS = { 200: 'OK', 202: 'Accepted', 400: 'Bad Request', 500: 'Internal Server Error' };

/** Answers, and hangs up unless `then` goes on with the connection. */
export const answer = (status, then = (_, socket) => socket.end()) => (offer, socket) => {
	socket.write(`HTTP/1.1 ${status} ${TEXTS[status]}\r\n\r\n`);
	then(offer, socket);
};

/** A web server that says what it was offered, and closes. */
export const web = (status = 200) => answer(status, (offer, socket) => {
	let text = '';
	const onData = piece => {
		text += piece;
		const end = text.indexOf('\r\n\r\n');
		if (end < 0)
			return;
		socket.off('data', onData);
		const body = JSON.stringify({ ...offer, request: text.slice(0, text.indexOf('\r\n')) });
		socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`);
	};
	socket.on('data', onData).resume();
});

/** Bytes both ways to an address of this machine. */
export const pass = (port, host) => answer(202, (_, socket) => {
	const out = net.connect({ port, host, allowHalfOpen: true });
	out.on('error', () => socket.destroy());
	socket.on('close', () => out.destroy());
	socket.pipe(out).pipe(socket);
});
