// SPDX-License-Identifier: Apache-2.0
// The names of `@cloudflare/sandbox/opencode`. Its servers need an image with OpenCode, which Silt does not ship.
import { OpencodeStartupError } from './errors.js';

export { OpencodeStartupError };
export interface OpencodeOptions { port?: number; directory?: string; config?: Record<string, unknown>; env?: Record<string, string> }
export interface OpencodeServer { port: number; url: string; close(): Promise<void> }
export interface OpencodeResult<Client = unknown> { client: Client; server: OpencodeServer }

const refuse = (): never => {
	throw new OpencodeStartupError('OpenCode is not part of this library: start `opencode serve` with startProcess and reach it with containerFetch');
};

/** Refuses. */
export async function createOpencode<Client = unknown>(_sandbox: unknown, _options?: OpencodeOptions): Promise<OpencodeResult<Client>> { return refuse(); }
/** Refuses. */
export async function createOpencodeServer(_sandbox: unknown, _options?: OpencodeOptions): Promise<OpencodeServer> { return refuse(); }
/** Refuses. */
export function proxyToOpencode(_request: Request, _sandbox: unknown, _server: OpencodeServer): Response | Promise<Response> { return refuse(); }
/** Refuses. */
export function proxyToOpencodeServer(_request: Request, _sandbox: unknown, _server: OpencodeServer): Promise<Response> { return refuse(); }
