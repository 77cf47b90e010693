// SPDX-License-Identifier: Apache-2.0
// Files: as text, as bytes, as streams; directories.
import { fromBase64, toBase64 } from './base64.js';
import { defined, LINK, refuse, withExtras } from './core.js';
import { clientError, type SandboxError } from './errors.js';
import { Processes } from './processes.js';
import type { Exchange } from './runtime.js';
import { eventStream, parseSSEStream, throwEvent, type EventStream } from './stream.js';
import { brokenOff } from './transport.js';
import type { DeleteFileResult, FileChunk, FileContent, FileEntry, FileExistsResult, FileMetadata, FileStreamEvent, InSession, ListFilesOptions, ListFilesResult, MkdirOptions, MkdirResult, ReadFileOptions, ReadFileResult, ReadFileStreamResult, RenameFileResult, WriteFileOptions, WriteFileResult } from './types.js';

const LONGEST_PATH = 4096;
const READ_MAX = 32 * 1024 * 1024; // of one readFile
const CHUNK = 64 * 1023; // bytes of a chunk event: whole triples for base64
const RESUMES = 8;

const TEXT_TYPES = /^(text\/.*|application\/(json|javascript|ecmascript|typescript|xml|yaml|x-yaml|toml|sql|graphql|x-sh|x-shellscript|rtf|x-httpd-php|x-ndjson|ld\+json)|inode\/x-empty|.*\+(json|xml))$/;

const isText = (mimeType: string): boolean => TEXT_TYPES.test(mimeType);
const now = (): string => new Date().toISOString();
const nameOf = (path: string): string => path.replace(/\/+$/, '').split('/').pop() || '/';
const mimeTypeOf = (response: Exchange): string => (response.header('Content-Type') ?? 'application/octet-stream').replace(/;.*/, '').trim();

/** One entry as the server lists it. */
interface WireEntry {
	path: string;
	type: FileEntry['type'];
	size: number;
	mode: string;
	modifiedAt: string;
}

/** What `stat` says of a path. */
export interface FileStat {
	path: string;
	type: FileEntry['type'];
	size: number;
	mode: string;
	uid: number;
	gid: number;
	inode: number;
	links: number;
	modifiedAt: string;
	changedAt: string;
	etag: string;
	mimeType?: string;
}

/** A line that searchFiles found. */
export interface FileMatch {
	path: string;
	line: number;
	column: number;
	text: string;
}

/** Files of a sandbox. Relative paths begin in the directory of the session. */
export class Files extends Processes {
	/** @internal The path from the root. */
	protected async absolute(path: string, session?: InSession | string): Promise<string> {
		if (typeof path !== 'string' || path === '' || path.includes('\0') || path.length > LONGEST_PATH)
			refuse(`a path has 1 to ${LONGEST_PATH} characters and no NUL`, 'path');
		if (path.startsWith('/'))
			return path;
		const name = this.sessionOf(session);
		const known = name === null ? null : await this[LINK].call<{ cwd: string | null }>('GET', '/v1/sandboxes/{id}/sessions/{session}', { path: { session: name } }).catch(() => null);
		const stdout = known?.cwd ?? (await this.exec('pwd', { sessionId: name })).stdout;
		return `${stdout.replace(/\n$/, '').replace(/\/$/, '')}/${path}`;
	}

