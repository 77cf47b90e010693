// SPDX-License-Identifier: Apache-2.0
// One HTTP exchange by node:http, which takes less than half the time of Node's fetch.
import type { Exchange, Outgoing } from './runtime.js';

const WINDOW = 512 * 1024; // bytes of a response that wait for their reader

interface Incoming {
	statusCode: number;
	headers: Record<string, string | string[] | undefined>;
	rawHeaders: string[];
	complete: boolean;
	on(event: string, listener: (value: any) => void): Incoming;
	pause(): void;
	resume(): void;
	destroy(error?: Error): void;
}

type Builtin = (name: string) => any;

/** Makes the exchange; `builtin` gives modules of Node. */
export function nodeExchange(builtin: Builtin): (request: Outgoing) => Promise<Exchange> {
	const senders = new Map<string, { request: (...words: any[]) => any; agent: unknown }>();
	const senderOf = (protocol: string): { request: (...words: any[]) => any; agent: unknown } => {
		let sender = senders.get(protocol);
		if (!sender) {
			const module = builtin(protocol === 'https:' ? 'node:https' : 'node:http');
			sender = { request: module.request, agent: new module.Agent({ keepAlive: true, scheduling: 'lifo', noDelay: true }) };
			senders.set(protocol, sender);
		}
		return sender;
	};
	const addresses = new Map<string, { protocol: string; host: string; port: string }>();

	return request => new Promise((resolve, reject) => {
		const slash = request.url.indexOf('/', 8);
		const origin = request.url.slice(0, slash);
		let address = addresses.get(origin);
		if (!address) {
			const url = new URL(origin);
			addresses.set(origin, address = { protocol: url.protocol, host: url.hostname.replace(/^\[|\]$/g, ''), port: url.port });
		}
		const { request: open, agent } = senderOf(address.protocol);
		const body = request.body;
		const headers: Record<string, string | number> = request.headers;
		if (typeof body === 'string')
			headers['Content-Length'] = builtin('node:buffer').Buffer.byteLength(body);
		else if (body instanceof Uint8Array)
			headers['Content-Length'] = body.byteLength;
		else if (body instanceof Blob)
			headers['Content-Length'] = body.size;
		else if (!body && request.method !== 'GET' && request.method !== 'HEAD')
			headers['Content-Length'] = 0;
		const outgoing = open({ agent, host: address.host, port: address.port, method: request.method, path: request.url.slice(slash), headers, ...(request.signal ? { signal: request.signal } : {}) });
		outgoing.on('response', (incoming: Incoming) => resolve(wrap(incoming, builtin)));
		outgoing.on('error', (error: Error) => reject(request.signal?.aborted ? request.signal.reason : error));
		if (body === undefined || typeof body === 'string' || body instanceof Uint8Array)
			outgoing.end(body);
		else
			send(outgoing, body instanceof Blob ? body.stream() : body).catch(error => outgoing.destroy(error));
	});
}

/** Writes a stream as fast as it is taken. */
async function send(outgoing: any, body: ReadableStream<Uint8Array>): Promise<void> {
	const reader = body.getReader();
	const closed = new Promise<void>(resolve => outgoing.once('close', resolve));
	try {
		for (;;) {
			const { done, value } = await reader.read();
			if (done)
				break;
			if (!outgoing.write(value))
				await Promise.race([new Promise(resolve => outgoing.once('drain', resolve)), closed]);
			if (outgoing.destroyed)
				break; // the response says why, or the error
		}
		outgoing.end();
	} finally {
		reader.cancel().catch(() => {});
	}
}

function wrap(incoming: Incoming, builtin: Builtin): Exchange {
	let failed: Error | undefined;
	incoming.on('error', error => { failed ??= error; }); // also when nobody reads any more
	const all = (): Promise<Uint8Array[]> => new Promise((resolve, reject) => {
		const pieces: Uint8Array[] = [];
		incoming.on('data', piece => pieces.push(piece));
		incoming.on('end', () => resolve(pieces));
		incoming.on('error', reject);
		incoming.on('close', () => incoming.complete || reject(failed ?? new Error('the connection was closed within a response')));
	});
	const { Buffer } = builtin('node:buffer');
	return {
		status: incoming.statusCode,
		header: name => {
			const value = incoming.headers[name.toLowerCase()];
			return value === undefined ? null : Array.isArray(value) ? value.join(', ') : value;
		},
		headers: () => {
			const headers = new Headers();
			for (let i = 0; i < incoming.rawHeaders.length; i += 2)
				headers.append(incoming.rawHeaders[i]!, incoming.rawHeaders[i + 1]!);
			return headers;
		},
		text: async () => {
			const pieces = await all();
			return pieces.length === 1 ? (pieces[0] as any).toString() : Buffer.concat(pieces).toString();
		},
		bytes: async () => {
			const pieces = await all();
			return pieces.length === 1 ? new Uint8Array(pieces[0]!.buffer, pieces[0]!.byteOffset, pieces[0]!.byteLength) : new Uint8Array(Buffer.concat(pieces));
		},
		stream: () => new ReadableStream<Uint8Array>({
			start(controller) {
				let over = false;
				const end = (act: () => void): void => {
					if (!over) {
						over = true;
						act();
					}
				};
				incoming.on('data', (piece: Uint8Array) => {
					if (over)
						return;
					controller.enqueue(new Uint8Array(piece.buffer, piece.byteOffset, piece.byteLength));
					if ((controller.desiredSize ?? 0) <= 0)
						incoming.pause();
				});
				incoming.on('end', () => end(() => controller.close()));
				incoming.on('error', error => end(() => controller.error(error)));
				incoming.on('close', () => end(() => controller.error(failed ?? new Error('the connection was closed within a response'))));
			},
			pull() { incoming.resume(); },
			cancel() { incoming.destroy(); },
		}, { highWaterMark: WINDOW, size: piece => piece?.byteLength ?? 1 }),
		cancel: () => incoming.destroy(),
	};
}
