// SPDX-License-Identifier: Apache-2.0
// Sandboxes: found, created, paused, stopped, destroyed.
import { Backups } from './backups.js';
import { DEFAULT_SESSION, defined, either, LINK, Link, settings } from './core.js';
import { SandboxSecurityError, type SandboxError } from './errors.js';
import { Images } from './images.js';
import { ExecutionSession } from './session.js';
import { serverEvents, Snapshots, type SandboxEvent } from './snapshots.js';
import { Server } from './transport.js';
import type { ServerOptions } from './config.js';
import type { ForkOptions, HistoryEntry, ImageInfo, NetworkInfo, NetworkMode, SandboxInfo, SandboxOptions, SessionDeleteResult, SessionLike, SessionOptions, SnapshotInfo, UndoInfo } from './types.js';

const RESERVED: ReadonlySet<string> = new Set(['www', 'api', 'admin', 'root', 'system', 'cloudflare', 'workers']);
const PAGE = 200;

/** Numbers of a sandbox. */
export interface Metrics {
	memoryBytes: number;
	memoryPeakBytes: number;
	memoryLimitBytes: number;
	cpuMs: number;
	cpuLimit: number | null;
	pids: number;
	pidsLimit: number;
	diskBytes: number;
	diskLimitBytes: number;
	timestamp: string;
}

/** @internal Throws for an id that no sandbox can have. */
export function checkId(id: string): void {
	if (typeof id !== 'string' || id.length < 1 || id.length > 63)
		throw new SandboxSecurityError('Sandbox ID must be 1-63 characters long', 'INVALID_SANDBOX_ID_LENGTH');
	if (id.startsWith('-') || id.endsWith('-'))
		throw new SandboxSecurityError('Sandbox ID cannot start or end with hyphens', 'INVALID_SANDBOX_ID_HYPHENS');
	if (RESERVED.has(id.toLowerCase()))
		throw new SandboxSecurityError(`Reserved sandbox ID: ${id}`, 'RESERVED_SANDBOX_ID');
}

/** An isolated computer. Made by getSandbox, Sandbox.create and Sandbox.connect. */
export class Sandbox<_Env = unknown> extends Backups {
	/** For types of Workers: a Durable Object's namespace may be one of these. */
	declare readonly __DURABLE_OBJECT_BRAND: never;
	/** Its id on the server. */
	declare readonly id: string;
	#made = false;

	/** @internal Use getSandbox, Sandbox.create or Sandbox.connect. */
	constructor(link: Link, options?: SandboxOptions);
	constructor(context: object, env: _Env);
	constructor(link: any, options: any = {}) {
		if (!(link instanceof Link))
			throw new TypeError('use getSandbox(id), Sandbox.create() or Sandbox.connect(id)');
		super(link, options.enableDefaultSession === false ? null : DEFAULT_SESSION);
		Object.defineProperty(this, 'id', { value: link.id, enumerable: true });
	}

	/** Makes a sandbox; without an id it gets one. `await using` destroys it at the end. */
	static async create(options: SandboxOptions & { id?: string } = {}): Promise<Sandbox> {
		const server = new Server(options);
		const wanted = options.id === undefined ? undefined : idOf(server, options.id, options);
		const { id } = await server.call<SandboxInfo>('POST', '/v1/sandboxes', { json: defined({ ...settings(options), id: wanted }), slow: true, keyed: true });
		const sandbox = new Sandbox(new Link(server, id, {}, false), options);
		sandbox.#made = true;
		return sandbox;
	}

	/** A sandbox that exists. Its calls never create one. */
	static async connect(id: string, options: SandboxOptions = {}): Promise<Sandbox> {
		const server = new Server(options);
		const sandbox = new Sandbox(new Link(server, idOf(server, id, options)), options);
		await sandbox.getInfo();
		return sandbox;
	}

	/** All sandboxes, by id; those with certain labels. */
	static async *list(options: ServerOptions & { labels?: Record<string, string> } = {}): AsyncGenerator<SandboxInfo, void, undefined> {
		const server = new Server(options);
		const labels = Object.entries(options.labels ?? {}).map(([name, value]) => `label=${encodeURIComponent(`${name}=${value}`)}`).join('&');
		for (let after: string | undefined; ;) {
			const page = await server.call<{ sandboxes: SandboxInfo[]; next?: string }>('GET', `/v1/sandboxes${labels ? `?${labels}` : ''}`, { query: { limit: PAGE, after } });
			for (const info of page.sandboxes)
				if (info.id.startsWith(server.prefix))
					yield info;
			if (!page.next)
				return;
			after = page.next;
		}
	}

