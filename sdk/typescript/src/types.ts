// SPDX-License-Identifier: Apache-2.0
// Shapes of options and results, by the names of `@cloudflare/sandbox` 0.12; older names at the end.
import type { ServerOptions } from './config.js';
import type { components } from './openapi.js';

type Schemas = components['schemas'];

/** A session, by its id or as the object that createSession gave. */
export type SessionLike = string | { id: string };

/** Where a call runs: `session` and `sessionId` mean the same. */
export interface InSession {
	session?: SessionLike | null | undefined;
	sessionId?: SessionLike | null | undefined;
}

/** Options of every command. */
export interface BaseExecOptions extends InSession {
	/** Milliseconds, after which the command and all it started is ended. */
	timeout?: number | undefined;
	timeoutMs?: number | undefined;
	/** Variables of this command only. */
	env?: Record<string, string | undefined> | undefined;
	envVars?: Record<string, string | undefined> | undefined;
	/** Its directory. */
	cwd?: string | undefined;
	encoding?: string | undefined;
}

/** Options of exec. */
export interface ExecOptions extends BaseExecOptions {
	/** With `onOutput`: output is delivered while the command runs. */
	stream?: boolean | undefined;
	onOutput?: ((stream: 'stdout' | 'stderr', data: string) => void) | undefined;
	onComplete?: ((result: ExecResult) => void) | undefined;
	onError?: ((error: Error) => void) | undefined;
	/** Ends the command. */
	signal?: AbortSignal | undefined;
	origin?: 'user' | 'internal' | undefined;
	/** The user it runs as; of the image, by name or number. */
	user?: string | undefined;
	/** Its standard input, at most 1 MiB. */
	stdin?: string | Uint8Array | undefined;
}

/** What a command did. */
export interface ExecResult {
	success: boolean;
	exitCode: number;
	stdout: string;
	stderr: string;
	command: string;
	/** Milliseconds. */
	duration: number;
	timestamp: string;
	sessionId?: string;
}

/** Options of execStream. */
export interface StreamOptions extends BaseExecOptions {
	bufferSize?: number | undefined;
	signal?: AbortSignal | undefined;
}

/** One event of execStream. */
export interface ExecEvent {
	type: 'start' | 'stdout' | 'stderr' | 'complete' | 'error';
	timestamp: string;
	data?: string;
	command?: string;
	exitCode?: number;
	result?: ExecResult;
	error?: string;
	sessionId?: string;
	pid?: number;
	processId?: string;
}

/** One event of a process's log. */
export interface LogEvent {
	type: 'stdout' | 'stderr' | 'exit' | 'error' | 'process_info' | 'gap';
	timestamp: string;
	data: string;
	processId: string;
	sessionId?: string;
	exitCode?: number;
	/** For reading on from here. */
	cursor?: number;
	droppedBytes?: number;
}

export type ProcessStatus = 'starting' | 'running' | 'completed' | 'failed' | 'killed' | 'error';

/** Options of startProcess. */
export interface ProcessOptions extends BaseExecOptions {
	processId?: string | undefined;
	autoCleanup?: boolean | undefined;
	onStart?: ((process: Process) => void) | undefined;
	onOutput?: ((stream: 'stdout' | 'stderr', data: string) => void) | undefined;
	onExit?: ((code: number | null) => void) | undefined;
	onError?: ((error: Error) => void) | undefined;
	signal?: AbortSignal | undefined;
	user?: string | undefined;
}

/** Options of background. */
export interface BackgroundOptions extends BaseExecOptions {
	processId?: string | undefined;
	user?: string | undefined;
	/** Keeps standard input open for sendStdin. */
	stdin?: boolean | undefined;
	autoCleanup?: boolean | undefined;
	onStdout?: ((data: string) => void) | undefined;
	onStderr?: ((data: string) => void) | undefined;
}

export interface WaitForLogResult {
	line: string;
	match?: RegExpMatchArray;
}

export interface WaitForExitResult {
	exitCode: number;
}

/** How a port is probed. */
export interface WaitForPortOptions {
	mode?: 'http' | 'tcp' | undefined;
	path?: string | undefined;
	status?: number | { min: number; max: number } | undefined;
	timeout?: number | undefined;
	interval?: number | undefined;
}

