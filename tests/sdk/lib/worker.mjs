// SPDX-License-Identifier: Apache-2.0
// A Worker in the real workerd, whose sandboxes come by the library: no container, no engine socket.

import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { freePort } from '../../lib/port.mjs';
import { packages, startServer } from '../../client/lib/workerd.mjs';

/** One file of a Worker and all that it imports, minified; the library is what home has installed. */
export function bundle(entry, outfile, { minify = false } = {}) {
	execFileSync(path.join(packages(), 'node_modules/.bin/esbuild'), [entry, '--bundle', '--format=esm', '--conditions=workerd,worker,browser', '--external:cloudflare:*', '--external:node:*', `--outfile=${outfile}`, '--log-level=warning', ...(minify ? ['--minify'] : [])],
		{ cwd: path.dirname(entry), env: { ...process.env, NODE_PATH: path.join(packages(), 'node_modules') }, stdio: 'inherit' });
}

const configuration = ({ port, classes, variables }) => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .main),
    (name = "do-disk", disk = (path = "./state", writable = true)),
    (name = "internet", network = (allow = ["public", "private", "local"])),
  ],
  sockets = [ (name = "http", address = "127.0.0.1:${port}", http = (), service = "main") ],
);
const main :Workerd.Worker = (
  modules = [ (name = "worker.js", esModule = embed "bundle.js") ],
  compatibilityDate = "2026-08-01",
  compatibilityFlags = ["nodejs_compat"],
  durableObjectNamespaces = [
${classes.map(name => `    (className = "${name}", uniqueKey = "tests-${name}", enableSql = true),`).join('\n')}
  ],
  durableObjectStorage = (localDisk = "do-disk"),
  bindings = [
${classes.map(name => `    (name = "${name}", durableObjectNamespace = "${name}"),`).join('\n')}
${Object.entries(variables).map(([name, value]) => `    (name = "${name}", text = ${JSON.stringify(value)}),`).join('\n')}
  ],
);
`;

/** Starts it; it ends with the test t. home: a project; entry: its file. */
export async function startWorker(t, { home, entry, classes = ['Sandbox'], variables }) {
	bundle(path.join(home, entry), path.join(home, 'bundle.js'));
	fs.mkdirSync(path.join(home, 'state'), { recursive: true });
	const port = await freePort();
	fs.writeFileSync(path.join(home, 'config.capnp'), configuration({ port, classes, variables }));
	return startServer(t, { home, port, words: [path.join(packages(), 'node_modules/@cloudflare/workerd-linux-64/bin/workerd'), 'serve', 'config.capnp', 'config'], env: { PATH: process.env.PATH, HOME: home }, cwd: home });
}
