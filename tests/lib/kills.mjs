// SPDX-License-Identifier: Apache-2.0
// Clients do random operations through the API while random programs of the instance are killed. A model knows what was acknowledged:
// it must be there, as it was; what was not answered may or may not have happened, but nothing in between. Previews lead to the sandbox they
// were made for or nowhere, and what the network's rules forbid is never reached, whoever is killed. Runs inside (inside.mjs): it has an internet of its own.

import assert from 'node:assert/strict';
import { startDaemon } from './daemon.mjs';
import * as host from './host.mjs';
import { Client } from './http.mjs';
import { Internet, NETWORK } from './internet.mjs';
import { skeletonTar } from './tar.mjs';
import { until } from './wait.mjs';

const CAUSES = ['exit', 'signal', 'oom', 'tcp_memory', 'pids', 'disk', 'timeout', 'idle', 'destroyed', 'daemon_restart', 'host_reboot', 'crash', 'killed'];
const OURS = /^(siltd|silt-.*|memfd:silt-init|python3.*)$/; // by the names that the kernel shows; what runs in sandboxes is not looked at
const FILES = 4; // names in each sandbox: few, so that they meet each other
const GONE = null;
const SERVED = 8000; // the port where a sandbox may serve who it is
const IMAGES = 3;
const VERSIONS = 4; // of each of them
const ALLOWED = 'www.example.test';
const FORBIDDEN = 'four.example.test'; // the world has both
const MODES = ['public', 'allow', 'none'];

/** Large enough that its import is met by a kill. */
const packed = version => skeletonTar(Object.fromEntries([['opt/version', { name: 'opt/version', data: `${version}\n` }],
	...Array.from({ length: 60 }, (_, i) => [`opt/f${i}`, { name: `opt/f${i}`, data: `${version} ${i}\n`.repeat(200) }])]));

/** HTTP by bash alone, in a shell of its own; it costs a small sandbox little. */
const fetching = name => `(exec 3<>/dev/tcp/${name}/80 && printf 'GET / HTTP/1.0\\r\\nHost: ${name}\\r\\n\\r\\n' >&3 && timeout 5 cat <&3) 2>/dev/null`;
const serving = text => `exec perl -MIO::Socket::INET -e '$SIG{PIPE} = "IGNORE"; $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => ${SERVED}, Listen => 9, ReuseAddr => 1) or exit 9; \
while ($c = $s->accept) { while (<$c>) { last if /^\\r?$/ } print $c "HTTP/1.0 200 OK\\r\\nContent-Length: ${text.length}\\r\\n\\r\\n${text}"; close $c }'`;

/** Numbers from a seed (mulberry32). */
function dice(seed) {
	let state = seed >>> 0;
	const next = () => {
		state = (state + 0x6d2b79f5) >>> 0;
		let t = Math.imul(state ^ (state >>> 15), state | 1);
		t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
		return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
	};
	return { below: n => Math.floor(next() * n), pick: list => list[Math.floor(next() * list.length)], text: () => Math.floor(next() * 2 ** 32).toString(36) };
}

/** What is known of one id. A value that is not certain is a set of those that are possible. */
class Known {
	constructor(id) {
		this.id = id;
		this.forget();
	}

	forget() {
		this.born = [GONE]; // labels that it may have; GONE: there is no sandbox
		this.files = new Map();
		this.ports = new Map();
		this.processes = new Set();
		this.variable = undefined;
		this.context = undefined;
		this.network = ['public']; // modes that it may have
		this.previews = new Map(); // by port, the host of the last URL; the next instance has another port for all of them
		this.serves = false; // a server was started in this life; it may have ended
	}

	/** What its server says: nobody else's says that. */
	get text() {
		return `${this.id} ${this.born[0]}`;
	}

	file(name) {
		return this.files.get(name) ?? [GONE];
	}
}

/** An image's name and the versions that it may be; GONE: there is none. */
class KnownImage {
	constructor(name) {
		this.name = name;
		this.versions = [GONE];
	}
}

export class Kills {
	#stopped = false;
	#restarting;
	#daemonOptions;

