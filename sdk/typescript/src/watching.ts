// SPDX-License-Identifier: Apache-2.0
// Changes of files: as they happen, or since the last time.
import { defined, LINK } from './core.js';
import { Files } from './files.js';
import { eventStream, parseSSEStream, throwEvent, type EventStream } from './stream.js';
import type { CheckChangesOptions, CheckChangesResult, FileWatchSSEEvent, WatchOptions } from './types.js';

/** Watching the files of a sandbox. */
export class Watching extends Files {
	/**
	 * Watches a directory or file; resolves once the watch is there. The events are server-sent events. When the connection breaks
	 * it is opened again, and `overflow` (reason `reconnect`) says that changes may have been missed.
	 */
	async watch(path: string, options: WatchOptions = {}): Promise<EventStream<FileWatchSSEEvent>> {
		const where = await this.#watched(path, options);
		const json = defined({ path: where, recursive: options.recursive, include: options.include, exclude: options.exclude, events: options.events });
		const open = async (): Promise<AsyncGenerator<FileWatchSSEEvent, void, undefined>> =>
			parseSSEStream<FileWatchSSEEvent>((await this[LINK].open('POST', '/v1/sandboxes/{id}/watch', { json, accept: 'text/event-stream', slow: true, signal: options.signal })).stream(), options.signal);
		const events = await open();
		const first = await events.next();
		if (first.done)
			throw new Error(`the watch of ${path} ended at once`);
		if (first.value.type === 'error')
			throwEvent(first.value);
		return eventStream(follow(first.value, events, open, options.signal), options.signal);
	}

	/** Whether files have changed since `since`, the `version` of an earlier call. */
	async checkChanges(path: string, options: CheckChangesOptions = {}): Promise<CheckChangesResult> {
		const json = defined({ path: await this.#watched(path, options), recursive: options.recursive, include: options.include, exclude: options.exclude, events: options.events, since: options.since });
		const result = await this[LINK].call<object>('POST', '/v1/sandboxes/{id}/watch/check', { json });
		return { success: true, ...result, timestamp: new Date().toISOString() } as CheckChangesResult;
	}

	async #watched(path: string, options: WatchOptions): Promise<string> {
		return path.startsWith('/') ? this.absolute(path, options) : `/workspace/${path}`;
	}
}

async function* follow(first: FileWatchSSEEvent, events: AsyncGenerator<FileWatchSSEEvent, void, undefined>, open: () => Promise<AsyncGenerator<FileWatchSSEEvent, void, undefined>>, signal?: AbortSignal): AsyncGenerator<FileWatchSSEEvent, void, undefined> {
	yield first;
	for (let broken = 0; ; broken++) {
		try {
			for await (const event of events) {
				if (event.type === 'watching')
					continue;
				broken = 0;
				yield event;
				if (event.type === 'stopped' || event.type === 'error')
					return;
			}
		} catch (error) {
			if (signal?.aborted || broken > 8)
				throw error;
		}
		if (broken > 8)
			throw new Error('the watch was cut off again and again');
		await new Promise(resolve => setTimeout(resolve, 20 * 2 ** broken));
		events = await open();
		yield { type: 'overflow', reason: 'reconnect', timestamp: new Date().toISOString() };
	}
}
