// SPDX-License-Identifier: Apache-2.0
// Repositories: cloned by the server, worked with by git itself.
import { CommandHandle } from './processes.js';
import { defined, either, LINK, refuse } from './core.js';
import { GitError, type ErrorResponse } from './errors.js';
import { Watching } from './watching.js';
import { parseSSEStream, throwEvent } from './stream.js';
import type { GitCheckoutOptions, GitCheckoutResult, InSession } from './types.js';

const LONGEST_URL = 2048;

interface CloneEvent {
	type: 'progress' | 'complete' | 'error';
	phase?: string;
	percent?: number;
	text?: string;
	branch?: string;
	targetDir?: string;
	commit?: string;
	timestamp?: string;
	error?: string;
}

/** One changed file of gitStatus. */
export interface GitChange {
	path: string;
	/** Two letters, as `git status --porcelain` has them. */
	status: string;
}

/** The state of a working tree. */
export interface GitStatus {
	branch: string;
	upstream?: string;
	ahead: number;
	behind: number;
	files: GitChange[];
	clean: boolean;
}

/** Git in a sandbox. */
export class Git extends Watching {
	/** Clones a repository. @param options a string is the target directory */
	async gitCheckout(repoUrl: string, options: GitCheckoutOptions | string = {}): Promise<GitCheckoutResult> {
		const wanted = typeof options === 'string' ? { targetDir: options } : options;
		const timeoutMs = either(wanted, 'cloneTimeoutMs', 'timeoutMs');
		for (const [name, value] of Object.entries({ depth: wanted.depth, cloneTimeoutMs: timeoutMs }))
			if (value !== undefined && !(Number.isInteger(value) && value > 0))
				refuse(`${name} must be a positive integer, not ${value}`, name);
		if (repoUrl.length > LONGEST_URL)
			refuse(`a repository's URL has at most ${LONGEST_URL} characters`, 'repoUrl');
		const json = defined({ repoUrl, branch: wanted.branch, targetDir: wanted.targetDir, depth: wanted.depth, timeoutMs, sessionId: this.sessionOf(wanted) ?? undefined });
		const response = await this[LINK].open('POST', '/v1/sandboxes/{id}/git/clone', { json, accept: 'text/event-stream', slow: true, signal: wanted.signal });
		for await (const event of parseSSEStream<CloneEvent>(response.stream(), wanted.signal)) {
			if (event.type === 'progress')
				wanted.onProgress?.(event);
			else if (event.type === 'error')
				throwEvent(event);
			else
				return { success: true, repoUrl, branch: event.branch!, targetDir: event.targetDir!, timestamp: event.timestamp ?? new Date().toISOString(), ...(event.commit ? { commit: event.commit } : {}) };
		}
		throw new GitError({ code: 'GIT_OPERATION_FAILED', message: `cloning ${repoUrl}: the connection broke`, context: { repository: repoUrl }, httpStatus: 500, timestamp: new Date().toISOString() });
	}

	/** Runs git with words, no shell between. */
	async git(directory: string, words: string[], options: InSession & { env?: Record<string, string>; timeoutMs?: number } = {}): Promise<string> {
		const handle: CommandHandle = await this.background(['git', ...words], { cwd: directory, env: { GIT_TERMINAL_PROMPT: '0', ...options.env }, timeoutMs: options.timeoutMs, autoCleanup: true });
		const { exitCode, stdout, stderr } = await handle.wait();
		if (exitCode !== 0)
			throw new GitError({ code: 'GIT_OPERATION_FAILED', message: `git ${words[0]}: ${stderr.trim() || `it ended with ${exitCode}`}`, context: { repository: directory, stderr, exitCode }, httpStatus: 500, timestamp: new Date().toISOString() } as ErrorResponse);
		return stdout;
	}

	/** Branch, distance from upstream, changed files. */
	async gitStatus(directory: string): Promise<GitStatus> {
		const status: GitStatus = { branch: '', ahead: 0, behind: 0, files: [], clean: true };
		const fields = (await this.git(directory, ['status', '--porcelain=v2', '--branch', '-z'])).split('\0');
		for (let i = 0; i < fields.length; i++) {
			const field = fields[i]!;
			const words = field.split(' ');
			if (field.startsWith('# branch.head '))
				status.branch = words[2]!;
			else if (field.startsWith('# branch.upstream '))
				status.upstream = words[2]!;
			else if (field.startsWith('# branch.ab '))
				[status.ahead, status.behind] = [Number(words[2]), -Number(words[3])];
			else if (words[0] === '1' || words[0] === 'u')
				status.files.push({ status: words[1]!.replaceAll('.', ' '), path: words.slice(words[0] === '1' ? 8 : 10).join(' ') });
			else if (words[0] === '2') {
				status.files.push({ status: words[1]!.replaceAll('.', ' '), path: words.slice(9).join(' ') });
				i++; // its former name
			} else if (words[0] === '?')
				status.files.push({ status: '??', path: field.slice(2) });
		}
		status.clean = status.files.length === 0;
		return status;
	}

	/** Puts files into the index; all changes without names. */
	async gitAdd(directory: string, paths: string[] = ['--all']): Promise<void> {
		await this.git(directory, paths.length === 1 && paths[0] === '--all' ? ['add', '--all'] : ['add', '--', ...paths]);
	}

	/** Commits the index; the new commit. */
	async gitCommit(directory: string, message: string, author?: { name: string; email: string }): Promise<string> {
		const env = author && { GIT_AUTHOR_NAME: author.name, GIT_AUTHOR_EMAIL: author.email, GIT_COMMITTER_NAME: author.name, GIT_COMMITTER_EMAIL: author.email };
		await this.git(directory, ['commit', '--quiet', '--message', message], env ? { env } : {});
		return (await this.git(directory, ['rev-parse', 'HEAD'])).trim();
	}

	/** Pushes to a remote. */
	async gitPush(directory: string, { remote = 'origin', branch }: { remote?: string; branch?: string } = {}): Promise<void> {
		await this.git(directory, ['push', '--quiet', '--', remote, ...(branch ? [branch] : [])]);
	}

	/** Fetches and merges, by fast-forward only. */
	async gitPull(directory: string, { remote = 'origin', branch }: { remote?: string; branch?: string } = {}): Promise<void> {
		await this.git(directory, ['pull', '--quiet', '--ff-only', '--', remote, ...(branch ? [branch] : [])]);
	}

	/** Local branches, and which one is checked out. */
	async gitBranches(directory: string): Promise<{ current: string | null; branches: string[] }> {
		const lines = (await this.git(directory, ['branch', '--format=%(HEAD)%(refname:short)'])).split('\n').filter(line => line !== '');
		const current = lines.find(line => line.startsWith('*'));
		return { current: current && !current.startsWith('*(') ? current.slice(1) : null, branches: lines.map(line => line.slice(1)).filter(name => !name.startsWith('(')) };
	}

	/** Checks a branch out; `create` makes it. */
	async gitSwitch(directory: string, branch: string, { create = false }: { create?: boolean } = {}): Promise<void> {
		await this.git(directory, ['switch', '--quiet', ...(create ? ['--create'] : []), branch]);
	}
}