	/** options: seconds, seed, clients, ids, daemon (options of startDaemon), everyMs (between kills). */
	constructor(options) {
		this.options = { clients: 16, ids: 60, everyMs: 500, ...options };
		this.#daemonOptions = { ...options.daemon, flags: { ...NETWORK.flags, ...options.daemon?.flags } };
		this.images = Array.from({ length: IMAGES }, (_, i) => new KnownImage(`kills${i}`));
		this.digests = new Map(); // by version, as the first import told
		this.known = Array.from({ length: this.options.ids }, (_, i) => new Known(`k${i}`));
		this.busy = new Set();
		this.counts = { operations: 0, unanswered: 0, refused: {}, visits: 0, reached: 0, imports: 0, kills: {} };
	}

	async run() {
		const internet = await Internet.start();
		try {
			return await this.#run();
		} finally {
			internet.stop();
		}
	}

	async #run() {
		this.daemon = await startDaemon(this.#daemonOptions);
		try {
			const before = await this.daemon.atRest();
			const end = Date.now() + this.options.seconds * 1000;
			const clients = Array.from({ length: this.options.clients }, (_, i) => this.#client(dice(this.options.seed + i), end));
			const killer = this.#killer(dice(this.options.seed - 1), end);
			await Promise.all([...clients, killer]).finally(() => { this.#stopped = true; });
			await this.daemon.healthy();
			await this.#checkAll();
			await this.#destroyAll();
			await this.daemon.settles(before);
		} finally {
			this.#stopped = true;
			await this.#restarting?.catch(() => {});
			await this.daemon.stop();
		}
		return this.counts;
	}

	// ---- killing ----

	#victims() {
		const found = [];
		const walk = pid => {
			for (const child of host.children(pid)) {
				const { name, command } = host.processInfo(child);
				if (OURS.test(name))
					found.push({ pid: child, name: name === 'silt-proxy' ? command[0] ?? name : name }); // its first word is its role: silt-dial
				if (name !== 'memfd:silt-init')
					walk(child);
			}
		};
		walk(this.daemon.pid);
		return found;
	}

	async #killer(random, end) {
		while (Date.now() < end && !this.#stopped) {
			await new Promise(resolve => setTimeout(resolve, random.below(2 * this.options.everyMs)));
			if (random.below(40) === 0) {
				await this.#killAll();
				continue;
			}
			const all = this.#victims();
			const names = [...new Set(all.map(v => v.name))];
			if (names.length === 0)
				continue;
			const counted = name => this.counts.kills[name] ?? 0;
			const least = names.filter(name => counted(name) === Math.min(...names.map(counted)));
			const name = random.pick(random.below(4) === 0 ? least : names); // a kind first, and rare ones while they are there: there are many more silt-inits than others
			const { pid } = random.pick(all.filter(v => v.name === name));
			try {
				process.kill(pid, 'SIGKILL');
				this.#count(name);
			} catch (error) {
				assert.equal(error.code, 'ESRCH');
			}
		}
	}

	#count(name) {
		this.counts.kills[name] = (this.counts.kills[name] ?? 0) + 1;
	}

