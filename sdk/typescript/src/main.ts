// SPDX-License-Identifier: Apache-2.0
// All that both entry points share.
import type { ExecResult, Process, ProcessStatus } from './types.js';

export * from './errors.js';
export * from './types.js';
export { parseSSEStream, responseToAsyncIterable, asyncIterableToSSEStream, type EventStream } from './stream.js';
export { streamFile, collectFile, type FileStat, type FileMatch } from './files.js';
export { CommandHandle, type CommandOutcome, type ProcessRow } from './processes.js';
export { CodeInterpreter, Execution, type CodeEvent, type InterpreterClient } from './code.js';
export { Terminal, proxyTerminal, type TerminalExit } from './terminal.js';
export { Tunnels, type SignedUrl } from './ports.js';
export type { GitChange, GitStatus } from './git.js';
export { Images, type BuildOptions, type ImageEvent } from './images.js';
export { Snapshots, type SandboxEvent } from './snapshots.js';
export { ExecutionSession } from './session.js';
export { getSandbox, type Metrics } from './sandbox.js';
export { proxyToSandbox, type SandboxEnv } from './preview.js';
export { BackupClient, CommandClient, FileClient, GitClient, PortClient, ProcessClient, SandboxClient, UtilityClient, WatchClient } from './clients.js';
export type { ServerOptions } from './config.js';
/** The object that getSandbox gives. */
export type { Sandbox as ISandbox } from './sandbox.js';

const STATUSES: ReadonlySet<unknown> = new Set(['starting', 'running', 'completed', 'failed', 'killed', 'error']);

/** Whether a value has the shape of a command's result. */
export function isExecResult(value: any): value is ExecResult {
	return Boolean(value) && typeof value.success === 'boolean' && typeof value.exitCode === 'number' && typeof value.stdout === 'string' && typeof value.stderr === 'string';
}

/** Whether a value has the shape of a process. */
export function isProcess(value: any): value is Process {
	return Boolean(value) && typeof value.id === 'string' && typeof value.command === 'string' && typeof value.status === 'string';
}

/** Whether a word is a status of processes. */
export function isProcessStatus(value: string): value is ProcessStatus {
	return STATUSES.has(value);
}

/** Containers of Workers send their requests through it; there are none here. */
export class ContainerProxy {
	/** Refuses. */
	async fetch(_request?: Request): Promise<Response> {
		return Response.json({ code: 'NOT_IMPLEMENTED', error: 'outbound handlers belong to Workers with a container; set the network of the sandbox instead (setNetwork)' }, { status: 501 });
	}
}
