// SPDX-License-Identifier: Apache-2.0
// A small HTTP client for the tests: keep-alive, every answer in hand, and raw sockets for what no client would send.

import http from 'node:http';
import net from 'node:net';
import { within } from './wait.mjs';

const DEADLINE_MS = 90_000;

export class Client {
	#agent;

	constructor(address, token, keepAlive = true) {
		this.#agent = new http.Agent({ keepAlive, maxSockets: Infinity });
		const [host, port] = splitAddress(address);
		this.host = host;
		this.port = port;
		this.token = token;
	}

	/**
	 * One request and its whole answer: {status, headers, rawHeaders, body, raw}.
	 * body: an object becomes JSON, strings and Buffers go as they are.
	 * options: headers, token (false: none), deadline (ms).
	 */
	async api(method, path, body, options = {}) {
		const response = await this.open(method, path, body, options);
		const chunks = [];
		const whole = (async () => {
			for await (const chunk of response)
				chunks.push(chunk);
		})();
		await within(options.deadline ?? DEADLINE_MS, `answer of ${method} ${path.slice(0, 100)}`, whole).catch(error => {
			response.destroy();
			throw error;
		});
		const raw = Buffer.concat(chunks);
		return { status: response.statusCode, headers: response.headers, rawHeaders: response.rawHeaders, raw, body: decode(response, raw) };
	}

	/** One request; resolves with the response as soon as its head is here. The caller reads or destroys it. */
	open(method, path, body, options = {}) {
		const headers = { ...options.headers };
		const token = options.token ?? this.token;
		if (token !== false)
			headers.authorization ??= `Bearer ${token}`;
		let bytes = body;
		if (body !== undefined && typeof body !== 'string' && !Buffer.isBuffer(body)) {
			bytes = JSON.stringify(body);
			headers['content-type'] ??= 'application/json';
		}
		if (bytes !== undefined)
			headers['content-length'] ??= Buffer.byteLength(bytes);
		const request = http.request({ host: this.host, port: this.port, method, path, headers, agent: options.agent ?? this.#agent });
		const head = new Promise((resolve, reject) => request.on('response', resolve).on('error', reject))
			.then(response => response.on('error', () => {})); // whoever reads it sees the error; whoever left does not care
		request.end(bytes);
		return within(options.deadline ?? DEADLINE_MS, `head of ${method} ${path.slice(0, 100)}`, head).catch(error => {
			request.destroy();
			throw error;
		});
	}

	/** A raw connection: send(bytes), answer() until the server closes or the deadline. */
	async raw() {
		const socket = net.connect(this.port, this.host);
		const connection = new Raw(socket);
		await within(DEADLINE_MS, 'connect', new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject)));
		return connection;
	}

	close() {
		this.#agent.destroy();
	}
}

export class Raw {
	#chunks = [];

	constructor(socket) {
		this.socket = socket;
		this.closed = new Promise(resolve => socket.once('close', resolve));
		socket.on('data', chunk => this.#chunks.push(chunk));
		socket.on('error', () => {}); // a reset is an answer too: it ends in 'close'
	}

	send(bytes) {
		if (this.socket.writable)
			this.socket.write(bytes);
	}

	get text() {
		return Buffer.concat(this.#chunks).toString('latin1');
	}

	/** Everything the server sent, once it has closed; {closed:false} when it is still open at the deadline. */
	async answer(ms = 60_000) {
		const closed = await within(ms, 'close', this.closed).then(() => true, () => false);
		this.socket.destroy();
		return { closed, text: this.text, status: statusOf(this.text), answers: (this.text.match(/HTTP\/1\.1 \d\d\d /g) ?? []).length };
	}

	/** Resolves when the received text matches. */
	async received(pattern, ms = 60_000) {
		const arrived = new Promise(resolve => {
			const look = () => pattern.test(this.text) && resolve(this.text);
			this.socket.on('data', look);
			look();
		});
		return within(ms, `bytes matching ${pattern}`, arrived);
	}

	destroy() {
		this.socket.destroy();
	}
}

function statusOf(text) {
	const match = /^HTTP\/1\.1 (\d\d\d) /.exec(text);
	return match ? Number(match[1]) : null;
}

function splitAddress(address) {
	const colon = address.lastIndexOf(':');
	return [address.slice(0, colon).replace(/^\[|\]$/g, ''), Number(address.slice(colon + 1))];
}

function decode(response, raw) {
	if ((response.headers['content-type'] ?? '').startsWith('application/json') && raw.length > 0) // HEAD has none
		return JSON.parse(raw.toString('utf8'));
	return raw.toString('utf8');
}
