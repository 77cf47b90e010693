// SPDX-License-Identifier: Apache-2.0
// Background processes: started, listed, ended, followed, fed.
import { Bytes, commandFields, Commands, type WireOutput } from './commands.js';
import { defined, LINK, withExtras } from './core.js';
import { clientError, type SandboxError } from './errors.js';
import { eventStream, resume, type Cursor, type EventStream } from './stream.js';
import { brokenOff } from './transport.js';
import type { BackgroundOptions, LogEvent, Process, ProcessLogs, ProcessOptions, ProcessStatus, WaitForExitResult, WaitForLogResult, WaitForPortOptions } from './types.js';

const GRACE_MS = 5_000; // between TERM and KILL
const LONGEST_WAIT_MS = 600_000; // of one request; the server's limit
const TICK_MS = 30_000; // how long one request waits where no time is given

/** A process as the server shows it. */
export interface ProcessRow {
	id: string;
	pid?: number;
	command: string;
	status: ProcessStatus;
	startTime: string;
	endTime?: string;
	exitCode?: number;
	signal?: number;
	cause?: string;
	sessionId?: string;
	kind?: string;
}

interface WaitAnswer {
	reached: boolean;
	reason?: 'timeout' | 'exited';
	line?: string;
	cursor?: number;
	status: ProcessStatus;
	exitCode?: number;
}

const RUNNING: ReadonlySet<string> = new Set(['starting', 'running']);

/** Processes of a sandbox or session. */
export class Processes extends Commands {
	/**
	 * Starts a command in the background, in a copy of the session's bash.
	 * @param sessionId wins over the options
	 */
	async startProcess(command: string, options: ProcessOptions = {}, sessionId?: string): Promise<Process> {
		const session = this.sessionOf(sessionId ?? options);
		try {
			const process = this.#process(await this.#launch(defined({ command, sessionId: session ?? undefined, processId: options.processId, user: options.user, autoCleanup: options.autoCleanup, ...commandFields(options) })));
			options.onStart?.(process);
			if (options.onOutput || options.onExit)
				void this.#report(process.id, options);
			return process;
		} catch (error) {
			options.onError?.(error as Error);
			throw error;
		}
	}