	/** Writes a file in one step: a concurrent reader sees the old content or the new. Missing directories are made. */
	async writeFile(path: string, content: FileContent, options: WriteFileOptions = {}): Promise<WriteFileResult> {
		const where = await this.absolute(path, options);
		const body = contentOf(content, options.encoding);
		const put = (): Promise<{ size: number }> => this[LINK].call('PUT', '/v1/sandboxes/{id}/files', { query: { path: where, mode: options.mode }, body, headers: { 'Content-Type': 'application/octet-stream' }, slow: true });
		const parent = where.replace(/\/[^/]*\/*$/, '');
		if (body instanceof ReadableStream && parent !== '')
			await this.#mkdirs(parent);
		let size: number;
		try {
			({ size } = await put());
		} catch (error) {
			if ((error as SandboxError).code !== 'FILE_NOT_FOUND' || parent === '' || body instanceof ReadableStream)
				throw error;
			await this.#mkdirs(parent);
			({ size } = await put());
		}
		const result: WriteFileResult = { success: true, path, timestamp: now() };
		return content instanceof ReadableStream ? { ...result, bytesWritten: size } : result;
	}

	#mkdirs(path: string): Promise<unknown> {
		return this[LINK].call('POST', '/v1/sandboxes/{id}/files/mkdir', { json: { path, recursive: true } });
	}

	/** Writes several files, at most eight at a time. */
	async writeFiles(files: Array<{ path: string; content: FileContent; mode?: string; encoding?: string }>, options: InSession = {}): Promise<WriteFileResult[]> {
		const results: WriteFileResult[] = new Array(files.length);
		let next = 0;
		const work = async (): Promise<void> => {
			for (let i; (i = next++) < files.length;) {
				const { path, content, ...more } = files[i]!;
				results[i] = await this.writeFile(path, content, { ...options, ...more });
			}
		};
		await Promise.all(Array.from({ length: Math.min(8, files.length) }, work));
		return results;
	}

	/** Reads a file of at most 32 MiB: text as it is, anything else as base64. `encoding: 'none'`: any size, as a stream of bytes. */
	readFile(path: string, options: ReadFileOptions & { encoding: 'none' }): Promise<ReadFileStreamResult>;
	readFile(path: string, options?: ReadFileOptions): Promise<ReadFileResult>;
	async readFile(path: string, options: ReadFileOptions = {}): Promise<ReadFileResult | ReadFileStreamResult> {
		const { encoding } = options;
		if (encoding !== undefined && !['utf-8', 'utf8', 'base64', 'none'].includes(encoding))
			refuse(`encoding is utf-8, utf8, base64 or none, not ${encoding}`, 'encoding');
		const response = await this.#get(path, options);
		const size = Number(response.header('Content-Length') ?? 0);
		const mimeType = mimeTypeOf(response);
		if (encoding === 'none')
			return { success: true, path, content: response.stream(), timestamp: now(), mimeType, size };
		if (size > READ_MAX) {
			response.cancel();
			throw clientError('FILE_TOO_LARGE', 413, `${path} has ${size} bytes; at most ${READ_MAX} are read at once`, { path, size }, 'read it with encoding: "none"');
		}
		const bytes = await response.bytes();
		const asText = encoding === undefined ? isText(mimeType) : encoding !== 'base64';
		const content = asText ? new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes) : toBase64(bytes);
		const result = { success: true, path, content, timestamp: now(), encoding: asText ? 'utf-8' as const : 'base64' as const, isBinary: !isText(mimeType), mimeType, size: bytes.length };
		return withExtras(result, { bytes: () => bytes, arrayBuffer: () => bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer, toString: () => content });
	}

	async #get(path: string, session?: InSession, headers?: Record<string, string>): Promise<Exchange> {
		const where = await this.absolute(path, session);
		return this[LINK].open('GET', '/v1/sandboxes/{id}/files', { query: { path: where }, slow: true, ...(headers ? { headers } : {}) });
	}

	/** The bytes of a file of any size. A connection that breaks is opened again where it broke, as long as the file is the same. */
	async download(path: string, options: InSession & { signal?: AbortSignal } = {}): Promise<ReadableStream<Uint8Array>> {
		const where = await this.absolute(path, options);
		const first = await this[LINK].open('GET', '/v1/sandboxes/{id}/files', { query: { path: where }, slow: true, signal: options.signal });
		const size = Number(first.header('Content-Length'));
		const etag = first.header('ETag');
		let reader = first.stream().getReader();
		let at = 0;
		let broken = 0;
		return new ReadableStream<Uint8Array>({
			pull: async controller => {
				for (;;)
					try {
						const { done, value } = await reader.read();
						if (!done) {
							at += value.byteLength;
							broken = 0;
							return controller.enqueue(value);
						}
						if (at >= size)
							return controller.close();
						throw new Error('the file ended early');
					} catch (error) {
						if (options.signal?.aborted || !etag || ++broken > RESUMES)
							throw options.signal?.aborted ? error : brokenOff('GET', where, error);
						const rest = await this[LINK].open('GET', '/v1/sandboxes/{id}/files', { query: { path: where }, headers: { Range: `bytes=${at}-`, 'If-Match': etag }, slow: true, signal: options.signal });
						reader = rest.stream().getReader();
					}
			},
			cancel: reason => reader.cancel(reason),
		}, { highWaterMark: 0 });
	}

