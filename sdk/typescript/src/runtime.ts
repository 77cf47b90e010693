// SPDX-License-Identifier: Apache-2.0
// What differs between Node, Bun, Deno, workerd and browsers: one HTTP exchange, WebSockets, variables, small files.
import { webExchange } from './exchange_web.js';
import { nodeExchange } from './exchange_node.js';

/** A request, ready to be sent. */
export interface Outgoing {
	method: string;
	url: string;
	headers: Record<string, string>;
	body?: string | Uint8Array | Blob | ReadableStream<Uint8Array>;
	signal?: AbortSignal | undefined;
}

/** A response whose body is still to be read. */
export interface Exchange {
	status: number;
	header(name: string): string | null;
	headers(): Headers;
	text(): Promise<string>;
	bytes(): Promise<Uint8Array>;
	stream(): ReadableStream<Uint8Array>;
	/** Gives the rest of the body up. */
	cancel(): void;
	/** The response in workerd, which may carry a WebSocket. */
	response?: Response;
}

interface ProcessLike {
	env?: Record<string, string | undefined>;
	versions?: Record<string, string | undefined>;
	getBuiltinModule?(name: string): any;
}

const processLike = (globalThis as { process?: ProcessLike }).process;
const agentName = (globalThis as { navigator?: { userAgent?: string } }).navigator?.userAgent ?? '';
const isWorkerd = agentName === 'Cloudflare-Workers';
const isBun = Boolean(processLike?.versions?.['bun']);
const isDeno = 'Deno' in globalThis;

/** Node itself, not something that resembles it. */
export const isNode = Boolean(processLike?.versions?.['node']) && !isWorkerd && !isBun && !isDeno;
/** A page: fetch does not stream bodies over HTTP/1.1, and WebSockets carry no headers. */
export const isBrowser = typeof (globalThis as { document?: unknown }).document === 'object' || 'WorkerGlobalScope' in globalThis && !isWorkerd && !isDeno;
export const runsInWorkerd = isWorkerd;

/** Sends a request and gives its response, as soon as the head has come. */
export const exchange: (request: Outgoing) => Promise<Exchange> = isNode && processLike?.getBuiltinModule ? nodeExchange(name => processLike.getBuiltinModule!(name)) : webExchange;

let workerVariables: Record<string, unknown> | undefined;

/** @internal The variables of a Worker; its entry point calls this. */
export function useVariables(variables: Record<string, unknown>): void {
	workerVariables = variables;
}

/** A variable of the environment. */
export function variable(name: string): string | undefined {
	try {
		const value = workerVariables?.[name] ?? processLike?.env?.[name];
		return typeof value === 'string' && value !== '' ? value : undefined;
	} catch {
		return undefined; // Deno without --allow-env
	}
}

/** The text of a small file, where there are files and it is readable. */
export function fileText(path: string): string | undefined {
	if (isWorkerd || isBrowser)
		return undefined;
	try {
		return processLike?.getBuiltinModule?.('node:fs').readFileSync(path, 'utf8').trim() || undefined;
	} catch {
		return undefined;
	}
}

/** Opens a WebSocket with a token. */
export async function openSocket(url: string, token: string | undefined): Promise<WebSocket> {
	if (isWorkerd)
		return workerSocket(url, token);
	const address = url.replace(/^http/, 'ws');
	const Plain = WebSocket as unknown as new (url: string, options?: unknown) => WebSocket;
	const socket = !token ? new Plain(address) : isBrowser ? new Plain(address, ['silt', `silt.bearer.${token}`]) : new Plain(address, { headers: { Authorization: `Bearer ${token}` } });
	socket.binaryType = 'arraybuffer';
	await new Promise<void>((resolve, reject) => {
		const failed = (): void => reject(new Error(`the WebSocket to ${new URL(url).pathname} was refused`));
		socket.addEventListener('open', () => resolve(), { once: true });
		socket.addEventListener('error', failed, { once: true });
		socket.addEventListener('close', failed, { once: true });
	});
	return socket;
}

async function workerSocket(url: string, token: string | undefined): Promise<WebSocket> {
	const response = await fetch(url, { headers: { Upgrade: 'websocket', ...(token ? { Authorization: `Bearer ${token}` } : {}) } });
	const socket = (response as { webSocket?: WebSocket & { accept(): void } }).webSocket;
	if (!socket)
		throw new Error(`the WebSocket to ${new URL(url).pathname} was refused: ${response.status}`);
	socket.accept();
	return socket;
}
