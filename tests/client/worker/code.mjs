// SPDX-License-Identifier: Apache-2.0
// The code interpreter.

import assert from 'node:assert/strict';
import { events, rejects, text, within } from './lib.mjs';

export async function codeContexts(sandbox) {
	const context = await sandbox.createCodeContext({ language: 'python', cwd: '/tmp' });
	assert.deepEqual([context.language, context.cwd], ['python', '/tmp']);
	assert.ok(context.createdAt instanceof Date && context.lastUsed instanceof Date);
	assert.ok((await sandbox.listCodeContexts()).some(c => c.id === context.id));
	await sandbox.deleteCodeContext(context.id);
	assert.ok(!(await sandbox.listCodeContexts()).some(c => c.id === context.id));
	await rejects(sandbox.deleteCodeContext(context.id), 'CONTEXT_NOT_FOUND');
	await assert.rejects(sandbox.runCode('1', { context }), /context/i);
	await rejects(sandbox.createCodeContext({ language: 'cobol' }), 'SandboxSecurityError');
}

export async function runPython(sandbox) {
	const context = await sandbox.createCodeContext({ language: 'python' });
	await sandbox.runCode('x = 20', { context });
	const { logs, results, error } = await sandbox.runCode('import sys\nprint("out")\nprint("err", file=sys.stderr)\nx + 1', { context });
	assert.deepEqual([logs.stdout.join(''), logs.stderr.join(''), results[0].text, error], ['out\n', 'err\n', '21', undefined]);
	const failed = await sandbox.runCode('1 / 0', { context });
	assert.equal(failed.error.name, 'ZeroDivisionError');
	assert.ok(failed.error.traceback.length > 0);
	assert.equal((await sandbox.runCode('def', { context })).error.name, 'SyntaxError');
	const alone = await sandbox.createCodeContext({ language: 'python' });
	assert.equal((await sandbox.runCode('x', { context: alone })).error.name, 'NameError');
	assert.equal((await sandbox.runCode('x * 2', { context })).results[0].text, '40');
}

export async function runJavaScript(sandbox) {
	const { results, logs } = await sandbox.runCode('console.log("hi"); await Promise.resolve({ a: [1, 2] })', { language: 'javascript' });
	assert.deepEqual([results[0].json, logs.stdout.join('')], [{ a: [1, 2] }, 'hi\n']);
	assert.equal((await sandbox.runCode('null.x', { language: 'javascript' })).error.name, 'TypeError');
	await sandbox.runCode('const kept = require("node:path").join("a", "b").length', { language: 'javascript' });
	assert.equal((await sandbox.runCode('kept', { language: 'javascript' })).results[0].text, '3'); // the context without a name is one
	assert.equal((await sandbox.listCodeContexts()).length, 1);
}

export async function runTypeScript(sandbox) {
	const { results } = await sandbox.runCode('enum A { B = 41 }\nconst n: number = A.B + 1;\nn', { language: 'typescript' });
	assert.equal(results[0].text, '42');
}

/** In the object itself: the result that a callback gets has methods, and such cross to a Worker only by rpc. */
export async function runWithCallbacks(sandbox) {
	const told = await sandbox.codeWithCallbacks(['print("a")\n5', 'raise KeyError("k")']);
	assert.deepEqual(told, { stdout: 'a\n', results: ['5'], errors: ['KeyError'] });
}

/** Callbacks of the Worker. By http and websocket the client makes an object with methods of each result, which cannot leave its Durable Object: onResult is not called, and
 * the results are in what runCode answers. */
export async function runWithCallbacksOfTheWorker(sandbox, { transport }) {
	const told = [];
	const { results } = await sandbox.runCode('print("a")\n5', { onStdout: m => { told.push(m.text); }, onResult: r => { told.push(r.text); } });
	assert.equal(results[0].text, '5');
	assert.deepEqual(told, transport === 'rpc' ? ['a\n', '5'] : ['a\n']);
}

/** The client drops the timeout of runCode; a variable of the context is one that every transport brings. */
export async function runCodeInTime(sandbox) {
	const context = await sandbox.createCodeContext({ language: 'python', envVars: { INTERPRETER_EXECUTION_TIMEOUT_MS: '1500' } });
	await sandbox.runCode('kept = 1', { context });
	const { error } = await within('the timeout', sandbox.runCode('while True: pass', { context }));
	assert.equal(error.name, 'TimeoutError');
	assert.equal((await sandbox.runCode('kept + 1', { context })).results[0].text, '2');
}

/** The exported class around a client, in the object itself. */
export async function codeInterpreterClass(sandbox) {
	assert.deepEqual(await sandbox.codeByClass(), { text: '42', json: true, contexts: 1, left: 0 });
}

export async function runCodeStream(sandbox) {
	const all = await events(await sandbox.runCodeStream('print("streamed")\n[1, 2]'));
	assert.equal(text(all, 'stdout'), 'streamed\n');
	assert.deepEqual(all.find(event => event.type === 'result').json, [1, 2]);
	assert.ok(all.some(event => event.type === 'execution_complete'));
}

export async function tablesAndFigures(sandbox) {
	const context = await sandbox.createCodeContext({ language: 'python' });
	const table = await sandbox.runCode('import pandas as pd\npd.DataFrame({"a": [1, 2]})', { context });
	assert.match(table.results[0].html, /<table/);
	const figure = await sandbox.runCode('import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()', { context });
	assert.ok(atob(figure.results.find(r => r.png).png).startsWith('\x89PNG'));
}
