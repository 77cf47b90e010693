// SPDX-License-Identifier: Apache-2.0
// The library in a Worker. `export { Sandbox }` is a Durable Object without a container; its SDK methods are requests to the server.
import { DurableObject, WorkerEntrypoint, env as variables } from 'cloudflare:workers';
import { LINK } from './core.js';
import { getSandbox, Sandbox as Handle, useNamespaces, type Namespace } from './sandbox.js';
import { useVariables } from './runtime.js';
import type { SandboxOptions } from './types.js';

export * from './main.js';

useVariables(variables as Record<string, unknown>);

const FIELDS = ['envVars', 'sleepAfter', 'labels'] as const; // of a class; also enableInternet, allowedHosts, deniedHosts
const NAME_KEY = 'silt:name';

interface State {
	id: { name?: string };
	storage: { get(key: string): Promise<unknown>; put(key: string, value: unknown): Promise<void> };
}

/** What a class sets by its fields. */
interface ClassFields {
	envVars?: Record<string, string>;
	sleepAfter?: string | number;
	labels?: Record<string, string>;
	enableInternet?: boolean;
	allowedHosts?: string[];
	deniedHosts?: string[];
}

function optionsOf(fields: ClassFields): SandboxOptions {
	const options: SandboxOptions = {};
	for (const name of FIELDS)
		if (fields[name] !== undefined)
			options[name] = fields[name] as never;
	if (fields.deniedHosts?.length)
		throw new TypeError('deniedHosts has no counterpart: list what is allowed in allowedHosts');
	if (fields.allowedHosts?.length)
		options.network = { mode: 'allow', allow: fields.allowedHosts };
	else if (fields.enableInternet === false)
		options.network = { mode: 'none' };
	return options;
}

/** A Durable Object whose methods are those of a sandbox with its name. */
class DurableSandbox extends DurableObject {
	#handle: Handle | undefined;
	#name: string | undefined;

	async #named(): Promise<Handle> {
		const { id, storage } = (this as unknown as { ctx: State }).ctx;
		this.#name ??= id.name ?? await storage.get(NAME_KEY) as string | undefined;
		if (this.#name === undefined)
			throw new Error('this object does not know the name of its sandbox: reach it by getSandbox(namespace, id)');
		return this.#handle ??= getSandbox(this.#name, optionsOf(this as unknown as ClassFields));
	}

	/** @internal Told by getSandbox, where the runtime does not say. */
	async setSandboxName(name: string): Promise<ClassFields> {
		const { storage } = (this as unknown as { ctx: State }).ctx;
		if (this.#name === undefined)
			await storage.put(NAME_KEY, this.#name = name);
		const { envVars, sleepAfter, labels, enableInternet, allowedHosts, deniedHosts } = this as unknown as ClassFields;
		return { envVars, sleepAfter, labels, enableInternet, allowedHosts, deniedHosts } as ClassFields;
	}

	/** @internal */
	async callSandbox(method: string, words: unknown[]): Promise<unknown> {
		const handle = await this.#named() as unknown as Record<string, (...words: unknown[]) => unknown>;
		return handle[method]!(...words);
	}

	override async fetch(request: Request): Promise<Response> {
		return (await this.#named()).fetch(request);
	}
}

/** Names of a sandbox's methods, of all nouns. */
function methods(): string[] {
	const names = new Set<string>();
	for (let at = Handle.prototype as object; at && at !== Object.prototype; at = Object.getPrototypeOf(at))
		for (const name of Object.getOwnPropertyNames(at))
			if (name !== 'constructor' && typeof Object.getOwnPropertyDescriptor(at, name)?.value === 'function')
				names.add(name);
	return [...names];
}

const METHODS = methods();
for (const name of METHODS)
	if (!(name in DurableSandbox.prototype))
		Object.defineProperty(DurableSandbox.prototype, name, { value(this: DurableSandbox, ...words: unknown[]) { return this.callSandbox(name, words); }, writable: true, configurable: true });
for (const name of ['create', 'connect', 'list', 'destroy', 'images', 'snapshots', 'events', 'version'] as const)
	Object.defineProperty(DurableSandbox, name, { value: (Handle[name] as (...words: unknown[]) => unknown).bind(Handle), writable: true, configurable: true });

const told = new Map<string, Promise<void>>();

/** Methods of a sandbox run here; others in the object. */
function through(namespace: Namespace<any>, id: string, sandbox: Handle): any {
	const stub = namespace.get(namespace.idFromName(id) as never) as Record<string, (...words: unknown[]) => unknown>;
	const key = `${(sandbox[LINK].id)} ${String(namespace.idFromName(id))}`;
	const introduced = (): Promise<void> => {
		let saying = told.get(key);
		if (!saying) {
			saying = (async () => {
				const fields = await stub['setSandboxName']!(id) as ClassFields;
				sandbox[LINK].options = { ...optionsOf(fields), ...sandbox[LINK].options };
			})();
			told.set(key, saying);
			saying.catch(() => told.delete(key));
		}
		return saying;
	};
	return new Proxy(sandbox, {
		get(target, name) {
			if (name === 'then')
				return undefined;
			const value = Reflect.get(target, name, target);
			if (typeof name === 'symbol' || name in target && typeof value !== 'function')
				return value;
			if (name in target)
				return async (...words: unknown[]) => {
					await introduced();
					return value.apply(target, words);
				};
			return async (...words: unknown[]) => {
				await introduced();
				return stub[name]!(...words);
			};
		},
	});
}

useNamespaces(through as never);
/** The sandbox: a Durable Object when exported, and the type of what getSandbox gives. */
export const Sandbox = DurableSandbox as unknown as typeof Handle;
export type Sandbox<Env = unknown> = Handle<Env>;

/** Containers of Workers send their requests through it; there are none here. */
export class ContainerProxy extends WorkerEntrypoint {
	/** Refuses. */
	override async fetch(_request?: Request): Promise<Response> {
		return Response.json({ code: 'NOT_IMPLEMENTED', error: 'outbound handlers belong to Workers with a container; set the network of the sandbox instead (setNetwork)' }, { status: 501 });
	}
}
