// SPDX-License-Identifier: Apache-2.0
// JavaScript and TypeScript contexts through the API. What a kernel itself can do is tested with the kernel.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { cell, context, run } from '../lib/code.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { refused } from '../lib/expect.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

for (const [language, alias] of [['javascript', 'js'], ['typescript', 'ts']]) {
	test(`${language}: variables stay, may be declared again, and the last value is the result`, async t => {
		const box = await daemon.box(t);
		const id = await context(box, { language: alias, cwd: '/tmp', env_vars: { A: 'x' } });
		const [one] = (await box.api('GET', '/api/contexts')).body.contexts;
		assert.equal(one.language, language);
		const value = async code => (await run(box, id, code)).results[0];
		assert.equal((await value('const a = 1; let b = 2; a + b')).text, '3');
		assert.equal((await value('const a = 5; a + b')).text, '7');
		assert.deepEqual((await value('({ list: [a, b] })')).json, { list: [5, 2] });
		assert.equal((await value('await new Promise(done => setTimeout(() => done(a), 10))')).text, '5');
		assert.deepEqual((await value('import os from "node:os"; const { sep } = await import("node:path"); [process.cwd(), process.env.A, typeof os.EOL, sep]')).json, ['/tmp', 'x', 'string', '/']);
		assert.equal((await value('typeof fetch + typeof require("fs").readFileSync')).text, "'functionfunction'");
	});

	test(`${language}: streams, errors with their names, interrupts and timeouts`, async t => {
		const box = await daemon.box(t);
		const id = await context(box, { language });
		const said = await run(box, id, 'console.log("out"); console.error("err"); process.stdout.write("."); 42');
		assert.deepEqual([said.stdout, said.stderr, said.results[0].text], ['out\n.', 'err\n', '42']);
		assert.deepEqual((({ ename, evalue }) => [ename, evalue])((await run(box, id, 'throw new TypeError("bad")')).error), ['TypeError', 'bad']);
		assert.equal((await run(box, id, 'const = 3')).error.ename, 'SyntaxError');
		assert.equal((await run(box, id, 'globalThis.kept = 1; while (true) {}', { timeout_ms: 4_000 })).error.ename, 'TimeoutError');
		assert.equal((await run(box, id, 'kept')).results[0].text, '1');
		for await (const { data } of cell(box, id, 'process.stdout.write("on"); await new Promise(() => {})'))
			if (data.text === 'on')
				assert.equal((await daemon.api('POST', `/v1/sandboxes/${box.id}/contexts/${id}/interrupt`)).body.interrupted, true);
		assert.equal((await run(box, id, 'kept')).results[0].text, '1');
		const { error } = await run(box, id, 'process.exit(4)');
		assert.deepEqual([error.cause, error.exitCode], ['exit', 4]);
	});
}

test('typescript: enums, parameter properties and namespaces', async t => {
	const box = await daemon.box(t);
	const id = await context(box, { language: 'typescript' });
	const code = 'enum E { A = 3, B }\nnamespace N { export const deep: number = 4 }\nclass P { constructor(public x: number, private y = 1) {} }\nconst all: number[] = [E.B, N.deep, new P(5).x];\nall';
	assert.deepEqual((await run(box, id, code)).results[0].json, [4, 4, 5]);
	const wrong = await run(box, id, 'const x: = 1');
	assert.ok(wrong.error, 'what cannot be read is told');
});

// Linux waits for all processors before it gives a process with threads a larger table: milliseconds before the first cell.
test('the kernel has its own descriptors within the table that a process begins with', async t => {
	const box = await daemon.box(t);
	const id = await context(box, { language: 'javascript' });
	const { results } = await run(box, id, 'fs.readdirSync("/proc/self/fd").map(Number).filter(fd => fd >= 60 && fd < 64)');
	assert.ok(results[0].json.length >= 3, `of ours there are ${JSON.stringify(results[0].json)}`);
});

test('javascript contexts survive a killed siltd', async t => {
	const box = await daemon.box(t);
	const id = await context(box, { language: 'javascript' });
	await run(box, id, 'var kept = 5');
	const pid = daemon.siltd();
	process.kill(pid, 'SIGKILL');
	await until('another siltd', () => daemon.programs('siltd').some(p => p !== pid));
	await daemon.healthy();
	const answer = await run(box, id, 'kept');
	assert.deepEqual([answer.results[0].text, answer.count], ['5', 2]);
});

test('an image without the interpreter says so', async t => {
	const box = await daemon.box(t);
	await box.out('rm -f /usr/bin/python3 /usr/bin/python3.11 $(readlink -f "$(command -v node)"); hash -r; rm -f "$(command -v node)"');
	const python = await box.api('POST', '/api/contexts', { language: 'python' });
	refused(python, 500, 'PYTHON_NOT_AVAILABLE');
	assert.match(python.body.message, /^Python interpreter not available\. Use the cloudflare\/sandbox:\S+-python image variant for Python code execution\. See https:/);
	const script = await box.api('POST', '/api/contexts', { language: 'ts' });
	refused(script, 500, 'INTERNAL_ERROR');
	assert.match(script.body.message, /^Failed to create code context: JavaScript runtime not available\./);
	refused(await box.api('POST', '/api/execute/code', { code: '1' }), 500, 'PYTHON_NOT_AVAILABLE');
	const own = language => daemon.api('POST', `/v1/sandboxes/${box.id}/contexts`, { language });
	refused(await own('python'), 501, 'PYTHON_NOT_AVAILABLE');
	refused(await own('typescript'), 501, 'JAVASCRIPT_NOT_AVAILABLE');
});

test('an image whose Python has no IPython says so, and what is missing', async t => {
	const box = await daemon.box(t);
	await box.out('mv /usr/lib/python3/dist-packages/IPython /root/');
	const answer = await box.api('POST', '/api/contexts', {}, { deadline: 60_000 });
	assert.match(refused(answer, 500, 'PYTHON_NOT_AVAILABLE').originalError, /IPython/);
	refused(await box.api('POST', '/api/execute/code', { code: '1' }, { deadline: 60_000 }), 500, 'PYTHON_NOT_AVAILABLE');
	assert.deepEqual((await box.api('GET', '/api/contexts')).body.contexts, []);
	await box.out('mv /root/IPython /usr/lib/python3/dist-packages/');
	assert.equal((await run(box, null, '1 + 1')).results[0].text, '2');
});
