// SPDX-License-Identifier: Apache-2.0
// Low-level clients, one for each group of the compatible routes.
import { SandboxSecurityError } from './errors.js';
import { defined } from './core.js';
import { Server, type CallOptions } from './transport.js';
import { getSandbox, type Sandbox } from './sandbox.js';
import type { CommandExecuteResponse, CommandsResponse, CreateSessionRequest, CreateSessionResponse, DeleteFileResult, DeleteSessionResponse, ExecuteRequest, FileExistsResult, GitCheckoutResult, MkdirResult, PingResponse, ProcessInfoResult, ProcessKillResult, ProcessListResult, ProcessLogsResult, ProcessStartResult, ReadFileResult, RenameFileResult, SandboxClientOptions, SandboxTransport, WaitForPortOptions, WriteFileResult } from './types.js';

/** A group of routes below `/sandboxes/{id}`. */
class RouteClient {
	readonly #options: SandboxClientOptions;
	readonly #server: Server;
	readonly #prefix: string;

	constructor(options: SandboxClientOptions = {}) {
		if (options.stub)
			throw new SandboxSecurityError('a stub of a container is of no use here: give `url`, `token` and `sandboxId`', 'NO_SERVER');
		this.#options = options;
		const own = /^(.*)\/sandboxes\/([^/]+)\/?$/.exec(options.baseUrl ?? '');
		this.#server = new Server({ ...options, url: options.url ?? own?.[1] ?? options.baseUrl });
		this.#prefix = `/sandboxes/${options.sandboxId === undefined ? own?.[2] ?? 'default' : encodeURIComponent(this.#server.prefix + options.sandboxId)}`;
	}

	/** @internal */
	protected async send<T>(method: string, route: string, json?: object, more: CallOptions = {}): Promise<T> {
		try {
			return await this.#server.call<T>(method, this.#prefix + route, { ...more, ...(json ? { json: defined(json) } : {}), headers: { ...this.#options.defaultHeaders } });
		} catch (error) {
			this.#options.onError?.((error as Error).message, (json as { command?: string } | undefined)?.command);
			throw error;
		}
	}

	/** @internal */
	protected async stream(route: string, json: object, method = 'POST'): Promise<ReadableStream<Uint8Array>> {
		return (await this.#server.open(method, this.#prefix + route, { ...(method === 'POST' ? { json: defined(json) } : {}), accept: 'text/event-stream', slow: true, headers: { ...this.#options.defaultHeaders } })).stream();
	}

	/** @internal */
	protected done(result: CommandExecuteResponse): void {
		this.#options.onCommandComplete?.(result.success, result.exitCode, result.stdout, result.stderr, result.command);
	}
}

/** Commands. */
export class CommandClient extends RouteClient {
	async execute(command: string, sessionId?: string, options: Omit<ExecuteRequest, 'command' | 'sessionId'> = {}): Promise<CommandExecuteResponse> {
		const result = await this.send<CommandExecuteResponse>('POST', '/api/execute', { command, sessionId, ...options }, { slow: true });
		this.done(result);
		return result;
	}

