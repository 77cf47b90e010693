// SPDX-License-Identifier: Apache-2.0
// The Worker of several tests: POST /TRANSPORT/exec runs the command of its body in the transport's sandbox, POST /TRANSPORT/destroy destroys that; /ID behind it means another
// one.

import { getSandbox, Sandbox } from '@cloudflare/sandbox';

export { Sandbox };

export default {
	async fetch(request, env) {
		const [, transport, method, id = 'lasting'] = /^\/(http|websocket|rpc)\/(exec|destroy)(?:\/(\w+))?$/.exec(new URL(request.url).pathname) ?? [];
		if (!method)
			return new Response('no such method\n', { status: 404 });
		const sandbox = getSandbox(env.Sandbox, `${id}-${transport}`, { transport });
		try {
			return Response.json(await (method === 'exec' ? sandbox.exec(await request.text()) : sandbox.destroy()) ?? null);
		} catch (error) {
			return Response.json({ error: `${error.stack ?? error}`, context: error.errorResponse?.context ?? error.context }, { status: 500 });
		}
	},
};