	#launch(json: Record<string, unknown>): Promise<ProcessRow> {
		return this[LINK].call<ProcessRow>('POST', '/v1/sandboxes/{id}/processes', { json, keyed: true });
	}

	async #report(id: string, { onOutput, onExit, onError, signal }: ProcessOptions): Promise<void> {
		try {
			for await (const event of this.#log(id, signal))
				if (event.type === 'stdout' || event.type === 'stderr')
					onOutput?.(event.type, event.data);
				else if (event.type === 'exit')
					onExit?.(event.exitCode ?? null);
		} catch (error) {
			onError?.(error as Error);
		}
	}

	/** Starts a command in the background and gives a handle, for its input, output and end. */
	async background(command: string | string[], options: BackgroundOptions = {}): Promise<CommandHandle> {
		const session = this.sessionOf(options);
		const words = typeof command === 'string' ? { command } : { argv: command };
		const row = await this.#launch(defined({ ...words, sessionId: typeof command === 'string' ? session ?? undefined : undefined, processId: options.processId, user: options.user, stdin: options.stdin, autoCleanup: options.autoCleanup, ...commandFields(options) }));
		return new CommandHandle(this, row, options);
	}

	/** A handle of a process that runs already. */
	async attach(id: string, options: Pick<BackgroundOptions, 'onStdout' | 'onStderr'> = {}): Promise<CommandHandle> {
		return new CommandHandle(this, await this.#row(id), options);
	}

	#row(id: string): Promise<ProcessRow> {
		return this[LINK].call<ProcessRow>('GET', '/v1/sandboxes/{id}/processes/{process}', { path: { process: id } });
	}

	/** All processes with a record, finished ones too. */
	async listProcesses(_sessionId?: string): Promise<Process[]> {
		const { processes } = await this[LINK].call<{ processes: ProcessRow[] }>('GET', '/v1/sandboxes/{id}/processes');
		return processes.filter(row => (row.kind ?? 'process') === 'process').map(row => this.#process(row));
	}

	/** All processes, also those without a record; `kind` says what each belongs to. */
	async listAllProcesses(): Promise<ProcessRow[]> {
		return (await this[LINK].call<{ processes: ProcessRow[] }>('GET', '/v1/sandboxes/{id}/processes')).processes;
	}

	/** A process by its id; null when there is none. */
	async getProcess(id: string, _sessionId?: string): Promise<Process | null> {
		try {
			return this.#process(await this.#row(id));
		} catch (error) {
			if ((error as SandboxError).code === 'PROCESS_NOT_FOUND')
				return null;
			throw error;
		}
	}

	/** Ends a process and all it started: with the signal, or TERM, and KILL after five seconds. */
	async killProcess(id: string, signal?: string | number): Promise<void> {
		if (!RUNNING.has((await this.#row(id)).status))
			return; // DELETE would drop its record
		if (signal === undefined)
			await this[LINK].call('DELETE', '/v1/sandboxes/{id}/processes/{process}', { path: { process: id }, query: { graceMs: GRACE_MS } });
		else
			await this[LINK].call('DELETE', '/v1/sandboxes/{id}/processes/{process}', { path: { process: id }, query: { signal: nameOf(signal), graceMs: GRACE_MS } });
	}

	/** Sends a signal; nothing else happens. */
	async signalProcess(id: string, signal: string | number): Promise<void> {
		await this[LINK].call('POST', '/v1/sandboxes/{id}/processes/{process}/signal', { path: { process: id }, json: { signal: nameOf(signal) } });
	}

	/** Ends all processes; how many there were. */
	async killAllProcesses(): Promise<number> {
		return (await this[LINK].call<{ count: number }>('DELETE', '/v1/sandboxes/{id}/processes')).count;
	}

	/** Drops the records of processes that have ended; how many there were. */
	async cleanupCompletedProcesses(): Promise<number> {
		return (await this[LINK].call<{ count: number }>('DELETE', '/v1/sandboxes/{id}/processes', { query: { state: 'ended' } })).count;
	}

	/** What a process has written so far. */
	async getProcessLogs(id: string): Promise<ProcessLogs> {
		const read = (stream: string): Promise<string> => this[LINK].open('GET', '/v1/sandboxes/{id}/processes/{process}/logs', { path: { process: id }, query: { stream } }).then(response => response.text());
		const [stdout, stderr] = await Promise.all([read('stdout'), read('stderr')]);
		const both = stdout + stderr;
		return withExtras({ stdout, stderr, processId: id }, {
			toString: () => both,
			[Symbol.toPrimitive]: () => both,
			includes: (text: string, position?: number) => both.includes(text, position),
			split: (separator: string | RegExp, limit?: number) => both.split(separator, limit),
			trim: () => both.trim(),
			match: (pattern: string | RegExp) => both.match(pattern),
			length: both.length,
		});
	}

	/** The bytes of a process's output, unchanged. */
	async readProcessOutput(id: string, stream: 'stdout' | 'stderr' = 'stdout'): Promise<Uint8Array> {
		return (await this[LINK].open('GET', '/v1/sandboxes/{id}/processes/{process}/logs', { path: { process: id }, query: { stream } })).bytes();
	}

	/** What a process has written and writes, as server-sent events, until it ends. */
	async streamProcessLogs(id: string, options: { signal?: AbortSignal; cursor?: number } = {}): Promise<EventStream<LogEvent>> {
		const first = await this.#openLog(id, options.cursor, options.signal);
		return eventStream(this.#log(id, options.signal, options.cursor, first), options.signal);
	}

	async #openLog(id: string, cursor: Cursor | undefined, signal?: AbortSignal): Promise<ReadableStream<Uint8Array>> {
		return (await this[LINK].open('GET', '/v1/sandboxes/{id}/processes/{process}/stream', { path: { process: id }, query: { cursor }, accept: 'text/event-stream', slow: true, signal })).stream();
	}

	async *#log(id: string, signal?: AbortSignal, from?: number, first?: ReadableStream<Uint8Array>): AsyncGenerator<LogEvent, void, undefined> {
		const decoders = { stdout: new Bytes(), stderr: new Bytes() };
		const events = resume<LogEvent & WireOutput>({
			what: `the log of process ${id}`,
			open: cursor => this.#openLog(id, cursor ?? from, signal),
			cursor: event => event.cursor,
			isLast: event => event.type === 'exit' || event.type === 'error',
			fromStart: true,
			signal,
		}, first);
		let told = false;
		for await (const { base64, ...event } of events) {
			if (event.type === 'process_info') {
				if (told)
					continue; // of a stream that was opened again
				told = true;
			}
			const data = event.type === 'stdout' || event.type === 'stderr' ? decoders[event.type].text(event.data ?? '', base64) : event.data ?? '';
			yield { ...event, data, processId: event.processId ?? id };
		}
	}

	/** @internal Events of a log, for handles. */
	logEvents(id: string, signal?: AbortSignal): AsyncGenerator<LogEvent, void, undefined> {
		return this.#log(id, signal);
	}

	/** Writes to the standard input of a process that was started with `stdin: true`. */
	async writeProcessStdin(id: string, data: string | Uint8Array | Blob | ReadableStream<Uint8Array>, options: { close?: boolean } = {}): Promise<{ bytes: number; closed: boolean }> {
		return this[LINK].call('PUT', '/v1/sandboxes/{id}/processes/{process}/stdin', { path: { process: id }, query: { close: options.close || undefined }, body: data, headers: { 'Content-Type': 'application/octet-stream' }, slow: true });
	}

	/** @internal Waits at the server, in requests of half a minute, until something is reached or the time is over. */
	async wait(row: { id: string; command: string }, condition: string, query: Record<string, string | number | undefined>, timeout?: number): Promise<WaitAnswer> {
		const deadline = timeout === undefined ? Infinity : Date.now() + timeout;
		for (let cursor: number | undefined; ;) {
			const timeoutMs = Math.max(1, Math.min(deadline - Date.now(), TICK_MS, LONGEST_WAIT_MS));
			const answer = await this[LINK].call<WaitAnswer>('GET', '/v1/sandboxes/{id}/processes/{process}/wait', { path: { process: row.id }, query: { ...query, cursor, timeoutMs: Math.ceil(timeoutMs) }, slow: true });
			if (answer.reached)
				return answer;
			if (answer.reason === 'exited')
				throw clientError('PROCESS_EXITED_BEFORE_READY', 500, `process ${row.id} (${row.command}) ended with ${answer.exitCode} before ${condition}`, { processId: row.id, command: row.command, condition, exitCode: answer.exitCode });
			cursor = answer.cursor ?? cursor;
			if (Date.now() >= deadline)
				throw timedOut(row, condition, timeout!);
		}
	}

	#process(row: ProcessRow): Process {
		const data = defined({
			id: row.id, pid: row.pid, command: row.command, status: row.status, startTime: new Date(row.startTime), endTime: row.endTime === undefined ? undefined : new Date(row.endTime),
			exitCode: row.exitCode, sessionId: row.sessionId,
		});
		return Object.assign(data, {
			kill: (signal?: string | number) => this.killProcess(row.id, signal),
			getStatus: async (): Promise<ProcessStatus> => (await this.getProcess(row.id))?.status ?? 'error',
			getLogs: () => this.getProcessLogs(row.id),
			waitForLog: (pattern: string | RegExp, timeout?: number) => this.#waitForLog(row, pattern, timeout),
			waitForPort: (port: number, options?: WaitForPortOptions) => this.#waitForPort(row, port, options),
			waitForExit: (timeout?: number) => this.#waitForExit(row, timeout),
		}) as Process;
	}

	async #waitForExit(row: ProcessRow, timeout?: number): Promise<WaitForExitResult> {
		const { exitCode } = await this.wait(row, 'its end', { for: 'exit' }, timeout);
		return { exitCode: exitCode ?? 1 };
	}

	async #waitForPort(row: ProcessRow, port: number, { mode = 'http', path = '/', status, timeout }: WaitForPortOptions = {}): Promise<void> {
		const [least, most] = status === undefined ? [200, 399] : typeof status === 'number' ? [status, status] : [status.min, status.max];
		await this.wait(row, `port ${port} answers`, { for: 'port', port, mode, ...(mode === 'http' ? { path, statusMin: least, statusMax: most } : {}) }, timeout);
	}

	async #waitForLog(row: ProcessRow, pattern: string | RegExp, timeout?: number): Promise<WaitForLogResult> {
		const wanted = typeof pattern === 'string' ? pattern : new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, ''));
		const condition = `the log has ${typeof pattern === 'string' ? JSON.stringify(pattern) : pattern}`;
		const late = new AbortController();
		const timer = timeout === undefined ? undefined : setTimeout(() => late.abort(), timeout);
		const rest = { stdout: '', stderr: '' };
		try {
			for await (const event of this.#log(row.id, late.signal)) {
				if (event.type === 'exit') {
					const found = lineWith(rest.stdout, wanted) ?? lineWith(rest.stderr, wanted);
					if (found)
						return found;
					throw clientError('PROCESS_EXITED_BEFORE_READY', 500, `process ${row.id} (${row.command}) ended with ${event.exitCode} before ${condition}`, { processId: row.id, command: row.command, condition, exitCode: event.exitCode });
				}
				if (event.type !== 'stdout' && event.type !== 'stderr')
					continue;
				const text = rest[event.type] + event.data;
				const found = lineWith(text, wanted);
				if (found)
					return found;
				rest[event.type] = text.slice(text.lastIndexOf('\n') + 1);
			}
			throw brokenOff('reading', `the log of process ${row.id}`, new Error('it ended without an exit'));
		} catch (error) {
			throw late.signal.aborted ? timedOut(row, condition, timeout!) : error;
		} finally {
			clearTimeout(timer);
		}
	}
}