	/** Destroys a sandbox by its id; whether there was one. */
	static async destroy(id: string, options: ServerOptions = {}): Promise<boolean> {
		const server = new Server(options);
		return destroy(new Link(server, idOf(server, id, options)));
	}

	/** What happens on a server: created, started, paused, and so on; goes on over broken connections. */
	static events(options: Parameters<typeof serverEvents>[0] = {}): AsyncGenerator<SandboxEvent, void, undefined> {
		return serverEvents(options);
	}

	/** The snapshots of a server. */
	static snapshots(options: ServerOptions = {}): Snapshots {
		return new Snapshots(options);
	}

	/** The version of a server. */
	static version(options: ServerOptions = {}): Promise<{ version: string; api: string }> {
		return new Server(options).call('GET', '/v1/version');
	}

	/** The images of a server. */
	static images(options: ServerOptions = {}): Images {
		return new Images(options);
	}

	// ---- lifecycle ----

	/** What the server knows of it: state, limits, usage. */
	getInfo(): Promise<SandboxInfo> {
		return this[LINK].call('GET', '/v1/sandboxes/{id}');
	}

	/** Its state in the words of `@cloudflare/sandbox`, without waking it. */
	async getState(): Promise<{ status: 'running' | 'stopped' | 'stopped_with_code'; lastChange: number; exitCode?: number }> {
		try {
			const info = await this[LINK].server.call<SandboxInfo>('GET', '/v1/sandboxes/{id}', { path: { id: this.id } });
			const exitCode = info.state === 'stopped' ? info.lastDeath?.exitCode : undefined;
			return { status: info.state !== 'stopped' ? 'running' : exitCode === undefined ? 'stopped' : 'stopped_with_code', lastChange: Date.parse(info.stateSince ?? info.createdAt), ...(exitCode === undefined ? {} : { exitCode }) };
		} catch (error) {
			if ((error as SandboxError).code !== 'SANDBOX_NOT_FOUND')
				throw error;
			return { status: 'stopped', lastChange: Date.now() };
		}
	}

	/** What it uses, and may use. */
	async getMetrics(): Promise<Metrics> {
		const { usage, limits } = await this.getInfo();
		const MiB = 1024 * 1024;
		return {
			memoryBytes: usage.memoryBytes, memoryPeakBytes: usage.memoryPeakBytes, memoryLimitBytes: limits.memoryMiB * MiB, cpuMs: usage.cpuMs, cpuLimit: limits.cpu,
			pids: usage.pids, pidsLimit: limits.pids, diskBytes: usage.diskBytes, diskLimitBytes: limits.diskMiB * MiB, timestamp: new Date().toISOString(),
		};
	}

