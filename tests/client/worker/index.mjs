// SPDX-License-Identifier: Apache-2.0
// The Worker of the client tests: it runs scenarios with the real client, each in a sandbox of its own. GET /scenarios lists them,
// POST /run/TRANSPORT/NAME runs one: 200, or 500 with the reason. GET /terminal/ID[/SESSION] is a terminal, for a WebSocket.

import { Sandbox as Client, CodeInterpreter, getSandbox, proxyToSandbox } from '@cloudflare/sandbox';
import * as backups from './backups.mjs';
import * as code from './code.mjs';
import * as commands from './commands.mjs';
import * as egress from './egress.mjs';
import * as errors from './errors.mjs';
import * as files from './files.mjs';
import { until } from './lib.mjs';
import * as life from './life.mjs';
import * as mounts from './mounts.mjs';
import * as ports from './ports.mjs';
import * as processes from './processes.mjs';
import * as sessions from './sessions.mjs';
import * as storage from './storage.mjs';

export { ContainerProxy } from '@cloudflare/sandbox';

export class Sandbox extends Client {
	#notes = [];

	/** How a call fails; nothing: it does not. */
	async failure(method, ...words) {
		try {
			await this[method](...words);
			return undefined;
		} catch ({ name, code, httpStatus: status, message, context }) {
			return { name, code, status, message, context };
		}
	}

	async abortedCommands() {
		const said = run => run.then(() => 'not aborted', error => error.message);
		const later = new AbortController();
		const during = this.exec('for i in $(seq 600); do echo $i; sleep 0.1; done', { stream: true, signal: later.signal, onOutput: () => later.abort() }); // looked at with each event
		return {
			before: await said(this.exec('echo no', { signal: AbortSignal.abort() })),
			during: await said(during),
			stream: await said(this.execStream('echo no', { signal: AbortSignal.abort() })),
		};
	}

	async codeByClass() {
		const interpreter = new CodeInterpreter(() => this.client.interpreter);
		const context = await interpreter.createCodeContext({ language: 'javascript' });
		const execution = await interpreter.runCode('6 * 7', { context });
		const contexts = (await interpreter.listCodeContexts()).length;
		await interpreter.deleteCodeContext(context.id);
		return { text: execution.results[0].text, json: 'results' in execution.toJSON(), contexts, left: (await interpreter.listCodeContexts()).length };
	}

	/** The object ends and is made anew by the next call; its container lives on. */
	restart() {
		this.ctx.abort('restarted');
	}

	async shownLabels() {
		return (await this.ctx.container.inspect())?.labels;
	}

	noted(payload) {
		this.#notes.push(payload);
	}

	notes() {
		return this.#notes;
	}

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

/** All that leaves it comes to the Worker; and what a class can set. */
export class Guarded extends Client {
	enableInternet = false;
	interceptHttps = true;
	envVars = { MARK: 'of the class' };
	labels = { kind: 'guarded' };
	entrypoint = ['sh', '-c', 'echo "started $SANDBOX_STARTED" > /tmp/program; exec sleep 1000'];
	#hooks = [];

	async onStart() {
		this.#hooks.push({ hook: 'start' });
		await super.onStart();
	}

	async onStop(params) {
		this.#hooks.push({ hook: 'stop', exitCode: params.exitCode, reason: params.reason });
		await super.onStop(params);
	}

	hooks() {
		return this.#hooks;
	}

	async shownLabels() {
		return (await this.ctx.container.inspect())?.labels;
	}
}

Guarded.outbound = request => new Response(`all ${request.url}`);
Guarded.outboundByHost = {
	'shop.example': async request => new Response(`shop ${request.method} ${request.url} ${await request.text()}`),
	'*.glob.example': request => new Response(`glob ${request.url}`),
};
Guarded.outboundHandlers = { tagged: (_, __, { className, params }) => new Response(`tagged ${params.tag} ${className}`) };

/** Its backups go to a storage of the tests; what it sends there passes a handler. */
export class Stored extends Client {
	interceptHttps = true;

	constructor(ctx, env) {
		super(ctx, { ...env, ...storage.settings });
	}
}

Stored.outboundByHost = { [storage.HOST]: request => storage.answer(request, 'sandbox') };

const scenarios = { ...commands, ...processes, ...files, ...sessions, ...code, ...ports, ...life, ...egress, ...errors, ...backups, ...mounts };

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
		const [, id, session] = /^\/terminal\/([\w-]+)(?:\/(\w+))?$/.exec(url.pathname) ?? [];
		if (id) {
			const sandbox = getSandbox(env.Sandbox, id);
			return (session ? await sandbox.getSession(session) : sandbox).terminal(request);
		}
		const [, transport, name] = /^\/run\/(http|websocket|rpc)\/(\w+)$/.exec(url.pathname) ?? [];
		if (!(name in scenarios))
			return new Response('no such scenario\n', { status: 404 });
		return run(env, transport, name, url);
	},
};
