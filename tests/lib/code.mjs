// SPDX-License-Identifier: Apache-2.0
// Interpreter contexts of a box through the public API.
import assert from 'node:assert/strict';
import { Box } from './box.mjs';
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
	yield* events(await open(box, id, code, fields), 120_000);
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

/** A sandbox whose commands are run by one Python context that was forked from a warm Python, and are what such a process lets its children be. */
export class ContextBox extends Box {
	#context;

	async #forked() {
		const id = await context(this);
		assert.equal((await run(this, id, 'import json, os, subprocess; os.getppid()')).results[0].text, '0', 'its parent is outside: it was forked');
		return id;
	}

	async exec(command, fields = {}, options) {
		if (fields.sessionId === 'put') // how programs come in does not matter
			return super.exec(command, fields, options);
		this.#context ??= this.#forked();
		const where = fields.cwd ? `, cwd=${JSON.stringify(fields.cwd)}` : '';
		const answer = await run(this, await this.#context, `
try: p = subprocess.run(["bash", "-c", ${JSON.stringify(command)}], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace"${where})
except OSError as e: p = subprocess.CompletedProcess([], 127, "", str(e))
{"stdout": p.stdout, "stderr": p.stderr, "exitCode": p.returncode if p.returncode >= 0 else 128 - p.returncode}`);
		assert.equal(answer.error, null, JSON.stringify(answer.error));
		return { status: 200, body: answer.results.at(-1).json, raw: Buffer.from(JSON.stringify(answer.results)) };
	}
}
