// SPDX-License-Identifier: Apache-2.0
// Starts a Silt instance of the test's own: free port, own state, own id range, own name. Stops it and looks whether anything is left.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Box } from './box.mjs';
import * as host from './host.mjs';
import { Client } from './http.mjs';
import { until, within } from './wait.mjs';

const START_MS = 90_000;
const STOP_MS = 90_000;
const REST_MS = 1_000; // a pool may stand still for a moment before it is full
const TRIES = 8;
const BLOCK = 2 ** 24; // ids: what silt-super locks
const USER = 64_998; // siltd's uid in tests: no account is needed

export const BUILD = path.resolve(process.env.SILT_BUILD ?? path.join(import.meta.dirname, '../../build'));

/**
 * options: build (directory), flags ({name: value}), without (list of protections, unsafe builds only),
 *          warm (Python contexts are forked, as an installation does it; waits for the first zygote),
 *          through (words of a command that starts it), keepAlive (false: a connection per request), images (false: an own, empty image directory), home (directory of a stopped instance, to start it again),
 *          state, run (these directories, where they shall lie on another disk).
 */
export async function startDaemon(options = {}) {
	const home = options.home ?? makeHome();
	for (let tries = 1; ; tries++) {
		const daemon = new Daemon(home, options);
		try {
			await daemon.start();
			if (options.warm)
				await daemon.warm();
			return daemon;
		} catch (error) {
			await daemon.abandon();
			if (tries < TRIES && /overlap|in use by|held by/i.test(daemon.log()))
				continue; // the id range belongs to another instance: take another
			const log = daemon.log();
			if (!options.home)
				fs.rmSync(home, { recursive: true, force: true });
			throw new Error(`${error.message}\n${log.slice(-4000)}`, { cause: error });
		}
	}
}

function makeHome() {
	const home = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-test-'));
	fs.chmodSync(home, 0o755); // siltd has no rights: it must be able to walk to its database
	return home;
}

export class Daemon {
	#child;
	#exited;
	#flags;
	#options;

