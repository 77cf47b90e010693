// SPDX-License-Identifier: Apache-2.0
// Pulls images through the API.
import assert from 'node:assert/strict';

/** Answers {answer, events, output, done, error}. */
export async function pull(daemon, body, deadline = 120_000) {
	const answer = await daemon.api('POST', '/v1/images/pull', body, { deadline });
	if (answer.status !== 200)
		return { answer };
	const events = answer.raw.toString().split('\n\n').filter(block => block.includes('data: ')).map(block => JSON.parse(block.split('\n').find(line => line.startsWith('data: ')).slice(6)));
	const of = type => events.filter(e => e.type === type);
	return { answer, events, output: of('output').map(e => e.data).join(''), done: of('done')[0], error: of('error')[0] };
}

export async function pulled(daemon, body) {
	const result = await pull(daemon, body);
	assert.ok(result.done, JSON.stringify(result.error ?? result.answer.body) + result.output);
	return result;
}

/** The event `error`. */
export async function notPulled(daemon, body) {
	const result = await pull(daemon, body);
	assert.ok(result.error, `it should have failed: ${JSON.stringify(result.events ?? result.answer.body)}`);
	return result.error;
}
