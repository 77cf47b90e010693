// SPDX-License-Identifier: Apache-2.0
// A sandbox client for OpenAI's Agents SDK (@openai/agents-core/sandbox): new Runner({ … }).run(agent, 'do it', { sandbox: { client: new SiltSandboxClient() } })
import { Manifest, normalizeSandboxClientCreateArgs, type Entry, type ExecCommandArgs, type ExposedPortEndpoint, type ListDirectoryArgs, type MaterializeEntryArgs, type ReadFileArgs, type SandboxClient, type SandboxClientCreate, type SandboxDirectoryEntry, type SandboxExecResult, type SandboxSession, type SandboxSessionState, type WorkspaceArchiveData } from '@openai/agents-core/sandbox';
import { FileNotFoundError, Sandbox, type SandboxOptions } from 'silt-sandbox';
import { Editor } from 'silt-sandbox/openai';

export type SiltOptions = SandboxOptions & Record<string, unknown>;
export interface SiltSessionState extends SandboxSessionState { sandboxId: string }

/** One sandbox of an agent. */
export class SiltSandboxSession implements SandboxSession<SiltSessionState> {
	readonly state: SiltSessionState;
	readonly sandbox: Sandbox;

	constructor(sandbox: Sandbox, state: SiltSessionState) {
		this.sandbox = sandbox;
		this.state = state;
	}

	get #root(): string { return this.state.manifest.root; }
	#path(path: string): string { return path.startsWith('/') ? path : `${this.#root}/${path}`.replace(/\/\.?$/, ''); }

	async exec({ cmd, workdir, runAs }: ExecCommandArgs): Promise<SandboxExecResult> {
		const began = Date.now();
		const { stdout, stderr, exitCode } = await this.sandbox.exec(cmd, { cwd: this.#path(workdir ?? '.'), env: this.state.environment, sessionId: null, ...(runAs ? { user: runAs } : {}) });
		return { output: stdout + stderr, stdout, stderr, exitCode, wallTimeSeconds: (Date.now() - began) / 1000 };
	}

	async execCommand(args: ExecCommandArgs): Promise<string> {
		const { output, exitCode, wallTimeSeconds } = await this.exec(args);
		const limit = (args.maxOutputTokens ?? 10_000) * 4;
		return `Wall time: ${wallTimeSeconds.toFixed(3)} seconds\nProcess exited with code ${exitCode}\nOutput:\n${output.length > limit ? `${output.slice(0, limit)}\n(${output.length - limit} characters more)` : output}`;
	}

	createEditor(): Editor { return new Editor(this.sandbox, this.#root); }

	async readFile({ path, maxBytes }: ReadFileArgs): Promise<Uint8Array> {
		const { content } = await this.sandbox.readFile(this.#path(path), { encoding: 'none' });
		const bytes = new Uint8Array(await new Response(content).arrayBuffer());
		return maxBytes === undefined ? bytes : bytes.subarray(0, maxBytes);
	}

	async listDir({ path }: ListDirectoryArgs): Promise<SandboxDirectoryEntry[]> {
		const { files } = await this.sandbox.listFiles(this.#path(path), { includeHidden: true });
		return files.map(file => ({ name: file.name, path: file.absolutePath, type: file.type === 'directory' ? 'dir' : file.type === 'file' ? 'file' : 'other' }));
	}

	async pathExists(path: string): Promise<boolean> { return (await this.sandbox.exists(this.#path(path))).exists; }

	async directoryExists(path: string): Promise<boolean> {
		return this.sandbox.stat(this.#path(path)).then(({ type }) => type === 'directory', error => {
			if (error instanceof FileNotFoundError)
				return false;
			throw error;
		});
	}

	async materializeEntry({ path, entry }: MaterializeEntryArgs): Promise<void> {
		const one = entry as Entry & { content?: string | Uint8Array; children?: Record<string, Entry> };
		if (one.type === 'file')
			await this.sandbox.writeFile(this.#path(path), one.content ?? '');
		else if (one.type === 'dir') {
			await this.sandbox.mkdir(this.#path(path), { recursive: true });
			for (const [name, child] of Object.entries(one.children ?? {}))
				await this.materializeEntry({ path: `${path}/${name}`, entry: child });
		} else
			throw new Error(`entries of type ${one.type} are not made here: put the files there by applying a tar, or clone in a command`);
	}

	async applyManifest(manifest: Manifest): Promise<void> {
		for (const [path, entry] of Object.entries(manifest.entries))
			await this.materializeEntry({ path, entry: entry as Entry });
	}

	async persistWorkspace(): Promise<Uint8Array> {
		return new Uint8Array(await new Response(await this.sandbox.downloadTar(this.#root)).arrayBuffer());
	}

	async hydrateWorkspace(data: WorkspaceArchiveData): Promise<void> {
		await this.sandbox.uploadTar(this.#root, typeof data === 'string' ? new TextEncoder().encode(data) : new Uint8Array(data));
	}

	async resolveExposedPort(port: number): Promise<ExposedPortEndpoint> {
		const url = new URL((await this.sandbox.exposePort(port)).url);
		return { host: url.hostname, port: Number(url.port) || (url.protocol === 'https:' ? 443 : 80), tls: url.protocol === 'https:', url: url.href };
	}

	async running(): Promise<boolean> { return (await this.sandbox.getState()).status === 'running'; }
	async start(): Promise<void> { await this.sandbox.start(); }
	async stop(): Promise<void> { await this.sandbox.stop(); }
	async delete(): Promise<void> { await this.sandbox.destroy(); }
	async close(): Promise<void> { await this.delete(); }
}

/** Makes sandboxes for agents. */
export class SiltSandboxClient implements SandboxClient<SiltOptions, SiltSessionState> {
	readonly backendId = 'silt';
	readonly #options: SandboxOptions;

	constructor(options: SandboxOptions = {}) {
		this.#options = options;
	}

	create: SandboxClientCreate<SiltOptions, SiltSessionState> = async (args?: any, manifestOptions?: SiltOptions) => {
		const { manifest, options } = normalizeSandboxClientCreateArgs<SiltOptions>(args, manifestOptions);
		const sandbox = await Sandbox.create({ ...this.#options, ...options });
		try {
			const session = new SiltSandboxSession(sandbox, { manifest, sandboxId: sandbox.id, workspaceReady: true, environment: await manifest.resolveEnvironment() });
			await sandbox.mkdir(manifest.root, { recursive: true });
			await session.applyManifest(manifest);
			return session;
		} catch (error) {
			await sandbox.destroy();
			throw error;
		}
	};

	async serializeSessionState({ sandboxId, manifest }: SiltSessionState): Promise<Record<string, unknown>> {
		return { sandboxId, manifest: JSON.parse(JSON.stringify(manifest)) };
	}

	async deserializeSessionState(state: Record<string, unknown>): Promise<SiltSessionState> {
		return { ...state, sandboxId: String(state.sandboxId), manifest: new Manifest(state.manifest as object), workspaceReady: true };
	}

	async resume(state: SiltSessionState): Promise<SiltSandboxSession> {
		return new SiltSandboxSession(await Sandbox.connect(state.sandboxId, this.#options), state);
	}

	async delete({ sandboxId }: SiltSessionState): Promise<void> {
		await Sandbox.destroy(sandboxId, this.#options);
	}
}