	/** A directory as a tar. */
	async downloadTar(path: string, options: InSession & { compress?: boolean; wrap?: boolean } = {}): Promise<ReadableStream<Uint8Array>> {
		const where = await this.absolute(path, options);
		return (await this[LINK].open('GET', '/v1/sandboxes/{id}/files', { query: { path: where, format: options.compress ? 'tar.zst' : 'tar', wrap: options.wrap || undefined }, slow: true })).stream();
	}

	/** Unpacks a tar in a directory. */
	async uploadTar(path: string, tar: Uint8Array | Blob | ReadableStream<Uint8Array>, options: InSession & { owners?: boolean } = {}): Promise<{ path: string; entries: number; bytes: number }> {
		const where = await this.absolute(path, options);
		return this[LINK].call('PUT', '/v1/sandboxes/{id}/files', { query: { path: where, owners: options.owners || undefined }, body: tar, headers: { 'Content-Type': 'application/x-tar' }, slow: true });
	}

	/** A file as server-sent events: `metadata`, `chunk`s, `complete`. A missing file is an `error` event. See streamFile and collectFile. */
	async readFileStream(path: string, options: InSession & { encoding?: string } = {}): Promise<EventStream<FileStreamEvent>> {
		await this.absolute(path.startsWith('/') ? path : '/', options); // bad paths are refused at once
		return eventStream(this.#pieces(path, options));
	}

	async *#pieces(path: string, options: InSession): AsyncGenerator<FileStreamEvent, void, undefined> {
		try {
			const response = await this.#get(path, options);
			const mimeType = mimeTypeOf(response);
			const isBinary = !isText(mimeType);
			yield { type: 'metadata', mimeType, size: Number(response.header('Content-Length') ?? 0), isBinary, encoding: isBinary ? 'base64' : 'utf-8' };
			const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
			let rest = new Uint8Array();
			let bytesRead = 0;
			for await (const piece of piecesOf(response.stream())) {
				bytesRead += piece.byteLength;
				const all = rest.length === 0 ? piece : join(rest, piece);
				const whole = isBinary ? all.length - all.length % 3 : all.length;
				for (let at = 0; at < whole; at += CHUNK) {
					const part = all.subarray(at, Math.min(at + CHUNK, whole));
					yield { type: 'chunk', data: isBinary ? toBase64(part) : decoder.decode(part, { stream: true }) };
				}
				rest = new Uint8Array(all.subarray(whole));
			}
			const last = isBinary ? rest.length > 0 ? toBase64(rest) : '' : decoder.decode();
			if (last !== '')
				yield { type: 'chunk', data: last };
			yield { type: 'complete', bytesRead };
		} catch (error) {
			const { message: text, code, httpStatus, context } = error as SandboxError;
			yield { type: 'error', error: text, ...defined({ code, httpStatus, context }) };
		}
	}

	/** Makes a directory. */
	async mkdir(path: string, options: MkdirOptions = {}): Promise<MkdirResult> {
		const recursive = options.recursive ?? false;
		await this[LINK].call('POST', '/v1/sandboxes/{id}/files/mkdir', { json: { path: await this.absolute(path, options), recursive } });
		return { success: true, path, recursive, timestamp: now() };
	}

	/** Deletes a file; directories are for removeDirectory. */
	async deleteFile(path: string, session?: InSession | string): Promise<DeleteFileResult> {
		const where = await this.absolute(path, session);
		const { type } = await this[LINK].call<FileStat>('POST', '/v1/sandboxes/{id}/files/stat', { json: { path: where, followLinks: false } });
		if (type === 'directory')
			throw clientError('IS_DIRECTORY', 400, `${path} is a directory: directories cannot be deleted with deleteFile()`, { path }, 'use removeDirectory');
		await this[LINK].call('DELETE', '/v1/sandboxes/{id}/files', { query: { path: where } });
		return { success: true, path, timestamp: now() };
	}

	/** Deletes a directory with all that is in it. */
	async removeDirectory(path: string, options: InSession = {}): Promise<{ path: string; entries: number }> {
		return this[LINK].call('DELETE', '/v1/sandboxes/{id}/files', { query: { path: await this.absolute(path, options), recursive: true } });
	}

	/** Renames or moves a file. */
	async renameFile(oldPath: string, newPath: string, session?: InSession | string): Promise<RenameFileResult> {
		await this[LINK].call('POST', '/v1/sandboxes/{id}/files/move', { json: { path: await this.absolute(oldPath, session), to: await this.absolute(newPath, session) } });
		return { success: true, path: oldPath, newPath, timestamp: now() };
	}

