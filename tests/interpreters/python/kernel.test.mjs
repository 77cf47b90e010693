// SPDX-License-Identifier: Apache-2.0
// The Python kernel by itself, with the Python and the packages of the image `base`: its directory and its tests are put into
// a sandbox and run there. Each test_*.py of this directory is one test, each of its sentences a subtest.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { BUILD, startDaemon } from '../../lib/daemon.mjs';

const TOP = path.resolve(import.meta.dirname, '../../..');
const DEADLINE_MS = 550_000;

let daemon, box;
before(async () => {
	daemon = await startDaemon({ flags: { image: 'base' } });
	box = await daemon.box(undefined, { type: 'standard-4' }); // half a processor is little for so many figures
	const tar = execFileSync('tar', ['-cz', '--exclude=__pycache__', '-C', TOP, 'interpreters/python', 'tests/interpreters/python', '-C', BUILD, 'interpreters/zygote.so']);
	await box.put('/tmp/kernel.tgz', tar);
	await box.out('mkdir /opt/silt && tar -xzf /tmp/kernel.tgz -C /opt/silt --no-same-owner');
});
after(() => daemon?.stop());

const LINE = /^test_(\w+) \((\S+)\)(?:\n.*)? \.\.\. (\w+)/gm;

for (const file of fs.readdirSync(import.meta.dirname).filter(name => /^test_\w+\.py$/.test(name))) {
	test(`the Python kernel passes ${file}`, { timeout: DEADLINE_MS + 30_000 }, async t => {
		const command = `cd /opt/silt/tests/interpreters/python && python3 -m unittest -v ${path.basename(file, '.py')} 2>&1`;
		const run = await box.run(command, { sessionId: file, timeoutMs: DEADLINE_MS }, { deadline: DEADLINE_MS + 10_000 });
		const outcomes = [...run.stdout.matchAll(LINE)];
		for (const [, words, name, outcome] of outcomes)
			await t.test(`${words.replaceAll('_', ' ')} (${name.split('.')[1]})`, () => assert.equal(outcome, 'ok', run.stdout));
		assert.ok(outcomes.length > 0, run.stdout);
		assert.equal(run.exitCode, 0, run.stdout);
	});
}
