// SPDX-License-Identifier: Apache-2.0
// User code shares the process with the kernel, which keeps working whatever is replaced or closed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Kernel } from './kernel.mjs';

async function survives(t, code, options) {
	const kernel = await Kernel.start(t, options);
	const { end } = await kernel.run(code);
	assert.equal(end.t, 'done', code);
	const shown = await kernel.run('({a: [1, "x"]})');
	assert.deepEqual([shown.result.text, shown.result.json], ["{ a: [ 1, 'x' ] }", { a: [1, 'x'] }], code);
	const failed = await kernel.run('function f() { throw new TypeError("t") }; f()');
	assert.deepEqual([failed.error.ename, failed.error.evalue, failed.error.line], ['TypeError', 't', 1], code);
	return kernel;
}

const REPLACED = [
	'JSON = null',
	'JSON.stringify = JSON.parse = () => "wrong"',
	'Promise = class {}',
	'Promise.prototype.then = Promise.resolve = function () { throw new Error("then") }',
	'Array.prototype[Symbol.iterator] = function* () { throw new Error("iterator") }',
	'String.prototype.toJSON = Number.prototype.toJSON = () => "wrong"',
	'Object.keys = Object.defineProperty = Object.getPrototypeOf = Array.isArray = () => { throw new Error("Object") }',
	'String.prototype.slice = String.prototype.split = String.prototype.replace = String.prototype.indexOf = () => "wrong"',
	'console = null',
	'console.log = process.stdout.write = process.stderr.write = () => { throw new Error("write") }',
	'process.exit = process.reallyExit = process.on = process.emit = null',
	'process = null',
	'require = module = exports = display = setTimeout = setImmediate = Buffer = null',
	'delete globalThis.__silt__; globalThis.__silt__ = null',
	'process.removeAllListeners()',
	'Error.stackTraceLimit = 5; Error.prototype.toString = () => { throw 1 }',
	'Reflect.apply = Function.prototype.call = Function.prototype.bind = Function.prototype.apply = () => { throw 1 }',
	'Object.freeze(globalThis.Object.prototype); Object.freeze(Array.prototype)',
];

for (const code of REPLACED)
	test(`the kernel outlives ${code.slice(0, 90)}`, t => survives(t, code));

test('the kernel outlives the methods of arrays, without which node can show little', async t => {
	const kernel = await Kernel.start(t);
	await kernel.run('for (const name of Object.getOwnPropertyNames(Array.prototype)) if (name !== "length" && name !== "constructor") Array.prototype[name] = () => { throw new Error(name) }');
	const { result } = await kernel.run('({a: [1, "x"]})');
	assert.deepEqual(result.json, { a: [1, 'x'] });
	assert.ok(result.text);
	const { error } = await kernel.run('throw new TypeError("t")');
	assert.deepEqual([error.ename, error.evalue, error.line], ['TypeError', 't', 1]);
});

test('closed descriptors', async t => {
	await survives(t, 'for (const fd of [0, 1, 2, 3, 4]) try { fs.closeSync(fd) } catch {}; console.log("lost"); console.error("lost")');
});

test('the control descriptors reach no child', async t => {
	const kernel = await Kernel.start(t);
	const { stdout } = await kernel.run('require("child_process").spawnSync("sh", ["-c", "cd /proc/self/fd && for n in *; do echo $n $(readlink $n); done"], {stdio: "inherit"})');
	assert.match(stdout, /^1 .*\.out$/m);
	assert.doesNotMatch(stdout, /socket:/);
});

test('lines that are no messages are passed over', async t => {
	const kernel = await Kernel.start(t);
	kernel.control.write('nonsense\n{"t":"unknown"}\n[]\n1\n\n{"t":"input","id":1,"text":"x"}\n{"t":"init","cwd":"/","env":{},"language":"javascript"}\n');
	assert.equal((await kernel.run('process.cwd()')).result.text, `'${kernel.cwd}'`);
});

test('code of ten megabytes', async t => {
	const kernel = await Kernel.start(t);
	assert.equal((await kernel.run(`const long = "${'ü'.repeat(5e6)}"; long.length`)).result.text, '5000000');
	assert.equal((await kernel.run(`/*${' '.repeat(1e7)}*/ 1`)).result.text, '1');
});

test('memory is not kept by what was logged or shown', async t => {
	const kernel = await Kernel.start(t);
	await kernel.run('const refs = []; for (let i = 0; i < 50; i++) { const o = {big: new Array(1e4).fill(i)}; refs.push(new WeakRef(o)); console.log(typeof o, Object.keys(o).length, o.big[0]); console.dir(o, {depth: 0}) }');
	const { result } = await kernel.run('require("v8").setFlagsFromString("--expose-gc"); const gc = require("vm").runInNewContext("gc"); await new Promise(r => setTimeout(r, 1)); gc(); refs.filter(r => r.deref()).length');
	assert.ok(Number(result.text) <= 1, result.text);
});
