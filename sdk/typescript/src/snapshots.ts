// SPDX-License-Identifier: Apache-2.0
// What a server keeps beside its sandboxes: snapshots of their files, events of all that happens.
import { resume, type Cursor } from './stream.js';
import { Server } from './transport.js';
import type { ServerOptions } from './config.js';
import type { SnapshotInfo } from './types.js';

/** Something that happened to a sandbox. */
export interface SandboxEvent {
	type: string;
	/** For reading on from here. */
	cursor?: string;
	[field: string]: unknown;
}

/** The snapshots of a server. They outlive their sandboxes. */
export class Snapshots {
	readonly #server: Server;

	constructor(server: Server | ServerOptions = {}) {
		this.#server = server instanceof Server ? server : new Server(server);
	}

	/** All snapshots. */
	async list(): Promise<SnapshotInfo[]> {
		return (await this.#server.call<{ snapshots: SnapshotInfo[] }>('GET', '/v1/snapshots')).snapshots;
	}

	/** A snapshot by its id. */
	get(id: string): Promise<SnapshotInfo> {
		return this.#server.call('GET', '/v1/snapshots/{snapshot}', { path: { snapshot: id } });
	}

	/** Deletes a snapshot. */
	async delete(id: string): Promise<void> {
		await this.#server.call('DELETE', '/v1/snapshots/{snapshot}', { path: { snapshot: id } });
	}
}

/** What happens on a server, from a cursor on, each event once; without `follow` it ends with what is known. */
export async function* serverEvents(options: ServerOptions & { cursor?: string; sandbox?: string; types?: string[]; follow?: boolean; signal?: AbortSignal } = {}): AsyncGenerator<SandboxEvent, void, undefined> {
	const server = new Server(options);
	const { cursor: from, sandbox, types, follow, signal } = options;
	const open = async (cursor: Cursor | undefined): Promise<ReadableStream<Uint8Array>> =>
		(await server.open('GET', '/v1/events', { query: { cursor: cursor ?? from, follow, sandbox, types: types?.join(',') }, accept: 'text/event-stream', slow: true, signal })).stream();
	yield* resume<SandboxEvent>({ what: 'events', open, cursor: event => event.cursor, isLast: () => false, fromStart: true, mayEnd: follow === false, signal });
}
