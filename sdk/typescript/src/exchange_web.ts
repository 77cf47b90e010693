// SPDX-License-Identifier: Apache-2.0
// One HTTP exchange by fetch: Bun, Deno, workerd, browsers.
import { isBrowser, type Exchange, type Outgoing } from './runtime.js';

export async function webExchange(request: Outgoing): Promise<Exchange> {
	let body = request.body as BodyInit | undefined;
	const streams = body instanceof ReadableStream;
	if (streams && isBrowser)
		body = await new Response(body).blob(); // no streamed bodies over HTTP/1.1
	const init: RequestInit & { duplex?: 'half' } = { method: request.method, headers: request.headers, redirect: 'manual' };
	if (body !== undefined)
		init.body = body;
	if (streams && !isBrowser)
		init.duplex = 'half';
	if (request.signal)
		init.signal = request.signal;
	const response = await fetch(request.url, init);
	return {
		status: response.status,
		response,
		header: name => response.headers.get(name),
		headers: () => response.headers,
		text: () => response.text(),
		bytes: async () => new Uint8Array(await response.arrayBuffer()),
		stream: () => response.body ?? new ReadableStream({ start: controller => controller.close() }),
		cancel: () => void response.body?.cancel().catch(() => {}),
	};
}
