// SPDX-License-Identifier: Apache-2.0
// One open watch: reads its events in the background, waits for some of them.

import assert from 'node:assert/strict';
import { events } from './sse.mjs';
import { until } from './wait.mjs';

export class Watcher {
	#response;
	#stream;
	all = []; // every event after `watching`
	over = false;

	/** Resolves when the watch is established. options: native (the /v1 route), paused (reads no further until resume), deadline (ms). */
	static async open(t, box, body, { native = false, paused = false, deadline } = {}) {
		const watcher = new Watcher();
		const path = native ? `/v1/sandboxes/${box.id}/watch` : `/sandboxes/${box.id}/api/watch`;
		watcher.#response = await box.daemon.client.open('POST', path, body, { deadline });
		assert.equal(watcher.#response.statusCode, 200);
		t?.after(() => watcher.leave());
		watcher.#stream = events(watcher.#response, 300_000);
		const { value } = await watcher.#stream.next();
		assert.equal(value.event, 'watching', JSON.stringify(value));
		watcher.first = value.data;
		if (!paused)
			watcher.resume();
		return watcher;
	}

	resume() {
		this.#read().catch(() => {}).finally(() => { this.over = true; });
	}

	async #read() {
		for await (const { data } of this.#stream)
			this.all.push(data);
	}

	/** File events so far. */
	get seen() {
		return this.all.filter(e => e.type === 'event');
	}

	/** Waits for these, as "create /workspace/f"; directories end in a slash. */
	async sees(...wanted) {
		const names = () => new Set(this.seen.map(e => `${e.eventType} ${e.path}${e.isDirectory ? '/' : ''}`));
		await until('events', () => {
			const now = names();
			return wanted.every(w => now.has(w));
		}).catch(() => assert.fail(`missing ${wanted.filter(w => !names().has(w)).slice(0, 10).join(', ')}; got ${JSON.stringify(this.all.slice(-20))}`));
	}

	/** The last event, once the stream has ended. */
	async end() {
		await until('end of the stream', () => this.over);
		return this.all.at(-1);
	}

	leave() {
		this.#response.destroy();
	}
}
