// SPDX-License-Identifier: Apache-2.0
// What scenarios share.

import assert from 'node:assert/strict';
import { parseSSEStream } from '@cloudflare/sandbox';

const MS = 30_000;

/** Fails when it takes too long. */
export function within(what, promise, ms = MS) {
	let timer;
	const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`${what}: not within ${ms} ms`)), ms); });
	return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Waits until find() gives something. */
export async function until(what, find, ms = MS) {
	for (const end = Date.now() + ms; ;) {
		const found = await find();
		if (found)
			return found;
		assert.ok(Date.now() < end, `${what}: not within ${ms} ms`);
		await scheduler.wait(20);
	}
}

/** The events of a stream, up to and with the first that `last` accepts. */
export async function events(stream, last = () => false) {
	const all = [];
	await within('events', (async () => {
		for await (const event of parseSSEStream(stream)) {
			all.push(event);
			if (last(event))
				break;
		}
	})());
	return all;
}

export const text = (all, type) => all.filter(event => event.type === type).map(event => event.data ?? event.text).join('');

/** Rejects with the class of this code: FILE_NOT_FOUND, FileNotFoundError. The code itself does not cross from the object to the Worker. */
export const rejects = (promise, code) => assert.rejects(promise, error => {
	const name = `${code.toLowerCase().replace(/(?:^|_)(.)/g, (_, letter) => letter.toUpperCase())}Error`;
	assert.equal(error.name, name, `${error.message}`);
	return true;
});

export async function bytes(stream) {
	return new Uint8Array(await within('the stream', new Response(stream).arrayBuffer()));
}