	async #change(verb: 'stop' | 'start' | 'restart' | 'pause' | 'resume'): Promise<SandboxInfo> {
		return this[LINK].call('POST', `/v1/sandboxes/{id}/${verb}`, { slow: true });
	}

	/** Ends its processes; files stay, and the next call starts it again. */
	async stop(_signal?: string | number): Promise<void> {
		await this.#change('stop');
	}

	/** Starts it, if it does not run. */
	async start(): Promise<void> {
		await this.#change('start');
	}

	/** Ends its processes and starts it anew. */
	async restart(): Promise<void> {
		await this.#change('restart');
	}

	/** Freezes its processes; the next call resumes them. */
	async pause(): Promise<void> {
		await this.#change('pause');
	}

	/** Lets its processes run on. */
	async resume(): Promise<void> {
		await this.#change('resume');
	}

	/** Removes it with all its files. */
	async destroy(): Promise<void> {
		await destroy(this[LINK]);
	}

	/** The same as destroy. */
	kill(): Promise<void> {
		return this.destroy();
	}

	/** Destroys what Sandbox.create made, and leaves others alone. */
	async [Symbol.asyncDispose](): Promise<void> {
		if (this.#made)
			await this.destroy();
	}

	/** Changes settings: labels, env, limits, network, sleepAfter, keepAlive and so on. */
	async update(changes: SandboxOptions): Promise<SandboxInfo> {
		return this[LINK].call('PATCH', '/v1/sandboxes/{id}', { json: settings(changes) });
	}

	/** Idle time until it is paused. */
	async setSleepAfter(sleepAfter: string | number): Promise<void> {
		await this.update({ sleepAfter });
	}

	/** Whether it is never paused. */
	async setKeepAlive(keepAlive: boolean): Promise<void> {
		await this.update({ keepAlive });
	}

	/** All its labels. */
	async setLabels(labels: Record<string, string>): Promise<void> {
		await this.update({ labels });
	}

	/** Kept for older code; there are no such timeouts here. */
	async setContainerTimeouts(_timeouts: SandboxOptions['containerTimeouts']): Promise<void> {}

	/** Kept for older code; there is one transport. */
	async setTransport(_transport: SandboxOptions['transport']): Promise<void> {}

	/** Several settings at once. */
	async configure(changes: SandboxOptions): Promise<void> {
		await this.update(changes);
	}

	/** Counts as use: its idle time begins anew. */
	async renewActivityTimeout(): Promise<void> {
		await this.#change('resume');
	}

	/** There are no placements here. */
	async getContainerPlacementId(): Promise<null> {
		return null;
	}

	/** Sets variables, undefined unsets: of the sandbox, kept, and of its default session at once. */
	override async setEnvVars(variables: Record<string, string | undefined>): Promise<void> {
		const env = Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, value ?? null]));
		if (Object.keys(env).length === 0)
			return;
		await super.setEnvVars(variables);
		await this[LINK].call('PATCH', '/v1/sandboxes/{id}', { json: { env } });
	}

	// ---- network ----

	/** Mode, rules, counters, and what was refused. */
	getNetwork(): Promise<NetworkInfo> {
		return this[LINK].call('GET', '/v1/sandboxes/{id}/network');
	}

	/** What it reaches from now on; connections that are no longer allowed are cut. */
	setNetwork(mode: NetworkMode): Promise<NetworkInfo> {
		return this[LINK].call('PUT', '/v1/sandboxes/{id}/network', { json: mode });
	}

	/** Only these hosts. */
	async setAllowedHosts(hosts: string[]): Promise<void> {
		await this.setNetwork({ mode: 'allow', allow: hosts });
	}

	/** One more host. */
	async allowHost(host: string): Promise<void> {
		const { mode, allow = [] } = await this.getNetwork();
		if (mode !== 'public')
			await this.setNetwork({ mode: 'allow', allow: [...new Set([...(mode === 'allow' ? allow : []), host])] });
	}

	/** One host less. */
	async removeAllowedHost(host: string): Promise<void> {
		const { mode, allow = [] } = await this.getNetwork();
		if (mode === 'allow')
			await this.setNetwork({ mode, allow: allow.filter(one => one !== host) });
	}

	// ---- snapshots ----

	/** Keeps its files as they are now. */
	createSnapshot(options: { name?: string; ttl?: string | number } = {}): Promise<SnapshotInfo> {
		return this[LINK].call('POST', '/v1/sandboxes/{id}/snapshots', { json: defined(options), slow: true, keyed: true });
	}

	/** The snapshots of it. */
	async listSnapshots(): Promise<SnapshotInfo[]> {
		return (await this[LINK].call<{ snapshots: SnapshotInfo[] }>('GET', '/v1/sandboxes/{id}/snapshots')).snapshots;
	}

	/** Gives it the files of one of its snapshots, and ends its processes. */
	rollback(snapshot: string): Promise<SandboxInfo> {
		return this[LINK].call('POST', '/v1/sandboxes/{id}/rollback', { json: { snapshot }, slow: true });
	}

	/** Its last commands since it keeps snapshots before them (`autoSnapshot: 'command'`), the newest last. */
	async history(): Promise<HistoryEntry[]> {
		return (await this[LINK].call<{ history: HistoryEntry[] }>('GET', '/v1/sandboxes/{id}/history')).history;
	}

	/** Gives it the files from before its last commands, and ends its processes. */
	undo(steps = 1): Promise<UndoInfo> {
		return this[LINK].call('POST', '/v1/sandboxes/{id}/undo', { json: { steps }, slow: true, keyed: true });
	}

	/** Makes copies of it, with its files as they are now. */
	async fork(options: ForkOptions = {}): Promise<Sandbox[]> {
		const { sandboxes } = await this[LINK].call<{ sandboxes: SandboxInfo[] }>('POST', '/v1/sandboxes/{id}/fork', { json: options, slow: true });
		return sandboxes.map(({ id }) => new Sandbox(new Link(this[LINK].server, id)));
	}

	// ---- images ----

	/** Makes an image of what it has written. */
	seal(name: string, config?: object): Promise<ImageInfo> {
		return this[LINK].call('POST', '/v1/sandboxes/{id}/image', { json: defined({ name, config }), slow: true });
	}

	// ---- sessions ----

	/** Makes a shell of its own. Its id is `id`, or `name`, or made up. */
	async createSession(options: SessionOptions = {}): Promise<ExecutionSession> {
		const env = either(options, 'env', 'envVars');
		const { id } = await this[LINK].call<{ id: string }>('POST', '/v1/sandboxes/{id}/sessions', {
			json: defined({ id: options.id ?? options.name ?? `session-${Date.now()}-${Math.random().toString(36).slice(2, 8)}`, cwd: options.cwd, env: env && Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined)), commandTimeoutMs: options.commandTimeoutMs }),
		});
		return new ExecutionSession(this[LINK], id);
	}

	/** A session by its id. It need not exist: its first command makes it. */
	async getSession(id: SessionLike): Promise<ExecutionSession> {
		return new ExecutionSession(this[LINK], this.sessionOf({ session: id }) ?? DEFAULT_SESSION);
	}

	/** The names of its sessions. */
	async listSessions(): Promise<string[]> {
		return (await this[LINK].call<{ sessions: Array<{ id: string }> }>('GET', '/v1/sandboxes/{id}/sessions')).sessions.map(session => session.id);
	}

	/** Ends a session and all that it started. */
	async deleteSession(session: SessionLike): Promise<SessionDeleteResult> {
		const sessionId = this.sessionOf({ session })!;
		if (sessionId === DEFAULT_SESSION)
			throw new Error(`Cannot delete default session '${sessionId}'. Use sandbox.destroy() to end the sandbox.`);
		await this[LINK].call('DELETE', '/v1/sandboxes/{id}/sessions/{session}', { path: { session: sessionId } });
		return { success: true, sessionId, timestamp: new Date().toISOString() };
	}

	/** Passes a request on: to a port when its path begins with `/proxy/{port}`. */
	async fetch(request: Request): Promise<Response> {
		const url = new URL(request.url);
		const match = /^\/proxy\/(\d+)(\/.*)?$/.exec(url.pathname);
		if (match) {
			url.pathname = match[2] ?? '/';
			return this.containerFetch(new Request(url, request), Number(match[1]));
		}
		return this.containerFetch(request);
	}
}