/** A background process. */
export interface Process {
	readonly id: string;
	readonly pid?: number;
	readonly command: string;
	readonly status: ProcessStatus;
	readonly startTime: Date;
	readonly endTime?: Date;
	readonly exitCode?: number;
	readonly sessionId?: string;
	/** Ends it: with the signal, or TERM, and KILL after five seconds. */
	kill(signal?: string | number): Promise<void>;
	getStatus(): Promise<ProcessStatus>;
	getLogs(): Promise<ProcessLogs>;
	/** Until a text or pattern is in its output. */
	waitForLog(pattern: string | RegExp, timeout?: number): Promise<WaitForLogResult>;
	/** Until a port of it answers. */
	waitForPort(port: number, options?: WaitForPortOptions): Promise<void>;
	waitForExit(timeout?: number): Promise<WaitForExitResult>;
}

/** stdout and stderr; where a string is wanted, one after the other. */
export interface ProcessLogs {
	stdout: string;
	stderr: string;
	processId: string;
	toString(): string;
	includes(text: string, position?: number): boolean;
	split(separator: string | RegExp, limit?: number): string[];
	trim(): string;
	match(pattern: string | RegExp): RegExpMatchArray | null;
	readonly length: number;
}

/** What a file's content may be given as. */
export type FileContent = string | Uint8Array | ArrayBuffer | Blob | ReadableStream<Uint8Array>;
export type FileEncoding = 'utf-8' | 'utf8' | 'base64' | 'none';

export interface WriteFileOptions extends InSession {
	encoding?: string | undefined;
	/** Octal permissions, such as `0755`. */
	mode?: string | undefined;
}
export interface WriteFileResult {
	success: boolean;
	path: string;
	timestamp: string;
	bytesWritten?: number;
}
export interface ReadFileOptions extends InSession {
	encoding?: FileEncoding | undefined;
}
export interface ReadFileResult {
	success: boolean;
	path: string;
	content: string;
	timestamp: string;
	encoding: 'utf-8' | 'base64';
	isBinary: boolean;
	mimeType: string;
	size: number;
	/** The content as bytes. */
	bytes(): Uint8Array;
	arrayBuffer(): ArrayBuffer;
	toString(): string;
}
export interface ReadFileStreamResult {
	success: boolean;
	path: string;
	content: ReadableStream<Uint8Array>;
	timestamp: string;
	mimeType: string;
	size: number;
}
export interface MkdirOptions extends InSession { recursive?: boolean | undefined }
export interface MkdirResult { success: boolean; path: string; recursive: boolean; timestamp: string }
export interface DeleteFileResult { success: boolean; path: string; timestamp: string }
export interface RenameFileResult { success: boolean; path: string; newPath: string; timestamp: string }
export type MoveFileResult = RenameFileResult;
export interface FileExistsResult { success: boolean; path: string; exists: boolean; timestamp: string }
export interface ListFilesOptions extends InSession { recursive?: boolean | undefined; includeHidden?: boolean | undefined }
/** An entry of listFiles. */
export interface FileEntry {
	name: string;
	absolutePath: string;
	relativePath: string;
	type: 'file' | 'directory' | 'symlink' | 'other';
	size: number;
	modifiedAt: string;
	/** Such as `rwxr-xr-x`. */
	mode: string;
	/** What the owner may do. */
	permissions: { readable: boolean; writable: boolean; executable: boolean };
}
export interface ListFilesResult { success: boolean; path: string; files: FileEntry[]; count: number; timestamp: string }
export interface FileMetadata { mimeType: string; size: number; isBinary: boolean; encoding: 'utf-8' | 'base64' }
export type FileChunk = string | Uint8Array;
export type FileStreamEvent =
	| { type: 'metadata'; mimeType: string; size: number; isBinary: boolean; encoding: 'utf-8' | 'base64' }
	| { type: 'chunk'; data: string }
	| { type: 'complete'; bytesRead: number }
	| { type: 'error'; error: string };

export interface WatchOptions extends InSession {
	recursive?: boolean | undefined;
	include?: string[] | undefined;
	exclude?: string[] | undefined;
	/** Which kinds of events; all but `attrib` by default. */
	events?: FileWatchEventType[] | undefined;
	signal?: AbortSignal | undefined;
}
export type FileWatchEventType = 'create' | 'modify' | 'delete' | 'move_from' | 'move_to' | 'attrib';
export type FileWatchSSEEvent =
	| { type: 'watching'; path: string; watchId: string }
	| { type: 'event'; eventType: FileWatchEventType; path: string; isDirectory: boolean; timestamp: string }
	| { type: 'overflow'; reason?: string; dropped?: number; timestamp?: string }
	| { type: 'limit'; path: string }
	| { type: 'error'; error: string }
	| { type: 'stopped'; reason: string };