	/** Moves a file. */
	moveFile(sourcePath: string, destinationPath: string, session?: InSession | string): Promise<RenameFileResult> {
		return this.renameFile(sourcePath, destinationPath, session);
	}

	/** What is in a directory. */
	async listFiles(path: string, options: ListFilesOptions = {}): Promise<ListFilesResult> {
		const where = await this.absolute(path, options);
		const { entries } = await this[LINK].call<{ entries: WireEntry[] }>('POST', '/v1/sandboxes/{id}/files/list', { json: defined({ path: where, recursive: options.recursive, includeHidden: options.includeHidden ?? false }) });
		const files = entries.map(entry => entryOf(entry, where));
		return { success: true, path, files, count: files.length, timestamp: now() };
	}

	/** The names in a directory. */
	async readdir(path: string, options: InSession = {}): Promise<string[]> {
		return (await this.listFiles(path, { ...options, includeHidden: true })).files.map(file => file.name);
	}

	/** Whether there is a file or directory. */
	async exists(path: string, session?: InSession | string): Promise<FileExistsResult> {
		const where = await this.absolute(path, session);
		try {
			await this[LINK].call('POST', '/v1/sandboxes/{id}/files/stat', { json: { path: where } });
			return { success: true, path, exists: true, timestamp: now() };
		} catch (error) {
			if (!['FILE_NOT_FOUND', 'NOT_DIRECTORY'].includes((error as SandboxError).code))
				throw error;
			return { success: true, path, exists: false, timestamp: now() };
		}
	}

	/** All that is known of a path. */
	async stat(path: string, options: InSession & { followLinks?: boolean } = {}): Promise<FileStat> {
		return this[LINK].call('POST', '/v1/sandboxes/{id}/files/stat', { json: defined({ path: await this.absolute(path, options), followLinks: options.followLinks }) });
	}

	/** Changes permissions. */
	async chmod(path: string, mode: string | number, options: InSession & { recursive?: boolean } = {}): Promise<void> {
		await this[LINK].call('POST', '/v1/sandboxes/{id}/files/chmod', { json: defined({ path: await this.absolute(path, options), mode: typeof mode === 'number' ? mode.toString(8).padStart(4, '0') : mode, recursive: options.recursive }) });
	}

	/** Changes the owner. */
	async chown(path: string, owner: { uid?: number; gid?: number }, options: InSession & { recursive?: boolean; followLinks?: boolean } = {}): Promise<void> {
		await this[LINK].call('POST', '/v1/sandboxes/{id}/files/chown', { json: defined({ path: await this.absolute(path, options), ...owner, recursive: options.recursive, followLinks: options.followLinks }) });
	}

	/** Makes a symbolic link at `path`. */
	async symlink(target: string, path: string, options: InSession = {}): Promise<void> {
		await this[LINK].call('POST', '/v1/sandboxes/{id}/files/symlink', { json: { path: await this.absolute(path, options), target } });
	}

	/** Where a symbolic link leads. */
	async readlink(path: string, options: InSession = {}): Promise<string> {
		return (await this[LINK].call<{ target: string }>('POST', '/v1/sandboxes/{id}/files/readlink', { json: { path: await this.absolute(path, options) } })).target;
	}

	/** A URL with which anybody may download a file, without the token, for an hour unless `expiresIn` (seconds) says otherwise. */
	downloadUrl(path: string, options: InSession & { expiresIn?: number } = {}): Promise<string> {
		return this.#sign('GET', path, options);
	}

	/** A URL to which anybody may PUT the content of a file, without the token. */
	uploadUrl(path: string, options: InSession & { expiresIn?: number } = {}): Promise<string> {
		return this.#sign('PUT', path, options);
	}

	async #sign(method: string, path: string, options: InSession & { expiresIn?: number }): Promise<string> {
		return (await this[LINK].call<{ url: string }>('POST', '/v1/sandboxes/{id}/files/sign', { json: defined({ path: await this.absolute(path, options), method, expiresIn: options.expiresIn }) })).url;
	}

	/** Makes a file that long. */
	async truncate(path: string, size = 0, options: InSession = {}): Promise<void> {
		await this[LINK].call('POST', '/v1/sandboxes/{id}/files/truncate', { json: { path: await this.absolute(path, options), size } });
	}

	/** Lines with a text, in all files of a directory. */
	async searchFiles(path: string, text: string, options: InSession & { glob?: string; ignoreCase?: boolean; limit?: number } = {}): Promise<{ matches: FileMatch[]; count: number; truncated: boolean }> {
		const { glob, ignoreCase, limit } = options;
		return this[LINK].call('POST', '/v1/sandboxes/{id}/files/search', { json: defined({ path: await this.absolute(path, options), text, glob, ignoreCase, limit }) });
	}
}

