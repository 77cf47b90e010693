// SPDX-License-Identifier: Apache-2.0
// The Worker of the client tests: it runs scenarios with the real client, each in a sandbox of its own. GET /scenarios lists them,
// POST /run/TRANSPORT/NAME runs one: 200, or 500 with the reason.

import { Sandbox as Client, getSandbox, proxyToSandbox } from '@cloudflare/sandbox';
import * as code from './code.mjs';
import * as commands from './commands.mjs';
import * as files from './files.mjs';
import { until } from './lib.mjs';
import * as life from './life.mjs';
import * as ports from './ports.mjs';
import * as processes from './processes.mjs';
import * as sessions from './sessions.mjs';

export { ContainerProxy } from '@cloudflare/sandbox';

export class Sandbox extends Client {
	async processWithCallbacks(command) {
		const told = { start: 0, out: '', exit: undefined };
		await this.startProcess(command, { onStart: () => { told.start++; }, onOutput: (_, data) => { told.out += data; }, onExit: code => { told.exit = code; } });
		await until('the exit', () => told.exit !== undefined);
		return told;
	}

	async codeWithCallbacks(pieces) {
		const told = { stdout: '', results: [], errors: [] };
		for (const code of pieces)
			await this.runCode(code, { onStdout: m => { told.stdout += m.text; }, onResult: r => { told.results.push(r.text); }, onError: e => { told.errors.push(e.name); } });
		return told;
	}
}

const scenarios = { ...commands, ...processes, ...files, ...sessions, ...code, ...ports, ...life };

async function run(env, transport, name, url) {
	const id = `${transport}-${crypto.randomUUID().slice(0, 13)}`;
	const sandbox = getSandbox(env.Sandbox, id, { transport });
	try {
		const said = await scenarios[name](sandbox, { env, id, transport, host: url.host });
		return Response.json(said ?? null);
	} catch (error) {
		return Response.json({ error: `${error.stack ?? error}`, code: error.code }, { status: 500 });
	} finally {
		await sandbox.destroy();
	}
}

export default {
	async fetch(request, env) {
		const preview = await proxyToSandbox(request, env);
		if (preview)
			return preview;
		const url = new URL(request.url);
		if (url.pathname === '/scenarios')
			return Response.json(Object.keys(scenarios));
		const [, transport, name] = /^\/run\/(http|websocket|rpc)\/(\w+)$/.exec(url.pathname) ?? [];
		if (!(name in scenarios))
			return new Response('no such scenario\n', { status: 404 });
		return run(env, transport, name, url);
	},
};