export interface CheckChangesOptions extends WatchOptions { since?: string | undefined }
export type CheckChangesResult =
	| { success: true; status: 'unchanged' | 'changed'; version: string; timestamp: string }
	| { success: true; status: 'resync'; reason: 'expired' | 'restarted'; version: string; timestamp: string };

export interface GitCheckoutOptions extends InSession {
	branch?: string | undefined;
	targetDir?: string | undefined;
	depth?: number | undefined;
	cloneTimeoutMs?: number | undefined;
	timeoutMs?: number | undefined;
	/** Called while the repository is fetched. */
	onProgress?: ((progress: { phase?: string; percent?: number; text?: string }) => void) | undefined;
	signal?: AbortSignal | undefined;
}
export interface GitCheckoutResult { success: boolean; repoUrl: string; branch: string; targetDir: string; timestamp: string; commit?: string }

export interface SessionOptions {
	id?: string | undefined;
	name?: string | undefined;
	env?: Record<string, string | undefined> | undefined;
	envVars?: Record<string, string | undefined> | undefined;
	cwd?: string | undefined;
	isolation?: boolean | undefined;
	commandTimeoutMs?: number | undefined;
}
export interface SessionDeleteResult { success: boolean; sessionId: string; timestamp: string }

export type Language = 'python' | 'javascript' | 'typescript';
export interface CreateContextOptions {
	language?: Language | 'python3' | 'js' | 'node' | 'ts' | undefined;
	cwd?: string | undefined;
	envVars?: Record<string, string> | undefined;
	env?: Record<string, string> | undefined;
	timeout?: number | undefined;
	timeoutMs?: number | undefined;
}
/** An interpreter with its variables. */
export interface CodeContext {
	readonly id: string;
	readonly language: string;
	readonly cwd: string;
	readonly createdAt: Date;
	readonly lastUsed: Date;
}
export interface OutputMessage { text: string; timestamp: number }
/** A value that code gave, in all its formats. */
export interface Result {
	text?: string;
	html?: string;
	png?: string;
	jpeg?: string;
	svg?: string;
	latex?: string;
	markdown?: string;
	javascript?: string;
	json?: any;
	chart?: ChartData;
	data?: any;
	/** Which formats it has. */
	formats(): string[];
}
export interface ChartData {
	type: 'line' | 'bar' | 'scatter' | 'pie' | 'histogram' | 'heatmap' | 'unknown';
	title?: string;
	data: any;
	layout?: any;
	config?: any;
	library?: 'matplotlib' | 'plotly' | 'altair' | 'seaborn' | 'unknown';
	image?: string;
}
export interface ExecutionError { name: string; message: string; traceback: string[]; lineNumber?: number; value?: string }
/** The older ways to hear of output, accepted beside the newer ones. */
export interface RunCodeOptions {
	context?: CodeContext | string | undefined;
	language?: CreateContextOptions['language'];
	envVars?: Record<string, string> | undefined;
	timeout?: number | undefined;
	timeoutMs?: number | undefined;
	signal?: AbortSignal | undefined;
	stream?: boolean | undefined;
	/** All output, as plain text. */
	onOutput?: ((text: string) => void | Promise<void>) | undefined;
	onStdout?: ((output: OutputMessage) => void | Promise<void>) | undefined;
	onStderr?: ((output: OutputMessage) => void | Promise<void>) | undefined;
	onResult?: ((result: Result) => void | Promise<void>) | undefined;
	onError?: ((error: ExecutionError) => void | Promise<void>) | undefined;
}
/** What a piece of code did. */
export interface ExecutionResult {
	code: string;
	logs: { stdout: string[]; stderr: string[] };
	results: Array<Omit<Result, 'formats'>>;
	error?: ExecutionError;
	executionCount?: number;
	/** Standard output as one text. */
	readonly output: string;
	/** Whether it ended without an error. */
	readonly success: boolean;
	/** The first value of each format. */
	readonly outputs: Record<string, any>;
	/** Which formats there are; `text` when something was printed. */
	readonly formats: string[];
}

export interface ExposePortOptions { hostname?: string | undefined; name?: string | undefined; token?: string | undefined; /** Only signed URLs lead in. */ private?: boolean | undefined }
export interface ExposedPort { url: string; port: number; name?: string; /** The same as `url`. */ readonly exposedAt: string }
export interface ListedPort { url: string; port: number; status: 'active' }

export interface PtyOptions { cols?: number | undefined; rows?: number | undefined; shell?: string | undefined }

