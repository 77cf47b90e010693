// SPDX-License-Identifier: Apache-2.0
// The real workerd, by itself or under wrangler, whose containers are those of a daemon of the test's own.

import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { BUILD } from '../../lib/daemon.mjs';
import { freePort } from '../../lib/port.mjs';
import { until } from '../../lib/wait.mjs';

const START_MS = 120_000;

/** Where the real packages are; fetched once. */
export const packages = () => execFileSync(path.join(import.meta.dirname, '../packages'), { env: { ...process.env, BUILD }, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim();

/** One file of a Worker and all that it imports. */
export function bundle(entry, outfile) {
	const esbuild = path.join(packages(), 'node_modules/.bin/esbuild');
	execFileSync(esbuild, [entry, '--bundle', '--format=esm', '--conditions=workerd,worker,browser', '--external:cloudflare:*', '--external:node:*', `--outfile=${outfile}`, '--log-level=warning'],
		{ env: { ...process.env, NODE_PATH: path.join(packages(), 'node_modules') }, stdio: 'inherit' });
}

const configuration = ({ port, socket, image, date, flags, classes, world }) => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .main),
    (name = "do-disk", disk = (path = "./state", writable = true)),
    (name = "internet", network = (allow = ["public", "private"])),
  ],
  sockets = [ (name = "http", address = "127.0.0.1:${port}", http = (), service = "main") ],
);
const main :Workerd.Worker = (
  modules = [ (name = "worker.js", esModule = embed "worker.js") ],
  compatibilityDate = "${date}",
  compatibilityFlags = [${flags.map(flag => `"${flag}"`).join(', ')}],
  durableObjectNamespaces = [
${classes.map(name => `    (className = "${name}", uniqueKey = "tests-${name}", enableSql = true, container = (imageName = "${image}")),`).join('\n')}
  ],
  durableObjectStorage = (localDisk = "do-disk"),
  bindings = [
${classes.map(name => `    (name = "${name}", durableObjectNamespace = "${name}"),`).join('\n')}${world ? '\n    (name = "WORLD", service = (name = "main", entrypoint = "World")),' : ''}
  ],
  containerEngine = (localDocker = (socketPath = "unix:${socket}", containerEgressInterceptorImage = "sidecar")),
);
`;

const answers = port => fetch(`http://127.0.0.1:${port}/`).then(async response => { await response.arrayBuffer(); return true; }, () => false);

class Server {
	#child;
	#log;

	constructor(home, port, words, env, cwd) {
		this.home = home;
		this.port = port;
		this.url = `http://localhost:${port}`;
		this.#log = path.join(home, 'log');
		const log = fs.openSync(this.#log, 'a');
		this.#child = spawn('setpriv', ['--pdeathsig', 'KILL', ...words], { cwd, env, stdio: ['ignore', log, log], detached: true }); // ends with us, however we end; a group of its own
		fs.closeSync(log);
		this.exited = new Promise(resolve => this.#child.once('exit', (code, signal) => resolve({ code, signal })).once('error', error => resolve({ error })));
	}

	get pid() {
		return this.#child.pid;
	}

	log() {
		return fs.readFileSync(this.#log, 'utf8');
	}

	async ready() {
		const over = this.exited.then(end => { throw new Error(`ended: ${JSON.stringify(end)}\n${this.log().slice(-4000)}`); });
		over.catch(() => {}); // it ends some day
		await Promise.race([until('the server answers', () => answers(this.port), START_MS), over]).catch(error => { throw new Error(`${error.message}\n${this.log().slice(-4000)}`); });
		return this;
	}

	async stop(signal = 'SIGTERM') {
		this.#child.kill(signal);
		const slow = setTimeout(() => this.#child.kill('SIGKILL'), 90_000);
		await this.exited;
		clearTimeout(slow);
		try {
			process.kill(-this.#child.pid, 'SIGKILL'); // what it has started itself
		} catch (error) {
			if (error.code !== 'ESRCH')
				throw error;
		}
	}
}

const makeHome = () => fs.mkdtempSync(path.join(os.tmpdir(), 'silt-client-'));

/** Hooks run in the order of their making, and none after one that fails: a directory goes when nobody writes in it any more. */
function endWith(t, server, signal) {
	t.after(async () => {
		await server.stop(signal);
		fs.rmSync(server.home, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
	});
}

/** A server by the words of its command, ended with the test t; its directory `home` goes then, too. */
export function startServer(t, { home, port, words, env, cwd }) {
	const server = new Server(home, port, words, env, cwd);
	endWith(t, server);
	return server.ready();
}

/**
 * Plain workerd with a Worker, ended with the test t. options: entry, classes (of its objects), world (it has an entrypoint World), image, date, home and port (those of one
 * that was stopped), flags. */
export async function startWorkerd(t, daemon, { entry, classes = ['Sandbox'], world = false, image = 'base', date = '2026-08-01', home = makeHome(), port, flags = ['nodejs_compat'] }) {
	if (!fs.existsSync(path.join(home, 'worker.js')))
		bundle(entry, path.join(home, 'worker.js'));
	fs.mkdirSync(path.join(home, 'state'), { recursive: true });
	port ??= await freePort();
	fs.writeFileSync(path.join(home, 'config.capnp'), configuration({ port, socket: daemon.engine, image, date, flags, classes, world }));
	const server = new Server(home, port, [path.join(packages(), 'node_modules/@cloudflare/workerd-linux-64/bin/workerd'), 'serve', ...(flags.includes('experimental') ? ['--experimental'] : []), 'config.capnp', 'config'], { PATH: process.env.PATH, HOME: home }, home);
	endWith(t, server);
	return server.ready();
}

/** wrangler dev in a copy of a project, ended with the test t. vars: variables of the Worker; options: wrangler (the name of its package), date (of compatibility, in place of the project's), env (more variables of wrangler). */
export async function startWrangler(t, daemon, project, vars = {}, { wrangler = 'wrangler', date, env: more = {} } = {}) {
	const home = makeHome();
	const directory = path.join(home, path.basename(project));
	fs.cpSync(project, directory, { recursive: true });
	fs.symlinkSync(path.join(packages(), 'node_modules'), path.join(home, 'node_modules'));
	fs.writeFileSync(path.join(directory, '.dev.vars'), Object.entries(vars).map(([name, value]) => `${name}="${value}"\n`).join(''));
	const port = await freePort();
	const env = {
		PATH: process.env.PATH, HOME: home, WRANGLER_DOCKER_BIN: path.join(BUILD, 'silt-docker'), DOCKER_HOST: `unix://${daemon.engine}`,
		WRANGLER_SEND_METRICS: 'false', WRANGLER_LOG_PATH: path.join(home, 'logs'), CI: '1', NO_COLOR: '1', ...more,
	};
	const words = [process.execPath, path.join(packages(), 'node_modules', wrangler, 'bin/wrangler.js'), 'dev', '--ip', '127.0.0.1', '--port', String(port), '--inspector-port', String(await freePort()), '--show-interactive-dev-session=false', ...(date ? ['--compatibility-date', date] : [])];
	const server = new Server(home, port, words, env, directory);
	endWith(t, server, 'SIGINT');
	return server.ready();
}
