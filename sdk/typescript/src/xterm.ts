// SPDX-License-Identifier: Apache-2.0
// An addon of xterm.js that shows the terminal of a sandbox, and connects again when the connection breaks.

export type ConnectionState = 'disconnected' | 'connecting' | 'connected';

/** Which terminal. */
export interface ConnectionTarget {
	sandboxId: string;
	sessionId?: string | undefined;
}

/** How the addon finds its server. */
export interface SandboxAddonOptions {
	getWebSocketUrl(target: ConnectionTarget & { origin: string }): string;
	/** Whether a broken connection is opened again. Default: true. */
	reconnect?: boolean;
	onStateChange?(state: ConnectionState, error?: Error): void;
}

interface Disposable { dispose(): void }

/** As much of a terminal of xterm.js as is used here. */
export interface XtermLike {
	cols: number;
	rows: number;
	write(data: Uint8Array): void;
	clear?(): void;
	focus?(): void;
	onData(listener: (data: string) => void): Disposable;
	onResize(listener: (size: { cols: number; rows: number }) => void): Disposable;
}

const TRIES = 10;
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 32_000;

/** Connects a terminal of a page with that of a sandbox. */
export class SandboxAddon {
	readonly #options: SandboxAddonOptions;
	#terminal: XtermLike | undefined;
	#socket: WebSocket | undefined;
	#target: ConnectionTarget | undefined;
	#state: ConnectionState = 'disconnected';
	#tries = 0;
	#timer: ReturnType<typeof setTimeout> | undefined;
	#ends: Disposable[] = [];

	constructor(options: SandboxAddonOptions) {
		this.#options = options;
	}

	get state(): ConnectionState { return this.#state; }
	get sandboxId(): string | undefined { return this.#target?.sandboxId; }
	get sessionId(): string | undefined { return this.#target?.sessionId; }

	/** Called by xterm.js. */
	activate(terminal: XtermLike): void {
		this.#terminal = terminal;
		this.#ends.push(terminal.onData(data => this.#send(new TextEncoder().encode(data))), terminal.onResize(size => this.#resize(size)));
	}

	/** Shows a terminal. */
	connect(target: ConnectionTarget): void {
		if (!this.#terminal)
			throw new Error('the addon is not loaded: call terminal.loadAddon(addon) first');
		this.#leave();
		this.#target = { ...target };
		this.#tries = 0;
		this.#open();
	}

	/** Leaves; the shell runs on. */
	disconnect(): void {
		this.#leave();
		this.#enter('disconnected');
	}

	/** Called by xterm.js. */
	dispose(): void {
		this.disconnect();
		for (const end of this.#ends.splice(0))
			end.dispose();
		this.#terminal = undefined;
	}

	#enter(state: ConnectionState, error?: Error): void {
		if (this.#state === state && !error)
			return;
		this.#state = state;
		this.#options.onStateChange?.(state, error);
	}

	#leave(): void {
		clearTimeout(this.#timer);
		const socket = this.#socket;
		this.#socket = undefined;
		socket?.close();
	}

	#open(): void {
		this.#enter('connecting');
		const origin = globalThis.location.origin.replace(/^http/, 'ws');
		const socket = new WebSocket(this.#options.getWebSocketUrl({ ...this.#target!, origin }));
		socket.binaryType = 'arraybuffer';
		this.#socket = socket;
		socket.addEventListener('message', event => {
			if (this.#socket === socket)
				this.#onMessage(event.data);
		});
		socket.addEventListener('close', () => {
			if (this.#socket === socket)
				this.#onClosed();
		});
	}

	#onMessage(data: unknown): void {
		if (typeof data !== 'string')
			return this.#terminal?.write(new Uint8Array(data as ArrayBuffer));
		let message: { type?: string; message?: string };
		try {
			message = JSON.parse(data);
		} catch {
			return; // not ours
		}
		if (message.type === 'ready') {
			this.#tries = 0;
			this.#enter('connected');
			this.#resize(this.#terminal!);
		} else if (message.type === 'error')
			this.#options.onStateChange?.(this.#state, new Error(message.message));
		else if (message.type === 'exit')
			this.disconnect();
	}

	#onClosed(): void {
		this.#socket = undefined;
		if (this.#options.reconnect === false || this.#tries >= TRIES)
			return this.#enter('disconnected', this.#options.reconnect === false ? undefined : new Error(`the terminal could not be reached ${TRIES} times`));
		this.#enter('connecting');
		const pause = Math.min(FIRST_WAIT_MS * 2 ** this.#tries++, LONGEST_WAIT_MS);
		this.#timer = setTimeout(() => {
			this.#terminal?.clear?.();
			this.#open();
		}, pause * (0.75 + Math.random() / 2));
	}

	#send(data: Uint8Array | string): void {
		if (this.#socket?.readyState === WebSocket.OPEN)
			this.#socket.send(data as string);
	}

	#resize({ cols, rows }: { cols: number; rows: number }): void {
		this.#send(JSON.stringify({ type: 'resize', cols, rows }));
	}
}