export interface BackupOptions {
	dir: string;
	name?: string | undefined;
	/** Seconds. */
	ttl?: number | undefined;
	gitignore?: boolean | undefined;
	excludes?: string[] | undefined;
	localBucket?: boolean | undefined;
	compression?: { format?: 'lz4' | 'gzip' | 'zstd'; threads?: number } | undefined;
	multipart?: boolean | undefined;
}
export interface DirectoryBackup { readonly id: string; readonly dir: string; readonly localBucket?: boolean }
export interface RestoreBackupResult { success: boolean; dir: string; id: string }

export type BucketProvider = 'r2' | 's3' | 'gcs';
export interface BucketCredentials { accessKeyId: string; secretAccessKey: string }
export interface RemoteMountBucketOptions { endpoint: string; provider?: BucketProvider; credentials?: BucketCredentials; readOnly?: boolean; prefix?: string; s3fsOptions?: string[]; credentialProxy?: boolean }
export interface LocalMountBucketOptions { localBucket: true; prefix?: string; readOnly?: boolean }
export interface R2BindingMountBucketOptions { endpoint?: never; prefix?: string; readOnly?: boolean; s3fsOptions?: string[] }
export type MountBucketOptions = RemoteMountBucketOptions | LocalMountBucketOptions | R2BindingMountBucketOptions;

export interface QuickTunnelInfo { id: string; port: number; url: string; hostname: string; createdAt: string; name?: undefined }
export interface NamedTunnelInfo { id: string; port: number; url: string; hostname: string; createdAt: string; name: string }
export type TunnelInfo = QuickTunnelInfo | NamedTunnelInfo;
export interface TunnelOptions { name?: string }

export type SandboxTransport = 'http' | 'websocket' | 'rpc';

/** Options of a sandbox: how to reach it, and what it is created with. */
export interface SandboxOptions extends ServerOptions {
	/** Idle time until it is paused: `30s`, `5m`, `1h`, or seconds. */
	sleepAfter?: string | number | undefined;
	/** Never pause it. */
	keepAlive?: boolean | undefined;
	/** `false`: calls that name no session run in a shell of their own. */
	enableDefaultSession?: boolean | undefined;
	/** Lower-cases the id. */
	normalizeId?: boolean | undefined;
	containerTimeouts?: { instanceGetTimeoutMS?: number; portReadyTimeoutMS?: number; waitIntervalMS?: number } | undefined;
	transport?: SandboxTransport | undefined;
	labels?: Record<string, string> | undefined;
	/** What it is made from: a snapshot, in place of an image. */
	from?: Schemas['CreateSandbox']['from'];
	/** The image, by name. */
	image?: string | undefined;
	/** Size by name. */
	type?: Schemas['CreateSandbox']['type'];
	limits?: Schemas['CreateSandbox']['limits'];
	/** Variables of every command. */
	env?: Record<string, string> | undefined;
	envVars?: Record<string, string> | undefined;
	/** What it reaches. */
	network?: Schemas['NetworkMode'] | undefined;
	stopAfter?: string | number | undefined;
	ttl?: string | number | undefined;
	keepProcesses?: boolean | undefined;
	/** `command`: keeps a snapshot before each command, for undo. */
	autoSnapshot?: 'command' | 'off' | undefined;
	removeAfterStop?: boolean | undefined;
	ephemeral?: boolean | undefined;
}

/** A sandbox as the server shows it. */
export type SandboxInfo = Schemas['Sandbox'];
/** A snapshot as the server shows it. */
export type SnapshotInfo = Schemas['Snapshot'];
/** A command in the history of a sandbox. */
export type HistoryEntry = Schemas['HistoryEntry'];
/** What an undo undid and ended. */
export type UndoInfo = Schemas['Undone'];
/** An image as the server shows it. */
export type ImageInfo = Schemas['Image'];
/** Network mode, rules, counters, refusals. */
export type NetworkInfo = Schemas['Network'];
export type NetworkMode = Schemas['NetworkMode'];

export type ContainerUnavailableReason = 'container_starting' | 'container_unhealthy' | 'container_replaced' | 'rpc_upgrade_failed' | 'no_container_instance_available' | 'max_container_instances_exceeded' | 'container_unreachable';
export interface ContainerUnavailableContext { reason: ContainerUnavailableReason; retryAfterMs?: number }
export type RPCTransportErrorKind = 'peer_closed' | 'connection_failed' | 'upgrade_failed' | 'invalid_frame' | 'protocol_error' | 'session_disposed' | 'unknown';
export interface RPCTransportContext { kind: RPCTransportErrorKind; originalMessage: string }
export type OperationInterruptedReason = 'runtime_replaced' | 'transport_disposed' | 'sandbox_lifetime_changed' | 'recovery_exhausted';
export interface OperationInterruptedContext { reason: OperationInterruptedReason; retryable?: boolean }

