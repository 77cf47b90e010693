// SPDX-License-Identifier: Apache-2.0
// TypeScript: what is more than types away.

import assert from 'node:assert/strict';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Kernel } from './kernel.mjs';

const language = 'typescript';

test('enums, parameter properties, namespaces, decorators, generics', async t => {
	const kernel = await Kernel.start(t, { language });
	const cases = {
		'enum E { A, B = 5, C = "c" }\n[E.A, E.B, E.C, E[5]].join()': "'0,5,c,B'",
		'const enum K { A = 1 }; K.A': '1',
		'class P { constructor(private x: number, public readonly y = 2) {} get s() { return this.x + this.y } }\nnew P(1).s': '3',
		'namespace N { export const a = 1; export namespace M { export const b = 2 } }\nN.a + N.M.b': '3',
		'const id = <T,>(v: T): T => v; id<string>("g")': "'g'",
		'abstract class A { abstract f(): number; declare z: string; i!: number }; class B extends A { f() { return 1 } }; new B().f()': '1',
		'let u = (5 as unknown) as string; const n = u!; n satisfies unknown': '5',
		'interface I { a: number }; type T = I | null; const v: T = {a: 1}; v': '{ a: 1 }',
		'{a: 1 as number}': '{ a: 1 }',
		'await Promise.resolve<number>(4)': '4',
		'function twice(_: any, __: string, d: any) { const f = d.value; d.value = function () { return f.call(this) * 2 } }\nclass D { @twice m() { return 21 } }\nnew D().m()': '42',
		'function sealed(c: any) { c.mark = "s" }\n@sealed class S { static mark: string }\nS.mark': "'s'",
		'var plain = [1, 2].map(function (x) { return x + 1 }); plain.join()': "'2,3'",
	};
	for (const [code, text] of Object.entries(cases)) {
		const { result, error } = await kernel.run(code);
		assert.equal(error?.evalue, undefined, code);
		assert.equal(result?.text, text, code);
	}
});

test('declarations are kept and can be made again', async t => {
	const kernel = await Kernel.start(t, { language });
	await kernel.run('const a: number = 1; enum E { A }; class C { constructor(public v: number) {} }');
	await kernel.run('const a: string = "2"; class C { constructor(public v: string) {} }');
	assert.equal((await kernel.run('a + new C("3").v + E.A')).result.text, "'230'");
	const members = async code => (await kernel.run(`${code}\nObject.keys(E).join()`)).result?.text;
	assert.equal(await members('enum E { B = "b" }'), "'B'", 'nothing of the former one');
	assert.equal(await members('enum E { C = "c" }\nenum E { D = "d" }'), "'C,D'", 'but of the same cell');
	assert.equal(await members('const E = { F: 1 }'), "'F'");
	assert.equal(await members('enum E { G = "g" }'), "'G'");
});

test('imports of types go, imports of values stay for later cells', async t => {
	const kernel = await Kernel.start(t, { language });
	writeFileSync(join(kernel.cwd, 'types.mjs'), 'export const value = 1;');
	const { error } = await kernel.run('import type { X } from "nowhere";\nimport { type Y, value, Z } from "./types.mjs";\nimport fs = require("fs");\nlet z: Z; export type Q = X;');
	assert.equal(error?.evalue, undefined);
	assert.equal((await kernel.run('value + typeof fs.statSync')).result.text, "'1function'");
});

test('errors tell the lines that the user wrote, also of earlier cells', async t => {
	const kernel = await Kernel.start(t, { language });
	const { error } = await kernel.run('interface Long {\n  a: number;\n\n}\n\nfunction boom(n: number): never {\n  throw new RangeError(`n ${n}`);\n}\nboom(3)');
	assert.deepEqual(error, { t: 'error', id: 1, ename: 'RangeError', evalue: 'n 3', line: 7, traceback: ['RangeError: n 3', '    at boom (cell-1.ts:7:9)', '    at cell-1.ts:9:1'] });
	assert.match((await kernel.run('\nboom(4)')).error.traceback.join('\n'), /boom \(cell-1\.ts:7:9\)\n {4}at cell-2\.ts:2:1/);
	assert.match((await kernel.run('type A = 1;\nconsole.log(new Error("e").stack)')).stdout, /cell-3\.ts:2:13/);
});

test('syntax errors have a position', async t => {
	const kernel = await Kernel.start(t, { language });
	const { error } = await kernel.run('const é = "é";\nlet x: = 3;');
	assert.deepEqual(error, { t: 'error', id: 1, ename: 'SyntaxError', evalue: 'Unexpected token', line: 2, traceback: ['cell-1.ts:2:8', 'let x: = 3;', '       ^', 'SyntaxError: Unexpected token'] });
	assert.equal((await kernel.run('1')).result.text, '1');
});

test('where the transpiler cannot be loaded node\'s own is used', async t => {
	const directory = new Kernel();
	t.after(() => directory.end());
	const source = join(process.env.SILT_BUILD ?? new URL('../../../build', import.meta.url).pathname, 'interpreters/node');
	for (const name of ['kernel.cjs', 'native.node'])
		copyFileSync(join(source, name), join(directory.temporary, name));
	const kernel = await Kernel.start(t, { language, directory: directory.temporary });
	assert.equal((await kernel.run('enum E { A = 2 }\nconst v: number = E.A; v')).result.text, '2');
	assert.equal((await kernel.run('let x: = 3')).error.ename, 'SyntaxError');
});
