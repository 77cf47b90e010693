// SPDX-License-Identifier: Apache-2.0
// Commands: run to their end, or streamed.
import { toBase64 } from './base64.js';
import { Core, DEFAULT_SESSION, defined, either, LINK, withExtras } from './core.js';
import { aborted } from './transport.js';
import { eventStream, resume, throwEvent, type EventStream } from './stream.js';
import type { BaseExecOptions, ExecEvent, ExecOptions, ExecResult, StreamOptions } from './types.js';

/** A command's result as the server gives it. */
interface WireResult {
	exitCode: number;
	stdout: string;
	stderr: string;
	startedAt: string;
	durationMs: number;
	sessionId?: string;
	notice?: unknown;
	death?: unknown;
}

/** @internal The fields that all commands share. */
export function commandFields(options: BaseExecOptions): { cwd: string | undefined; env: Record<string, string> | undefined; timeoutMs: number | undefined } {
	const env = either(options, 'env', 'envVars');
	return { cwd: options.cwd, env: env && Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== null)), timeoutMs: either(options, 'timeout', 'timeoutMs') };
}

/** Commands of a sandbox or session. */
export class Commands extends Core {
	/**
	 * Runs a command in the session's bash and waits for its end. A command that fails is a result, not an error.
	 * @throws CommandError when its time is over, SessionTerminatedError when it ends the shell
	 */
	async exec(command: string, options: ExecOptions = {}): Promise<ExecResult> {
		if (options.signal?.aborted)
			throw aborted(options.signal);
		try {
			const result = options.stream && options.onOutput ? await this.#followed(command, options) : await this.#whole(command, options);
			options.onComplete?.(result);
			return result;
		} catch (error) {
			options.onError?.(error as Error);
			throw error;
		}
	}

