// SPDX-License-Identifier: Apache-2.0
// Code in interpreters that keep their variables.
import { defined, either, LINK, withExtras } from './core.js';
import { brokenOff } from './transport.js';
import { SandboxSecurityError } from './errors.js';
import { Git } from './git.js';
import { eventStream, resume, throwEvent, type Cursor, type EventStream } from './stream.js';
import type { CodeContext, CreateContextOptions, ExecutionError, ExecutionResult, Result, RunCodeOptions } from './types.js';

const LANGUAGES: Readonly<Record<string, string>> = { python: 'python', python3: 'python', javascript: 'javascript', js: 'javascript', node: 'javascript', typescript: 'typescript', ts: 'typescript' };
const FORMATS = ['text', 'html', 'png', 'jpeg', 'svg', 'latex', 'markdown', 'javascript', 'json', 'chart', 'data'] as const;

interface WireContext {
	id: string;
	language: string;
	cwd: string;
	createdAt: string;
	lastUsedAt: string;
	state?: string;
	executionCount?: number;
}

/** One event of runCodeStream. */
export interface CodeEvent {
	type: 'stdout' | 'stderr' | 'result' | 'execution_complete' | 'error' | 'input' | 'start' | 'gap';
	/** Of `start`. */
	runId?: string;
	/** Of `start` and `input`. */
	contextId?: string;
	/** The place behind the event. */
	cursor?: number;
	/** Of `gap`: so many events are no longer kept. */
	droppedEvents?: number;
	text?: string;
	timestamp?: number;
	metadata?: Record<string, unknown>;
	isMainResult?: boolean;
	execution_count?: number;
	executionCount?: number;
	ename?: string;
	evalue?: string;
	traceback?: string[];
	lineNumber?: number;
	prompt?: string;
	password?: boolean;
	code?: string;
	[format: string]: unknown;
}

function languageOf(name: string): string {
	const language = LANGUAGES[name.toLowerCase()];
	if (!language)
		throw new SandboxSecurityError(`there is no language ${name}: python, javascript and typescript are known`, 'INVALID_LANGUAGE');
	return language;
}

function contextOf(row: WireContext): CodeContext {
	const context = { id: row.id, language: row.language, cwd: row.cwd, createdAt: new Date(row.createdAt), lastUsed: new Date(row.lastUsedAt) };
	return withExtras(context, { state: row.state, executionCount: row.executionCount });
}

function resultOf(event: Record<string, unknown>): Result {
	const result: Record<string, unknown> = {};
	for (const format of FORMATS)
		if (event[format] !== undefined && event[format] !== null)
			result[format] = event[format];
	return withExtras(result, { formats: () => FORMATS.filter(format => format in result), isMainResult: event['isMainResult'], metadata: event['metadata'] }) as unknown as Result;
}

function errorOf(event: { ename?: string; evalue?: string; traceback?: string[]; lineNumber?: number }): ExecutionError {
	const error = defined({ name: event.ename ?? 'Error', message: event.evalue ?? '', traceback: event.traceback ?? [], lineNumber: event.lineNumber });
	return withExtras(error, { value: event.evalue ?? '' });
}

function withOldNames(result: { code: string; logs: { stdout: string[]; stderr: string[] }; results: Result[]; error?: ExecutionError; executionCount?: number }): ExecutionResult {
	const output = result.logs.stdout.join('');
	const outputs: Record<string, unknown> = {};
	for (const one of result.results)
		for (const format of one.formats())
			outputs[format] ??= (one as unknown as Record<string, unknown>)[format];
	const formats = [...new Set([...Object.keys(outputs), ...(output === '' ? [] : ['text'])])];
	return withExtras(result, { output, success: result.error === undefined, outputs, formats }) as ExecutionResult;
}

/** Where the events of a run are kept, for {@link Code.resumeCodeStream}. */
export interface CodeRun {
	contextId: string;
	runId: string;
}

/** Events with the count under the name that older code reads, and without the first one, which it does not know. */
async function* withCounts(events: AsyncGenerator<CodeEvent, void, undefined>, onStart?: (run: CodeRun) => void): AsyncGenerator<CodeEvent, void, undefined> {
	for await (const event of events)
		if (event.type === 'start')
			onStart?.({ contextId: event.contextId ?? '', runId: event.runId ?? '' });
		else
			yield event.executionCount === undefined ? event : { ...event, execution_count: event.executionCount };
}

/** Interpreters of a sandbox. */
export class Code extends Git {
	/** Starts an interpreter. */
	async createCodeContext(options: CreateContextOptions = {}): Promise<CodeContext> {
		const json = defined({ language: languageOf(options.language ?? 'python'), cwd: options.cwd, env: either(options, 'envVars', 'env'), timeoutMs: either(options, 'timeout', 'timeoutMs') });
		return contextOf(await this[LINK].call<WireContext>('POST', '/v1/sandboxes/{id}/contexts', { json, keyed: true }));
	}

