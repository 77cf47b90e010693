// SPDX-License-Identifier: Apache-2.0
// Shell and editor tools of OpenAI's agents, on a sandbox.
import type { Sandbox } from './sandbox.js';
import type { ExecutionSession } from './session.js';

type Place = Pick<Sandbox | ExecutionSession, 'exec' | 'readFile' | 'writeFile' | 'deleteFile' | 'mkdir'>;

/** One command that a shell has run. */
export interface CommandResult {
	command: string;
	stdout: string;
	stderr: string;
	exitCode: number | null;
	timestamp: number;
}

/** One thing that an editor has done. */
export interface FileOperationResult {
	operation: 'create' | 'update' | 'delete';
	path: string;
	status: 'completed' | 'failed';
	output: string;
	error?: string;
	timestamp: number;
}

/** What a shell tool is asked. */
export interface ShellAction {
	commands: string[];
	timeoutMs?: number | null;
	maxOutputLength?: number | null;
}

/** The outcome of one command. */
export interface ShellOutput {
	command: string;
	stdout: string;
	stderr: string;
	outcome: { type: 'exit'; exitCode: number | null } | { type: 'timeout' };
}

/** Runs the commands of a shell tool, one after the other; after a timeout no more. */
export class Shell {
	readonly #sandbox: Place;
	/** All that it has run. */
	readonly results: CommandResult[] = [];

	constructor(sandbox: Place) {
		this.#sandbox = sandbox;
	}

	/** Runs commands. */
	async run(action: ShellAction): Promise<{ output: ShellOutput[]; maxOutputLength?: number; providerData: Record<string, unknown> }> {
		const output: ShellOutput[] = [];
		for (const command of action.commands) {
			const one = await this.#one(command, action.timeoutMs ?? undefined);
			output.push(one);
			this.results.push({ command, stdout: one.stdout, stderr: one.stderr, exitCode: one.outcome.type === 'exit' ? one.outcome.exitCode : null, timestamp: Date.now() });
			if (one.outcome.type === 'timeout')
				break;
		}
		return { output, ...(action.maxOutputLength ? { maxOutputLength: action.maxOutputLength } : {}), providerData: { working_directory: '/workspace' } };
	}

	async #one(command: string, timeout: number | undefined): Promise<ShellOutput> {
		try {
			const { stdout, stderr, exitCode } = await this.#sandbox.exec(command, { timeout });
			return { command, stdout, stderr, outcome: { type: 'exit', exitCode } };
		} catch (error) {
			const { message, code, exitCode } = error as Error & { code?: string; exitCode?: number };
			if (code === 'COMMAND_EXECUTION_ERROR' && /time/i.test(message))
				return { command, stdout: '', stderr: message, outcome: { type: 'timeout' } };
			return { command, stdout: '', stderr: message, outcome: { type: 'exit', exitCode: exitCode ?? 1 } };
		}
	}
}

/** One operation of an apply-patch tool. */
export interface EditOperation {
	type: 'create_file' | 'update_file' | 'delete_file';
	path: string;
	diff?: string;
}

/** Does what an apply-patch tool asks, below one directory. */
export class Editor {
	readonly #sandbox: Place;
	readonly #root: string;
	/** All that it has done. */
	readonly results: FileOperationResult[] = [];

	constructor(sandbox: Place, root = '/workspace') {
		this.#sandbox = sandbox;
		this.#root = root.replace(/\/+$/, '');
	}

