// SPDX-License-Identifier: Apache-2.0
// Runs engine-test (C, TAP): silt-priv driven directly, for what the API cannot see. One sentence, one test.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';

const build = process.env.SILT_BUILD ?? 'build';
const program = path.join(build, 'tests/unit/engine/engine-test');

async function run() {
	const child = spawn(program, [build], { stdio: ['ignore', 'pipe', 'inherit'] });
	const results = [];
	let plan;
	for await (const line of createInterface({ input: child.stdout })) {
		const [, not, sentence, skip] = /^(not )?ok \d+ - (.*?)(?: # SKIP (.*))?$/.exec(line) ?? [];
		if (sentence)
			results.push({ sentence, passed: !not, skip, notes: [] });
		else if (line.startsWith('1..'))
			plan = Number(line.slice(3).split(' ')[0]);
		else
			results.at(-1)?.notes.push(line);
	}
	const code = child.exitCode ?? await new Promise(done => child.once('exit', done));
	return { results, plan, code };
}

test('the engine', async t => {
	const { results, plan, code } = await run();
	assert.equal(results.length, plan, 'engine-test ran to its end');
	for (const { sentence, passed, skip, notes } of results)
		await t.test(sentence, { skip }, () => assert.ok(passed, notes.join('\n')));
	assert.equal(code, results.every(one => one.passed) ? 0 : 1);
});