	/** All interpreters. */
	async listCodeContexts(): Promise<CodeContext[]> {
		return (await this[LINK].call<{ contexts: WireContext[] }>('GET', '/v1/sandboxes/{id}/contexts')).contexts.map(contextOf);
	}

	/** The languages of its image: version, and whether an interpreter is ready. */
	async listLanguages(): Promise<Array<{ language: string; version: string | null; ready: boolean }>> {
		return (await this[LINK].call<{ languages: Array<{ language: string; version: string | null; ready: boolean }> }>('GET', '/v1/sandboxes/{id}/languages')).languages;
	}

	/** One interpreter, by its id or language. */
	async getCodeContext(id: string): Promise<CodeContext> {
		return contextOf(await this[LINK].call<WireContext>('GET', '/v1/sandboxes/{id}/contexts/{context}', { path: { context: id } }));
	}

	/** Ends an interpreter and all it started. */
	async deleteCodeContext(id: string): Promise<void> {
		await this[LINK].call('DELETE', '/v1/sandboxes/{id}/contexts/{context}', { path: { context: id } });
	}

	/** Stops the code that runs, as Ctrl-C does; variables stay. */
	async interruptCodeContext(id: string): Promise<boolean> {
		return (await this[LINK].call<{ interrupted: boolean }>('POST', '/v1/sandboxes/{id}/contexts/{context}/interrupt', { path: { context: id } })).interrupted;
	}

	/** A new process for an interpreter, without its variables. */
	async restartCodeContext(id: string): Promise<CodeContext> {
		return contextOf(await this[LINK].call<WireContext>('POST', '/v1/sandboxes/{id}/contexts/{context}/restart', { path: { context: id } }));
	}

	/** Answers `input()` of code that was started by runCodeStream with `stdin`. null ends the input. */
	async answerInput(id: string, text: string | null): Promise<void> {
		await this[LINK].call('POST', '/v1/sandboxes/{id}/contexts/{context}/input', { path: { context: id }, json: text === null ? { eof: true } : { text } });
	}

	/**
	 * Runs code and waits for its end; callbacks hear of output while it runs. An error of the code is part of the result.
	 * The older order is understood, too: `runCode(contextId, code, options)`.
	 */
	runCode(code: string, options?: RunCodeOptions): Promise<ExecutionResult>;
	runCode(contextId: string, code: string, options?: RunCodeOptions): Promise<ExecutionResult>;
	async runCode(first: string, second?: RunCodeOptions | string, third?: RunCodeOptions): Promise<ExecutionResult> {
		const [code, options] = typeof second === 'string' ? [second, { ...third, context: first }] : [first, second ?? {}];
		const { onOutput, onStdout, onStderr, onResult, onError } = options;
		const logs = { stdout: [] as string[], stderr: [] as string[] };
		const results: Result[] = [];
		for await (const event of this.#run(code, options)) {
			if (event.type === 'stdout' || event.type === 'stderr') {
				const text = event.text ?? '';
				const output = { text, timestamp: event.timestamp ?? Date.now() };
				logs[event.type].push(text);
				await (event.type === 'stdout' ? onStdout : onStderr)?.(output);
				await onOutput?.(text);
			} else if (event.type === 'result') {
				const result = resultOf(event);
				results.push(result);
				await onResult?.(result);
			} else if (event.type === 'error') {
				if (event.code && !event.ename)
					throwEvent(event as never);
				const error = errorOf(event);
				await onError?.(error);
				return withOldNames(defined({ code, logs, results, error, executionCount: event.execution_count }) as never);
			} else if (event.type === 'execution_complete')
				return withOldNames(defined({ code, logs, results, executionCount: event.execution_count }) as never);
		}
		throw brokenOff('running', 'code', new Error('the stream ended before the code'));
	}

