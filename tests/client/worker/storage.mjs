// SPDX-License-Identifier: Apache-2.0
// A storage with the two faces that the client uses: a bucket that the Worker is bound to, and presigned URLs of the S3 protocol.

import { getSandbox } from '@cloudflare/sandbox';

export const HOST = 'account.r2.cloudflarestorage.com';

const objects = new Map(); // key -> { bytes, etag }
const uploads = new Map(); // id -> [bytes of each part]

/** What the handler of uploads and downloads has seen: [method, path, bytes, by]. */
export const seen = [];

let count = 0;
const put = (key, bytes) => objects.set(key, { key, bytes, size: bytes.length, etag: `etag-${++count}` });
const told = ({ key, size, etag }) => ({ key, size, etag });
const readable = object => ({
	...told(object),
	get body() { return new Response(object.bytes).body; },
	arrayBuffer: async () => object.bytes.buffer.slice(object.bytes.byteOffset, object.bytes.byteOffset + object.bytes.length),
	text: async () => new TextDecoder().decode(object.bytes),
	json: async () => JSON.parse(new TextDecoder().decode(object.bytes)),
});

export const bucket = {
	async put(key, value) { put(key, new Uint8Array(await new Response(value).arrayBuffer())); },
	async get(key) { return objects.has(key) ? readable(objects.get(key)) : null; },
	async head(key) { return objects.has(key) ? told(objects.get(key)) : null; },
	async delete(key) { objects.delete(key); },
	async list({ prefix = '' } = {}) { return { objects: [...objects.values()].filter(object => object.key.startsWith(prefix)).map(told), truncated: false }; },
};

/** The settings of a Worker whose backups go there. */
export const settings = { BACKUP_BUCKET: bucket, BACKUP_BUCKET_NAME: 'backups-of-tests', R2_ACCESS_KEY_ID: 'key', R2_SECRET_ACCESS_KEY: 'secret', CLOUDFLARE_R2_ACCOUNT_ID: 'account' };

function download(object, range) {
	const [, from, to] = range?.match(/^bytes=(\d+)-(\d+)$/) ?? [];
	if (from === undefined)
		return new Response(object.bytes);
	return new Response(object.bytes.slice(Number(from), Number(to) + 1), { status: 206 });
}

function join(parts) {
	const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
	let at = 0;
	for (const part of parts) {
		all.set(part, at);
		at += part.length;
	}
	return all;
}

/** A request of the S3 protocol; by: who made it. */
export async function answer(request, by) {
	const url = new URL(request.url);
	const key = decodeURIComponent(url.pathname.split('/').slice(2).join('/'));
	const id = url.searchParams.get('uploadId');
	const bytes = request.method === 'PUT' ? new Uint8Array(await request.arrayBuffer()) : undefined;
	seen.push([request.method, key, bytes?.length, by]);
	if (request.method === 'POST' && url.searchParams.has('uploads')) {
		uploads.set(`upload-${++count}`, []);
		return new Response(`<InitiateMultipartUploadResult><UploadId>upload-${count}</UploadId></InitiateMultipartUploadResult>`);
	}
	if (request.method === 'POST') {
		put(key, join(uploads.get(id)));
		return new Response('<CompleteMultipartUploadResult/>');
	}
	if (request.method === 'PUT' && id)
		uploads.get(id)[Number(url.searchParams.get('partNumber')) - 1] = bytes;
	else if (request.method === 'PUT')
		put(key, bytes);
	if (request.method === 'PUT')
		return new Response('', { headers: { ETag: `"${++count}"` } });
	return objects.has(key) ? download(objects.get(key), request.headers.get('range')) : new Response('none', { status: 404 });
}

/** Runs with a sandbox of the class Stored. */
export async function stored({ env, id, transport }, run) {
	const sandbox = getSandbox(env.Stored, `${id}-s`, { transport });
	try {
		await run(sandbox);
	} finally {
		await sandbox.destroy();
	}
}

/** What the client asks for itself, in the Worker. */
const world = globalThis.fetch;
globalThis.fetch = (input, init) => {
	const request = new Request(input, init);
	return new URL(request.url).host === HOST ? answer(request, 'worker') : world(input, init);
};
