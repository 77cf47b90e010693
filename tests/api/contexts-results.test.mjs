// SPDX-License-Identifier: Apache-2.0
// What code shows, through the API: tables, pictures, charts, values and errors of each language. What becomes of single
// kinds of figures and values is tested with the kernels.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import zlib from 'node:zlib';
import { context, run } from '../lib/code.mjs';
import { startDaemon } from '../lib/daemon.mjs';

let daemon, box, python;
before(async () => {
	daemon = await startDaemon({ warm: true });
	box = await daemon.box(); // it goes with the daemon
	python = await context(box);
});
after(() => daemon?.stop());

/** Width and height of a PNG whose pixels are all there. */
function decodePng(base64) {
	const bytes = Buffer.from(base64, 'base64');
	assert.equal(bytes.subarray(0, 8).toString('hex'), '89504e470d0a1a0a');
	const parts = [];
	let size = null, depth = 0;
	for (let at = 8; at < bytes.length;) {
		const length = bytes.readUInt32BE(at), type = bytes.toString('latin1', at + 4, at + 8), body = bytes.subarray(at + 8, at + 8 + length);
		assert.equal(zlib.crc32(bytes.subarray(at + 4, at + 8 + length)), bytes.readUInt32BE(at + 8 + length), type);
		if (type === 'IHDR')
			[size, depth] = [[body.readUInt32BE(0), body.readUInt32BE(4)], { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 }[body[9]] * body[8]];
		if (type === 'IDAT')
			parts.push(body);
		at += 12 + length;
	}
	assert.equal(zlib.inflateSync(Buffer.concat(parts)).length, size[1] * (1 + Math.ceil(size[0] * depth / 8)));
	return size;
}

const CHARTS = {
	line: ['plt.plot([1, 2], [3, 4], label="l")', [{ label: 'l', points: [[1, 3], [2, 4]] }]],
	scatter: ['plt.scatter([1, 2], [3, 4], label="s")', [{ label: 's', points: [[1, 3], [2, 4]] }]],
	bar: ['plt.bar(["a", "b"], [1, 2], label="n")', [{ label: 'a', group: 'n', value: 1 }, { label: 'b', group: 'n', value: 2 }]],
	pie: ['plt.pie([1, 3], labels=["a", "b"])', [{ label: 'a', angle: 90, radius: 1 }, { label: 'b', angle: 270, radius: 1 }]],
	histogram: ['plt.hist([1, 1, 2, 3], bins=2)', [{ bin: [1, 2], value: 2 }, { bin: [2, 3], value: 2 }]],
	box_and_whisker: ['plt.boxplot([[1, 2, 3, 4, 5, 20]], labels=["a"])', [{ label: 'a', min: 1, first_quartile: 2.25, median: 3.5, third_quartile: 4.75, max: 5, outliers: [20] }]],
	heatmap: ['plt.imshow([[1, 2], [3, 4]])', [{ values: [[1, 2], [3, 4]] }]],
	superchart: ['f, (a, b) = plt.subplots(1, 2); a.plot([1, 2]); b.bar(["x"], [1])', [{ type: 'line' }, { type: 'bar' }]],
};

for (const [type, [code, elements]] of Object.entries(CHARTS)) {
	test(`python: a figure is a picture and a chart of type ${type}, shown or left open`, async () => {
		for (const end of ['plt.title("T"); plt.show()', 'plt.title("T")']) {
			const { results, error } = await run(box, python, `import matplotlib.pyplot as plt\n${code}\n${end};`);
			assert.equal(error, null, JSON.stringify(error));
			const [{ png, chart }, ...more] = results.filter(result => result.png);
			assert.deepEqual(more, []);
			const [width, height] = decodePng(png);
			assert.ok(width > 100 && height > 100, `${width} x ${height}`);
			assert.deepEqual([chart.type, chart.library], [type, 'matplotlib']);
			assert.equal(chart.elements.length, elements.length);
			chart.elements.forEach((element, i) => assert.partialDeepStrictEqual(element, elements[i]));
		}
	});
}

test('python: a table is text, html and data in one result', async () => {
	const { results, count } = await run(box, python, 'import pandas as pd\npd.DataFrame({"a": [1, 2], "b": ["x", None], "t": pd.to_datetime(["2024-01-01", "2024-01-02"])})');
	assert.equal(results.length, 1);
	const [{ text, html, data, isMainResult, metadata }] = results;
	assert.match(text, /a +b +t\n0 +1 +x/);
	assert.match(html, /<table[^>]*>[^]*<\/table>/);
	assert.deepEqual([data.a, data.b], [[1, 2], ['x', null]]);
	assert.match(String(data.t[0]), /^2024-01-01/);
	assert.deepEqual([isMainResult, metadata], [true, {}]);
	assert.ok(count > 0);
});

