// SPDX-License-Identifier: Apache-2.0
// Errors: names, messages, places.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Kernel } from './kernel.mjs';

test('errors have their real names and the frames of the user', async t => {
	const kernel = await Kernel.start(t);
	const { error, results } = await kernel.run('function f() {\n  null.x\n}\nf()');
	assert.deepEqual(error, {
		t: 'error', id: 1, ename: 'TypeError', evalue: "Cannot read properties of null (reading 'x')", line: 2,
		traceback: ["TypeError: Cannot read properties of null (reading 'x')", '    at f (cell-1.js:2:8)', '    at cell-1.js:4:1'],
	});
	assert.deepEqual(results, []);
	const named = async code => (({ ename, evalue }) => [ename, evalue])((await kernel.run(code)).error);
	assert.deepEqual(await named('class MyError extends Error {}; throw new MyError("m")'), ['MyError', 'm']);
	assert.deepEqual(await named('nothing'), ['ReferenceError', 'nothing is not defined']);
	assert.deepEqual(await named('await Promise.reject(new RangeError("r"))'), ['RangeError', 'r']);
	assert.deepEqual(await named('Promise.reject(new RangeError("s"))'), ['RangeError', 's']);
	assert.deepEqual(await named('AbortSignal.abort().throwIfAborted()'), ['AbortError', 'This operation was aborted']);
	assert.deepEqual(await named('(function f() { f() })()'), ['RangeError', 'Maximum call stack size exceeded']);
	assert.match((await named('fs.readFileSync("/nothing")'))[1], /^ENOENT/);
});

test('what is thrown need not be an error', async t => {
	const kernel = await Kernel.start(t);
	const cases = { 'throw "text"': 'text', 'throw {a: 1}': '{ a: 1 }', 'throw null': 'null', 'throw undefined': 'undefined', 'await Promise.reject(5)': '5', 'throw Symbol("s")': 'Symbol(s)' };
	for (const [code, evalue] of Object.entries(cases)) {
		const { error } = await kernel.run(code);
		assert.deepEqual([error.ename, error.evalue], ['Error', evalue]);
		assert.equal(error.traceback.length, 1);
	}
});

test('syntax errors tell line and column', async t => {
	const kernel = await Kernel.start(t);
	assert.deepEqual((await kernel.run('let a = 1;\nlet b = ;')).error, {
		t: 'error', id: 1, ename: 'SyntaxError', evalue: "Unexpected token ';'", line: 2,
		traceback: ['cell-1.js:2:9', 'let b = ;', '        ^', "SyntaxError: Unexpected token ';'"],
	});
	assert.equal((await kernel.run('"\0')).error.ename, 'SyntaxError');
	assert.equal((await kernel.run('return 1')).error.evalue, 'Illegal return statement');
	assert.equal((await kernel.run('eval("let = ;")')).error.ename, 'SyntaxError');
	assert.match((await kernel.run('function f() { await 1 }')).error.evalue, /await is only valid/);
});

test('causes and collected errors are in the traceback', async t => {
	const kernel = await Kernel.start(t);
	const cause = (await kernel.run('throw new Error("outer", {cause: new TypeError("inner")})')).error.traceback.join('\n');
	assert.match(cause, /^Error: outer\n {4}at cell-1[^]*\nCaused by: TypeError: inner\n {4}at cell-1/);
	const all = (await kernel.run('await Promise.any([Promise.reject(new Error("one")), Promise.reject(2)])')).error;
	assert.equal(all.ename, 'AggregateError');
	assert.match(all.traceback.join('\n'), /\[errors\] Error: one\n.*\[errors\] 2/);
});

test('frames of own files stay, those of node and of the kernel go', async t => {
	const kernel = await Kernel.start(t);
	writeFileSync(join(kernel.cwd, 'lib.js'), 'module.exports = f => [1].map(() => JSON.parse("{", f()))');
	const { error } = await kernel.run('require("./lib.js")(() => fs.readFileSync("/nothing"))');
	assert.match(error.traceback.join('\n'), /cell-1\.js:1:\d+\)?\n {4}at .*lib\.js:1:\d+/);
	assert.doesNotMatch(error.traceback.join('\n'), /node:|kernel\.cjs|inspector/);
	const shown = (await kernel.run('new Error("value")')).result.text;
	assert.equal(shown, 'Error: value\n    at cell-2.js:1:1');
});

test('errors that resist being described are described', async t => {
	const kernel = await Kernel.start(t);
	const hostile = [
		'const e = new Error("m"); Object.defineProperty(e, "stack", {get() { throw 1 }}); throw e',
		'const e = new Error("m"); Object.defineProperty(e, "message", {get() { throw 1 }}); throw e',
		'const e = new Error("m"); e.name = {}; e.message = 5; e.stack = null; e.cause = e; throw e',
		'throw new Proxy(new Error("m"), {get() { throw 1 }})',
		'throw {get message() { throw 1 }, get name() { throw 2 }}',
		'Error.prepareStackTrace = () => { throw 1 }; throw new Error("m")',
		'Error.prepareStackTrace = () => ({}); throw new Error("m")',
		'throw new Error("m".repeat(1e8))',
	];
	for (const code of hostile) {
		const { error, end } = await kernel.run(`{ ${code} }`);
		assert.equal(typeof error.ename, 'string', code);
		assert.ok(JSON.stringify(error).length < 1e6, code);
		assert.equal(end.t, 'done');
	}
	assert.equal((await kernel.run('1')).result.text, '1');
});
