// SPDX-License-Identifier: Apache-2.0
// What scenarios share.

import assert from 'node:assert/strict';
import { parseSSEStream } from '@cloudflare/sandbox';

const MS = 90_000;

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

/** Rejects with the class of this code: FILE_NOT_FOUND, FileNotFoundError; or with the class itself. The code does not cross from the object to the Worker.
 * (What a call gives looks like a function: assert.rejects itself would call it.) */
export const rejects = (promise, code) => assert.rejects(async () => promise, error => {
	const name = /[a-z]/.test(code) ? code : `${code.toLowerCase().replace(/(?:^|_)(.)/g, (_, letter) => letter.toUpperCase())}Error`;
	assert.equal(error.name, name, `${error.message}`);
	return true;
});

export async function bytes(stream) {
	return new Uint8Array(await within('the stream', new Response(stream).arrayBuffer()));
}

/** It has ended and the client's hooks have run: until then its state is `stopped_with_code`. */
export const stopped = (sandbox, ms) => until('stopped', async () => (await sandbox.getState()).status === 'stopped', ms);