async function destroy(link: Link): Promise<boolean> {
	try {
		return (await link.server.call<{ destroyed: boolean }>('DELETE', '/v1/sandboxes/{id}', { path: { id: link.id }, slow: true })).destroyed;
	} catch (error) {
		if ((error as SandboxError).code !== 'SANDBOX_NOT_FOUND')
			throw error;
		return false;
	}
}

/** @internal The id on the server. */
export function idOf(server: Server, id: string, options: SandboxOptions): string {
	checkId(id);
	return server.prefix + (options.normalizeId ? id.toLowerCase() : id);
}

/** A Durable Object's namespace, as far as it is used here. */
export interface Namespace<T> {
	idFromName(name: string): unknown;
	get(id: never, ...more: any[]): T | unknown;
}

/** @internal What a Worker's entry point adds: a proxy over a stub. */
export let throughNamespace: ((namespace: Namespace<any>, id: string, sandbox: Sandbox) => any) | undefined;

/** @internal */
export function useNamespaces(through: typeof throughNamespace): void {
	throughNamespace = through;
}

/**
 * A sandbox by its id; the first call creates it. In a Worker the namespace of a class that extends Sandbox may come first:
 * methods of that class run in its object, all others here.
 */
export function getSandbox(id: string, options?: SandboxOptions): Sandbox;
export function getSandbox<T extends Sandbox<any> = Sandbox>(namespace: object, id: string, options?: SandboxOptions): T;
export function getSandbox(first: string | object, second?: string | SandboxOptions, third?: SandboxOptions): Sandbox {
	if (typeof first === 'string')
		return handle(first, second as SandboxOptions | undefined);
	const sandbox = handle(second as string, third);
	return throughNamespace ? throughNamespace(first as Namespace<any>, second as string, sandbox) : sandbox;
}

function handle(id: string, options: SandboxOptions = {}): Sandbox {
	checkId(id);
	if (id !== id.toLowerCase() && !options.normalizeId && !warned.has(id)) {
		warned.add(id);
		console.warn(`sandbox id ${id} has capitals; preview URLs below a host name of yours need normalizeId`);
	}
	const server = new Server(options);
	return new Sandbox(new Link(server, idOf(server, id, options), options, true), options);
}

const warned = new Set<string>();

