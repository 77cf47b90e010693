// SPDX-License-Identifier: Apache-2.0
// Modules: import, import(), require, and the file that a cell pretends to be.

import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Kernel } from './kernel.mjs';

function addPackage(directory, name, files) {
	const path = join(directory, 'node_modules', name);
	mkdirSync(path, { recursive: true });
	for (const [file, text] of Object.entries(files))
		writeFileSync(join(path, file), text);
}

test('import declarations of every shape', async t => {
	const kernel = await Kernel.start(t);
	writeFileSync(join(kernel.cwd, 'own.mjs'), 'export default 1; export const a = 2; export { a as "odd name" };');
	writeFileSync(join(kernel.cwd, 'data.json'), '{"q": 3}');
	const { result, error } = await kernel.run(`
		'text before'; used();
		import one, { a, a as b, "odd name" as c } from './own.mjs';
		import * as all from './own.mjs';
		import two, * as again from './own.mjs';
		import data from './data.json' with { type: 'json' };
		import 'node:os';
		function used() { return one }
		[one, a, b, c, all.a, two, again.default, data.q].join()`);
	assert.equal(error, undefined);
	assert.equal(result.text, "'1,2,2,2,2,1,1,3'");
	assert.equal((await kernel.run('one + a')).result.text, '3');
	assert.equal((await kernel.run('import one from "node:path"; typeof one.join')).result.text, "'function'", 'again, from elsewhere');
});

test('import() and import.meta', async t => {
	const kernel = await Kernel.start(t);
	writeFileSync(join(kernel.cwd, 'own.mjs'), 'export const a = 2;');
	assert.equal((await kernel.run('(await import("./own.mjs")).a')).result.text, '2');
	assert.equal((await kernel.run('const load = n => import(n); (await load("os")).EOL')).result.text, "'\\n'");
	assert.equal((await kernel.run('import("./own.mjs").then(m => m.a)')).result.text, '2');
	assert.equal((await kernel.run('import.meta.dirname')).result.text, `'${kernel.cwd}'`);
	assert.equal((await kernel.run('import.meta.resolve("./own.mjs")')).result.text, `'file://${kernel.cwd}/own.mjs'`);
	assert.equal((await kernel.run('"the word import"')).result.text, "'the word import'");
});

test('packages of the working directory, by import and by require', async t => {
	const kernel = await Kernel.start(t);
	assert.match((await kernel.run('require("late")')).error.evalue, /Cannot find module 'late'/);
	assert.match((await kernel.run('import "late"')).error.evalue, /Cannot find package 'late'/);
	addPackage(kernel.cwd, 'late', { 'package.json': '{"exports": {"import": "./i.mjs", "require": "./r.cjs"}}', 'i.mjs': 'export default "i"', 'r.cjs': 'module.exports = "r"' });
	assert.equal((await kernel.run('require("late")')).result.text, "'r'");
	assert.equal((await kernel.run('import late from "late"; late')).result.text, "'i'");
});

test('require is relative to the working directory and follows it', async t => {
	const kernel = await Kernel.start(t);
	mkdirSync(join(kernel.cwd, 'sub'));
	writeFileSync(join(kernel.cwd, 'x.js'), 'module.exports = "top"');
	writeFileSync(join(kernel.cwd, 'sub/x.js'), 'module.exports = "sub"');
	assert.equal((await kernel.run('require("./x")')).result.text, "'top'");
	await kernel.run('process.chdir("sub")');
	assert.equal((await kernel.run('require("./x") + (await import("./x.js")).default')).result.text, "'subsub'");
});

test('a cell is the main program of the working directory', async t => {
	const kernel = await Kernel.start(t);
	const code = '[require.main === module, __dirname === process.cwd(), import.meta.url === require("url").pathToFileURL(process.argv[1]).href, process.argv.length, process.execArgv.length, typeof exports].join()';
	assert.equal((await kernel.run(code)).result.text, "'true,true,true,2,0,object'");
	assert.equal((await kernel.run('const require = 1, module = 2, fs = 3, __dirname = 4; require + module + fs + __dirname')).result.text, '10');
});

test('the modules of node are there by name, and so is fetch', async t => {
	const kernel = await Kernel.start(t);
	assert.equal((await kernel.run('[fs.existsSync("/"), path.sep, os.EOL === "\\n"].join()')).result.text, "'true,/,true'");
	assert.equal((await kernel.run('await (await fetch("data:text/plain,hi")).text()')).result.text, "'hi'");
	assert.equal((await kernel.run('[typeof URL, typeof structuredClone, typeof TextEncoder, typeof AbortController].join()')).result.text, "'function,function,function,function'");
});

test('what a module does not have cannot be imported', async t => {
	const kernel = await Kernel.start(t);
	const { error } = await kernel.run('import { nothing } from "fs"');
	assert.deepEqual([error.ename, error.evalue], ['SyntaxError', "The requested module 'fs' does not provide an export named 'nothing'"]);
	assert.match((await kernel.run('import "./missing.js"')).error.evalue, /Cannot find module/);
});

test('exports are declarations like others', async t => {
	const kernel = await Kernel.start(t);
	assert.equal((await kernel.run('export const a = 1; export function f() { return 2 }\nexport { a as b };\nexport default class K {}\na + f()')).result.text, '3');
	assert.equal((await kernel.run('export default { x: 1 }')).result.text, '{ x: 1 }');
	assert.equal((await kernel.run('export default function () {}\nexport * from "fs"; typeof K')).result.text, "'function'");
});

test('lines stay where they are', async t => {
	const kernel = await Kernel.start(t);
	const { error } = await kernel.run('import {\n  join,\n  sep\n} from "path";\n\nthrow new Error("six")');
	assert.equal(error.line, 6);
	const syntax = (await kernel.run('import fs from "fs";\nlet a = ;')).error;
	assert.deepEqual([syntax.ename, syntax.line], ['SyntaxError', 2]);
});
