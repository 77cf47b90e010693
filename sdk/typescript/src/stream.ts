// SPDX-License-Identifier: Apache-2.0
// Server-sent events: read, made, and resumed after a connection broke. A stream is a ReadableStream of bytes whose method `events()` gives what is in it.
import { aborted, brokenOff } from './transport.js';
import { errorFrom } from './errors.js';

const RESUMES = 8; // connections that break one after the other without a single event
const RESUME_WAIT_MS = 20;

/** A ReadableStream of server-sent events; `events()` gives them parsed. */
export type EventStream<T> = ReadableStream<Uint8Array> & { events(): AsyncGenerator<T, void, undefined> };

/** A parsed event together with the text it came as. */
interface Frame<T> {
	value: T;
	text: string;
}

/** Reads the frames of a stream of bytes. A frame that the end cut off is given out only if `flush`. */
async function* frames<T>(stream: ReadableStream<Uint8Array>, signal?: AbortSignal, flush = false): AsyncGenerator<Frame<T>> {
	const reader = stream.getReader();
	const stop = (): void => void reader.cancel().catch(() => {});
	signal?.addEventListener('abort', stop, { once: true });
	const decoder = new TextDecoder();
	let text = '';
	let from = 0;
	try {
		for (;;) {
			const { done, value } = await reader.read();
			if (signal?.aborted)
				throw aborted(signal);
			text += done ? decoder.decode() + (flush ? '\n\n' : '') : decoder.decode(value, { stream: true });
			if (text.includes('\r'))
				text = text.replace(/\r\n/g, '\n');
			for (let end; (end = text.indexOf('\n\n', from)) >= 0; from = end + 2) {
				const frame = text.slice(from, end + 2);
				const value = parse<T>(frame);
				if (value !== undefined)
					yield { value, text: frame };
			}
			text = text.slice(from);
			from = 0;
			if (done)
				return;
		}
	} catch (error) {
		throw signal?.aborted ? aborted(signal) : error;
	} finally {
		signal?.removeEventListener('abort', stop);
		stop();
	}
}

function parse<T>(frame: string): T | undefined {
	let data: string | undefined;
	for (const line of frame.split('\n'))
		if (line.startsWith('data:'))
			data = (data === undefined ? '' : `${data}\n`) + line.slice(line[5] === ' ' ? 6 : 5);
	if (!data || data === '[DONE]')
		return undefined;
	try {
		return JSON.parse(data) as T;
	} catch {
		return undefined;
	}
}

/**
 * The events of a stream, parsed; names of events, `[DONE]` and what is no JSON are left out. Leaving the loop cancels the stream.
 * @throws Error('Operation was aborted') when the signal aborts
 */
export async function* parseSSEStream<T>(stream: ReadableStream<Uint8Array>, signal?: AbortSignal): AsyncGenerator<T, void, undefined> {
	if (signal?.aborted)
		throw aborted(signal);
	for await (const { value } of frames<T>(stream, signal, true))
		yield value;
}

/** The events of a response. */
export async function* responseToAsyncIterable<T>(response: Response, signal?: AbortSignal): AsyncGenerator<T, void, undefined> {
	if (!response.ok)
		throw new Error(`Response not ok: ${response.status} ${response.statusText}`);
	if (!response.body)
		throw new Error('No response body');
	yield* parseSSEStream<T>(response.body as ReadableStream<Uint8Array>, signal);
}

/** Makes a stream of server-sent events; it ends with `[DONE]`. */
export function asyncIterableToSSEStream<T>(events: AsyncIterable<T>, options: { signal?: AbortSignal; serialize?: (event: T) => string } = {}): ReadableStream<Uint8Array> {
	const serialize = options.serialize ?? ((event: T) => JSON.stringify(event));
	return bytesOf(events, event => `data: ${serialize(event)}\n\n`, { signal: options.signal, tail: 'data: [DONE]\n\n' });
}

function bytesOf<T>(events: AsyncIterable<T>, write: (event: T) => string, { signal, tail }: { signal?: AbortSignal | undefined; tail?: string } = {}): ReadableStream<Uint8Array> {
	const iterator = events[Symbol.asyncIterator]();
	const encoder = new TextEncoder();
	let over = false;
	return new ReadableStream<Uint8Array>({
		start(controller) {
			signal?.addEventListener('abort', () => {
				over = true;
				void iterator.return?.();
				try {
					controller.error(aborted(signal));
				} catch {} // it has ended
			}, { once: true });
		},
		async pull(controller) {
			try {
				if (signal?.aborted)
					throw aborted(signal);
				const { done, value } = await iterator.next();
				if (over)
					return;
				if (!done)
					return controller.enqueue(encoder.encode(write(value)));
				if (tail)
					controller.enqueue(encoder.encode(tail));
				controller.close();
			} catch (error) {
				if (!over)
					controller.error(error);
			}
		},
		async cancel() {
			over = true;
			await iterator.return?.();
		},
	}, { highWaterMark: 0 });
}

/** A stream of server-sent events out of events with a `type`. */
export function eventStream<T extends { type: string }>(events: AsyncGenerator<T, void, undefined>, signal?: AbortSignal): EventStream<T> {
	const stream = bytesOf(events, event => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`, { signal }) as EventStream<T>;
	Object.defineProperty(stream, 'events', { value: () => parseSSEStream<T>(stream) });
	return stream;
}

/** A place in a stream. */
export type Cursor = number | string;

/** How a stream begins, and goes on after its connection broke. */
export interface Resumable<T> {
	/** What is read, for messages. */
	what: string;
	/** Opens it: from its beginning, or after the event that had the cursor. */
	open(cursor: Cursor | undefined): Promise<ReadableStream<Uint8Array>>;
	/** The place behind an event, where it has one. */
	cursor(event: T): Cursor | undefined;
	/** Whether nothing comes after an event. */
	isLast(event: T): boolean;
	/** Whether it can be opened again before the first cursor has come. */
	fromStart: boolean;
	/** Whether it ends without a last event. */
	mayEnd?: boolean;
	signal?: AbortSignal | undefined;
}

/** The events of a stream, each once, however often the connection breaks. */
export async function* resume<T>(source: Resumable<T>, first?: ReadableStream<Uint8Array>): AsyncGenerator<T, void, undefined> {
	let cursor: Cursor | undefined;
	let stream = first;
	for (let broken = 0; ;) {
		let reason: unknown = new Error('the stream ended before its last event');
		try {
			stream ??= await source.open(cursor);
			for await (const { value } of frames<T>(stream, source.signal)) {
				const place = source.cursor(value);
				if (place !== undefined && place !== cursor) {
					cursor = place;
					broken = 0;
				}
				yield value;
				if (source.isLast(value))
					return;
			}
			if (source.mayEnd)
				return;
		} catch (error) {
			if (source.signal?.aborted)
				throw aborted(source.signal);
			const status = (error as { status?: number }).status;
			if (status !== undefined && status !== 503 && status !== 502)
				throw error;
			reason = error;
		}
		stream = undefined;
		if (++broken > RESUMES || cursor === undefined && !source.fromStart)
			throw brokenOff('reading', source.what, reason);
		if (broken > 1)
			await new Promise(resolve => setTimeout(resolve, RESUME_WAIT_MS * 2 ** broken));
	}
}

/** Throws what an `error` event of a stream reports. */
export function throwEvent(event: { error?: unknown; message?: string; code?: string; httpStatus?: number; context?: any }): never {
	throw errorFrom({ ...event, message: typeof event.error === 'string' ? event.error : event.message ?? 'the stream reported an error' });
}
