// SPDX-License-Identifier: Apache-2.0
// client.mjs SERVER TOKEN_FILE WORK PACKAGES COUNT: starts workerd with WORK/worker.js on the daemon in WORK, and prints the series of bench/client.

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';

const [server, tokenFile, work, packages, countText] = process.argv.slice(2);
const COUNT = Number(countText);
const WARM = 10; // times as many, in a warm sandbox
const PORT = 8790;
const START_MS = 30_000;
const TRANSPORTS = ['http', 'websocket', 'rpc'];
const token = fs.readFileSync(tokenFile, 'utf8').trim();
const agent = new http.Agent({ keepAlive: true });
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));

const CONFIG = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [ (name = "main", worker = .main), (name = "disk", disk = (path = "./objects", writable = true)), (name = "internet", network = (allow = ["private"])) ],
  sockets = [ (name = "http", address = "127.0.0.1:${PORT}", http = (), service = "main") ],
);
const main :Workerd.Worker = (
  modules = [ (name = "worker.js", esModule = embed "worker.js") ],
  compatibilityDate = "2026-08-01",
  compatibilityFlags = ["nodejs_compat"],
  durableObjectNamespaces = [ (className = "Sandbox", uniqueKey = "bench", enableSql = true, container = (imageName = "base")) ],
  durableObjectStorage = (localDisk = "disk"),
  bindings = [ (name = "Sandbox", durableObjectNamespace = "Sandbox") ],
  containerEngine = (localDocker = (socketPath = "unix:run/engine.sock", containerEgressInterceptorImage = "sidecar")),
);
`;

/** The whole answer; fails unless it is what it should be. */
function ask(url, { method = 'GET', headers = {}, body, wanted } = {}) {
	return new Promise((resolve, reject) => {
		const request = http.request(url, { method, headers, agent }, response => {
			const all = [];
			response.on('data', piece => all.push(piece)).on('error', reject).on('end', () => {
				const text = Buffer.concat(all).toString();
				response.statusCode < 300 && (!wanted || text.includes(wanted)) ? resolve() : reject(new Error(`${method} ${url}: ${response.statusCode} ${text}`));
			});
		});
		request.on('error', reject).end(body);
	});
}

const worker = (where, method) => ask(`http://127.0.0.1:${PORT}${where}`, { method, wanted: method ? undefined : 'h' });
const direct = id => ask(`http://${server}/sandboxes/${id}/api/execute`, { method: 'POST', headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' }, body: '{"command":"echo hi"}', wanted: '"hi' });
const remove = id => ask(`http://${server}/v1/sandboxes/${id}`, { method: 'DELETE', headers: { authorization: `Bearer ${token}` } });

async function series(name, count, spacingMs, run, after = () => {}) {
	const times = [];
	for (let i = 0; i < count; i++) {
		const begun = process.hrtime.bigint();
		await run(i);
		times.push(Number(process.hrtime.bigint() - begun) / 1e6);
		await after(i);
		if (spacingMs)
			await sleep(spacingMs);
	}
	times.sort((a, b) => a - b);
	const at = share => Number(times[Math.min(count - 1, Math.floor(count * share))].toFixed(3));
	return { name, spacingMs, count, p50: at(0.5), p99: at(0.99), min: at(0), max: at(1) };
}

/** A group of series with its first, the HTTP API itself, as the measure. */
function print(group) {
	for (const row of group)
		console.log(JSON.stringify(row === group[0] ? row : { ...row, ratio: Number((row.p50 / group[0].p50).toFixed(3)) }));
}

async function cold(spacing) {
	const group = [await series('silt HTTP API, new id', COUNT, spacing, i => direct(`d-${spacing}-${i}`), i => remove(`d-${spacing}-${i}`))];
	for (const transport of TRANSPORTS)
		group.push(await series(`client by ${transport}, new id`, COUNT, spacing, i => worker(`/${transport}/c-${transport}-${spacing}-${i}`), i => worker(`/${transport}/c-${transport}-${spacing}-${i}`, 'DELETE')));
	print(group);
}

async function warm(spacing) {
	const count = spacing ? COUNT * 3 : COUNT * WARM;
	await direct('warm');
	const group = [await series('silt HTTP API, exec', count, spacing, () => direct('warm'))];
	group.push(await series('a Worker that does nothing', count, spacing, () => worker('/')));
	for (const transport of TRANSPORTS) {
		await worker(`/${transport}/warm-${transport}`);
		group.push(await series(`client by ${transport}, exec`, count, spacing, () => worker(`/${transport}/warm-${transport}`)));
		await worker(`/${transport}/warm-${transport}`, 'DELETE');
	}
	await remove('warm');
	print(group);
}

/** Ten reads at once beside one; the first row is the measure. */
async function reads(spacing) {
	for (const transport of TRANSPORTS) {
		const id = `/${transport}/reads-${transport}`;
		await worker(id, 'PUT');
		print([
			await series(`client by ${transport}, a read of 1 KB`, COUNT * 3, spacing, () => worker(`${id}/read/1`)),
			await series(`client by ${transport}, ten of them at once`, COUNT * 3, spacing, () => worker(`${id}/read/10`)),
		]);
		await worker(id, 'DELETE');
	}
}

/** New ids at once: until the last one has answered. */
async function burst(at) {
	const group = [];
	for (const transport of TRANSPORTS) {
		const ids = i => Array.from({ length: at }, (_, k) => `/${transport}/b-${transport}-${i}-${k}`);
		group.push(await series(`client by ${transport}, ${at} new ids at once`, 5, 0, i => Promise.all(ids(i).map(id => worker(id))), i => Promise.all(ids(i).map(id => worker(id, 'DELETE')))));
	}
	print([await series(`silt HTTP API, ${at} new ids at once`, 5, 0, i => Promise.all(Array.from({ length: at }, (_, k) => direct(`db-${i}-${k}`))), i => Promise.all(Array.from({ length: at }, (_, k) => remove(`db-${i}-${k}`)))), ...group]);
}

fs.writeFileSync(path.join(work, 'config.capnp'), CONFIG);
fs.mkdirSync(path.join(work, 'objects'));
const log = fs.openSync(path.join(work, 'workerd.log'), 'w');
const workerd = spawn('setpriv', ['--pdeathsig', 'KILL', path.join(packages, 'node_modules/@cloudflare/workerd-linux-64/bin/workerd'), 'serve', 'config.capnp', 'config'], { cwd: work, stdio: ['ignore', log, log] });
const ended = new Promise(resolve => workerd.once('exit', resolve));
try {
	for (const end = Date.now() + START_MS; !(await worker('/').then(() => true, () => false)); await sleep(50))
		if (Date.now() > end)
			throw new Error(`workerd does not start: ${fs.readFileSync(path.join(work, 'workerd.log'), 'utf8')}`);
	for (const transport of TRANSPORTS) { // what is done once
		await worker(`/${transport}/first-${transport}`);
		await worker(`/${transport}/first-${transport}`, 'DELETE');
	}
	for (const spacing of [0, 60]) {
		await cold(spacing);
		await warm(spacing);
		await reads(spacing);
	}
	await burst(25);
} finally {
	agent.destroy();
	workerd.kill();
	await ended;
}
