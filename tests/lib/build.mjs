// SPDX-License-Identifier: Apache-2.0
// Builds images from Dockerfiles through the API.
import assert from 'node:assert/strict';
import { tar } from './tar.mjs';

/** files: {name: text, or an entry of tar.mjs}. */
export function context(files) {
	return tar(Object.entries(files).map(([name, value]) => (typeof value === 'string' || Buffer.isBuffer(value) ? { name, data: value } : { name, ...value })));
}

/** Answers {events, steps, output, notices, done, error}. */
export async function build(daemon, files, { query = {}, names = [], deadline = 120_000 } = {}) {
	const text = [...names.map(name => ['t', name]), ...Object.entries(query)].map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join('&');
	const answer = await daemon.api('POST', `/v1/images/build?${text}`, Buffer.isBuffer(files) ? files : context(files), { headers: { 'content-type': 'application/x-tar' }, deadline });
	if (answer.status !== 200)
		return { answer };
	const events = answer.raw.toString().split('\n\n').filter(block => block.includes('data: ')).map(block => JSON.parse(block.split('\n').find(line => line.startsWith('data: ')).slice(6)));
	const of = type => events.filter(e => e.type === type);
	return { answer, events, steps: of('step'), output: of('output').map(e => e.data).join(''), notices: of('notice').map(e => e.message), done: of('done')[0], error: of('error')[0] };
}

export async function built(daemon, files, options) {
	const result = await build(daemon, files, options);
	assert.ok(result.done, JSON.stringify(result.error ?? result.answer.body) + result.output);
	return result;
}

export async function failed(daemon, files, options) {
	const result = await build(daemon, files, options);
	assert.ok(result.error, `it should have failed: ${JSON.stringify(result.events ?? result.answer.body)}`);
	return result;
}