	/** silt-super, and with it the instance; it is started again, and the clients wait for that. */
	async #killAll() {
		this.#restarting = (async () => {
			await this.daemon.crash();
			this.#count('silt-super');
			this.daemon = await startDaemon({ ...this.#daemonOptions, home: this.daemon.home });
		})();
		await this.#restarting;
		this.#restarting = undefined;
	}

	// ---- clients ----

	async #client(random, end) {
		while (Date.now() < end && !this.#stopped) {
			await this.#restarting;
			const all = random.below(20) === 0 ? this.images : this.known;
			const free = all.filter(k => !this.busy.has(k));
			if (free.length === 0)
				continue;
			const known = random.pick(free);
			this.busy.add(known);
			try {
				await (known instanceof KnownImage ? this.#operateImage(known, random) : this.#operate(known, random));
			} catch (error) {
				this.#stopped = true;
				throw new Error(`${known.id ?? known.name}, seed ${this.options.seed}: ${error.message}`, { cause: error });
			} finally {
				this.busy.delete(known);
			}
		}
	}

	/** The answer, or undefined: nobody knows what became of it. A refusal has a code. */
	async #ask(method, url, body, options = {}) {
		this.counts.operations++;
		let answer;
		try {
			answer = await this.daemon.api(method, url, body, { deadline: 60_000, ...options });
		} catch {
			this.counts.unanswered++;
			await new Promise(resolve => setTimeout(resolve, 50)); // siltd is away: not a thousand times a second
			return undefined;
		}
		if (answer.status < 400)
			return answer;
		assert.equal(typeof answer.body?.code, 'string', `${method} ${url}: ${answer.status} without a code: ${answer.raw.toString().slice(0, 300)}`);
		this.counts.refused[answer.body.code] = (this.counts.refused[answer.body.code] ?? 0) + 1;
		return answer.status === 404 ? answer : undefined; // else: interrupted, or no room; it may have happened
	}

	async #operate(known, random) {
		if (known.born.length > 1 && !await this.#settleBirth(known))
			return;
		if (known.born[0] === GONE) {
			await this.#create(known, random);
			return;
		}
		const doing = random.below(100);
		if (doing < 30)
			await this.#write(known, random);
		else if (doing < 50)
			await this.#read(known, `f${random.below(FILES)}`);
		else if (doing < 58)
			await this.#remove(known, `f${random.below(FILES)}`);
		else if (doing < 64)
			await this.#rename(known, random);
		else if (doing < 76)
			await this.#session(known, random);
		else if (doing < 79)
			await this.#context(known, random);
		else if (doing < 82)
			await this.#process(known, random);
		else if (doing < 86)
			await this.#expose(known, random);
		else if (doing < 89)
			await this.#visit(known);
		else if (doing < 91)
			await this.#setNetwork(known, random);
		else if (doing < 93)
			await this.#reach(known, random);
		else if (doing < 96)
			await this.#checkRow(known);
		else
			await this.#destroy(known);
	}

	async #operateImage(image, random) {
		const doing = random.below(10);
		if (doing < 5)
			await this.#import(image, random.below(VERSIONS));
		else if (doing < 7)
			await this.#checkImage(image);
		else if (doing < 9)
			await this.#useImage(image);
		else
			await this.#removeImage(image);
	}

	// ---- the sandbox and its row ----

	async #settleBirth(known) {
		const answer = await this.#ask('GET', `/v1/sandboxes/${known.id}`);
		if (answer === undefined || (answer.status === 200 && answer.body.state === 'running' && answer.body.startedAt === null)) // a new siltd finishes what was cut off
			return false;
		const born = answer.status === 404 ? GONE : answer.body.labels?.born ?? 'without labels';
		assert.ok(known.born.includes(born), `it is ${born}, and may be ${known.born}`);
		if (born === GONE)
			known.forget();
		known.born = [born];
		return true;
	}

	async #create(known, random) {
		const born = random.text();
		known.forget();
		known.born = [GONE, born];
		const answer = await this.#ask('POST', '/v1/sandboxes', { id: known.id, labels: { born }, type: 'lite' });
		if (answer !== undefined)
			known.born = [born];
	}

	async #destroy(known) {
		known.born = [...known.born, GONE];
		const answer = await this.#ask('DELETE', `/v1/sandboxes/${known.id}`);
		if (answer !== undefined)
			known.forget();
	}

	async #checkRow(known) {
		const answer = await this.#ask('GET', `/v1/sandboxes/${known.id}`);
		if (answer === undefined)
			return;
		assert.equal(answer.status, 200, `${known.id} is lost`);
		assert.equal(answer.body.labels?.born, known.born[0], 'the labels that were acknowledged');
		const death = answer.body.lastDeath?.cause;
		assert.ok(death === undefined || CAUSES.includes(death), `cause ${death}`);
	}

	// ---- files ----

	#url(known, name) {
		return `/v1/sandboxes/${known.id}/files?path=/workspace/${name}`;
	}

	async #write(known, random) {
		const name = `f${random.below(FILES)}`;
		const content = random.text().repeat(1 + random.below(random.below(20) === 0 ? 20_000 : 50));
		known.files.set(name, [...known.file(name), content]);
		const answer = await this.#ask('PUT', this.#url(known, name), content);
		if (answer !== undefined) {
			assert.ok(answer.status < 400, `PUT ${name}: ${answer.status} ${answer.raw}`);
			known.files.set(name, [content]);
		}
	}

	async #read(known, name) {
		const answer = await this.#ask('GET', this.#url(known, name));
		if (answer === undefined)
			return;
		const content = answer.status === 404 ? GONE : answer.raw.toString();
		if (answer.status === 404)
			assert.equal(answer.body.code, 'FILE_NOT_FOUND', `${known.id} is lost`);
		assert.ok(known.file(name).includes(content), `${name} is ${show(content)}, and may be ${known.file(name).map(show).join(' or ')}`);
		known.files.set(name, [content]);
	}

	async #remove(known, name) {
		known.files.set(name, [...known.file(name), GONE]);
		const answer = await this.#ask('DELETE', this.#url(known, name));
		if (answer?.status < 400 || answer?.body.code === 'FILE_NOT_FOUND')
			known.files.set(name, [GONE]);
	}

	async #rename(known, random) {
		const [from, to] = [`f${random.below(FILES)}`, `r${random.below(2)}`];
		const before = known.file(from);
		known.files.set(to, [...known.file(to), ...before]);
		known.files.set(from, [...before, GONE]);
		const answer = await this.#ask('POST', `/v1/sandboxes/${known.id}/files/move`, { path: `/workspace/${from}`, to: `/workspace/${to}`});
		if (answer?.status < 400) {
			known.files.set(to, before.filter(content => content !== GONE));
			known.files.set(from, [GONE]);
		}
	}

	// ---- what runs ----

	async #session(known, random) {
		const value = random.text();
		const answer = await this.#ask('POST', `/sandboxes/${known.id}/api/execute`, { command: `echo "$V"; V=${value}`, sessionId: 'kills' });
		const former = known.variable;
		known.variable = undefined; // not answered: this one or that
		if (answer?.status !== 200)
			return;
		const said = answer.body.stdout.trim();
		assert.equal(answer.body.exitCode, 0, `a shell ended with ${answer.body.exitCode}`);
		assert.ok(former === undefined || said === former || said === '', `the session says ${said}, and may say ${former} or nothing`);
		known.variable = value;
	}

	/** One Python context, whose variable is what was acknowledged for as long as the context is there. */
	async #context(known, random) {
		const url = `/v1/sandboxes/${known.id}/contexts`;
		if (known.context === undefined) {
			const made = await this.#ask('POST', url, { language: 'python' });
			if (made?.status < 400)
				known.context = { id: made.body.id, value: 'None' };
			return;
		}
		const { id, value: former } = known.context;
		const value = random.text();
		known.context = undefined; // not answered, or gone: another one next time
		const answer = await this.#ask('POST', `${url}/${id}/run`, { code: `print(globals().get('v'))\nv = '${value}'` });
		if (answer?.status !== 200 || answer.body.error)
			return;
		assert.equal(answer.body.logs.stdout.join('').trim(), former, 'the variable of a context');
		known.context = { id, value };
	}

	async #process(known, random) {
		const url = `/v1/sandboxes/${known.id}/processes`;
		if (known.processes.size < 3) {
			const answer = await this.#ask('POST', url, { command: 'sleep 1000' });
			if (answer !== undefined) {
				assert.ok(answer.status < 400, `POST ${url}: ${answer.raw}`);
				known.processes.add(answer.body.id ?? answer.body.process?.id);
			}
			return;
		}
		const id = random.pick([...known.processes]);
		const answer = await this.#ask('GET', `${url}/${id}`);
		if (answer === undefined)
			return;
		assert.equal(answer.status, 200, `process ${id} is lost`);
		const { status, cause } = answer.body.process ?? answer.body;
		assert.ok(status === 'running' || status === 'starting' || CAUSES.includes(cause), `process ${id} is ${status}, cause ${cause}`);
		if (status !== 'running' && status !== 'starting')
			known.processes.delete(id);
	}

	async #expose(known, random) {
		const port = SERVED + random.below(3);
		const url = `/v1/sandboxes/${known.id}/ports`;
		if (known.ports.get(port) === true) {
			known.ports.set(port, undefined);
			const answer = await this.#ask('DELETE', `${url}/${port}`);
			if (answer !== undefined)
				known.ports.set(port, false);
			return;
		}
		await this.#exposePort(known, port);
		await this.#checkPorts(known);
	}

	async #exposePort(known, port) {
		known.ports.set(port, undefined);
		const answer = await this.#ask('POST', `/v1/sandboxes/${known.id}/ports`, { port });
		if (answer?.status < 400) {
			known.ports.set(port, true);
			known.previews.set(port, new URL(answer.body.url).hostname);
		}
	}

	async #checkPorts(known) {
		const answer = await this.#ask('GET', `/v1/sandboxes/${known.id}/ports`);
		if (answer === undefined)
			return;
		assert.equal(answer.status, 200, `${known.id} is lost`);
		const open = new Set(answer.body.ports.map(p => p.port));
		for (const [port, exposed] of known.ports) {
			if (exposed !== undefined)
				assert.equal(open.has(port), exposed, `port ${port} is exposed: ${open.has(port)}`);
		}
	}

	// ---- previews ----

	/** As a visitor: a URL leads to its own sandbox, or nowhere. */
	async #visit(known) {
		if (!known.previews.has(SERVED))
			await this.#exposePort(known, SERVED);
		const exposed = known.ports.get(SERVED);
		if (exposed === true && !known.serves)
			known.serves = (await this.#ask('POST', `/v1/sandboxes/${known.id}/processes`, { command: serving(known.text) }))?.status < 400;
		const host = known.previews.get(SERVED);
		if (host === undefined)
			return;
		const answer = await this.#look(host);
		if (answer?.status === 200)
			assert.equal(answer.raw.toString(), known.text, `the preview of ${known.id}`);
		if (exposed === false)
			assert.notEqual(answer?.status, 200, `port ${SERVED} is not exposed any more, and its URL leads to it`);
		if (exposed === true && answer?.status !== 200)
			known.serves = false; // it may have ended: another one next time
	}

	async #look(name) {
		const host = `${name}:${this.daemon.previews.split(':').at(-1)}`;
		this.counts.visits++;
		const client = new Client(this.daemon.previews, false);
		try {
			return await client.api('GET', '/', undefined, { headers: { host }, deadline: 10_000 });
		} catch {
			this.counts.unanswered++;
			return undefined;
		} finally {
			client.close();
		}
	}

	// ---- the network ----

	async #setNetwork(known, random) {
		const mode = random.pick(MODES);
		known.network = [...known.network, mode];
		const answer = await this.#ask('PUT', `/v1/sandboxes/${known.id}/network`, mode === 'allow' ? { mode, allow: [ALLOWED] } : { mode });
		if (answer === undefined)
			return;
		assert.equal(answer.status, 200, `${known.id} is lost`);
		known.network = [mode];
	}

	async #checkNetwork(known) {
		const answer = await this.#ask('GET', `/v1/sandboxes/${known.id}/network`);
		if (answer === undefined)
			return;
		assert.equal(answer.status, 200, `${known.id} is lost`);
		const { mode, allow } = answer.body;
		assert.ok(known.network.includes(mode), `the network's mode is ${mode}, and may be ${known.network}`);
		assert.deepEqual(allow ?? [], mode === 'allow' ? [ALLOWED] : []);
		known.network = [mode];
	}

	/** What is forbidden is never reached; what is allowed is reached or not, while silt-proxy and silt-dial are killed. */
	async #reach(known, random, name = random.pick([ALLOWED, FORBIDDEN])) {
		const open = known.network.includes('public') || (known.network.includes('allow') && name === ALLOWED);
		const answer = await this.#ask('POST', `/sandboxes/${known.id}/api/execute`, { command: fetching(name), sessionId: 'network' });
		if (answer?.status !== 200)
			return false;
		const reached = answer.body.stdout.includes('world ');
		assert.ok(open || !reached, `${name} is reached from ${known.id}, whose network may be ${known.network}: ${answer.body.stdout}`);
		if (reached)
			assert.match(answer.body.stdout, new RegExp(`world .* ${name}\n$`));
		this.counts.reached += reached;
		return reached;
	}

	// ---- images ----

	async #import(image, version) {
		image.versions = [...image.versions, version];
		const answer = await this.#ask('PUT', `/v1/images/${image.name}?kind=host`, packed(version), { headers: { 'content-type': 'application/x-tar' } });
		if (answer === undefined)
			return;
		assert.equal(answer.status, 201, answer.raw.toString());
		assert.equal(answer.body.digest, this.digests.get(version) ?? answer.body.digest, 'the same bytes are the same image');
		this.digests.set(version, answer.body.digest);
		this.counts.imports++;
		image.versions = [version];
	}

	async #checkImage(image) {
		const answer = await this.#ask('GET', `/v1/images/${image.name}`);
		if (answer === undefined)
			return false;
		if (answer.status === 404) {
			assert.ok(image.versions.includes(GONE), `image ${image.name} is lost`);
			image.versions = [GONE];
			return true;
		}
		const fits = image.versions.filter(v => v !== GONE && (this.digests.get(v) ?? answer.body.digest) === answer.body.digest);
		assert.notEqual(fits.length, 0, `image ${image.name} is ${answer.body.digest}, and may be version ${image.versions}`);
		image.versions = fits;
		return true;
	}

	/** A sandbox of it has its files, all of them. */
	async #useImage(image) {
		if (image.versions.length !== 1 || image.versions[0] === GONE)
			return;
		const id = `of-${image.name}`;
		const made = await this.#ask('POST', '/v1/sandboxes', { id, image: image.name, type: 'basic' });
		assert.notEqual(made?.status, 404, `image ${image.name} is lost`);
		const answer = made && await this.#ask('POST', `/sandboxes/${id}/api/execute`, { command: 'cat /opt/version; ls /opt | wc -l' });
		if (answer?.status === 200 && answer.body.exitCode === 0)
			assert.equal(answer.body.stdout, `${image.versions[0]}\n61\n`, `the files of image ${image.name}`);
		await until(`${id} is destroyed`, async () => (await this.#ask('DELETE', `/v1/sandboxes/${id}`))?.status === 200, 120_000);
	}

	async #removeImage(image) {
		image.versions = [...image.versions, GONE];
		const answer = await this.#ask('DELETE', `/v1/images/${image.name}`);
		if (answer !== undefined)
			image.versions = [GONE];
	}

	// ---- the end ----

	async #checkAll() {
		for (const known of this.known) {
			await until(`sandbox ${known.id} answers`, () => this.#settleBirth(known));
			if (known.born[0] === GONE)
				continue;
			await this.#checkRow(known);
			await this.#checkPorts(known);
			await this.#checkNetwork(known);
			for (const name of known.files.keys())
				await this.#read(known, name);
		}
		for (const image of this.images)
			await until(`image ${image.name} is known`, () => this.#checkImage(image));
		await this.#checkWays();
		const listed = (await this.daemon.api('GET', '/v1/sandboxes?limit=1000')).body.sandboxes.map(s => s.id);
		assert.deepEqual(listed.toSorted(), this.known.filter(k => k.born[0] !== GONE).map(k => k.id).toSorted(), 'sandboxes that nobody made, or that are lost');
	}

	/** Nobody is killed any more: what is allowed and exposed is reached. */
	async #checkWays() {
		for (const known of this.known.filter(k => k.born[0] !== GONE).slice(0, 12)) {
			const [mode] = known.network;
			if (mode !== 'none')
				await until(`${ALLOWED} is reached from ${known.id} (${mode})`, () => this.#reach(known, undefined, ALLOWED));
			if (mode !== 'public')
				await this.#reach(known, undefined, FORBIDDEN);
			if (known.ports.get(SERVED) === true && known.previews.has(SERVED)) {
				await this.#ask('POST', `/v1/sandboxes/${known.id}/processes`, { command: serving(known.text) }); // or there is one
				await until(`the preview of ${known.id}`, async () => {
					const answer = await this.#look(known.previews.get(SERVED));
					assert.equal(answer?.raw.toString(), known.text);
					return true;
				});
			}
		}
	}

	async #destroyAll() {
		for (const image of this.images)
			assert.ok((await this.daemon.api('DELETE', `/v1/images/${image.name}`)).status < 400);
		await Promise.all(this.known.filter(k => k.born[0] !== GONE).map(async known => {
			const answer = await this.daemon.api('DELETE', `/v1/sandboxes/${known.id}`);
			assert.equal(answer.status, 200, answer.raw.toString());
		}));
	}
}

function show(content) {
	return content === GONE ? 'gone' : `${content.slice(0, 16)}…(${content.length})`;
}
