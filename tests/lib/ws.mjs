// SPDX-License-Identifier: Apache-2.0
// A WebSocket client of the tests' own: it can also say what no client would, and sees every frame.

import { createHash, randomBytes } from 'node:crypto';
import net from 'node:net';
import { within } from './wait.mjs';

const DEADLINE_MS = 90_000;
const OPS = { continue: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 };
const NAMES = Object.fromEntries(Object.entries(OPS).map(([name, op]) => [op, name]));

/** The bytes of a frame. options: fin, rsv, op (a number), mask (false: none), length (announced instead of the real one). */
export function frame(op, payload = '', options = {}) {
	const bytes = Buffer.from(payload);
	const mask = options.mask === false ? null : options.mask ?? randomBytes(4);
	const head = [((options.fin ?? true) ? 0x80 : 0) | (options.rsv ?? 0) | (options.op ?? OPS[op])];
	const length = BigInt(options.length ?? bytes.length);
	const flag = mask ? 0x80 : 0;
	if (length < 126n)
		head.push(flag | Number(length));
	else if (length < 65_536n)
		head.push(flag | 126, Number(length >> 8n), Number(length & 255n));
	else
		head.push(flag | 127, ...Array.from({ length: 8 }, (_, i) => Number(length >> BigInt(56 - 8 * i) & 255n)));
	return Buffer.concat([Buffer.from(head), mask ?? Buffer.alloc(0), mask ? bytes.map((byte, i) => byte ^ mask[i % 4]) : bytes]);
}

export class Socket {
	#chunks = Buffer.alloc(0);
	#frames = [];
	#waiting = [];
	#over = false;

	/** Resolves with an open socket, or rejects with an error that has the status (and body) of the answer. options: headers, token (false: none). */
	static async open(daemon, path, options = {}) {
		const socket = new Socket();
		await within(DEADLINE_MS, `handshake of ${path}`, socket.#connect(daemon, path, options));
		return socket;
	}

	#connect(daemon, path, options) {
		const key = randomBytes(16).toString('base64');
		const token = options.token ?? daemon.token;
		const headers = { Host: daemon.address, Upgrade: 'websocket', Connection: 'Upgrade', 'Sec-WebSocket-Key': key, 'Sec-WebSocket-Version': '13', ...(token && { Authorization: `Bearer ${token}` }), ...options.headers };
		const lines = Object.entries(headers).filter(([, value]) => value !== undefined).map(([name, value]) => `${name}: ${value}\r\n`);
		this.raw = net.connect(daemon.client.port, daemon.client.host);
		this.raw.setNoDelay(true);
		this.raw.write(`${options.method ?? 'GET'} ${path} HTTP/${options.version ?? '1.1'}\r\n${lines.join('')}\r\n`);
		if (options.early)
			this.raw.write(options.early);
		return new Promise((resolve, reject) => {
			this.raw.on('error', reject);
			this.raw.on('close', () => { reject(new Error('closed in the handshake')); this.#end(); });
			this.raw.on('data', chunk => {
				this.#chunks = Buffer.concat([this.#chunks, chunk]);
				if (!this.head)
					this.#readHead(key, resolve, reject);
				if (this.head)
					this.#readFrames();
			});
		});
	}

	#readHead(key, resolve, reject) {
		const end = this.#chunks.indexOf('\r\n\r\n');
		if (end < 0)
			return;
		const head = this.#chunks.subarray(0, end).toString();
		const status = Number(head.split(' ')[1]);
		if (status !== 101) {
			const body = this.#chunks.subarray(end + 4).toString();
			reject(Object.assign(new Error(`handshake: ${status}`), { status, head, body }));
			this.raw.destroy();
			return;
		}
		const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
		if (!head.includes(`Sec-WebSocket-Accept: ${accept}\r\n`) && !head.endsWith(`Sec-WebSocket-Accept: ${accept}`))
			reject(new Error('wrong Sec-WebSocket-Accept'));
		if (/^connection: close/im.test(head))
			reject(new Error('Connection: close in a handshake'));
		this.head = head;
		this.#chunks = this.#chunks.subarray(end + 4);
		resolve();
	}

	#readFrames() {
		for (;;) {
			const bytes = this.#chunks;
			if (bytes.length < 2)
				return;
			const short = bytes[1] & 127;
			const size = short === 126 ? 4 : short === 127 ? 10 : 2;
			if (bytes.length < size)
				return;
			const length = short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short;
			if (bytes.length < size + length)
				return;
			this.#chunks = bytes.subarray(size + length);
			const payload = bytes.subarray(size, size + length);
			const op = NAMES[bytes[0] & 15];
			this.#frames.push({ op, fin: (bytes[0] & 128) !== 0, masked: (bytes[1] & 128) !== 0, payload, ...(op === 'close' && { code: payload.length ? payload.readUInt16BE(0) : undefined, reason: payload.subarray(2).toString() }) });
			this.#wake();
		}
	}

	#end() {
		this.#over = true;
		this.#wake();
	}

	#wake() {
		for (const wake of this.#waiting.splice(0))
			wake();
	}

	/** The next frame; undefined when the connection has ended. Pings of the server are passed over. */
	async next(ms = DEADLINE_MS) {
		const found = (async () => {
			for (;;) {
				const frame = this.#frames.shift();
				if (frame && frame.op !== 'ping')
					return frame;
				if (!frame && this.#over)
					return undefined;
				if (!frame)
					await new Promise(resolve => this.#waiting.push(resolve));
			}
		})();
		return within(ms, 'a frame', found);
	}

	/** The next text frame, as JSON. */
	async json(ms) {
		const frame = await this.next(ms);
		if (frame?.op !== 'text')
			throw new Error(`no text but ${JSON.stringify(frame)} ${frame?.payload}`);
		return JSON.parse(frame.payload);
	}

	/** Reads on until the close frame; then the connection ends, too. */
	async closed(ms) {
		for (;;) {
			const frame = await this.next(ms);
			if (!frame)
				return undefined;
			if (frame.op === 'close') {
				this.raw.end(Buffer.from([0x88, 0x80, 0, 0, 0, 0]));
				return { code: frame.code, reason: frame.reason };
			}
		}
	}

	send(value) {
		if (Buffer.isBuffer(value))
			this.raw.write(frame('binary', value));
		else
			this.raw.write(frame('text', typeof value === 'string' ? value : JSON.stringify(value)));
	}

	say(...frames) {
		this.raw.write(Buffer.concat(frames));
	}

	destroy() {
		this.raw.destroy();
	}
}