// ---- bodies of the compatible routes, which the low-level clients speak ----

export interface BaseApiResponse { success: boolean; timestamp: string }
export interface SessionRequest { sessionId?: string }
export interface ExecuteRequest { command: string; sessionId?: string; timeoutMs?: number; env?: Record<string, string | undefined>; cwd?: string; background?: boolean; origin?: 'user' | 'internal' }
export interface CommandExecuteResponse extends BaseApiResponse { stdout: string; stderr: string; exitCode: number; command: string }
export interface StartProcessRequest extends ExecuteRequest { processId?: string; autoCleanup?: boolean; encoding?: string }
export interface ProcessStartResult extends BaseApiResponse { processId: string; pid?: number; command: string }
export interface ProcessRecord { id: string; pid?: number; command: string; status: ProcessStatus; startTime: string; endTime?: string; exitCode?: number }
export interface ProcessListResult extends BaseApiResponse { processes: ProcessRecord[] }
export interface ProcessInfoResult extends BaseApiResponse { process: ProcessRecord }
export interface ProcessKillResult extends BaseApiResponse { processId: string; signal?: string }
export interface ProcessLogsResult extends BaseApiResponse { processId: string; stdout: string; stderr: string }
export interface ProcessCleanupResult extends BaseApiResponse { message?: string; killedCount?: number; cleanedCount: number }
export interface MkdirRequest extends SessionRequest { path: string; recursive?: boolean }
export interface WriteFileRequest extends SessionRequest { path: string; content: string; encoding?: string }
export interface ReadFileRequest extends SessionRequest { path: string; encoding?: string }
export interface FileOperationRequest extends SessionRequest { path: string; newPath?: string }
export interface GitCheckoutRequest extends SessionRequest { repoUrl: string; branch?: string; targetDir?: string; depth?: number; timeoutMs?: number }
export interface PingResponse extends BaseApiResponse { message: string; uptime?: number }
export interface CommandsResponse extends BaseApiResponse { availableCommands: string[]; count: number }
export interface CreateSessionRequest { id: string; env?: Record<string, string | undefined>; cwd?: string; commandTimeoutMs?: number }
export interface CreateSessionResponse extends BaseApiResponse { sessionId?: string; id: string; message: string }
export interface DeleteSessionRequest { sessionId: string }
export interface DeleteSessionResponse extends BaseApiResponse { sessionId: string }
export interface RequestConfig extends RequestInit { endpoint: string; data?: Record<string, unknown> }
export type ResponseHandler<T> = (response: Response) => Promise<T>;
export interface ExecutionCallbacks { onStdout?: (output: OutputMessage) => void | Promise<void>; onStderr?: (output: OutputMessage) => void | Promise<void>; onResult?: (result: Result) => void | Promise<void>; onError?: (error: ExecutionError) => void | Promise<void> }
/** Something with `fetch`, such as the stub of a Durable Object. */
export interface ContainerStub { fetch(request: Request): Promise<Response> }
/** Options of the low-level clients. */
export interface SandboxClientOptions extends ServerOptions { baseUrl?: string; port?: number; stub?: ContainerStub; transportMode?: SandboxTransport; wsUrl?: string; retryTimeoutMs?: number; defaultHeaders?: Record<string, string>; logger?: unknown; sandboxId?: string; onCommandComplete?: (success: boolean, exitCode: number, stdout: string, stderr: string, command: string) => void; onError?: (error: string, command?: string) => void }

// ---- older names ----

/** @deprecated ExecResult */
export type ExecuteResponse = ExecResult;
/** @deprecated Process */
export type ProcessInfo = Process;
/** @deprecated ReadFileResult; entries of listFiles are FileEntry. */
export type FileInfo = ReadFileResult;
/** @deprecated ExposedPort */
export type ExposePortResponse = ExposedPort;
/** @deprecated The result of getExposedPorts. */
export type GetExposedPortsResponse = ListedPort[] & { readonly ports: ListedPort[]; readonly count: number };

/** What a copy of a sandbox is made with. */
export type ForkOptions = Schemas['ForkSandbox'];
