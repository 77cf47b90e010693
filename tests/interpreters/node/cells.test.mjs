// SPDX-License-Identifier: Apache-2.0
// Cells: what is kept between them, what their value is, how it is shown.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BUDGET, Kernel } from './kernel.mjs';

/** The values of cells, as text. */
async function texts(t, cells, options) {
	const kernel = await Kernel.start(t, options);
	const shown = [];
	for (const cell of cells) {
		const { result, error } = await kernel.run(cell);
		shown.push(error ? `${error.ename}: ${error.evalue}` : result?.text);
	}
	return shown;
}

test('a context says its version and counts its runs from one', async t => {
	const kernel = await Kernel.start(t);
	assert.deepEqual(kernel.first, { t: 'ready', version: process.versions.node });
	assert.equal((await kernel.run('1')).end.count, 1);
	assert.equal((await kernel.run('throw 1')).end.count, 2);
	assert.equal((await kernel.run('let = ;')).end.count, 3);
	assert.equal((await kernel.run('2')).end.count, 4);
});

test('the last value is the result and undefined is none', async t => {
	assert.deepEqual(await texts(t, ['1 + 1', '"text"', 'null', 'undefined', 'let a = 3', 'a', 'if (a) { "yes" }', '', '// nothing', '10n', 'Symbol("s")', 'function f() {}', 'f']),
		['2', "'text'", 'null', undefined, undefined, '3', "'yes'", undefined, undefined, '10n', 'Symbol(s)', undefined, '[Function: f]']);
});

test('let, const, class and function can be declared again and are kept', async t => {
	assert.deepEqual(await texts(t, ['const x = 1; let y = 1; class C { v = 1 } function f() { return 1 }', 'const x = 2; let y = 2; class C { v = 2 } function f() { return 2 }', '[x, y, new C().v, f()].join()']),
		[undefined, undefined, "'2,2,2,2'"]);
});

test('a name may be declared again in another way', async t => {
	for (const language of ['javascript', 'typescript']) {
		const ways = ['var a = 1, n', 'let a = 2', 'function a() { return 3 }; a = a()', 'const [{ q: a }] = [{ q: 4 }]', 'class a { static v = 5 }; a = a.v', 'import { sep as a } from "path"',
			'async function a() { return 7 }; a = await a()', 'var { ...a } = { b: 8 }; a = a.b', 'var n = 1; let a = 9', 'function a() {}; a = 10; class n {}'];
		const cells = ways.flatMap(way => [way, 'a']);
		const shown = await texts(t, cells, { language });
		assert.deepEqual(shown.filter((_, i) => i % 2), ['1', '2', '3', '4', '5', "'/'", '7', '8', '9', '10'], `${language}: ${shown}`);
	}
	const taken = "SyntaxError: Identifier 'a' has already been declared";
	assert.deepEqual(await texts(t, ['let a = 1', 'var a = 2; a', 'var a = 3; var a = 4', 'function a() { return 5 }; a()', 'for (var a = 7; false;);', 'a = 6', 'await 1; var a = 7; a']),
		[undefined, '2', taken, '5', taken, '6', '7']);
	assert.deepEqual((await texts(t, ['function undefined() {}', 'var NaN = 1; 8', 'let Infinity = 1', '9'])).slice(-1), ['9']);
	assert.deepEqual(await texts(t, ['function f() {}', '\nconst f = () => {\n\tthrow new TypeError("line 3")\n}; f()', 'let b = 1; let b = 2', 'f.name']),
		[undefined, 'TypeError: line 3', "SyntaxError: Identifier 'b' has already been declared", "'f'"]);
});

test('await works at the top, and a promise as last value is awaited', async t => {
	assert.deepEqual(await texts(t, ['const v = await new Promise(r => setTimeout(r, 2, 5)); v', 'Promise.resolve(7)', '(async () => { await 1; return "a" })()', '({ then(r) { r(8) } })', 'for await (const x of [1, 2]) x']),
		['5', '7', "'a'", '8', '2']);
});

test('an object in braces is an object, a block is a block', async t => {
	assert.deepEqual(await texts(t, ['{a: 1, b: [2]}', '{}', '{ let q = 4; q + 1 }', '{a: await 3}', '{ b: 1 };']),
		['{ a: 1, b: [ 2 ] }', '{}', '5', '{ a: 3 }', '1']);
});

test('objects come as json and text in one result', async t => {
	const kernel = await Kernel.start(t);
	const { results } = await kernel.run('({a: [1, "ü"], b: {c: null}})');
	assert.deepEqual(results, [{ t: 'result', id: 1, main: true, text: "{ a: [ 1, 'ü' ], b: { c: null } }", json: { a: [1, 'ü'], b: { c: null } } }]);
	const json = async code => (await kernel.run(code)).result.json;
	assert.deepEqual(await json('[1,,NaN]'), [1, null, null]);
	assert.equal(await json('new Date(0)'), '1970-01-01T00:00:00.000Z');
	assert.deepEqual(await json('class P { x = 1 }; new P'), { x: 1 });
	assert.deepEqual(await json('({toJSON() { return {z: 1} }})'), { z: 1 });
});

