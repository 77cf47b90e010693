// SPDX-License-Identifier: Apache-2.0
// The internet of the network tests: the test's own namespace (see inside.mjs) is the host, with one interface; another namespace is the world, which owns
// every address that a test tries. Nothing else is reachable, so nothing can leave the machine, also when a protection fails.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { until, within } from './wait.mjs';

export const PUBLIC = { 4: '93.184.215.14', 6: '2606:4700::1111' };
export const HOST = { 4: '192.0.2.2', 6: '2001:db8:1::2' };
export const WORLD = { 4: '192.0.2.1', 6: '2001:db8:1::1' };
/** Private, link-local and metadata addresses, and such as hide one of them. */
export const CLOSED = ['169.254.169.254', '10.1.2.3', '172.16.5.5', '192.168.7.7', '100.100.100.200', '168.63.129.16', 'fd00:ec2::254', 'fd20:ce::254', '64:ff9b::a9fe:a9fe', '2002:a9fe:a9fe::1'];

function run(command, ...words) {
	const done = spawnSync(command, words, { encoding: 'utf8' });
	assert.equal(done.status, 0, `${command} ${words.join(' ')}: ${done.error ?? done.stderr}`);
	return done.stdout;
}

/** Options of a daemon that uses this internet. */
export const NETWORK = { flags: { network: 'auto', 'network.resolvers': `${WORLD[4]},${WORLD[6]}` } };

/** HTTP by bash alone: whatever the image has, it has bash. */
export const get = (address, port = 80) => `exec 3<>/dev/tcp/${address}/${port} && printf 'GET / HTTP/1.0\\r\\nHost: x\\r\\n\\r\\n' >&3 && timeout 20 cat <&3`;

/** Of the link of a sandbox, by its first process. */
export function addresses(pid) {
	return run('nsenter', '--target', String(pid), '--net', 'ip', '-brief', 'address', 'show', 'dev', 'eth0').match(/[0-9a-f.:]+(?=\/)/g);
}

/** A command in the network namespace of a sandbox, by its first process: with the rights of the machine, which the sandbox does not have. */
export function inside(pid, ...words) {
	return spawnSync('nsenter', ['--target', String(pid), '--net', ...words], { encoding: 'utf8' });
}

/** A command in the routing namespace, which has no name: silt-super holds it by a descriptor. */
export function gate(daemon, ...words) {
	const own = fs.readlinkSync('/proc/self/ns/net');
	const directory = `/proc/${daemon.pid}/fd`;
	const fd = fs.readdirSync(directory).find(name => {
		try {
			const target = fs.readlinkSync(`${directory}/${name}`);
			return target.startsWith('net:') && target !== own;
		} catch {
			return false; // closed meanwhile
		}
	});
	return spawnSync('nsenter', [`--net=${directory}/${fd}`, ...words], { encoding: 'utf8' }).stdout;
}

export const ip = (...words) => run('ip', ...words);

export class Internet {
	#holder;
	#server;

	/** options: addresses (more of the world's), servers (false: world.mjs is not started, others serve: services.mjs). */
	static async start({ addresses = [], servers = true } = {}) {
		assert.deepEqual(fs.readFileSync('/proc/net/dev', 'utf8').match(/\w+(?=:)/g), ['lo'], 'the test is in a network namespace of its own (inside.mjs)');
		const internet = new Internet();
		internet.#holder = spawn('unshare', ['--net', 'cat'], { stdio: ['pipe', 'ignore', 'ignore'] }); // ends with us, however we end
		const own = fs.readlinkSync('/proc/self/ns/net');
		await until('the world', () => fs.readlinkSync(`/proc/${internet.#holder.pid}/ns/net`) !== own);
		try {
			internet.#connect(addresses);
			if (servers)
				await internet.#serve();
		} catch (error) {
			internet.stop();
			throw error;
		}
		return internet;
	}

	/** Of a process in the world's namespace. */
	get pid() {
		return this.#holder.pid;
	}

	/** A command in the world. */
	world(...words) {
		return run('nsenter', `--net=/proc/${this.#holder.pid}/ns/net`, ...words);
	}

	/** A program in the world, which ends with us, however we end. */
	spawn(words, options) {
		return spawn('nsenter', [`--net=/proc/${this.#holder.pid}/ns/net`, 'setpriv', '--pdeathsig', 'KILL', ...words], options);
	}

	#connect(more) {
		ip('link', 'set', 'lo', 'up');
		ip('link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(this.#holder.pid));
		for (const name of ['lo', 'eth0'])
			this.world('ip', 'link', 'set', name, 'up');
		ip('link', 'set', 'eth0', 'up');
		for (const family of [4, 6]) {
			const bits = family === 4 ? 24 : 64;
			const flags = family === 4 ? [] : ['nodad'];
			ip('address', 'add', `${HOST[family]}/${bits}`, 'dev', 'eth0', ...flags);
			this.world('ip', 'address', 'add', `${WORLD[family]}/${bits}`, 'dev', 'eth0', ...flags);
			ip(`-${family}`, 'route', 'add', 'default', 'via', WORLD[family]);
		}
		for (const address of [PUBLIC[4], PUBLIC[6], ...CLOSED, ...more])
			this.world('ip', 'address', 'add', address, 'dev', 'lo');
	}

	async #serve() {
		this.#server = spawn('nsenter', [`--net=/proc/${this.#holder.pid}/ns/net`, process.execPath, path.join(import.meta.dirname, 'world.mjs')], { stdio: ['pipe', 'pipe', 'inherit'] });
		await within(60_000, 'the servers of the world', new Promise(resolve => this.#server.stdout.once('data', resolve)));
	}

	stop() {
		this.#server?.kill('SIGKILL');
		this.#holder?.kill('SIGKILL');
	}
}
