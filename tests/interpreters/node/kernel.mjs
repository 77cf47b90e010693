// SPDX-License-Identifier: Apache-2.0
// A kernel process as siltd has it: two pipes of output that are emptied before a line is looked at.

import { execFileSync, spawn } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, readSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { within } from '../../lib/wait.mjs';

const PATIENCE_MS = 120_000;
const PUMP_MS = 2;
const DIRECTORY = join(process.env.SILT_BUILD ?? new URL('../../../build', import.meta.url).pathname, 'interpreters/node');

export const BUDGET = 200_000;

/** A pipe: { write, read() } where read gives what is there now. */
function pipe(directory, name) {
	const path = join(directory, name);
	execFileSync('mkfifo', [path]);
	const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
	const writer = openSync(path, constants.O_WRONLY);
	const buffer = Buffer.alloc(1 << 20);
	const read = () => {
		const chunks = [];
		for (;;) {
			let n = 0;
			try {
				n = readSync(reader, buffer);
			} catch (error) {
				if (error.code !== 'EAGAIN')
					throw error;
			}
			if (n <= 0)
				return Buffer.concat(chunks).toString();
			chunks.push(Buffer.from(buffer.subarray(0, n)));
		}
	};
	return { writer, read, close: () => closeSync(reader) };
}

export class Kernel {
	stdout = '';
	stderr = '';
	events = []; // of the run that goes on: { stdout } { stderr } and the kernel's own messages, in order
	#waiting = new Set();
	#id = 0;

	constructor({ directory = DIRECTORY, flags = [], args = [] } = {}) {
		this.temporary = realpathSync(mkdtempSync(join(tmpdir(), 'silt-kernel-')));
		this.pipes = { stdout: pipe(this.temporary, '.out'), stderr: pipe(this.temporary, '.err') };
		this.child = spawn(process.execPath, ['--no-force-async-hooks-checks', ...flags, join(directory, 'kernel.cjs'), ...args], {
			stdio: ['ignore', this.pipes.stdout.writer, this.pipes.stderr.writer, 'pipe', 'pipe'],
			env: { PATH: process.env.PATH, HOME: this.temporary },
			detached: true,
		});
		closeSync(this.pipes.stdout.writer);
		closeSync(this.pipes.stderr.writer);
		this.ended = new Promise(resolve => this.child.on('exit', (code, signal) => resolve(signal ?? code)));
		[, , , this.control, this.lines] = this.child.stdio;
		this.control.on('error', () => undefined);
		this.lines.on('error', () => undefined);
		this.#listen();
		this.pump = setInterval(() => this.#drain(), PUMP_MS);
	}

	static async start(t, { language = 'javascript', cwd, env = {}, budget = { result: BUDGET }, ...rest } = {}) {
		const kernel = new Kernel(rest);
		t.after(() => kernel.end());
		kernel.cwd = cwd ?? kernel.temporary;
		kernel.send({ t: 'init', cwd: kernel.cwd, env, language, budget });
		kernel.first = await kernel.message('ready or failed', m => m.t === 'ready' || m.t === 'failed');
		return kernel;
	}

	#drain() {
		for (const name of ['stdout', 'stderr']) {
			const text = this.pipes[name].read();
			if (!text)
				continue;
			this[name] += text;
			this.#tell({ [name]: text });
		}
	}

	#tell(event) {
		this.events.push(event);
		for (const look of this.#waiting)
			look(event);
	}

	#listen() {
		let rest = '';
		this.lines.setEncoding('utf8');
		this.lines.on('data', data => {
			rest += data;
			const lines = rest.split('\n');
			rest = lines.pop();
			for (const line of lines) {
				this.#drain();
				this.#tell(JSON.parse(line));
			}
		});
	}

	send(message) {
		this.control.write(`${JSON.stringify(message)}\n`);
	}

	/** The next event that is wanted. */
	message(what, wanted) {
		let look;
		const found = new Promise(resolve => {
			look = event => wanted(event) && resolve(event);
			this.#waiting.add(look);
		});
		return within(PATIENCE_MS, what, found).finally(() => this.#waiting.delete(look));
	}

	/** Sends a run; over() gives all that came of it. */
	begin(code) {
		const id = ++this.#id;
		this.events = [];
		const over = this.message(`the end of ${code.slice(0, 80)}`, m => (m.t === 'done' || m.t === 'exit') && m.id === id);
		this.send({ t: 'run', id, code });
		return { over: async () => this.#outcome(await over) };
	}

	#outcome(end) {
		const text = name => this.events.map(event => event[name] ?? '').join('');
		const results = this.events.filter(event => event.t === 'result');
		return {
			stdout: text('stdout'), stderr: text('stderr'), events: this.events, results, end,
			result: results.at(-1),
			error: this.events.find(event => event.t === 'error'),
		};
	}

	run(code) {
		return this.begin(code).over();
	}

	/** Runs until the code has written the word, then interrupts. */
	async interrupt(code, word = 'started') {
		const written = this.message(word, event => event.stdout?.includes(word));
		const run = this.begin(code);
		await written;
		process.kill(-this.child.pid, 'SIGINT');
		return run.over();
	}

	async end() {
		this.control.end();
		const timer = setTimeout(() => this.child.kill('SIGKILL'), 2000);
		await this.ended;
		clearTimeout(timer);
		clearInterval(this.pump);
		this.control.destroy();
		this.lines.destroy();
		for (const each of Object.values(this.pipes))
			each.close();
		rmSync(this.temporary, { recursive: true, force: true });
	}
}
