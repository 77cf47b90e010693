// SPDX-License-Identifier: Apache-2.0
// Runs engine-test and priv-fuzz (C, TAP): silt-priv driven directly, for what the API cannot see. One sentence, one test.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';

const build = process.env.SILT_BUILD ?? 'build';

async function run(program) {
	const child = spawn(path.join(build, 'tests/unit/engine', program), [build], { stdio: ['ignore', 'pipe', 'inherit'] });
	const results = [], remarks = [];
	let plan;
	for await (const line of createInterface({ input: child.stdout })) {
		const [, not, sentence, skip] = /^(not )?ok \d+ - (.*?)(?: # SKIP (.*))?$/.exec(line) ?? [];
		if (sentence)
			results.push({ sentence, passed: !not, skip, notes: [] });
		else if (line.startsWith('1..'))
			plan = Number(line.slice(3).split(' ')[0]);
		else
			(results.at(-1)?.notes ?? remarks).push(line);
	}
	const code = child.exitCode ?? await new Promise(done => child.once('exit', done));
	return { results, plan, code, remarks };
}

async function show(t, program) {
	const { results, plan, code, remarks } = await run(program);
	for (const line of remarks)
		t.diagnostic(line.replace(/^# /, '')); // the seed
	assert.equal(results.length, plan, `${program} ran to its end`);
	for (const { sentence, passed, skip, notes } of results)
		await t.test(sentence, { skip }, () => assert.ok(passed, [...remarks, ...notes].join('\n')));
	assert.equal(code, results.every(one => one.passed) ? 0 : 1);
}

test('the engine', t => show(t, 'engine-test'));
test('a hostile siltd', t => show(t, 'priv-fuzz')); // for longer: SILT_FUZZ_SECONDS; the same again: SILT_FUZZ_SEED