function contentOf(content: FileContent, encoding = 'utf-8'): string | Uint8Array | Blob | ReadableStream<Uint8Array> {
	if (encoding !== 'utf-8' && encoding !== 'utf8' && encoding !== 'base64')
		refuse(`encoding is utf-8, utf8 or base64, not ${encoding}`, 'encoding');
	if (typeof content === 'string') {
		if (encoding !== 'base64')
			return content;
		if (!/^[A-Za-z0-9+/]*={0,2}$/.test(content))
			refuse('the content is not base64', 'content');
		return fromBase64(content);
	}
	if (content instanceof ArrayBuffer)
		return new Uint8Array(content);
	if (content instanceof Uint8Array || content instanceof Blob || content instanceof ReadableStream)
		return content;
	const like = content as { bytes?: () => Uint8Array };
	if (typeof like?.bytes === 'function')
		return like.bytes(); // what readFile gave
	return refuse('content is a string, bytes, a Blob or a stream', 'content');
}

function entryOf(entry: WireEntry, directory: string): FileEntry {
	const base = directory.replace(/\/+$/, '');
	const absolutePath = entry.path.startsWith('/') ? entry.path : `${base}/${entry.path}`;
	const bits = parseInt(entry.mode, 8);
	const mode = [...'rwxrwxrwx'].map((letter, i) => bits & (0o400 >> i) ? letter : '-').join('');
	return {
		name: nameOf(absolutePath), absolutePath, relativePath: absolutePath.startsWith(`${base}/`) ? absolutePath.slice(base.length + 1) : entry.path, type: entry.type, size: entry.size, modifiedAt: entry.modifiedAt, mode,
		permissions: { readable: Boolean(bits & 0o400), writable: Boolean(bits & 0o200), executable: Boolean(bits & 0o100) },
	};
}

function join(one: Uint8Array, two: Uint8Array): Uint8Array {
	const all = new Uint8Array(one.length + two.length);
	all.set(one);
	all.set(two, one.length);
	return all;
}

/** @internal The pieces of a stream, where streams cannot be iterated over, too. */
export async function* piecesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
	const reader = stream.getReader();
	try {
		for (;;) {
			const { done, value } = await reader.read();
			if (done)
				return;
			yield value;
		}
	} finally {
		reader.cancel().catch(() => {});
	}
}

/** The content of a readFileStream, piece by piece; returns what is known of the file. */
export async function* streamFile(stream: ReadableStream<Uint8Array>): AsyncGenerator<FileChunk, FileMetadata, undefined> {
	let metadata: FileMetadata | undefined;
	for await (const event of parseSSEStream<FileStreamEvent>(stream)) {
		if (event.type === 'metadata') {
			const { type: _, ...rest } = event;
			metadata = rest;
		} else if (event.type === 'error')
			throwEvent(event);
		else if (!metadata)
			throw new Error('the stream does not begin with metadata');
		else if (event.type === 'chunk')
			yield metadata.isBinary && metadata.encoding === 'base64' ? fromBase64(event.data) : event.data;
		else
			return metadata;
	}
	throw new Error('the stream ended before the file');
}

/** The whole content of a readFileStream. */
export async function collectFile(stream: ReadableStream<Uint8Array>): Promise<{ content: string | Uint8Array; metadata: FileMetadata }> {
	const chunks: FileChunk[] = [];
	const pieces = streamFile(stream);
	for (let next = await pieces.next(); ; next = await pieces.next()) {
		if (!next.done) {
			chunks.push(next.value);
			continue;
		}
		const metadata = next.value;
		if (!metadata.isBinary)
			return { content: chunks.join(''), metadata };
		const all = new Uint8Array((chunks as Uint8Array[]).reduce((sum, chunk) => sum + chunk.length, 0));
		let at = 0;
		for (const chunk of chunks as Uint8Array[]) {
			all.set(chunk, at);
			at += chunk.length;
		}
		return { content: all, metadata };
	}
}
