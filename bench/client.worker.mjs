// SPDX-License-Identifier: Apache-2.0
// The Worker of bench/client: GET /TRANSPORT/ID runs a command by the client, GET /TRANSPORT/ID/read/N reads a file of 1 KB N times at once, PUT writes
// it, DELETE ends that sandbox, GET / does nothing.

import { getSandbox } from '@cloudflare/sandbox';

export { ContainerProxy, Sandbox } from '@cloudflare/sandbox';

export default {
	async fetch(request, env) {
		const [, transport, id, , reads] = new URL(request.url).pathname.split('/');
		if (!transport)
			return new Response('here\n');
		const sandbox = getSandbox(env.Sandbox, id, { transport });
		if (request.method === 'DELETE') {
			await sandbox.destroy();
			return new Response();
		}
		if (request.method === 'PUT') {
			await sandbox.writeFile('/workspace/1k', 'h'.repeat(1024));
			return new Response();
		}
		if (reads) {
			const files = await Promise.all(Array.from({ length: Number(reads) }, () => sandbox.readFile('/workspace/1k')));
			return new Response(files[0].content);
		}
		const { stdout } = await sandbox.exec('echo hi');
		return new Response(stdout);
	},
};