	/**
	 * Runs code and gives its events as server-sent events. A connection that breaks is opened again, and no event is lost or repeated.
	 * `onStart` hears the ids by which another program can go on with {@link resumeCodeStream}.
	 */
	async runCodeStream(code: string, options: RunCodeOptions & { stdin?: boolean; onStart?: (run: CodeRun) => void } = {}): Promise<EventStream<CodeEvent>> {
		const first = await this.#open(code, options);
		return eventStream(withCounts(this.#follow({ first, signal: options.signal }), options.onStart), options.signal);
	}

	/**
	 * The events of a run that was started before, perhaps by another program: those after `cursor`, or all that are kept, up to its end.
	 * They are kept until ten minutes after the end; `gap` tells of those that are gone.
	 */
	async resumeCodeStream(contextId: string, runId: string, options: { cursor?: number; signal?: AbortSignal } = {}): Promise<EventStream<CodeEvent>> {
		const { cursor, signal } = options;
		const first = await this.#reopen({ context: contextId, run: runId }, cursor, signal);
		return eventStream(withCounts(this.#follow({ first, signal, path: { context: contextId, run: runId }, from: cursor })), signal);
	}

	async *#run(code: string, options: RunCodeOptions): AsyncGenerator<CodeEvent, void, undefined> {
		yield* withCounts(this.#follow({ first: await this.#open(code, options), signal: options.signal }));
	}

	async #reopen(path: { context: string; run: string }, cursor: Cursor | undefined, signal?: AbortSignal): Promise<ReadableStream<Uint8Array>> {
		return (await this[LINK].open('GET', '/v1/sandboxes/{id}/contexts/{context}/runs/{run}/stream', { path, query: { cursor }, accept: 'text/event-stream', slow: true, signal })).stream();
	}

	async *#follow(run: { first: ReadableStream<Uint8Array>; signal?: AbortSignal | undefined; path?: { context: string; run: string }; from?: number | undefined }): AsyncGenerator<CodeEvent, void, undefined> {
		const path = run.path ?? { context: '', run: '' };
		yield* resume<CodeEvent>({
			what: `the events of code in ${this[LINK].id}`,
			open: cursor => this.#reopen(path, cursor ?? run.from, run.signal),
			cursor: event => {
				path.run ||= event.runId ?? '';
				path.context ||= event.contextId ?? '';
				return event.cursor;
			},
			isLast: event => event.type === 'execution_complete' || event.type === 'error',
			fromStart: run.path !== undefined,
			signal: run.signal,
		}, run.first);
	}

	async #open(code: string, options: RunCodeOptions & { stdin?: boolean }): Promise<ReadableStream<Uint8Array>> {
		const context = typeof options.context === 'string' ? options.context : options.context?.id;
		const language = languageOf(options.language ?? 'python');
		const own = context ?? (options.envVars ? (await this.createCodeContext({ language: language as never, envVars: options.envVars })).id : undefined);
		const target = own ?? language;
		const json = defined({ code, timeoutMs: either(options, 'timeout', 'timeoutMs'), stdin: options.stdin });
		const more = { accept: 'text/event-stream', slow: true, signal: options.signal };
		const response = await (own === undefined
			? this[LINK].open('POST', '/v1/sandboxes/{id}/run', { json: { ...json, language }, ...more })
			: this[LINK].open('POST', '/v1/sandboxes/{id}/contexts/{context}/run', { path: { context: own }, json, ...more }));
		options.signal?.addEventListener('abort', () => void this.interruptCodeContext(target).catch(() => {}), { once: true });
		return response.stream();
	}
}

/** What is needed to run code: a sandbox, a session, or the low-level client. */
export interface InterpreterClient {
	createCodeContext(options?: CreateContextOptions): Promise<CodeContext>;
	runCode(code: string, options?: RunCodeOptions): Promise<ExecutionResult>;
	runCodeStream(code: string, options?: RunCodeOptions): Promise<ReadableStream<Uint8Array>>;
	listCodeContexts(): Promise<CodeContext[]>;
	deleteCodeContext(id: string): Promise<void>;
}

/** A result of code as a class, with `toJSON`. */
export class Execution {
	readonly code: string;
	readonly context: CodeContext;
	results: Result[];
	logs: { stdout: string[]; stderr: string[] };
	error?: ExecutionError;
	executionCount?: number;

	constructor(result: ExecutionResult, context: CodeContext) {
		this.code = result.code;
		this.context = context;
		this.results = result.results as Result[];
		this.logs = result.logs;
		if (result.error)
			this.error = result.error;
		if (result.executionCount !== undefined)
			this.executionCount = result.executionCount;
	}

	/** The same as a plain object. */
	toJSON(): ExecutionResult {
		return defined({ code: this.code, logs: this.logs, results: this.results, error: this.error, executionCount: this.executionCount }) as unknown as ExecutionResult;
	}
}

/** Runs code by a client of its choice. */
export class CodeInterpreter {
	readonly #client: () => InterpreterClient;

	/** @param client a sandbox or session, or a function that gives one */
	constructor(client: InterpreterClient | (() => InterpreterClient)) {
		this.#client = typeof client === 'function' ? client : () => client;
	}

	createCodeContext(options?: CreateContextOptions): Promise<CodeContext> {
		return this.#client().createCodeContext(options);
	}

	async runCode(code: string, options: RunCodeOptions = {}): Promise<Execution> {
		const context = typeof options.context === 'object' ? options.context : await this.#default(options);
		return new Execution(await this.#client().runCode(code, { ...options, context }), context);
	}

	async #default(options: RunCodeOptions): Promise<CodeContext> {
		const language = languageOf(options.language ?? 'python');
		const found = (await this.#client().listCodeContexts()).find(context => context.language === language);
		return found ?? this.createCodeContext({ language: language as never });
	}

	runCodeStream(code: string, options?: RunCodeOptions): Promise<ReadableStream<Uint8Array>> {
		return this.#client().runCodeStream(code, options);
	}

	listCodeContexts(): Promise<CodeContext[]> {
		return this.#client().listCodeContexts();
	}

	deleteCodeContext(id: string): Promise<void> {
		return this.#client().deleteCodeContext(id);
	}
}