	constructor(home, options) {
		this.home = home;
		this.#options = options;
		this.state = options.state ?? path.join(home, 'state');
		this.run = options.run ?? path.join(home, 'run');
		this.engine = path.join(this.run, 'engine.sock');
		this.#flags = {
			config: '', // nothing of an installation
			instance: newInstance(),
			listen: '127.0.0.1:0',
			'preview.listen': '127.0.0.1:0',
			state: this.state,
			run: this.run,
			token_file: path.join(home, 'token'),
			user: USER,
			'ids.base': freeBlock(home) * BLOCK,
			'ids.count': 2 * BLOCK / 65_536,
			'disk.pool': '8G',
			'pool.sandboxes': 2,
			'interpreter.zygotes': options.warm ? 2 : 0, // a second of processor time each, for those tests that use them
			network: 'off', // the machine's own network is left alone: network tests make one of their own
			...(process.env.SILT_TEST_IMAGES && options.images !== false && { images: process.env.SILT_TEST_IMAGES }),
			...(process.env.SILT_TEST_IMAGE && { image: process.env.SILT_TEST_IMAGE }),
			...(options.home && savedFlags(home)),
			...options.flags,
		};
		this.instance = this.#flags.instance;
		if (process.env.SILT_TEST_SEED && options.images !== false && !options.home)
			this.#seed(process.env.SILT_TEST_SEED);
		this.#note();
	}

	/** In one piece: tests beside this one look for the ids in it (freeBlock). */
	#note() {
		const file = path.join(this.home, 'flags.json');
		fs.writeFileSync(`${file}.new`, JSON.stringify(this.#flags));
		fs.renameSync(`${file}.new`, file);
	}

	/** The names of the shared images are rows of a database that script/test made. */
	#seed(file) {
		const directory = path.join(this.state, 'db');
		const target = path.join(directory, 'silt.db');
		fs.mkdirSync(directory, { recursive: true });
		fs.copyFileSync(file, target);
		fs.chmodSync(target, 0o600);
		for (const name of [directory, target])
			fs.chownSync(name, USER, USER);
	}

	async start() {
		const program = path.join(this.#options.build ?? BUILD, 'silt-super');
		const log = fs.openSync(path.join(this.home, 'log'), this.#options.home ? 'a' : 'w');
		const env = Object.fromEntries(['PATH', 'ASAN_OPTIONS', 'UBSAN_OPTIONS', 'LSAN_OPTIONS'].filter(name => name in process.env).map(name => [name, process.env[name]]));
		if (this.#options.without)
			env.SILT_WITHOUT = this.#options.without.join(',');
		fs.rmSync(path.join(this.run, 'address'), { force: true });
		const [first, ...rest] = [...(this.#options.through ?? []), program];
		this.#child = spawn(first, [...rest, ...Object.entries(this.#flags).map(([name, value]) => `--${name}=${value}`)], { env, stdio: ['ignore', log, log] });
		fs.closeSync(log);
		this.#exited = new Promise(resolve => this.#child.once('exit', (code, signal) => resolve({ code, signal })).once('error', error => resolve({ error })));
		await Promise.race([this.#ready(), this.#exited.then(end => { throw new Error(`silt-super ended: ${JSON.stringify(end)}`); })]);
	}

	async #ready() {
		const file = path.join(this.run, 'address');
		const address = await until('address file', () => fs.existsSync(file) && fs.readFileSync(file, 'utf8').trim(), START_MS);
		this.token = fs.readFileSync(path.join(this.home, 'token'), 'utf8').trim();
		this.address = address;
		const previews = path.join(this.run, 'preview-address');
		this.previews = fs.existsSync(previews) ? fs.readFileSync(previews, 'utf8').trim() : undefined;
		this.client = new Client(address, this.token, this.#options.keepAlive);
		await this.healthy();
	}

	/** Waits until the API answers, as after a restart of siltd. */
	healthy() {
		return until('GET /healthz', async () => (await this.api('GET', '/healthz', undefined, { token: false, deadline: 5_000 })).status === 200, START_MS);
	}

	/** Waits until so many warm Pythons of the image `base` were there, all in all. The machine that lends its /usr to `host` need not have what a context needs. */
	warm(count = 1) {
		const images = this.#flags.images;
		const base = fs.readdirSync(images).find(name => /^[0-9a-f]{64}$/.test(name) && fs.existsSync(path.join(images, name, 'usr/bin/env')));
		return until('a warm Python', () => this.log().split(`zygote.warm image=${base.slice(0, 12)}`).length > count, 120_000);
	}

	api(method, url, body, options) {
		return this.client.api(method, url, body, options);
	}

	/** A sandbox that is destroyed when the test t ends; with options it is created by POST /v1/sandboxes. */
	async box(t, options) {
		const box = new Box(this, options?.id ?? `t-${randomBytes(6).toString('hex')}`);
		t?.after(() => box.destroy());
		if (options) {
			const answer = await this.api('POST', '/v1/sandboxes', { id: box.id, ...options });
			assert.equal(answer.status, 201, answer.raw.toString());
		}
		return box;
	}

	get pid() {
		return this.#child.pid;
	}

	/** Pids of a program of this instance (silt-super's descendants by name). */
	programs(name) {
		const found = [];
		const walk = pid => {
			for (const child of host.children(pid)) {
				if (host.processInfo(child).name === name)
					found.push(child);
				walk(child);
			}
		};
		walk(this.pid);
		return found;
	}

	siltd() {
		const [pid] = this.programs('siltd');
		assert.ok(pid, 'siltd runs');
		return pid;
	}

	/** Live processes of this instance's sandboxes whose command line has the marker as one whole word. */
	marked(marker) {
		return host.processesOf(this.instance).filter(p => p.command.includes(marker) && p.state !== 'Z');
	}

	/** What this instance occupies on the machine, for comparing before and after. */
	counters() {
		const daemons = [this.pid, ...this.programs('siltd'), ...this.programs('silt-priv'), ...this.programs('silt-proxy'), ...this.programs('silt-preview')];
		const inside = host.processesOf(this.instance);
		const everybodys = new Set(host.mountsWith('')); // others come and go beside us
		return {
			processes: inside.length,
			daemons: daemons.length,
			mounts: host.mountsWith(this.home).length + host.mountsWith(`/${this.instance}/`).length,
			ownMounts: daemons.map(pid => host.mountsWith('', pid).filter(line => !everybodys.has(line)).length).sort(),
			cgroups: host.cgroupsOf(this.instance).filter(directory => !/\/h\d+$/.test(directory)).length, // handles are kept for the next command
			netns: new Set(inside.map(p => p.netNamespace)).size,
			descriptors: daemons.map(host.descriptors).sort((a, b) => a - b),
			layers: ['s', 'trash'].flatMap(name => host.namesIn(path.join(this.state, 'pool', name), this.pid)).length,
			files: host.filesBelow(this.state).filter(f => !/\.db-(wal|shm|journal)$/.test(f)).length,
		};
	}

	/** The counters once they no longer change: pools fill up, and connections of the tests' own close, in the background. */
	async atRest() {
		this.client.close();
		let last = '';
		let same = 0;
		let since = 0;
		return until('counters at rest', () => {
			const now = this.counters();
			same = JSON.stringify(now) === last ? same + 1 : 0;
			since = same === 0 ? Date.now() : since;
			last = JSON.stringify(now);
			return same >= 20 && Date.now() - since >= REST_MS && now;
		}, 240_000);
	}

	/** Waits until everything counted is again as in `before`; the difference is in the failure's message. Of descriptors there may be fewer: questions of names were under way then. */
	async settles(before, ms = 240_000) {
		this.client.close();
		let now;
		await until('counters as before', () => {
			now = this.counters();
			if (now.descriptors.length === before.descriptors.length && now.descriptors.every((count, i) => count <= before.descriptors[i]))
				now.descriptors = before.descriptors;
			return JSON.stringify(now) === JSON.stringify(before);
		}, ms).catch(() => assert.deepEqual(now, before));
	}

	log() {
		try {
			return fs.readFileSync(path.join(this.home, 'log'), 'utf8');
		} catch {
			return '';
		}
	}

	/** Ends the instance as an operator would; nothing of it may be left on the machine. keep: its files stay, to start it again. */
	async stop({ keep = false } = {}) {
		this.client?.close();
		const killed = this.#child.exitCode === null && this.#child.kill('SIGTERM');
		const end = await within(STOP_MS, 'end of silt-super after SIGTERM', this.#exited).catch(async error => {
			this.#child.kill('SIGKILL');
			await this.#exited;
			throw error;
		});
		try {
			assert.ok(killed, `silt-super was alive until it was stopped: ${JSON.stringify(end)}\n${this.log().slice(-2000)}`);
			assert.deepEqual(end, { code: 0, signal: null }, 'silt-super ends with 0');
			const bad = this.log().split('\n').filter(line => /AddressSanitizer|runtime error:|LeakSanitizer|Assertion/.test(line));
			assert.deepEqual(bad, [], `a program of ours is broken:\n${this.log().slice(-4000)}`);
			await this.#nothingLeft();
		} finally {
			if (!keep)
				fs.rmSync(this.home, { recursive: true, force: true });
		}
	}

	/** Kills silt-super and with it the instance, as a fault would. Its files stay, and what it leaves on the machine goes with the next start (option home). */
	async crash() {
		this.client?.close();
		const others = [...this.programs('siltd'), ...this.programs('silt-priv')];
		this.#child.kill('SIGKILL');
		await within(STOP_MS, 'end of silt-super after SIGKILL', this.#exited);
		await until('siltd and silt-priv end with silt-super', () => others.every(pid => !host.pids().includes(pid)));
	}

	/** As a crash of the machine would, for this instance: nobody gets to say goodbye. Its files stay. */
	async kill() {
		this.client?.close();
		for (const pid of [this.pid, ...this.programs('siltd'), ...this.programs('silt-priv'), ...this.programs('silt-proxy'), ...this.programs('silt-preview')])
			process.kill(pid, 'SIGKILL');
		await this.#exited;
	}

	/** After a failed start: no checks, only the end. */
	async abandon() {
		this.client?.close();
		if (this.#child?.exitCode === null && this.#child.signalCode === null)
			this.#child.kill('SIGTERM');
		await within(STOP_MS, 'end of a silt-super that did not start', this.#exited).catch(() => this.#child.kill('SIGKILL'));
	}

	async #nothingLeft() {
		const left = () => ({
			processes: host.processesOf(this.instance).map(p => `${p.pid} ${p.command.join(' ')}`),
			mounts: [...host.mountsWith(this.home), ...host.mountsWith(`/${this.instance}/`)],
			cgroups: host.cgroupsOf(this.instance),
			loops: host.loopsInside(this.home),
		});
		const none = { processes: [], mounts: [], cgroups: [], loops: [] };
		await until('nothing left', () => JSON.stringify(left()) === JSON.stringify(none), 60_000).catch(() => {});
		assert.deepEqual(left(), none, 'a stopped instance leaves nothing on the machine');
	}
}

function newInstance() {
	const letters = 'abcdefghijklmnopqrstuvwxyz0123456789';
	return `t${Array.from({ length: 4 }, () => letters[randomInt(letters.length)]).join('')}`;
}

/** The first of two blocks of ids that no other instance has, nor one that is stopped and about to start again: their locks are free meanwhile. */
function freeBlock(home) {
	const others = fs.readdirSync(os.tmpdir()).filter(name => name.startsWith('silt-test-')).map(name => path.join(os.tmpdir(), name)).filter(directory => directory !== home);
	const taken = new Set(others.map(directory => savedFlags(directory)['ids.base'] / BLOCK));
	const all = Array.from({ length: 0x7e - 0x50 }, (_, i) => 0x50 + i); // an installation has 0x10 to 0x4f
	const free = all.filter(block => ![block - 1, block, block + 1].some(one => taken.has(one)));
	const choice = free.length > 0 ? free : all;
	return choice[randomInt(choice.length)];
}

function savedFlags(home) {
	try {
		return JSON.parse(fs.readFileSync(path.join(home, 'flags.json'), 'utf8'));
	} catch {
		return {};
	}
}
