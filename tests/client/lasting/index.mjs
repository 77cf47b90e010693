// SPDX-License-Identifier: Apache-2.0
// The Worker of the restart tests: POST /TRANSPORT/exec runs the command of its body in the transport's sandbox, POST /TRANSPORT/destroy destroys that.

import { getSandbox, Sandbox } from '@cloudflare/sandbox';

export { Sandbox };

export default {
	async fetch(request, env) {
		const [, transport, method] = /^\/(http|websocket|rpc)\/(exec|destroy)$/.exec(new URL(request.url).pathname) ?? [];
		if (!method)
			return new Response('no such method\n', { status: 404 });
		const sandbox = getSandbox(env.Sandbox, `lasting-${transport}`, { transport });
		try {
			return Response.json(await (method === 'exec' ? sandbox.exec(await request.text()) : sandbox.destroy()) ?? null);
		} catch (error) {
			return Response.json({ error: `${error.stack ?? error}` }, { status: 500 });
		}
	},
};
