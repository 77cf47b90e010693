// SPDX-License-Identifier: Apache-2.0
// The names of `@cloudflare/sandbox/bridge`: an HTTP front of sandboxes, which a Silt server is itself.

export interface BridgeConfig { [name: string]: unknown }
export interface BridgeEnv { [name: string]: unknown }
export interface WorkerHandlers { fetch(request: Request, env: unknown, context: unknown): Promise<Response> }
export interface PoolStats { [name: string]: unknown }
export interface WarmPoolConfig { [name: string]: unknown }

const SENTENCE = 'a Silt server is an HTTP API itself, with ready sandboxes of its own: call it in place of the bridge';

/** Refuses. */
export function bridge(_handlers?: unknown, _config?: BridgeConfig): WorkerHandlers {
	throw new Error(SENTENCE);
}

/** Refuses. */
export class WarmPool {
	constructor() {
		throw new Error(SENTENCE);
	}
}

/** A text as one word of a shell. */
export function shellQuote(text: string): string {
	return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** A path below /workspace; others are refused. */
export function resolveWorkspacePath(path: string): string {
	const parts: string[] = [];
	for (const part of (path.startsWith('/') ? path : `/workspace/${path}`).split('/'))
		if (part === '..')
			parts.pop();
		else if (part !== '' && part !== '.')
			parts.push(part);
	if (parts[0] !== 'workspace')
		throw new Error(`${path} is not below /workspace`);
	return `/${parts.join('/')}`;
}
