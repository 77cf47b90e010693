// SPDX-License-Identifier: Apache-2.0
// typescript: types away, enums, namespaces, parameter properties and (legacy) decorators to JavaScript, and the way
// back from its lines to the user's. Nothing is checked.
'use strict';

const module_ = require('module');
const { byteLength, bytes, define, replace } = require('./own.cjs');
const { Refusal } = require('./trouble.cjs');

const MAPS_MAX = 1000; // cells whose lines can still be told
const POSITION = /\b(cell-\d+\.ts):(\d+):(\d+)/g;
const OPTIONS = {
	lang: 'ts',
	sourcemap: true,
	typescript: { onlyRemoveTypeImports: true }, // what is imported here may be used by the next cell only
	decorator: { legacy: true, emitDecoratorMetadata: true },
	helpers: { mode: 'External' },
};

/* What oxc makes of an enum that is the first of its name in a cell. */
const ENUM = /^(var (\S+) = \/\* @__PURE__ \*\/ function\(\2\) \{\n(?:\t.*\n)*\})\(\2 \|\| \{\}\);$/gm;

const maps = new Map();
let oxc; // null where it cannot be loaded

function binding() {
	if (oxc === undefined) {
		try {
			oxc = require('@oxc-transform/binding-linux-x64-gnu');
		} catch {
			oxc = null; // another C library than glibc: what node has inside is slower to start
		}
	}
	return oxc;
}

/* ---- decorators: the functions that transformed classes call ---- */

function decorate(decorators, target, key, description) {
	const isClass = arguments.length < 3;
	let decorated = description === null ? Object.getOwnPropertyDescriptor(target, key) : description;
	if (isClass)
		decorated = target;
	for (let i = decorators.length - 1; i >= 0; i--)
		if (decorators[i])
			decorated = (isClass ? decorators[i](decorated) : decorators[i](target, key, decorated)) || decorated;
	if (!isClass && decorated)
		define(target, key, decorated);
	return decorated;
}

const helpers = {
	decorate,
	decorateParam: (index, decorator) => (target, key) => decorator(target, key, index),
	decorateMetadata: (key, value) => typeof Reflect.metadata === 'function' ? Reflect.metadata(key, value) : undefined,
};

/* ---- there ---- */

/* oxc counts bytes. */
function positionOf(code, byte) {
	const before = bytes(code).subarray(0, byte).toString();
	const lines = before.split('\n');
	return [lines.length, lines.at(-1).length + 1];
}

function refuse(error, code) {
	const [line, column] = positionOf(code, error.labels[0]?.start ?? byteLength(code));
	throw new Refusal(error.message, line, column);
}

const errorOf = transformed => transformed.errors.find(error => error.severity === 'Error');

function withBinding(code, name, asObject) {
	const transform = text => oxc.transformSync(name, text, OPTIONS);
	code = asObject(code, text => !errorOf(transform(`(${text}\n)`)));
	const transformed = transform(code);
	const error = errorOf(transformed);
	if (error)
		refuse(error, code);
	if (transformed.helpersUsed && !('babelHelpers' in globalThis))
		define(globalThis, 'babelHelpers', { configurable: true, enumerable: false, value: helpers });
	remember(name, transformed.map);
	return replace(transformed.code, ENUM, '$1({});'); // one of an earlier cell is not added to
}

function withNode(code) {
	if (!module_.stripTypeScriptTypes)
		throw new Refusal('this image can run no TypeScript: it needs the GNU C library, or Node 22.13', 1, 1);
	try {
		return module_.stripTypeScriptTypes(code, { mode: 'transform' });
	} catch (error) {
		throw new Refusal(error.message, 1, 1);
	}
}

function toJavaScript(code, name, asObject) {
	return binding() ? withBinding(code, name, asObject) : withNode(code);
}

/* ---- and back ---- */

function remember(name, map) {
	if (!map)
		return;
	maps.set(name, { mappings: map.mappings, sources: [name] });
	if (maps.size > MAPS_MAX)
		maps.delete(maps.keys().next().value);
}

/* Line and column as the user wrote them; counted from 1. */
function original(name, line, column) {
	const map = maps.get(name);
	if (!map)
		return [line, column];
	map.reader ??= new module_.SourceMap({ version: 3, names: [], ...map });
	const entry = map.reader.findEntry(line - 1, column - 1);
	return entry.originalLine === undefined ? [line, column] : [entry.originalLine + 1, entry.originalColumn + 1];
}

/* A line of a stack with the user's positions. */
function translate(frame) {
	return replace(frame, POSITION, (all, name, line, column) => {
		const [theirs, column_] = original(name, Number(line), Number(column));
		return `${name}:${theirs}:${column_}`;
	});
}

module.exports = { toJavaScript, original, translate };
