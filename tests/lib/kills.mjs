// SPDX-License-Identifier: Apache-2.0
// Clients do random operations through the API while random programs of the instance are killed. A model knows what was acknowledged:
// it must be there, as it was; what was not answered may or may not have happened, but nothing in between.

import assert from 'node:assert/strict';
import { startDaemon } from './daemon.mjs';
import * as host from './host.mjs';
import { until } from './wait.mjs';

const CAUSES = ['exit', 'signal', 'oom', 'pids', 'disk', 'timeout', 'idle', 'destroyed', 'daemon_restart', 'host_reboot', 'crash', 'killed'];
const OURS = /^(siltd|silt-.*|memfd:silt-init|python3.*)$/; // by the names that the kernel shows; what runs in sandboxes is not looked at
const FILES = 4; // names in each sandbox: few, so that they meet each other
const GONE = null;

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
	}

	file(name) {
		return this.files.get(name) ?? [GONE];
	}
}

export class Kills {
	#stopped = false;
	#restarting;
	#daemonOptions;

	/** options: seconds, seed, clients, ids, daemon (options of startDaemon), everyMs (between kills). */
	constructor(options) {
		this.options = { clients: 16, ids: 60, everyMs: 500, ...options };
		this.#daemonOptions = options.daemon ?? {};
		this.known = Array.from({ length: this.options.ids }, (_, i) => new Known(`k${i}`));
		this.busy = new Set();
		this.counts = { operations: 0, unanswered: 0, refused: 0, kills: {} };
	}

	async run() {
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
				const { name } = host.processInfo(child);
				if (OURS.test(name))
					found.push({ pid: child, name });
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
			const name = random.pick(names); // a kind first: there are many more silt-inits than others
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
			const free = this.known.filter(k => !this.busy.has(k));
			const known = random.pick(free);
			this.busy.add(known);
			try {
				await this.#operate(known, random);
			} catch (error) {
				this.#stopped = true;
				throw new Error(`sandbox ${known.id}, seed ${this.options.seed}: ${error.message}`, { cause: error });
			} finally {
				this.busy.delete(known);
			}
		}
	}

	/** The answer, or undefined: nobody knows what became of it. A refusal has a code. */
	async #ask(method, url, body) {
		this.counts.operations++;
		let answer;
		try {
			answer = await this.daemon.api(method, url, body, { deadline: 60_000 });
		} catch {
			this.counts.unanswered++;
			await new Promise(resolve => setTimeout(resolve, 50)); // siltd is away: not a thousand times a second
			return undefined;
		}
		if (answer.status < 400)
			return answer;
		assert.equal(typeof answer.body?.code, 'string', `${method} ${url}: ${answer.status} without a code: ${answer.raw.toString().slice(0, 300)}`);
		this.counts.refused++;
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
		else if (doing < 88)
			await this.#expose(known, random);
		else if (doing < 94)
			await this.#checkRow(known);
		else
			await this.#destroy(known);
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
				known.context = { id: made.body.contextId, value: 'None' };
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
		const port = 8000 + random.below(3);
		const url = `/v1/sandboxes/${known.id}/ports`;
		if (known.ports.get(port) === true) {
			known.ports.set(port, undefined);
			const answer = await this.#ask('DELETE', `${url}/${port}`);
			if (answer !== undefined)
				known.ports.set(port, false);
			return;
		}
		known.ports.set(port, undefined);
		const answer = await this.#ask('POST', url, { port });
		if (answer?.status < 400)
			known.ports.set(port, true);
		await this.#checkPorts(known);
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

	// ---- the end ----

	async #checkAll() {
		for (const known of this.known) {
			await until(`sandbox ${known.id} answers`, () => this.#settleBirth(known));
			if (known.born[0] === GONE)
				continue;
			await this.#checkRow(known);
			await this.#checkPorts(known);
			for (const name of known.files.keys())
				await this.#read(known, name);
		}
		const listed = (await this.daemon.api('GET', '/v1/sandboxes?limit=1000')).body.sandboxes.map(s => s.id);
		assert.deepEqual(listed.toSorted(), this.known.filter(k => k.born[0] !== GONE).map(k => k.id).toSorted(), 'sandboxes that nobody made, or that are lost');
	}

	async #destroyAll() {
		await Promise.all(this.known.filter(k => k.born[0] !== GONE).map(async known => {
			const answer = await this.daemon.api('DELETE', `/v1/sandboxes/${known.id}`);
			assert.equal(answer.status, 200, answer.raw.toString());
		}));
	}
}

function show(content) {
	return content === GONE ? 'gone' : `${content.slice(0, 16)}…(${content.length})`;
}
