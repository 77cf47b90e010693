// SPDX-License-Identifier: Apache-2.0
// result: all formats of one value. A format that is larger than the budget is left out and named in `truncated`;
// text is cut instead.
'use strict';

const own = require('./own.cjs');
const { Raw, wholeCharacters } = require('./control.cjs');

const { types, slice, push } = own;
const DISPLAY = Symbol.for('Jupyter.display');
const DEPTH_MAX = 48; // readers of JSON have limits, too: siltd's is 64 with what we and it put around
const NUMBER_BYTES = 4; // at least this much of JSON for anything that is no string
const INSPECT_DEPTH = 5;

class TooLarge extends Error {}

/* ---- json ---- */

function depthOf(json) {
	let depth = 0;
	let deepest = 0;
	for (let i = 0, quoted = false; i < json.length; i++) {
		const c = json[i];
		if (c === '"')
			quoted = !quoted;
		else if (quoted)
			i += c === '\\';
		else if (c === '[' || c === '{')
			deepest = Math.max(deepest, ++depth);
		else if (c === ']' || c === '}')
			depth--;
	}
	return deepest;
}

/* Counts while it goes, so that 100 MB are never made. Throws TooLarge, or what user code throws. */
function boundedJson(value, budget) {
	let size = 0;
	const json = own.stringify(value, (key, each) => {
		size += key.length + (typeof each === 'string' ? each.length : NUMBER_BYTES);
		if (size > budget)
			throw new TooLarge();
		return each;
	});
	if (json !== undefined && own.byteLength(json) > budget)
		throw new TooLarge();
	return json;
}

/* Read again where something was replaced: two names that differed in halves of characters only are one now. */
function withWholeNames(json) {
	const whole = wholeCharacters(json);
	return whole === json ? json : own.stringify(own.parse(whole));
}

/* What JSON cannot say (cycles, BigInt, a getter that throws) has no json; text says it. */
function addJson(formats, name, value, budget) {
	let json;
	try {
		json = boundedJson(value, budget);
	} catch (error) {
		if (error instanceof TooLarge)
			leaveOut(formats, name);
		return;
	}
	if (json !== undefined && depthOf(json) <= DEPTH_MAX)
		formats[name] = new Raw(withWholeNames(json));
}

const HAVE_NO_JSON = ['isMap', 'isSet', 'isWeakMap', 'isWeakSet', 'isPromise', 'isRegExp', 'isNativeError', 'isArrayBufferView',
	'isAnyArrayBuffer', 'isGeneratorObject', 'isMapIterator', 'isSetIterator', 'isModuleNamespaceObject', 'isBoxedPrimitive'];

function hasJson(value) {
	if (value === null || typeof value !== 'object')
		return false;
	if (own.isArray(value))
		return true;
	for (let i = 0; i < HAVE_NO_JSON.length; i++)
		if (types[HAVE_NO_JSON[i]](value))
			return false;
	const prototype = own.prototypeOf(value);
	const isPlain = prototype === null || own.prototypeOf(prototype) === null;
	return isPlain || typeof value.toJSON === 'function' || own.keys(value).length > 0;
}

/* ---- text and pictures ---- */

function leaveOut(formats, name) {
	formats.truncated ??= [];
	push(formats.truncated, name);
}

function cutText(text, budget) {
	const fitting = own.bytes(slice(text, 0, budget)).subarray(0, budget).toString();
	const whole = fitting.endsWith('\ufffd') ? slice(fitting, 0, -1) : fitting;
	return `${whole}\n… (cut: the whole has ${text.length} characters)`;
}

function addText(formats, text, budget) {
	if (text.length <= budget && own.byteLength(text) <= budget) {
		formats.text = text;
		return;
	}
	formats.text = cutText(text, budget);
	leaveOut(formats, 'text');
}

/* Shown without calling getters or traps. An own way to be shown that throws says so. */
function textOf(value, budget) {
	try {
		return own.inspect(value, { depth: INSPECT_DEPTH, colors: false, maxStringLength: Math.min(budget + 1, 10_000) });
	} catch (error) {
		return `${own.tagOf(value)} (inspecting it threw: ${require('./trouble.cjs').textOf(error)})`;
	}
}

/* A long string is cut before it is quoted, and every quoted character counts. */
function textOfString(value, budget) {
	return own.inspect(value.length > budget ? slice(value, 0, budget) : value, { maxStringLength: null });
}

const isPng = b => b[0] === 0x89 && b[1] === 0x50 && b[2] === 0x4e && b[3] === 0x47;
const isJpeg = b => b[0] === 0xff && b[1] === 0xd8 && b[2] === 0xff;

function addPicture(formats, name, picture, budget) {
	if (picture.length / 3 * 4 > budget)
		return leaveOut(formats, name);
	formats[name] = own.bytes(picture.buffer, picture.byteOffset, picture.byteLength).toString('base64');
}

/* ---- the whole ---- */

function addPlain(formats, value, budget) {
	if (typeof value !== 'string')
		return addText(formats, textOf(value, budget), budget);
	addText(formats, textOfString(value, budget), budget);
	if (value.length > budget && !formats.truncated)
		leaveOut(formats, 'text');
}

/* Canvases and elements of libraries that imitate a browser. */
function addLooks(formats, value, budget) {
	if (types.isUint8Array(value) && (isPng(value) || isJpeg(value)))
		return addPicture(formats, isPng(value) ? 'png' : 'jpeg', value, budget);
	if (typeof value.toDataURL === 'function') {
		const [, name, data] = /^data:image\/(png|jpeg);base64,(.*)$/s.exec(String(value.toDataURL('image/png'))) ?? [];
		if (name)
			data.length > budget ? leaveOut(formats, name) : formats[name] = data;
	} else if (typeof value.outerHTML === 'string') {
		const name = /^<svg[\s>]/i.test(value.outerHTML) ? 'svg' : 'html';
		value.outerHTML.length > budget ? leaveOut(formats, name) : formats[name] = value.outerHTML;
	}
	return undefined;
}

function ordinary(value, budget) {
	const formats = {};
	addPlain(formats, value, budget);
	if (value === null || typeof value !== 'object' || types.isProxy(value))
		return formats;
	try {
		addLooks(formats, value, budget);
		if (!formats.html && !formats.svg && !formats.png && hasJson(value))
			addJson(formats, 'json', value, budget);
	} catch {
		// A getter threw: its text has been shown.
	}
	return formats;
}

/* Asks the value itself, as Deno's and other kernels do. May give { later: promise }. */
function asked(value, budget) {
	const { formatsOfBundle } = require('./display.cjs');
	const bundle = value[DISPLAY]();
	const toFormats = each => each !== null && typeof each === 'object' ? formatsOfBundle(each, budget) : ordinary(value, budget);
	if (typeof bundle?.then === 'function')
		return { later: own.then(own.resolve(bundle), toFormats) };
	return toFormats(bundle);
}

function formatsOf(value, budget) {
	const isObject = value !== null && (typeof value === 'object' || typeof value === 'function');
	if (isObject && !types.isProxy(value) && typeof value[DISPLAY] === 'function')
		return asked(value, budget);
	return ordinary(value, budget);
}

module.exports = { formatsOf, addText, addJson, addPicture, leaveOut, DISPLAY };