const nameOf = (signal: string | number): string | number => typeof signal === 'number' || signal.startsWith('SIG') ? signal : /^\d+$/.test(signal) ? Number(signal) : `SIG${signal}`;

function timedOut(row: { id: string; command: string }, condition: string, timeout: number): SandboxError {
	return clientError('PROCESS_READY_TIMEOUT', 408, `process ${row.id} (${row.command}): not within ${timeout} ms: ${condition}`, { processId: row.id, command: row.command, condition, timeout });
}

function lineWith(text: string, wanted: string | RegExp): WaitForLogResult | undefined {
	for (const line of text.split('\n')) {
		const match = typeof wanted === 'string' ? undefined : line.match(wanted);
		if (match)
			return { line, match };
		if (typeof wanted === 'string' && line.includes(wanted))
			return { line };
	}
	return undefined;
}

/** What a command did in the background. */
export interface CommandOutcome {
	exitCode: number;
	stdout: string;
	stderr: string;
	success: boolean;
}

/** A command in the background. Iterating over it gives its events. */
export class CommandHandle implements AsyncIterable<LogEvent> {
	readonly id: string;
	readonly pid: number | undefined;
	readonly command: string;
	readonly #owner: Processes;
	readonly #leave = new AbortController();
	readonly #done: Promise<CommandOutcome>;
	/** What it has written so far, as far as this handle has read. */
	stdout = '';
	/** The same of its errors. */
	stderr = '';