	#request(command: string | string[], options: ExecOptions): Record<string, unknown> {
		const { stdin, user } = options;
		return defined({
			...(typeof command === 'string' ? { command } : { argv: command }), sessionId: this.sessionOf(options), ...commandFields(options), user,
			...(stdin === undefined ? {} : typeof stdin === 'string' ? { stdin } : { stdin: toBase64(stdin), stdinEncoding: 'base64' }),
		});
	}

	async #whole(command: string, options: ExecOptions): Promise<ExecResult> {
		const session = this.sessionOf(options);
		const run = this[LINK].call<WireResult>('POST', '/v1/sandboxes/{id}/exec', { json: this.#request(command, options), slow: true, keyed: true, signal: options.signal });
		const { exitCode, stdout, stderr, startedAt, durationMs, notice, death } = await (options.signal ? run.catch(error => this.#abandoned(error, session, options.signal!)) : run);
		const result = { success: exitCode === 0, exitCode, stdout, stderr, command, duration: durationMs, timestamp: startedAt, ...(session === null ? {} : { sessionId: session }) };
		return notice || death ? withExtras(result, { notice, death }) : result;
	}

	/** A command whose caller has given up ends, too. */
	#abandoned(error: unknown, session: string | null, signal: AbortSignal): never {
		if (signal.aborted)
			void this.#end(session ?? undefined).catch(() => {});
		throw error;
	}

	async #end(session: string | undefined): Promise<void> {
		const { processes } = await this[LINK].call<{ processes: Array<{ id: string; kind: string; sessionId?: string }> }>('GET', '/v1/sandboxes/{id}/processes');
		for (const process of processes)
			if (process.kind === 'command' && process.sessionId === session)
				await this[LINK].call('DELETE', '/v1/sandboxes/{id}/processes/{process}', { path: { process: process.id } }).catch(() => {});
	}

	async #followed(command: string, options: ExecOptions): Promise<ExecResult> {
		const began = Date.now();
		const out = { stdout: '', stderr: '' };
		const session = this.sessionOf(options);
		for await (const event of this.#events(command, options, crypto.randomUUID())) {
			if (event.type === 'stdout' || event.type === 'stderr') {
				out[event.type] += event.data ?? '';
				options.onOutput?.(event.type, event.data ?? '');
			} else if (event.type === 'complete') {
				const exitCode = event.exitCode ?? 0;
				return { success: exitCode === 0, exitCode, ...out, command, duration: Date.now() - began, timestamp: event.timestamp, ...(session === null ? {} : { sessionId: session }) };
			} else if (event.type === 'error')
				throwEvent(event);
		}
		throw new Error('the stream ended before the command');
	}

	/**
	 * Runs a command in a copy of the session's bash and gives its output as server-sent events while it runs.
	 * A connection that breaks is opened again, and no byte is lost or repeated.
	 */
	async execStream(command: string, options: StreamOptions = {}): Promise<EventStream<ExecEvent>> {
		if (options.signal?.aborted)
			throw aborted(options.signal);
		const key = crypto.randomUUID();
		return eventStream(this.#events(command, options, key, await this.#start(command, options, key)), options.signal);
	}

	async #start(command: string, options: StreamOptions, key: string): Promise<ReadableStream<Uint8Array>> {
		return (await this[LINK].open('POST', '/v1/sandboxes/{id}/exec', { json: this.#request(command, options), accept: 'text/event-stream', headers: { 'Idempotency-Key': key }, keyed: true, slow: true, signal: options.signal })).stream();
	}

	/** The events of a command. Until its first event the request is sent again with its key; from then on it is known which process to follow. */
	async *#events(command: string, options: StreamOptions, key: string, first?: ReadableStream<Uint8Array>): AsyncGenerator<ExecEvent, void, undefined> {
		const { signal } = options;
		const output = { stdout: new Bytes(), stderr: new Bytes() };
		const path = { process: '' };
		const events = resume<ExecEvent & WireOutput>({
			what: `the output of a command in ${this[LINK].id}`,
			open: async cursor => path.process === ''
				? this.#start(command, options, key)
				: (await this[LINK].open('GET', '/v1/sandboxes/{id}/processes/{process}/stream', { path, query: { cursor }, accept: 'text/event-stream', slow: true, signal })).stream(),
			cursor: event => {
				path.process ||= event.processId ?? '';
				return event.cursor ?? (event.type === 'start' ? 0 : undefined);
			},
			isLast: event => event.type === 'complete' || event.type === 'error' || (event.type as string) === 'exit',
			fromStart: true,
			signal,
		}, first);
		let ended = false;
		try {
			for await (const { cursor: _, base64, ...event } of events) {
				const type = event.type as string;
				ended = type === 'exit' || type === 'complete' || type === 'error';
				if (type === 'stdout' || type === 'stderr')
					yield { ...event, type, data: output[type].text(event.data ?? '', base64) };
				else if (type !== 'process_info')
					yield type === 'exit' ? { type: 'complete', exitCode: event.exitCode ?? 0, timestamp: event.timestamp } : event;
			}
		} finally {
			if (!ended && signal?.aborted && path.process)
				void this[LINK].call('DELETE', '/v1/sandboxes/{id}/processes/{process}', { path }).catch(() => {});
		}
	}

	/**
	 * Sets variables, undefined unsets. Of a sandbox: kept, for every session; of a session: in its shell only.
	 */
	async setEnvVars(variables: Record<string, string | undefined>): Promise<void> {
		const session = this.sessionOf() ?? DEFAULT_SESSION;
		const script = Object.entries(variables).map(([name, value]) => {
			if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
				throw new Error(`${name} cannot be the name of a variable`);
			return value === undefined || value === null ? `unset ${name}` : `export ${name}='${value.replaceAll("'", "'\\''")}'`;
		}).join('\n');
		if (!script)
			return;
		const { exitCode, stderr } = await this.#whole(script, { sessionId: session });
		if (exitCode !== 0)
			throw new Error(`the shell refused ${Object.keys(variables).join(', ')}: ${stderr.trim()}`);
	}
}

/** @internal What output events have besides: the bytes, where they are no UTF-8, and the place behind them. */
export interface WireOutput {
	base64?: string;
	cursor?: number;
}

/** @internal Puts characters together that lie in two events. */
export class Bytes {
	#decoder: TextDecoder | undefined;

	text(data: string, base64: string | undefined): string {
		if (base64 === undefined) {
			const rest = this.#decoder?.decode() ?? '';
			this.#decoder = undefined;
			return rest + data;
		}
		this.#decoder ??= new TextDecoder('utf-8', { ignoreBOM: true });
		return this.#decoder.decode(Uint8Array.from(atob(base64), letter => letter.charCodeAt(0)), { stream: true });
	}
}
