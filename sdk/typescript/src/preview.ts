// SPDX-License-Identifier: Apache-2.0
// Preview URLs served by a program of yours: from the request's host to the port in the sandbox.
import { LINK } from './core.js';
import { HOP_BY_HOP, responseOf } from './ports.js';
import { getSandbox, type Sandbox } from './sandbox.js';
import type { SandboxOptions } from './types.js';

/** What proxyToSandbox needs of a Worker's environment. */
export interface SandboxEnv<_T = Sandbox> {
	Sandbox: object;
}

interface Where {
	port: number;
	id: string;
	token: string;
}

/** Port, id and token of a host such as `8080-demo-k3x9.example.com`. */
function parseHost(host: string): Where | null {
	const match = /^(\d{4,5})-([^.]+)-([a-z0-9_]{1,16})\./i.exec(`${host.replace(/:\d+$/, '')}.`);
	const port = Number(match?.[1]);
	return match && port >= 1024 && port <= 65535 && port !== 3000 ? { port, id: match[2]!.toLowerCase(), token: match[3]!.toLowerCase() } : null;
}

const refusal = (status: number, code: string, error: string): Response => Response.json({ error, code }, { status });

/**
 * Passes a request to a preview URL on to its sandbox. `(request, env)`: null when the host is none of a preview.
 * `(request, namespace, id)`, the older form: always a Response.
 */
export async function proxyToSandbox(request: Request, env: object, id?: string): Promise<Response | null> {
	const url = new URL(request.url);
	const where = parseHost(request.headers.get('Host') ?? url.host) ?? parseHost(url.host);
	const isNamespace = typeof (env as { idFromName?: unknown })?.idFromName === 'function';
	if (!where || isNamespace && id !== undefined && where.id !== id.toLowerCase())
		return isNamespace ? refusal(404, 'NOT_FOUND', 'this is no preview URL of the sandbox') : null;
	const namespace = isNamespace ? env : (env as { Sandbox?: object }).Sandbox;
	const options = (namespace as { options?: SandboxOptions } | undefined)?.options;
	const sandbox = namespace ? getSandbox(namespace, where.id, options) : getSandbox(where.id, options);
	try {
		return await forward(request, url, where, sandbox);
	} catch (error) {
		console.error(`preview of ${where.id} port ${where.port}: ${(error as Error).message}`);
		return new Response('Proxy routing error', { status: 500 });
	}
}

const OURS = ['x-sandbox-name', 'x-original-url', 'x-forwarded-host', 'x-forwarded-proto'];

async function forward(request: Request, url: URL, { port, id, token }: Where, sandbox: Sandbox): Promise<Response> {
	const link = sandbox[LINK];
	const headers: Record<string, string> = {};
	request.headers.forEach((value, name) => {
		if (!OURS.includes(name) && !HOP_BY_HOP.has(name))
			headers[name] = value;
	});
	Object.assign(headers, { 'X-Original-URL': request.url, 'X-Forwarded-Host': url.hostname, 'X-Forwarded-Proto': url.protocol.replace(':', ''), 'X-Sandbox-Name': id });
	const response = await link.server.pass(request.method, '/v1/previews/{port}/{id}/{token}/{path*}', {
		path: { port, id: link.id, token, path: url.pathname.slice(1) }, search: url.search, headers, slow: true, signal: request.signal, ...(request.body ? { body: request.body as ReadableStream<Uint8Array> } : {}),
	});
	return responseOf(response);
}
