// SPDX-License-Identifier: Apache-2.0
// A viewer of a sandbox's terminal.

import { until } from './wait.mjs';
import { Socket } from './ws.mjs';

export class Terminal {
	shown = ''; // all output, as Latin-1: a character is a byte
	keep = 8_000_000; // bytes of it that are kept
	texts = []; // JSON messages
	end = undefined; // {code, reason} of the close

	/** query: sessionId, cols, rows, shell */
	static async open(t, box, query = {}, options = {}) {
		const terminal = new Terminal();
		const words = new URLSearchParams({ sessionId: 'default', ...query });
		terminal.socket = await Socket.open(box.daemon, `/sandboxes/${box.id}/ws/pty?${words}`, options);
		t?.after(() => terminal.socket.destroy());
		terminal.done = terminal.#read().catch(() => {});
		return terminal;
	}

	async #read() {
		for (;;) {
			const frame = await this.socket.next(2 ** 31 - 1);
			if (!frame)
				return;
			if (frame.op === 'binary') {
				this.first ??= frame;
				this.shown = (this.shown + frame.payload.toString('latin1')).slice(-this.keep);
				this.beforeReady ||= !this.texts.some(m => m.type === 'ready');
			} else if (frame.op === 'text') {
				this.texts.push(JSON.parse(frame.payload));
			} else if (frame.op === 'close') {
				this.end = { code: frame.code, reason: frame.reason };
				this.socket.raw.end();
				return;
			}
		}
	}

	/** Without the marks that bash puts around what is typed. */
	get text() {
		return this.shown.replace(/\x1b\[\?2004[hl]\r?/g, '');
	}

	type(text) {
		this.socket.send(Buffer.from(text));
	}

	tell(message) {
		this.socket.send(message);
	}

	ready() {
		return until('ready', () => this.texts.some(m => m.type === 'ready'), 90_000);
	}

	/** Waits until the output matches. */
	async sees(pattern) {
		try {
			return await until(`${pattern}`, () => pattern.exec(this.text), 90_000);
		} catch (error) {
			throw new Error(`${error.message}; shown: ${JSON.stringify(this.shown.slice(-2000))} ${JSON.stringify(this.texts)}`, { cause: error });
		}
	}

	/** Waits for the close. */
	async closed() {
		return until('close', () => this.end, 90_000);
	}

	/** A message of this type. */
	async hears(type) {
		return until(type, () => this.texts.find(m => m.type === type), 90_000);
	}
}
