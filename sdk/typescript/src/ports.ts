// SPDX-License-Identifier: Apache-2.0
// Services in a sandbox: preview URLs, direct access, waiting, tunnels.
import { Code } from './code.js';
import { defined, LINK, withExtras } from './core.js';
import { clientError, SandboxSecurityError, type SandboxError } from './errors.js';
import { runsInWorkerd, type Exchange } from './runtime.js';
import type { ExposedPort, ExposePortOptions, GetExposedPortsResponse, TunnelInfo, TunnelOptions, WaitForPortOptions } from './types.js';

const TICK_MS = 30_000;
const LOCAL = /^(localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\])(:\d+)?$/i;

interface WirePort {
	port: number;
	name: string | null;
	token: string;
	url: string;
	private: boolean;
}

/** @internal Refuses ports that cannot be exposed. */
export function checkPort(port: number): void {
	if (!Number.isInteger(port) || port < 1024 || port > 65535)
		throw new SandboxSecurityError(`Invalid port number: ${port}. Must be between 1024-65535`, 'INVALID_PORT');
	if (port === 3000)
		throw new SandboxSecurityError('Invalid port: 3000 is reserved', 'INVALID_PORT');
}

const isPort = (port: number): boolean => {
	try {
		checkPort(port);
		return true;
	} catch {
		return false;
	}
};

/** A signed URL and its end. */
export interface SignedUrl {
	url: string;
	expiresAt: string;
}

/** Ports of a sandbox. */
export class Ports extends Code {
	/** Gives a port a URL. With `hostname` the URL is below that host, without below the server's own. */
	async exposePort(port: number, options: ExposePortOptions = {}): Promise<ExposedPort> {
		checkPort(port);
		const { hostname, token, name } = options;
		if (hostname !== undefined && /\.workers\.dev(:\d+)?$/i.test(hostname))
			throw clientError('CUSTOM_DOMAIN_REQUIRED', 400, `Port exposure requires a custom domain; ${hostname} has no subdomains`, { port });
		if (token !== undefined && !/^[a-z0-9_]{1,16}$/.test(token))
			throw new SandboxSecurityError('Invalid token: 1 to 16 of a-z, 0-9 and _', 'INVALID_TOKEN');
		const row = await this[LINK].call<WirePort>('POST', '/v1/sandboxes/{id}/ports', { json: defined({ port, name, token, private: options.private }) });
		return this.#shown(row, hostname);
	}

