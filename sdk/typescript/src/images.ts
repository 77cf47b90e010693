// SPDX-License-Identifier: Apache-2.0
// Images: root file systems that sandboxes begin with.
import { defined } from './core.js';
import { parseSSEStream, throwEvent } from './stream.js';
import { Server } from './transport.js';
import type { ServerOptions } from './config.js';
import type { ImageInfo } from './types.js';

/** One step of a build or pull. */
export interface ImageEvent {
	type: string;
	text?: string;
	data?: string;
	[field: string]: unknown;
}

/** What a Dockerfile is built with. */
export interface BuildOptions {
	/** Names of the image. */
	tags?: string[];
	dockerfile?: string;
	target?: string;
	buildArgs?: Record<string, string>;
	noCache?: boolean;
	network?: string;
	labels?: Record<string, string>;
	onEvent?: (event: ImageEvent) => void;
	signal?: AbortSignal;
}

type Tar = Uint8Array | Blob | ReadableStream<Uint8Array>;

/** The images of a server. */
export class Images {
	readonly #server: Server;

	constructor(server: Server | ServerOptions = {}) {
		this.#server = server instanceof Server ? server : new Server(server);
	}

	/** All images that have a name; `all`: the others, too. */
	async list(options: { all?: boolean } = {}): Promise<ImageInfo[]> {
		return (await this.#server.call<{ images: ImageInfo[] }>('GET', '/v1/images', { query: { all: options.all || undefined } })).images;
	}

	/** An image by name or digest. */
	get(name: string): Promise<ImageInfo> {
		return this.#server.call('GET', '/v1/images/{name}', { path: { name } });
	}

	/** Makes an image out of a tar of a root file system, or another archive of an image. */
	put(name: string, tar: Tar, options: { config?: object; format?: string; image?: string } = {}): Promise<ImageInfo> {
		return this.#server.call('PUT', '/v1/images/{name}', { path: { name }, query: this.#import(options), body: tar, headers: TAR, slow: true });
	}

	/** The same with the name that the archive has. */
	import(tar: Tar, options: { config?: object; format?: string; image?: string } = {}): Promise<ImageInfo> {
		return this.#server.call('POST', '/v1/images/import', { query: this.#import(options), body: tar, headers: TAR, slow: true });
	}

	#import({ config, format, image }: { config?: object; format?: string; image?: string }): Record<string, string | undefined> {
		return { config: config && JSON.stringify(config), format, image };
	}

	/** Takes a name away; the image goes with its last one. */
	async delete(name: string): Promise<void> {
		await this.#server.call('DELETE', '/v1/images/{name}', { path: { name } });
	}

	/** Gives an image another name. */
	tag(name: string, other: string): Promise<ImageInfo> {
		return this.#server.call('POST', '/v1/images/{name}/tag', { path: { name }, query: { name: other } });
	}

	/** An image as an archive. */
	async export(name: string, options: { format?: string } = {}): Promise<ReadableStream<Uint8Array>> {
		return (await this.#server.open('GET', '/v1/images/{name}/export', { path: { name }, query: options, slow: true })).stream();
	}

	/** Fetches an image from a registry. */
	async pull(reference: string, options: { name?: string; username?: string; password?: string; onEvent?: (event: ImageEvent) => void; signal?: AbortSignal } = {}): Promise<ImageEvent> {
		const { onEvent, signal, ...more } = options;
		const response = await this.#server.open('POST', '/v1/images/pull', { json: defined({ reference, ...more }), accept: 'text/event-stream', slow: true, signal });
		return lastOf(response.stream(), onEvent, signal);
	}

	/** Builds a Dockerfile; `context` is a tar of its directory. */
	async build(context: Tar, options: BuildOptions = {}): Promise<ImageEvent> {
		const { tags = [], dockerfile, target, buildArgs, noCache, network, labels, onEvent, signal } = options;
		const query = { t: tags.length > 0 ? tags.join(',') : undefined, dockerfile, target, buildargs: buildArgs && JSON.stringify(buildArgs), nocache: noCache || undefined, network, labels: labels && JSON.stringify(labels) };
		const response = await this.#server.open('POST', '/v1/images/build', { query, body: context, headers: TAR, accept: 'text/event-stream', slow: true, signal });
		return lastOf(response.stream(), onEvent, signal);
	}

	/** Empties the cache of builds; how many steps were in it. */
	async prune(): Promise<number> {
		return (await this.#server.call<{ steps: number }>('POST', '/v1/images/prune')).steps;
	}
}

const TAR = { 'Content-Type': 'application/x-tar' };

async function lastOf(stream: ReadableStream<Uint8Array>, onEvent?: (event: ImageEvent) => void, signal?: AbortSignal): Promise<ImageEvent> {
	let last: ImageEvent | undefined;
	for await (const event of parseSSEStream<ImageEvent>(stream, signal)) {
		if (event.type === 'error')
			throwEvent(event as never);
		onEvent?.(event);
		last = event;
	}
	if (!last || !/^(complete|done|image)$/.test(last.type))
		throw new Error('the stream ended before the image was there');
	return last;
}
