// SPDX-License-Identifier: Apache-2.0
// The real client of capnweb on …/rpc, and what only a test wants to see of it.

import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { BUILD } from './daemon.mjs';
import { until, within } from './wait.mjs';

const DEADLINE_MS = 60_000;
const directory = execFileSync(path.join(import.meta.dirname, '../rpc/packages'), { env: { ...process.env, BUILD }, encoding: 'utf8' }).trim();
const { RpcSession, RpcTarget } = await import(path.join(directory, 'dist/index.js'));
export { RpcTarget };

class Transport {
	#queue = [];
	#waiting;
	#error;

	constructor(socket) {
		this.socket = socket;
		this.received = 0;
		socket.addEventListener('message', event => {
			this.received += event.data.length;
			this.#give(event.data);
		});
		this.closed = new Promise(resolve => socket.addEventListener('close', event => {
			this.#fail(new Error(`Peer closed WebSocket: ${event.code} ${event.reason}`));
			resolve({ code: event.code, reason: event.reason });
		}));
	}

	#give(text) {
		const waiting = this.#waiting;
		this.#waiting = undefined;
		if (waiting)
			waiting.resolve(text);
		else
			this.#queue.push(text);
	}

	#fail(error) {
		this.#error ??= error;
		this.#waiting?.reject(this.#error);
		this.#waiting = undefined;
	}

	async send(text) {
		this.socket.send(text);
	}

	async receive() {
		if (this.#queue.length > 0)
			return this.#queue.shift();
		if (this.#error)
			throw this.#error;
		this.#waiting = Promise.withResolvers();
		return this.#waiting.promise;
	}

	abort(reason) {
		this.#fail(reason instanceof Error ? reason : new Error(String(reason)));
		this.socket.close(3000, String(reason?.message ?? reason).slice(0, 100));
	}
}

/** A connection to a sandbox that is closed when the test t ends. main: what the server may call. */
export async function connect(t, box, main) {
	const { daemon } = box;
	const socket = new WebSocket(`ws://${daemon.address}/sandboxes/${box.id}/rpc`, { headers: { Authorization: `Bearer ${daemon.token}` } });
	await within(DEADLINE_MS, 'handshake of rpc', new Promise((resolve, reject) => {
		socket.addEventListener('open', resolve);
		socket.addEventListener('error', event => reject(new Error(`handshake of rpc: ${event.message ?? ''}`)));
	}));
	const transport = new Transport(socket);
	const session = new RpcSession(transport, main);
	t.after(() => socket.close());
	return { api: session.getRemoteMain(), session, socket, transport };
}

/** At rest the client has its main object and that of the server, and nothing else. */
export async function atRest(link) {
	await until('the session is at rest', () => {
		const { imports, exports } = link.session.getStats();
		return imports === 1 && exports === 1;
	}, DEADLINE_MS);
}

/** All of a stream, as a Buffer. */
export async function bytesOf(stream) {
	const parts = [];
	for await (const part of stream)
		parts.push(part);
	return Buffer.concat(parts);
}

/** The events of a stream, as they come. */
export async function* eventsOf(stream) {
	let text = '';
	const decoder = new TextDecoder();
	for await (const part of stream) {
		text += decoder.decode(part, { stream: true });
		for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
			const lines = text.slice(0, end).split('\n');
			text = text.slice(end + 2);
			const data = lines.find(line => line.startsWith('data: '));
			if (data)
				yield { event: lines.find(line => line.startsWith('event: '))?.slice(7), ...JSON.parse(data.slice(6)) };
		}
	}
}

/** The error that a promise is rejected with. */
export async function failure(promise) {
	let value;
	try {
		value = await within(DEADLINE_MS, 'a rejection', promise);
	} catch (error) {
		return error;
	}
	throw new Error(`not rejected but ${JSON.stringify(value)?.slice(0, 200)}`);
}
