// SPDX-License-Identifier: Apache-2.0
// Interpreter contexts of a box through the public API.
import assert from 'node:assert/strict';
import { events } from './sse.mjs';

/** Creates a context; answers its id. */
export async function context(box, options = {}) {
	const answer = await box.api('POST', '/api/contexts', options, { deadline: 90_000 });
	assert.equal(answer.status, 200, JSON.stringify(answer.body));
	return answer.body.contextId;
}

/** execute/code as a bare response, for tests that read slowly, or leave. */
export async function open(box, id, code, fields = {}) {
	const response = await box.daemon.client.open('POST', `/sandboxes/${box.id}/api/execute/code`, { ...(id && { context_id: id }), code, ...fields });
	assert.equal(response.statusCode, 200);
	return response;
}

/** execute/code: an async iterator of {event, data}. */
export async function* cell(box, id, code, fields = {}) {
	yield* events(await open(box, id, code, fields), 60_000);
}

/** Runs code to its end: {stdout, stderr, results, error, count}. */
export async function run(box, id, code, fields = {}) {
	const answer = { stdout: '', stderr: '', results: [], error: null, count: 0, events: [] };
	for await (const { data } of cell(box, id, code, fields)) {
		answer.events.push(data);
		if (data.type === 'stdout' || data.type === 'stderr')
			answer[data.type] += data.text;
		else if (data.type === 'result')
			answer.results.push(data);
		else if (data.type === 'error')
			answer.error = data;
		answer.count = data.execution_count ?? answer.count;
	}
	assert.match(answer.events.at(-1)?.type ?? '', /^(execution_complete|error)$/, 'the last event');
	return answer;
}
