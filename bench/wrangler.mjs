// SPDX-License-Identifier: Apache-2.0
// wrangler.mjs BUILD WORK PACKAGES COUNT: starts wrangler dev COUNT times for each way of building, on the daemon in WORK, and prints the series of bench/wrangler.

import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const [build, work, packages, COUNT] = [...process.argv.slice(2, 5), Number(process.argv[5])];
const START_MS = 60_000;
const example = path.join(import.meta.dirname, '../examples/minimal');
const WAYS = {
	'without containers': { words: ['--enable-containers=false'], line: '' },
	'sending what the Dockerfile uses': { words: [], line: '' },
	'sending the whole directory': { words: [], line: 'ONBUILD RUN true\n' },
};

function makeProject(way) {
	const directory = path.join(work, `minimal-${Object.keys(WAYS).indexOf(way)}`);
	fs.cpSync(example, directory, { recursive: true });
	fs.appendFileSync(path.join(directory, 'Dockerfile'), WAYS[way].line);
	execFileSync('cp', ['-a', path.join(packages, 'node_modules'), directory]);
	fs.rmSync(path.join(directory, 'node_modules/wrangler-older'), { recursive: true });
	return directory;
}

async function answers(port) {
	try {
		return (await fetch(`http://127.0.0.1:${port}/`)).status > 0;
	} catch {
		return false;
	}
}

/** Milliseconds from the command to the first answer. */
async function measure(way, port) {
	const directory = directories[way];
	fs.rmSync(path.join(directory, '.wrangler'), { recursive: true, force: true });
	const env = {
		PATH: process.env.PATH, HOME: work, WRANGLER_DOCKER_BIN: path.join(build, 'silt-docker'), DOCKER_HOST: `unix://${work}/engine.sock`,
		WRANGLER_SEND_METRICS: 'false', CI: '1', NO_COLOR: '1',
	};
	const log = fs.openSync(path.join(work, 'wrangler.log'), 'w');
	const begin = performance.now();
	const child = spawn('setpriv', ['--pdeathsig', 'KILL', process.execPath, 'node_modules/wrangler/bin/wrangler.js', 'dev', '--ip', '127.0.0.1', '--port', String(port), '--inspector-port', String(port + 1), '--show-interactive-dev-session=false', ...WAYS[way].words],
		{ cwd: directory, env, stdio: ['ignore', log, log], detached: true });
	const ended = new Promise(resolve => child.once('exit', resolve));
	try {
		while (!await answers(port)) {
			if (performance.now() - begin > START_MS || child.exitCode !== null)
				throw new Error(fs.readFileSync(path.join(work, 'wrangler.log'), 'utf8'));
			await sleep(10);
		}
		return performance.now() - begin;
	} finally {
		child.kill('SIGINT');
		await ended;
		fs.closeSync(log);
	}
}

const directories = Object.fromEntries(Object.keys(WAYS).map(way => [way, makeProject(way)]));
const times = Object.fromEntries(Object.keys(WAYS).map(way => [way, []]));
const size = Number(execFileSync('du', ['-sm', path.join(Object.values(directories)[0], 'node_modules')], { encoding: 'utf8' }).split('\t')[0]);
for (let i = 0; i <= COUNT; i++) // the first time of each warms the page cache
	for (const way of Object.keys(WAYS)) {
		const time = await measure(way, 20000 + 10 * i);
		if (i > 0)
			times[way].push(time);
	}
let first;
for (const [way, list] of Object.entries(times)) {
	list.sort((a, b) => a - b);
	const p50 = Number(list[Math.floor(list.length / 2)].toFixed(0));
	first ??= p50;
	console.log(JSON.stringify({ name: `wrangler dev beside ${size} MiB of node_modules, ${way}`, spacingMs: 0, count: list.length, p50, p99: Number(list.at(-1).toFixed(0)), min: Number(list[0].toFixed(0)), max: Number(list.at(-1).toFixed(0)), ratio: Number((p50 / first).toFixed(3)) }));
}
