// SPDX-License-Identifier: Apache-2.0
// What every answer of the API has in common.

import assert from 'node:assert/strict';

export const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const WITH_SUGGESTION = new Set(['SESSION_ALREADY_EXISTS', 'SESSION_TERMINATED', 'SESSION_DESTROYED', 'VALIDATION_FAILED']);

/** The answer is the error envelope with this status and code (a string, or a list of those allowed). Returns its context. */
export function refused(answer, status, code) {
	const text = answer.raw.toString().slice(0, 1000);
	assert.equal(answer.status, status, text);
	envelope(answer);
	assert.ok([code].flat().includes(answer.body.code), `${code}: ${text}`);
	return answer.body.context;
}

/** A permanent failure in the caller's input: any typed 4xx. */
export function refusedAs4xx(answer) {
	assert.ok(answer.status >= 400 && answer.status < 500, `${answer.status} ${answer.raw.toString().slice(0, 1000)}`);
	envelope(answer);
}

export function envelope(answer) {
	const { body } = answer;
	assert.match(answer.headers['content-type'] ?? '', /^application\/json/);
	assert.equal(typeof body.code, 'string');
	assert.ok(typeof body.message === 'string' && body.message.length > 0, 'an error has a sentence');
	assert.ok(body.context !== null && typeof body.context === 'object' && !Array.isArray(body.context), 'context is an object');
	assert.equal(body.httpStatus, answer.status);
	assert.match(body.timestamp, TIME);
	assert.ok(!('success' in body));
	if (WITH_SUGGESTION.has(body.code))
		assert.equal(typeof body.suggestion, 'string', `${body.code} comes with a suggestion`);
}

/** CORS fields: each exactly once. */
export function corsOnce(answer) {
	const expected = {
		'access-control-allow-origin': '*',
		'access-control-allow-methods': 'GET, POST, PUT, DELETE, OPTIONS',
		'access-control-allow-headers': 'Content-Type, Authorization, X-Session-Id, X-Sandbox-Id, X-Trace-Id',
	};
	for (const [name, value] of Object.entries(expected)) {
		const values = answer.rawHeaders.filter((_, i) => i % 2 === 1 && answer.rawHeaders[i - 1].toLowerCase() === name);
		assert.deepEqual(values, [value], name);
	}
}