test('what JSON cannot say comes as text', async t => {
	const kernel = await Kernel.start(t);
	const cases = {
		'new Map([[1, {a: 2}]])': 'Map(1) { 1 => { a: 2 } }',
		'new Set([1])': 'Set(1) { 1 }',
		'new Uint8Array(2)': 'Uint8Array(2) [ 0, 0 ]',
		'const c = {}; c.c = c; c': '<ref *1> { c: [Circular *1] }',
		'({a: 1n})': '{ a: 1n }',
		'({get g() { throw new Error("x") }})': '{ g: [Getter] }',
		'new Proxy({a: 1}, {get() { throw new Error("trap") }, ownKeys() { throw new Error("trap") }})': '{ a: 1 }',
		'/a/g': '/a/g',
		'new WeakMap()': 'WeakMap { <items unknown> }',
	};
	for (const [code, text] of Object.entries(cases)) {
		const { result, error } = await kernel.run(code);
		assert.equal(error, undefined, code);
		assert.equal(result.text, text);
		assert.ok(!('json' in result), code);
	}
	const deep = (await kernel.run('let d = []; for (let i = 0; i < 500; i++) d = [d]; d')).result;
	assert.ok(deep.text && !('json' in deep), 'deeper than any reader of JSON allows');
});

test('half characters become whole ones', async t => {
	const kernel = await Kernel.start(t);
	assert.deepEqual((await kernel.run('({k: "\\ud800x", l: "\\\\ud800"})')).result.json, { k: '\ufffdx', l: '\\ud800' });
	assert.match((await kernel.run('throw new Error("\\udc00")')).error.evalue, /^\ufffd$/);
});

test('a value that cannot be shown says so', async t => {
	const kernel = await Kernel.start(t);
	const { result } = await kernel.run('({[Symbol.for("nodejs.util.inspect.custom")]() { throw new Error("no") }})');
	assert.match(result.text, /inspecting it threw: Error: no/);
});

test('large values are cut or left out, and told', async t => {
	const kernel = await Kernel.start(t);
	const text = (await kernel.run('"é".repeat(1e8)')).result;
	assert.ok(Buffer.byteLength(text.text) < BUDGET + 200, `${text.text.length}`);
	assert.match(text.text, /cut: the whole has/);
	assert.deepEqual(text.truncated, ['text']);
	const list = (await kernel.run('Array.from({length: 3e6}, (_, i) => i)')).result;
	assert.deepEqual(list.truncated, ['json']);
	assert.match(list.text, /2999900 more items/);
	const picture = (await kernel.run('display.png(Buffer.alloc(1e6))')).result;
	assert.deepEqual(picture.truncated, ['png']);
	assert.equal((await kernel.run('1')).result.text, '1');
});

test('display() shows in the middle, in formats of the user\'s choice', async t => {
	const kernel = await Kernel.start(t);
	const { results } = await kernel.run(`
		display([1]); display({'text/html': '<b>', 'text/plain': 'b', 'image/png': Buffer.from([1, 2]), 'x/y': 3});
		display.markdown('# m'); display.svg('<svg/>'); display.latex('x'); display.javascript('1'); display.json(5); display.jpeg('AAAA');
		'last'`);
	const formats = results.map(({ t: _, id: __, ...rest }) => rest);
	assert.deepEqual(formats, [
		{ main: false, text: '[ 1 ]', json: [1] },
		{ main: false, html: '<b>', text: 'b', png: 'AQI=', data: { 'x/y': 3 } },
		{ main: false, markdown: '# m' }, { main: false, svg: '<svg/>' }, { main: false, latex: 'x' },
		{ main: false, javascript: '1' }, { main: false, json: 5 }, { main: false, jpeg: 'AAAA' },
		{ main: true, text: "'last'" },
	]);
});

test('values may say themselves how they are shown', async t => {
	const kernel = await Kernel.start(t);
	const shown = async code => {
		const { result: { t: _, id: __, main: ___, ...rest } } = await kernel.run(code);
		return rest;
	};
	assert.deepEqual(await shown('({[Symbol.for("Jupyter.display")]: () => ({"text/html": "h", "text/plain": "p"})})'), { html: 'h', text: 'p' });
	assert.deepEqual(await shown('({async [Symbol.for("Jupyter.display")]() { return {"text/markdown": "m"} }})'), { markdown: 'm' });
	assert.equal((await shown('Buffer.from("iVBORw0KGgo=", "base64")')).png, 'iVBORw0KGgo=');
	assert.equal((await shown('({outerHTML: "<svg></svg>"})')).svg, '<svg></svg>');
	assert.equal((await shown('({toDataURL: () => "data:image/png;base64,AAAA"})')).png, 'AAAA');
	const figure = '{"application/vnd.plotly.v1+json": {data: [{type: "bar", y: [1]}], layout: {title: {text: "T"}}}}';
	const { chart } = await shown(`({[Symbol.for("Jupyter.display")]: () => (${figure})})`);
	assert.deepEqual(chart, { type: 'bar', title: 'T', data: [{ type: 'bar', y: [1] }], layout: { title: { text: 'T' } }, library: 'plotly' });
});

test('at most a thousand results of a run are shown, and it is told once', async t => {
	const kernel = await Kernel.start(t);
	const { results, stderr } = await kernel.run('for (let i = 0; i < 1500; i++) display(i); "end"');
	assert.equal(results.length, 1000);
	assert.equal(stderr.match(/left out/g).length, 1);
});

test('_ is the last value until it is given another meaning', async t => {
	assert.deepEqual(await texts(t, ['41', '_ + 1', '_ = "mine"', '5', '_']), ['41', '42', "'mine'", '5', "'mine'"]);
});