	#shown(row: WirePort, hostname: string | undefined): ExposedPort {
		const url = hostname === undefined ? row.url : this.#urlBelow(hostname, row);
		return withExtras(defined({ url, port: row.port, name: row.name ?? undefined }), { exposedAt: url }) as ExposedPort;
	}

	#urlBelow(hostname: string, { port, token }: WirePort): string {
		const id = this[LINK].id;
		if (id !== id.toLowerCase())
			throw new SandboxSecurityError(`the id ${id} has capitals, which host names have not: use getSandbox(…, { normalizeId: true })`, 'INVALID_SANDBOX_ID');
		return `${LOCAL.test(hostname) ? 'http' : 'https'}://${port}-${id}-${token}.${hostname}/`;
	}

	/** Takes a port's URL away; its visitors are cut off. */
	async unexposePort(port: number): Promise<void> {
		checkPort(port);
		try {
			await this[LINK].call('DELETE', '/v1/sandboxes/{id}/ports/{port}', { path: { port } });
		} catch (error) {
			if (!['PORT_NOT_EXPOSED', 'SANDBOX_NOT_FOUND'].includes((error as SandboxError).code))
				throw error;
		}
	}

	async #rows(): Promise<WirePort[]> {
		try {
			return (await this[LINK].server.call<{ ports: WirePort[] }>('GET', '/v1/sandboxes/{id}/ports', { path: { id: this[LINK].id } })).ports;
		} catch (error) {
			if ((error as SandboxError).code === 'SANDBOX_NOT_FOUND')
				return [];
			throw error;
		}
	}

	/** One port that has a URL; null when it has none. */
	async getExposedPort(port: number, hostname?: string): Promise<ExposedPort | null> {
		try {
			return this.#shown(await this[LINK].call<WirePort>('GET', '/v1/sandboxes/{id}/ports/{port}', { path: { port } }), hostname);
		} catch (error) {
			if ((error as SandboxError).code !== 'PORT_NOT_EXPOSED')
				throw error;
			return null;
		}
	}

	/** The ports that have URLs, by number. */
	async getExposedPorts(hostname?: string): Promise<GetExposedPortsResponse> {
		const ports = (await this.#rows()).sort((a, b) => a.port - b.port).map(row => {
			const { url, port, name } = this.#shown(row, hostname);
			return withExtras({ url, port, status: 'active' as const }, { exposedAt: url, name });
		});
		return withExtras(ports, { ports, count: ports.length });
	}

	/** Whether a port has a URL. */
	async isPortExposed(port: number): Promise<boolean> {
		return isPort(port) && (await this.#rows()).some(row => row.port === port);
	}

	/** Whether a token is that of a port's URL. */
	async validatePortToken(port: number, token: string): Promise<boolean> {
		return isPort(port) && (await this.#rows()).some(row => row.port === port && row.token === token);
	}

	/** The host of a port's URL, without a scheme. The port is exposed if it is not yet. */
	async getHost(port: number): Promise<string> {
		return new URL((await this.exposePort(port)).url).host;
	}

	/** A URL that leads to an exposed port for a time. */
	async signPort(port: number, options: { expiresIn?: number } = {}): Promise<SignedUrl> {
		return this[LINK].call('POST', '/v1/sandboxes/{id}/ports/{port}/sign', { path: { port }, json: defined({ expiresIn: options.expiresIn }) });
	}

	/** Waits until a port answers. */
	async waitForPort(port: number, options: WaitForPortOptions & { signal?: AbortSignal } = {}): Promise<void> {
		const { mode = 'http', path, status, timeout, signal } = options;
		const [least, most] = status === undefined ? [undefined, undefined] : typeof status === 'number' ? [status, status] : [status.min, status.max];
		const deadline = timeout === undefined ? Infinity : Date.now() + timeout;
		for (;;) {
			const timeoutMs = Math.ceil(Math.max(1, Math.min(deadline - Date.now(), TICK_MS)));
			const { reached } = await this[LINK].call<{ reached: boolean }>('POST', '/v1/sandboxes/{id}/ports/wait', { json: defined({ port, mode, path, statusMin: least, statusMax: most, timeoutMs }), slow: true, signal });
			if (reached)
				return;
			if (Date.now() >= deadline)
				throw clientError('PROCESS_READY_TIMEOUT', 408, `port ${port}: not within ${timeout} ms`, { condition: `port ${port} answers`, timeout });
		}
	}

	/** A request to a port, exposed or not, any method. `url` is a path, or an address whose path counts. */
	async containerFetch(request: Request | string | URL, portOrInit?: number | RequestInit, port?: number): Promise<Response> {
		const target = typeof portOrInit === 'number' ? portOrInit : port ?? 3000;
		const init = typeof portOrInit === 'object' ? portOrInit : undefined;
		const base = new URL(request instanceof Request ? request.url : String(request), 'http://sandbox');
		const wanted = new Request(request instanceof Request ? request : base, init);
		if (wanted.headers.get('Upgrade')?.toLowerCase() === 'websocket')
			return this.wsConnect(wanted, target);
		return responseOf(await this.#pass(wanted, target, base));
	}

	#pass(request: Request, port: number, url: URL): Promise<Exchange> {
		const headers: Record<string, string> = {};
		request.headers.forEach((value, name) => {
			if (!HOP_BY_HOP.has(name))
				headers[name] = value;
		});
		return this[LINK].pass(request.method, '/v1/sandboxes/{id}/proxy/{port}/{path*}', {
			path: { port, path: url.pathname.slice(1) }, search: url.search, headers, slow: true, signal: request.signal,
			...(request.body ? { body: request.body as ReadableStream<Uint8Array> } : {}),
		});
	}

	/** In a Worker: passes a WebSocket upgrade on to a port and gives the 101 response. */
	async wsConnect(request: Request, port: number): Promise<Response> {
		checkPort(port);
		if (!runsInWorkerd)
			throw new TypeError('a Response cannot carry a WebSocket here: use connectPort(port, path)');
		const url = new URL(request.url);
		const headers = new Headers(request.headers);
		headers.set('Upgrade', 'websocket');
		return (await this.#pass(new Request(request, { headers }), port, url)).response!;
	}

	/** A WebSocket to a port. */
	async connectPort(port: number, path = '/'): Promise<WebSocket> {
		return this[LINK].server.socket('/v1/sandboxes/{id}/proxy/{port}/{path*}', { path: { id: this[LINK].id, port, path: path.replace(/^\//, '') } });
	}

	/** Public addresses by port: here, their preview URLs. */
	get tunnels(): Tunnels {
		return new Tunnels(this);
	}
}

/** @internal Headers that belong to one connection. */
export const HOP_BY_HOP: ReadonlySet<string> = new Set(['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'host', 'content-length', 'authorization', 'expect', 'sec-websocket-key', 'sec-websocket-version', 'sec-websocket-extensions']);

/** @internal A Response out of an exchange. */
export function responseOf(exchange: Exchange): Response {
	if (exchange.response)
		return exchange.response;
	const headers = exchange.headers();
	for (const name of ['connection', 'keep-alive', 'transfer-encoding'])
		headers.delete(name);
	const empty = [101, 204, 205, 304].includes(exchange.status);
	return new Response(empty ? null : exchange.stream(), { status: exchange.status, headers });
}

/** Tunnels by the names of `@cloudflare/sandbox`. */
export class Tunnels {
	readonly #ports: Ports;

	/** @internal */
	constructor(ports: Ports) {
		this.#ports = ports;
	}

	/** The address of a port; it is exposed if it is not yet. */
	async get(port: number, options: TunnelOptions = {}): Promise<TunnelInfo> {
		if (options.name !== undefined && !/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(options.name))
			throw new SandboxSecurityError('a tunnel\'s name is one label of a host name, in lower case', 'INVALID_TUNNEL_NAME');
		const { url } = await this.#ports.exposePort(port, options.name === undefined ? {} : { name: options.name });
		return { id: `tunnel-${port}`, port, url, hostname: new URL(url).hostname, createdAt: new Date().toISOString(), ...(options.name === undefined ? {} : { name: options.name }) } as TunnelInfo;
	}

	/** All addresses. */
	async list(): Promise<TunnelInfo[]> {
		return (await this.#ports.getExposedPorts()).map(({ url, port }) => ({ id: `tunnel-${port}`, port, url, hostname: new URL(url).hostname, createdAt: '' }) as TunnelInfo);
	}

	/** Takes an address away. */
	async destroy(portOrInfo: number | { port: number }): Promise<void> {
		await this.#ports.unexposePort(typeof portOrInfo === 'number' ? portOrInfo : portOrInfo.port);
	}
}
