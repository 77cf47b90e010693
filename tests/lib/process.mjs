// SPDX-License-Identifier: Apache-2.0
// Background processes of a box, through the routes that clients use.

import assert from 'node:assert/strict';
import { events } from './sse.mjs';
import { until } from './wait.mjs';

/** Starts one: the body of the answer. */
export async function start(box, command, fields = {}) {
	const answer = await box.api('POST', '/api/process/start', { command, ...fields });
	assert.equal(answer.status, 200, answer.raw.toString());
	return answer.body;
}

/** Its record, or null. */
export async function look(box, id) {
	const answer = await box.api('GET', `/api/process/${id}`);
	return answer.status === 200 ? answer.body.process : null;
}

/** Its record, once it has ended. */
export function ended(box, id, ms = 60_000) {
	return until(`end of ${id}`, async () => {
		const process = await look(box, id);
		return process && !['starting', 'running'].includes(process.status) && process;
	}, ms);
}

/** Runs one to its end: its record. */
export async function runToEnd(box, command, fields) {
	return ended(box, (await start(box, command, fields)).processId);
}

export async function list(box, query = '') {
	const answer = await box.api('GET', `/api/process/list${query}`);
	assert.equal(answer.status, 200, answer.raw.toString());
	return answer.body.processes;
}

export async function logs(box, id, options) {
	const answer = await box.api('GET', `/api/process/${id}/logs`, undefined, options);
	assert.equal(answer.status, 200, answer.raw.toString().slice(0, 1000));
	return answer.body;
}

/** The response of a log stream, for tests that read slowly or leave. */
export async function openLog(box, id, query = '') {
	const response = await box.daemon.client.open('GET', `/sandboxes/${box.id}/api/process/${id}/stream${query}`);
	assert.equal(response.statusCode, 200);
	return response;
}

/** Its log as events. */
export async function* follow(box, id, query = '') {
	yield* events(await openLog(box, id, query));
}

export function kill(box, id, query = '', body) {
	return box.api('DELETE', `/api/process/${id}${query}`, body);
}
