// SPDX-License-Identifier: Apache-2.0
// Requests to a server: addresses, errors, what is tried again. GET and HEAD are; so are POSTs with a key, and requests whose connection was refused.
import { findServer, type Place, type ServerOptions } from './config.js';
import { clientError, errorFrom, type ErrorResponse, type SandboxError } from './errors.js';
import { exchange, openSocket, type Exchange } from './runtime.js';

const TRIES = 6; // waits of 50 ms, doubling: 1.6 s in all
const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 5_000;
const HEAD_MS = 120_000; // until the head of a response that nothing slow is behind

/** What a request has besides its method and path. */
export interface CallOptions {
	/** Values of {names} in the path. */
	path?: Record<string, string | number>;
	query?: Record<string, string | number | boolean | undefined>;
	/** A query as it is, with its question mark, instead. */
	search?: string;
	headers?: Record<string, string>;
	/** Sent as JSON. */
	json?: unknown;
	/** Sent as it is. */
	body?: string | Uint8Array | Blob | ReadableStream<Uint8Array> | undefined;
	accept?: string;
	signal?: AbortSignal | undefined;
	/** No deadline: the response comes when the work is done. */
	slow?: boolean;
	/** POST: the server does it once, however often it is sent. */
	keyed?: boolean;
}

const wait = (ms: number, signal?: AbortSignal): Promise<void> => new Promise((resolve, reject) => {
	const stop = (): void => { clearTimeout(timer); reject(aborted(signal)); };
	const timer = setTimeout(() => { signal?.removeEventListener('abort', stop); resolve(); }, ms);
	signal?.addEventListener('abort', stop, { once: true });
});

/** The error of an aborted operation. */
export function aborted(signal?: AbortSignal): Error {
	return Object.assign(new Error('Operation was aborted', { cause: signal?.reason }), { name: 'AbortError' });
}

/** Whether nothing of a request can have reached the server. */
function wasRefused(error: unknown): boolean {
	for (let at = error as { code?: string; cause?: unknown; message?: string; errors?: unknown[] } | undefined; at; at = at.cause as typeof at)
		if (/^(ECONNREFUSED|ConnectionRefused)$/.test(at.code ?? '') || /connection refused|unable to connect/i.test(at.message ?? '') || at.errors?.some(wasRefused))
			return true;
	return false;
}

const isSafe = (method: string, options: CallOptions): boolean => method === 'GET' || method === 'HEAD' || options.keyed === true;

/** A server: every request of the library passes here. */
export class Server {
	readonly url: string;
	readonly prefix: string;
	readonly #token: string | undefined;
	readonly #authorization: string | undefined;

	constructor(options?: ServerOptions) {
		const place: Place = findServer(options);
		this.url = place.url;
		this.prefix = place.prefix;
		this.#token = place.token;
		this.#authorization = place.token ? `Bearer ${place.token}` : undefined;
	}

	/** One JSON response. */
	async call<T>(method: string, template: string, options: CallOptions = {}): Promise<T> {
		const at = options.keyed ? { ...options, headers: { ...options.headers, 'Idempotency-Key': crypto.randomUUID() } } : options;
		const text = await this.#text(method, template, at);
		if (text === '')
			return undefined as T;
		try {
			return JSON.parse(text) as T;
		} catch (cause) {
			throw clientError('INVALID_JSON_RESPONSE', 502, `${method} ${template} was answered with something that is not JSON: is ${this.url} a Silt server?`, { text: text.slice(0, 200) }, undefined, cause);
		}
	}