test('python: every format of an object is in one result', async () => {
	const code = `class All:
    def _repr_html_(self): return "<b>é</b>"
    def _repr_svg_(self): return "<svg/>"
    def _repr_latex_(self): return "$x$"
    def _repr_markdown_(self): return "*m*"
    def _repr_javascript_(self): return "1"
    def _repr_json_(self): return {"k": [1, None]}
    def _repr_png_(self): return b"\\x89PNG"
    def _repr_jpeg_(self): return b"\\xff\\xd8"
    def __repr__(self): return "All()"
All()`;
	const { results: [shown, ...more] } = await run(box, python, code);
	assert.deepEqual(more, []);
	const { type, isMainResult, metadata, ...formats } = shown;
	assert.deepEqual(formats, { text: 'All()', html: '<b>é</b>', svg: '<svg/>', latex: '$x$', markdown: '*m*', javascript: '1', json: { k: [1, null] }, png: 'iVBORw==', jpeg: '/9g=' });
});

test('python: IPython in a cell: magics, commands, await, display, the last value', async () => {
	const { results, stdout, error } = await run(box, python, `
from IPython.display import display, Markdown
import asyncio
display(Markdown("*m*"))
%env SEEN=1
!echo from-$SEEN
await asyncio.sleep(0)
{"a": [1]}`);
	assert.equal(error, null, JSON.stringify(error));
	assert.match(stdout, /env: SEEN=1\nfrom-1\n/);
	assert.deepEqual(results.map(({ markdown, json, isMainResult }) => [markdown, json, isMainResult]), [['*m*', undefined, false], [undefined, { a: [1] }, true]]);
	assert.deepEqual((await run(box, python, 'x = 1')).results, []);
});

test('errors have their names, texts, lines and tracebacks, also those of syntax', async () => {
	const broken = {
		python: [['1/0', 'ZeroDivisionError', /division by zero/], ['x = 1\ndef f(:', 'SyntaxError', /./], ['raise SystemError("s")', 'SystemError', /^s$/]],
		javascript: [['null.x', 'TypeError', /null/], ['const = 1', 'SyntaxError', /./], ['await Promise.reject(new RangeError("r"))', 'RangeError', /^r$/]],
		typescript: [['(null as any).x', 'TypeError', /null/], ['let x: = 1', 'SyntaxError', /./], ['throw new EvalError("e" as string)', 'EvalError', /^e$/]],
	};
	for (const [language, cells] of Object.entries(broken))
		for (const [code, name, value] of cells) {
			const { error, events } = await run(box, null, code, { language });
			assert.equal(error?.ename, name, `${language}: ${code}: ${JSON.stringify(error)}`);
			assert.match(error.evalue, value);
			assert.ok(Array.isArray(error.traceback) && error.traceback.every(line => typeof line === 'string'));
			assert.equal(events.at(-1), error, 'the last event');
			assert.equal((await run(box, null, '1 + 1', { language })).results[0].text, '2', 'the context lives');
		}
});

for (const language of ['javascript', 'typescript'])
	test(`${language}: values, streams, modules and what is around a cell`, async () => {
		const value = async code => {
			const answer = await run(box, null, code, { language });
			assert.equal(answer.error, null, JSON.stringify(answer.error));
			return answer.results.at(-1);
		};
		const { text, json } = await value('({ a: [1, "x"], b: null })');
		assert.deepEqual([text, json], ["{ a: [ 1, 'x' ], b: null }", { a: [1, 'x'], b: null }]);
		assert.equal((await value('import path from "node:path"; path.basename("/a/b")')).text, "'b'");
		assert.equal((await value('(await import("node:os")).EOL')).text, "'\\n'");
		assert.equal((await value('require("node:util").format("%d", 1)')).text, "'1'");
		assert.equal((await value('[typeof fetch, typeof URL, typeof structuredClone].join()')).text, "'function,function,function'");
		assert.equal((await value('const twice = 1; await Promise.resolve(twice)')).text, '1');
		assert.equal((await value('const twice = 2; twice')).text, '2');
		const { stdout, stderr } = await run(box, null, 'console.log("out"); console.error("err")', { language });
		assert.deepEqual([stdout, stderr], ['out\n', 'err\n']);
	});