	/** Makes a file. */
	createFile(operation: EditOperation): Promise<{ status: 'completed'; output: string }> {
		return this.#note('create', operation.path, async path => {
			await this.#sandbox.writeFile(path, applyDiff('', operation.diff ?? '', 'create'));
			return `Created ${operation.path}`;
		});
	}

	/** Changes a file. */
	updateFile(operation: EditOperation): Promise<{ status: 'completed'; output: string }> {
		return this.#note('update', operation.path, async path => {
			const { content } = await this.#sandbox.readFile(path, { encoding: 'utf-8' });
			await this.#sandbox.writeFile(path, applyDiff(content, operation.diff ?? ''));
			return `Updated ${operation.path}`;
		});
	}

	/** Deletes a file. */
	deleteFile(operation: EditOperation): Promise<{ status: 'completed'; output: string }> {
		return this.#note('delete', operation.path, async path => {
			await this.#sandbox.deleteFile(path);
			return `Deleted ${operation.path}`;
		});
	}

	async #note(operation: FileOperationResult['operation'], path: string, work: (path: string) => Promise<string>): Promise<{ status: 'completed'; output: string }> {
		try {
			const output = await work(this.#resolve(path));
			this.results.push({ operation, path, status: 'completed', output, timestamp: Date.now() });
			return { status: 'completed', output };
		} catch (error) {
			this.results.push({ operation, path, status: 'failed', output: '', error: (error as Error).message, timestamp: Date.now() });
			throw error;
		}
	}

	#resolve(path: string): string {
		const inside = path === this.#root || path.startsWith(`${this.#root}/`) ? path.slice(this.#root.length) : path;
		const parts: string[] = [];
		for (const part of inside.split('/'))
			if (part === '..') {
				if (parts.pop() === undefined)
					throw new Error(`Operation outside workspace: ${path}`);
			} else if (part !== '' && part !== '.')
				parts.push(part);
		if (parts.length === 0)
			throw new Error(`Operation on the workspace itself: ${path}`);
		return `${this.#root}/${parts.join('/')}`;
	}
}

interface Hunk {
	anchor: string;
	old: string[];
	now: string[];
}

function hunksOf(diff: string): Hunk[] {
	const hunks: Hunk[] = [];
	let hunk: Hunk | undefined;
	const lines = diff.split('\n');
	if (lines.at(-1) === '')
		lines.pop();
	for (const line of lines) {
		if (line.startsWith('@@'))
			hunks.push(hunk = { anchor: line.replace(/^@@ ?/, '').replace(/ ?@@$/, '').replace(/^-\d+(,\d+)? \+\d+(,\d+)?( @@ ?)?/, '').trim(), old: [], now: [] });
		else if (line.startsWith('*** End of File') || line.startsWith('\\'))
			continue;
		else {
			if (!hunk)
				hunks.push(hunk = { anchor: '', old: [], now: [] });
			const [sign, text] = [line[0] ?? ' ', line.slice(1)];
			if (!'+- '.includes(sign))
				throw new Error(`Invalid diff line: ${line}`);
			if (sign !== '+')
				hunk.old.push(text);
			if (sign !== '-')
				hunk.now.push(text);
		}
	}
	return hunks;
}

/** Where lines lie in others, from a place on; then with other white space at their ends. */
function find(lines: string[], wanted: string[], from: number): number {
	for (const same of [(a: string, b: string) => a === b, (a: string, b: string) => a.trimEnd() === b.trimEnd(), (a: string, b: string) => a.trim() === b.trim()])
		for (let at = from; at + wanted.length <= lines.length; at++)
			if (wanted.every((line, i) => same(lines[at + i]!, line)))
				return at;
	return -1;
}

/** Applies a diff of the apply-patch format to a text. `create`: the diff is the lines of a new file. */
export function applyDiff(text: string, diff: string, mode?: 'create'): string {
	if (mode === 'create') {
		const lines = diff.replace(/\n$/, '').split('\n');
		const bad = lines.find(line => !line.startsWith('+'));
		if (bad !== undefined && diff !== '')
			throw new Error(`Invalid line of a new file: ${bad}`);
		return diff === '' ? '' : `${lines.map(line => line.slice(1)).join('\n')}\n`;
	}
	const lines = text.split('\n');
	let at = 0;
	for (const { anchor, old, now } of hunksOf(diff)) {
		if (anchor !== '') {
			const found = find(lines, [anchor], at);
			if (found < 0)
				throw new Error(`Invalid context: ${anchor}`);
			at = found + 1;
		}
		const place = old.length === 0 ? anchor === '' ? lines.length - (lines.at(-1) === '' ? 1 : 0) : at : find(lines, old, at);
		if (place < 0)
			throw new Error(`Invalid context: ${old.join('\n')}`);
		lines.splice(place, old.length, ...now);
		at = place + now.length;
	}
	return lines.join('\n');
}