	async #text(method: string, template: string, options: CallOptions): Promise<string> {
		for (let tries = 1; ; tries++) {
			const response = await this.open(method, template, options);
			try {
				return await response.text();
			} catch (error) {
				if (options.signal?.aborted)
					throw aborted(options.signal);
				if (tries >= TRIES || !isSafe(method, options))
					throw brokenOff(method, template, error);
			}
		}
	}

	/** A response whose body the caller reads. Statuses of errors are thrown. */
	async open(method: string, template: string, options: CallOptions = {}): Promise<Exchange> {
		const response = await this.#try(method, template, options);
		if (response.status >= 200 && response.status < 300 || response.status === 304)
			return response;
		throw await this.#errorOf(response, method, template);
	}

	/** The response as it is, whatever its status. */
	pass(method: string, template: string, options: CallOptions = {}): Promise<Exchange> {
		return this.#try(method, template, options);
	}

	/** The whole address of a path. */
	address(template: string, { path = {}, query = {}, search = '' }: Pick<CallOptions, 'path' | 'query' | 'search'> = {}): string {
		let where = template.replace(/\{(\w+)(\*?)\}/g, (_, name: string, rest: string) => rest ? String(path[name] ?? '') : encodeURIComponent(String(path[name])));
		let mark = where.includes('?') ? '&' : '?';
		for (const name in query)
			if (query[name] !== undefined) {
				where += `${mark}${name}=${encodeURIComponent(String(query[name]))}`;
				mark = '&';
			}
		return this.url + where + search;
	}

	/** A WebSocket to a path. */
	socket(template: string, options: Pick<CallOptions, 'path' | 'query'> = {}): Promise<WebSocket> {
		return openSocket(this.address(template, options), this.#token).catch(cause => {
			throw clientError('RPC_TRANSPORT_ERROR', 503, (cause as Error).message, { kind: 'upgrade_failed', originalMessage: (cause as Error).message }, undefined, cause);
		});
	}

	async #try(method: string, template: string, options: CallOptions): Promise<Exchange> {
		const headers: Record<string, string> = { ...options.headers };
		if (this.#authorization)
			headers['Authorization'] = this.#authorization;
		if (options.accept)
			headers['Accept'] = options.accept;
		let body = options.body;
		if (options.json !== undefined) {
			body = JSON.stringify(options.json);
			headers['Content-Type'] = 'application/json';
		}
		const url = this.address(template, options);
		const repeatable = !(body instanceof ReadableStream);
		const safe = isSafe(method, options);
		for (let tries = 1, pause = FIRST_WAIT_MS; ; tries++, pause *= 2) {
			if (options.signal?.aborted)
				throw aborted(options.signal);
			try {
				const response = await this.#once({ method, url, headers: { ...headers }, body, signal: options.signal }, options.slow);
				if (response.status !== 503 || !safe || tries >= TRIES)
					return response;
				const after = Number(response.header('Retry-After')) * 1000 || pause;
				response.cancel();
				await wait(Math.min(after, LONGEST_WAIT_MS), options.signal);
			} catch (error) {
				if (options.signal?.aborted)
					throw aborted(options.signal);
				const refused = wasRefused(error);
				if (tries >= TRIES || !repeatable || !(safe || refused) || (error as Error).name === 'TimeoutError')
					throw refused ? clientError('CONTAINER_UNAVAILABLE', 503, `nothing answers at ${this.url}`, { reason: 'container_unreachable' }, 'start the server, or set SILT_URL', error) : brokenOff(method, template, error);
				await wait(pause * (0.75 + Math.random() / 2), options.signal);
			}
		}
	}

	async #once(request: { method: string; url: string; headers: Record<string, string>; body: CallOptions['body']; signal: AbortSignal | undefined }, slow: boolean | undefined): Promise<Exchange> {
		const { body, ...rest } = request;
		if (slow)
			return exchange({ ...rest, ...(body === undefined ? {} : { body }) });
		const late = new AbortController();
		const timer = setTimeout(() => late.abort(new DOMException(`no response within ${HEAD_MS} ms`, 'TimeoutError')), HEAD_MS);
		try {
			return await exchange({ ...rest, ...(body === undefined ? {} : { body }), signal: request.signal ? AbortSignal.any([request.signal, late.signal]) : late.signal });
		} finally {
			clearTimeout(timer);
		}
	}

	async #errorOf(response: Exchange, method: string, template: string): Promise<SandboxError> {
		const text = await response.text().catch(() => '');
		let body: Partial<ErrorResponse> & { error?: unknown } = {};
		try {
			body = JSON.parse(text);
		} catch {} // not ours
		return errorFrom({ httpStatus: response.status, ...body, message: body.message ?? (typeof body.error === 'string' ? body.error : `${method} ${template} was answered with ${response.status}${text ? `: ${text.slice(0, 200)}` : ''}`) });
	}
}

/** The error of a connection that broke: whether the server has done the work is not known. */
export function brokenOff(method: string, template: string, cause: unknown): SandboxError {
	const message = cause instanceof Error ? cause.message : String(cause);
	return clientError('RPC_TRANSPORT_ERROR', 503, `the connection broke during ${method} ${template}: ${message}`, { kind: 'peer_closed', originalMessage: message }, 'find out whether it was done before you try again', cause);
}
