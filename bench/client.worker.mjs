// SPDX-License-Identifier: Apache-2.0
// The Worker of bench/client: GET /TRANSPORT/ID runs a command by the client, DELETE ends that sandbox, GET / does nothing.

import { getSandbox } from '@cloudflare/sandbox';

export { ContainerProxy, Sandbox } from '@cloudflare/sandbox';

export default {
	async fetch(request, env) {
		const [, transport, id] = new URL(request.url).pathname.split('/');
		if (!transport)
			return new Response('here\n');
		const sandbox = getSandbox(env.Sandbox, id, { transport });
		if (request.method === 'DELETE') {
			await sandbox.destroy();
			return new Response();
		}
		const { stdout } = await sandbox.exec('echo hi');
		return new Response(stdout);
	},
};
