// SPDX-License-Identifier: Apache-2.0
// display: results in the middle of a run, and values in formats of the user's choice.
//
//   display(value)                      as the last value of a cell would be shown
//   display({'text/html': '<b>hi</b>'}) one object in several formats, by MIME type
//   display.html(text), .markdown, .svg, .latex, .javascript, .text; display.png(bytes or base64), .jpeg; display.json(value)
//
// A value with a method Symbol.for('Jupyter.display') that gives such an object is shown in these formats.
'use strict';

const own = require('./own.cjs');
const { formatsOf, addText, addJson, addPicture, leaveOut } = require('./result.cjs');
const run = require('./run.cjs');

const { types } = own;
const FIELDS = {
	'text/plain': 'text',
	'text/html': 'html',
	'image/png': 'png',
	'image/jpeg': 'jpeg',
	'image/svg+xml': 'svg',
	'text/latex': 'latex',
	'text/markdown': 'markdown',
	'application/javascript': 'javascript',
	'application/json': 'json',
};
const PLOTLY = 'application/vnd.plotly.v1+json';
const VEGA = /^application\/vnd\.vega(?:lite)?\.v\d+\+json$/;
const CHARTS = {
	bar: 'bar', pie: 'pie', histogram: 'histogram', heatmap: 'heatmap', box: 'box_and_whisker', boxplot: 'box_and_whisker',
	line: 'line', point: 'scatter', circle: 'scatter', arc: 'pie', rect: 'heatmap',
};

function plotlyType(trace) {
	if (trace?.type === undefined || trace.type === 'scatter' || trace.type === 'scattergl')
		return String(trace?.mode ?? 'lines').includes('lines') ? 'line' : 'scatter';
	return CHARTS[trace.type] ?? 'unknown';
}

function plotlyChart(figure) {
	const title = figure.layout?.title?.text ?? figure.layout?.title;
	return { type: plotlyType(figure.data?.[0]), title, data: figure.data, layout: figure.layout, config: figure.config, library: 'plotly' };
}

function vegaChart(spec) {
	const type = CHARTS[spec.mark?.type ?? spec.mark] ?? 'unknown';
	return { type, title: spec.title?.text ?? spec.title, data: spec, library: 'altair' };
}

function addPictureOrText(formats, name, value, budget) {
	if (types.isUint8Array(value))
		return addPicture(formats, name, value, budget);
	const text = own.isArray(value) ? own.join(value, '') : String(value);
	if (own.byteLength(text) > budget)
		leaveOut(formats, name);
	else
		formats[name] = text;
	return undefined;
}

function addType(formats, mime, value, others, budget) {
	const name = FIELDS[mime];
	if (name === 'text')
		addText(formats, own.isArray(value) ? own.join(value, '') : String(value), budget);
	else if (name === 'json')
		addJson(formats, name, value, budget);
	else if (name)
		addPictureOrText(formats, name, value, budget);
	else if (mime === PLOTLY)
		addJson(formats, 'chart', plotlyChart(value), budget);
	else if (own.test(VEGA, mime))
		addJson(formats, 'chart', vegaChart(value), budget);
	else
		others[mime] = value;
}

function formatsOfBundle(bundle, budget) {
	const formats = {};
	const others = {};
	const mimes = own.keys(bundle);
	for (let i = 0; i < mimes.length; i++)
		if (bundle[mimes[i]] !== undefined && bundle[mimes[i]] !== null)
			addType(formats, mimes[i], bundle[mimes[i]], others, budget);
	if (own.keys(others).length)
		addJson(formats, 'data', others, budget);
	return formats;
}

function isBundle(value) {
	if (value === null || typeof value !== 'object' || own.isArray(value) || types.isProxy(value))
		return false;
	const names = own.keys(value);
	for (let i = 0; i < names.length; i++)
		if (!own.test(/^[a-z]+\/[\w.+-]+$/, names[i]))
			return false;
	return names.length > 0;
}

function displayOne(value, isRaw) {
	const budget = run.budgetOf();
	const formats = isRaw || isBundle(value) ? formatsOfBundle(value, budget) : formatsOf(value, budget);
	if (!formats.later)
		return run.display(formats);
	return own.then(formats.later, run.display);
}

function display(value, options) {
	if (arguments.length === 2 && options !== null && typeof options === 'object' && 'raw' in options)
		return displayOne(value, options.raw === true);
	const later = [];
	for (let i = 0; i < arguments.length; i++) {
		const promise = displayOne(arguments[i], false);
		if (promise)
			own.push(later, promise);
	}
	return later.length ? own.all(later) : undefined;
}

for (const [mime, name] of Object.entries(FIELDS))
	display[name] = value => displayOne({ [mime]: value }, true);

module.exports = { display, formatsOfBundle };
