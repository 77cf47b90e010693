// SPDX-License-Identifier: Apache-2.0
// Terminals: one for each session, shared by all who look at it.
import { DEFAULT_SESSION, defined, LINK } from './core.js';
import { Ports } from './ports.js';
import { runsInWorkerd } from './runtime.js';
import type { InSession, PtyOptions } from './types.js';

/** How a terminal ended. */
export interface TerminalExit {
	code: number;
	signal?: string | number;
}

/** A connection to a terminal. Iterating over it gives its output as bytes. */
export class Terminal implements AsyncIterable<Uint8Array> {
	readonly #socket: WebSocket;
	readonly #pieces: Uint8Array[] = [];
	#wake: (() => void) | undefined;
	#closed = false;
	#readies!: () => void;
	#exits!: (exit: TerminalExit) => void;
	#fails!: (error: Error) => void;
	/** Resolves when earlier output has been replayed. */
	readonly ready: Promise<void> = new Promise(resolve => { this.#readies = resolve; });
	/** Resolves when its shell has ended; rejects when the connection breaks before. */
	readonly exited: Promise<TerminalExit> = new Promise((resolve, reject) => { this.#exits = resolve; this.#fails = reject; });
	/** Called with each piece of output. */
	onData: ((bytes: Uint8Array) => void) | undefined;

	/** @internal */
	constructor(socket: WebSocket) {
		this.#socket = socket;
		this.exited.catch(() => {}); // for those who ask
		socket.addEventListener('message', event => this.#onMessage(event.data));
		socket.addEventListener('close', () => this.#onClose());
		socket.addEventListener('error', () => this.#onClose());
	}

	#onMessage(data: unknown): void {
		if (typeof data === 'string') {
			const message = JSON.parse(data) as { type: string; code?: number; signal?: string; message?: string };
			if (message.type === 'ready')
				this.#readies();
			else if (message.type === 'exit')
				this.#exits({ code: message.code ?? 0, ...(message.signal === undefined ? {} : { signal: message.signal }) });
			else if (message.type === 'error')
				this.#fails(new Error(message.message));
			return;
		}
		const bytes = new Uint8Array(data as ArrayBuffer);
		this.onData?.(bytes);
		this.#pieces.push(bytes);
		this.#wake?.();
	}

	#onClose(): void {
		this.#closed = true;
		this.#fails(new Error('the connection to the terminal was closed'));
		this.#wake?.();
	}

	/** Types. */
	write(data: string | Uint8Array): void {
		this.#socket.send(typeof data === 'string' ? new TextEncoder().encode(data) : data as Uint8Array<ArrayBuffer>);
	}

	/** Tells the programs in it how large it is. */
	resize(cols: number, rows: number): void {
		this.#socket.send(JSON.stringify({ type: 'resize', cols, rows }));
	}

	/** Leaves; the shell runs on. */
	close(): void {
		this.#socket.close(1000);
	}

	/** Its output; each piece is given to one reader only. */
	async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
		for (;;) {
			const piece = this.#pieces.shift();
			if (piece)
				yield piece;
			else if (this.#closed)
				return;
			else
				await new Promise<void>(resolve => { this.#wake = resolve; });
		}
	}
}

/** Terminals of a sandbox. */
export class Terminals extends Ports {
	/** Opens the terminal of the session; the first to open it makes it. */
	async openTerminal(options: PtyOptions & InSession = {}): Promise<Terminal> {
		return new Terminal(await this[LINK].server.socket('/v1/sandboxes/{id}/terminal', { path: { id: this[LINK].id }, query: this.#query(options) }));
	}

	/** Ends the terminal of the session; whether there was one. */
	async endTerminal(options: InSession = {}): Promise<boolean> {
		return (await this[LINK].call<{ ended: boolean }>('DELETE', '/v1/sandboxes/{id}/terminal', { query: { sessionId: this.sessionOf(options) ?? DEFAULT_SESSION } })).ended;
	}

	#query({ cols, rows, shell, ...session }: PtyOptions & InSession): Record<string, string | number | boolean | undefined> {
		return { create: this[LINK].creates || undefined, sessionId: this.sessionOf(session) ?? DEFAULT_SESSION, cols, rows, shell };
	}

	/** In a Worker: answers an upgrade request with the terminal of the session. */
	async terminal(request: Request, options: PtyOptions & InSession = {}): Promise<Response> {
		if (request.headers.get('Upgrade')?.toLowerCase() !== 'websocket')
			throw new Error('terminal() requires a WebSocket upgrade request');
		if (!runsInWorkerd)
			throw new TypeError('a Response cannot carry a WebSocket here: use openTerminal()');
		const headers = { Upgrade: 'websocket' };
		return (await this[LINK].pass('GET', '/v1/sandboxes/{id}/terminal', { query: defined(this.#query(options)), headers, slow: true })).response!;
	}
}

/** Answers an upgrade request with the terminal of a session of any sandbox. */
export async function proxyTerminal(sandbox: { fetch(request: Request): Promise<Response> } | Terminals, sessionId: string, request: Request, options: PtyOptions = {}): Promise<Response> {
	if (!sessionId)
		throw new Error('sessionId is required for terminal access');
	if (request.headers.get('Upgrade')?.toLowerCase() !== 'websocket')
		throw new Error('terminal() requires a WebSocket upgrade request');
	const terminal = (sandbox as Terminals).terminal;
	if (typeof terminal !== 'function')
		throw new TypeError('proxyTerminal() takes what getSandbox() gave');
	return terminal.call(sandbox, request, { ...options, sessionId });
}
