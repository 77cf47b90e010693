// SPDX-License-Identifier: Apache-2.0
// What every noun builds on: a sandbox on a server, the session that calls run in, options in one spelling.
import { clientError, SandboxError, ValidationFailedError } from './errors.js';
import type { Exchange } from './runtime.js';
import type { CallOptions, Server } from './transport.js';
import type { InSession, SandboxOptions } from './types.js';

/** Name of the session of calls that name none. */
export const DEFAULT_SESSION = 'default';

/** @internal The connection of a handle to its sandbox. A symbol: it does not show in JSON. */
export const LINK: unique symbol = Symbol('link');
/** @internal The session of a handle. */
export const SESSION: unique symbol = Symbol('session');

/** @internal One sandbox on one server. */
export class Link {
	#creating: Promise<unknown> | undefined;
	/** Options it is created with. */
	options: SandboxOptions;

	/** @param creates whether calls create the sandbox when it does not exist */
	constructor(readonly server: Server, readonly id: string, options: SandboxOptions = {}, readonly creates = false) {
		this.options = options;
	}

	#at(options: CallOptions = {}): CallOptions {
		return { ...options, path: { ...options.path, id: this.id } };
	}

	/** One JSON response of this sandbox. */
	async call<T>(method: string, template: string, options?: CallOptions): Promise<T> {
		return this.#creatingWhenGone(options, at => this.server.call<T>(method, template, at));
	}

	/** A response of this sandbox whose body the caller reads. */
	async open(method: string, template: string, options?: CallOptions): Promise<Exchange> {
		return this.#creatingWhenGone(options, at => this.server.open(method, template, at));
	}

	/** A response whatever its status. */
	pass(method: string, template: string, options?: CallOptions): Promise<Exchange> {
		return this.server.pass(method, template, this.#at(options));
	}

	async #creatingWhenGone<R>(options: CallOptions | undefined, send: (options: CallOptions) => Promise<R>): Promise<R> {
		if (this.creates && (options?.body instanceof ReadableStream || this.#setsAnything()))
			await this.create(); // a stream cannot be sent twice
		try {
			return await send(this.#at(options));
		} catch (error) {
			if (!this.creates || (error as SandboxError).code !== 'SANDBOX_NOT_FOUND' || options?.body instanceof ReadableStream)
				throw error;
			this.#creating = undefined;
			await this.create();
			return send(this.#at(options));
		}
	}

	#setsAnything(): boolean {
		return Object.keys(settings(this.options)).length > 0;
	}

	/** Creates the sandbox unless it exists; asked once. */
	create(): Promise<unknown> {
		return this.#creating ??= this.#create().catch(error => { this.#creating = undefined; throw error; });
	}

	async #create(): Promise<void> {
		await this.server.call('PUT', '/v1/sandboxes/{id}', { path: { id: this.id }, json: settings(this.options), slow: true });
	}
}

/** @internal The fields of a request that creates or changes a sandbox. */
export function settings(options: SandboxOptions): Record<string, unknown> {
	const { sleepAfter, keepAlive, labels, image, type, limits, network, stopAfter, ttl, keepProcesses, removeAfterStop, ephemeral, from, autoSnapshot } = options;
	const env = either(options, 'env', 'envVars');
	return defined({ sleepAfter, keepAlive, labels, image, type, limits, network, stopAfter, ttl, keepProcesses, removeAfterStop, ephemeral, from, autoSnapshot, env });
}

/** @internal Without the fields that are undefined. */
export function defined<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
	return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}

/** @internal The value of two names for one option. */
export function either<T extends object, A extends keyof T, B extends keyof T>(options: T, name: A, other: B): T[A] | T[B] {
	const [one, two] = [options[name], options[other]];
	if (one !== undefined && two !== undefined && JSON.stringify(one) !== JSON.stringify(two))
		throw new TypeError(`${String(name)} and ${String(other)} are both given, and differ`);
	return one ?? two;
}

const sessionId = (value: unknown): string | null | undefined => {
	const id = value !== null && typeof value === 'object' ? (value as { id?: unknown }).id : value;
	if (id === undefined || id === null)
		return id;
	if (typeof id !== 'string')
		throw new TypeError('a session is a string, or an object with an id');
	if (id.trim() === '')
		throw new Error('a session id cannot be empty');
	return id;
};

/** Base of sandboxes and of their sessions. */
export class Core {
	/** @internal */
	declare readonly [LINK]: Link;
	/** @internal */
	declare readonly [SESSION]: string | null;

	/** @internal */
	constructor(link: Link, session: string | null) {
		Object.defineProperty(this, LINK, { value: link });
		Object.defineProperty(this, SESSION, { value: session });
	}

	/** @internal The session of a call: what it names, or this handle's. null: none. */
	protected sessionOf(options?: InSession | string): string | null {
		if (typeof options === 'string')
			return this.#known(sessionId(options)!);
		const [one, two] = [sessionId(options?.session), sessionId(options?.sessionId)];
		if (one !== undefined && two !== undefined && one !== two)
			throw new TypeError('session and sessionId are both given, and differ');
		const id = one !== undefined ? one : two;
		return id === undefined ? this[SESSION] : id === null ? null : this.#known(id);
	}

	#known(id: string): string {
		return id === `sandbox-${this[LINK].id}` ? DEFAULT_SESSION : id;
	}
}

/** @internal Fields of a result that do not show in JSON, spreads and comparisons. */
export function withExtras<T extends object, E extends object>(result: T, extras: E): T & E {
	const descriptors = Object.getOwnPropertyDescriptors(extras) as PropertyDescriptorMap;
	for (const name in descriptors)
		descriptors[name]!.enumerable = false;
	return Object.defineProperties(result, descriptors) as T & E;
}

/** @internal Refuses an argument before anything is sent. */
export function refuse(message: string, field: string): never {
	throw clientError('VALIDATION_FAILED', 400, message, { validationErrors: [{ field, message }] }) as ValidationFailedError;
}