	executeStream(command: string, sessionId?: string, options: Omit<ExecuteRequest, 'command' | 'sessionId'> = {}): Promise<ReadableStream<Uint8Array>> {
		return this.stream('/api/execute/stream', { command, sessionId, ...options });
	}
}

/** Files. */
export class FileClient extends RouteClient {
	mkdir(path: string, sessionId?: string, options: { recursive?: boolean } = {}): Promise<MkdirResult> {
		return this.send('POST', '/api/mkdir', { path, sessionId, recursive: options.recursive ?? false });
	}
	writeFile(path: string, content: string, sessionId?: string, options: { encoding?: string } = {}): Promise<WriteFileResult> {
		return this.send('POST', '/api/write', { path, content, sessionId, ...options });
	}
	readFile(path: string, sessionId?: string, options: { encoding?: string } = {}): Promise<ReadFileResult> {
		return this.send('POST', '/api/read', { path, sessionId, ...options });
	}
	readFileStream(path: string, sessionId?: string): Promise<ReadableStream<Uint8Array>> {
		return this.stream('/api/read/stream', { path, sessionId });
	}
	deleteFile(path: string, sessionId?: string): Promise<DeleteFileResult> {
		return this.send('POST', '/api/delete', { path, sessionId });
	}
	renameFile(oldPath: string, newPath: string, sessionId?: string): Promise<RenameFileResult> {
		return this.send('POST', '/api/rename', { oldPath, newPath, sessionId });
	}
	moveFile(sourcePath: string, destinationPath: string, sessionId?: string): Promise<RenameFileResult> {
		return this.send('POST', '/api/move', { sourcePath, destinationPath, sessionId });
	}
	listFiles(path: string, sessionId?: string, options: { recursive?: boolean; includeHidden?: boolean } = {}): Promise<unknown> {
		return this.send('POST', '/api/list-files', { path, sessionId, options });
	}
	exists(path: string, sessionId?: string): Promise<FileExistsResult> {
		return this.send('POST', '/api/exists', { path, sessionId });
	}
}

/** Background processes. */
export class ProcessClient extends RouteClient {
	startProcess(command: string, sessionId?: string, options: Omit<ExecuteRequest, 'command' | 'sessionId'> & { processId?: string } = {}): Promise<ProcessStartResult> {
		return this.send('POST', '/api/process/start', { command, sessionId, ...options });
	}
	listProcesses(): Promise<ProcessListResult> {
		return this.send('GET', '/api/process/list');
	}
	getProcess(processId: string): Promise<ProcessInfoResult> {
		return this.send('GET', `/api/process/${encodeURIComponent(processId)}`);
	}
	killProcess(processId: string): Promise<ProcessKillResult> {
		return this.send('DELETE', `/api/process/${encodeURIComponent(processId)}`);
	}
	killAllProcesses(): Promise<unknown> {
		return this.send('DELETE', '/api/process/kill-all');
	}
	getProcessLogs(processId: string): Promise<ProcessLogsResult> {
		return this.send('GET', `/api/process/${encodeURIComponent(processId)}/logs`);
	}
	streamProcessLogs(processId: string): Promise<ReadableStream<Uint8Array>> {
		return this.stream(`/api/process/${encodeURIComponent(processId)}/stream`, {}, 'GET');
	}
}

/** Ports. */
export class PortClient extends RouteClient {
	watchPort(request: { port: number; processId?: string } & WaitForPortOptions): Promise<ReadableStream<Uint8Array>> {
		return this.stream('/api/port-watch', request);
	}
}

/** Repositories. */
export class GitClient extends RouteClient {
	checkout(repoUrl: string, sessionId?: string, options: { branch?: string; targetDir?: string; depth?: number; timeoutMs?: number } = {}): Promise<GitCheckoutResult> {
		return this.send('POST', '/api/git/checkout', { repoUrl, sessionId, ...options }, { slow: true });
	}
}

/** Probes and sessions. */
export class UtilityClient extends RouteClient {
	async ping(): Promise<string> {
		return (await this.send<PingResponse>('GET', '/api/ping')).message;
	}
	async getCommands(): Promise<string[]> {
		return (await this.send<CommandsResponse>('GET', '/api/commands')).availableCommands;
	}
	async getVersion(): Promise<string> {
		return (await this.send<{ version: string }>('GET', '/api/version')).version;
	}
	createSession(options: CreateSessionRequest): Promise<CreateSessionResponse> {
		return this.send('POST', '/api/session/create', options);
	}
	deleteSession(sessionId: string): Promise<DeleteSessionResponse> {
		return this.send('POST', '/api/session/delete', { sessionId });
	}
	listSessions(): Promise<{ sessions: string[] }> {
		return this.send('GET', '/api/session/list');
	}
}

/** Archives of directories. */
export class BackupClient extends RouteClient {
	createArchive(dir: string, archivePath: string, sessionId?: string, options: { excludes?: string[]; gitignore?: boolean } = {}): Promise<unknown> {
		return this.send('POST', '/api/backup/create', { dir, archivePath, sessionId, ...options }, { slow: true });
	}
	restoreArchive(dir: string, archivePath: string, sessionId?: string): Promise<unknown> {
		return this.send('POST', '/api/backup/restore', { dir, archivePath, sessionId }, { slow: true });
	}
}

/** Changes of files. */
export class WatchClient extends RouteClient {
	watch(request: { path: string; recursive?: boolean; include?: string[]; exclude?: string[]; sessionId?: string }): Promise<ReadableStream<Uint8Array>> {
		return this.stream('/api/watch', request);
	}
	checkChanges(request: { path: string; since?: string; recursive?: boolean; include?: string[]; exclude?: string[]; sessionId?: string }): Promise<unknown> {
		return this.send('POST', '/api/watch/check', request);
	}
}

/** All of them for one sandbox: `new SandboxClient({ url, token, sandboxId })`. */
export class SandboxClient {
	readonly commands: CommandClient;
	readonly files: FileClient;
	readonly processes: ProcessClient;
	readonly ports: PortClient;
	readonly git: GitClient;
	readonly utils: UtilityClient;
	readonly backup: BackupClient;
	readonly watch: WatchClient;
	readonly interpreter: Sandbox;

	constructor(options: SandboxClientOptions = {}) {
		this.commands = new CommandClient(options);
		this.files = new FileClient(options);
		this.processes = new ProcessClient(options);
		this.ports = new PortClient(options);
		this.git = new GitClient(options);
		this.utils = new UtilityClient(options);
		this.backup = new BackupClient(options);
		this.watch = new WatchClient(options);
		this.interpreter = getSandbox(options.sandboxId ?? 'default', options);
	}

	/** There is one transport. */
	getTransportMode(): SandboxTransport { return 'http'; }
	isWebSocketConnected(): boolean { return false; }
	async connect(): Promise<void> {}
	disconnect(): void {}
	setRetryTimeoutMs(_ms: number): void {}
}