	/** @internal */
	constructor(owner: Processes, row: ProcessRow, options: Pick<BackgroundOptions, 'onStdout' | 'onStderr'>) {
		this.#owner = owner;
		this.id = row.id;
		this.pid = row.pid;
		this.command = row.command;
		this.#done = this.#follow(options);
		this.#done.catch(() => {}); // those who wait hear of it
	}

	async #follow({ onStdout, onStderr }: Pick<BackgroundOptions, 'onStdout' | 'onStderr'>): Promise<CommandOutcome> {
		for await (const event of this.#owner.logEvents(this.id, this.#leave.signal))
			if (event.type === 'stdout') {
				this.stdout += event.data;
				onStdout?.(event.data);
			} else if (event.type === 'stderr') {
				this.stderr += event.data;
				onStderr?.(event.data);
			} else if (event.type === 'exit') {
				const exitCode = event.exitCode ?? 1;
				return { exitCode, stdout: this.stdout, stderr: this.stderr, success: exitCode === 0 };
			}
		throw brokenOff('reading', `the log of process ${this.id}`, new Error('it ended without an exit'));
	}

	/** Its end, with all output. A command that fails is a result, not an error. */
	wait(): Promise<CommandOutcome> {
		return this.#done;
	}

	/** Writes to its standard input; it must have been started with `stdin: true`. */
	async sendStdin(data: string | Uint8Array | Blob | ReadableStream<Uint8Array>): Promise<void> {
		await this.#owner.writeProcessStdin(this.id, data);
	}

	/** Ends its standard input. */
	async closeStdin(): Promise<void> {
		await this.#owner.writeProcessStdin(this.id, '', { close: true });
	}

	/** Ends it and all it started. */
	async kill(signal?: string | number): Promise<void> {
		await this.#owner.killProcess(this.id, signal);
	}

	/** Reads no more; the command runs on. */
	disconnect(): void {
		this.#leave.abort();
	}

	/** Its events from the beginning, as often as one likes. */
	[Symbol.asyncIterator](): AsyncGenerator<LogEvent, void, undefined> {
		return this.#owner.logEvents(this.id);
	}
}
