// SPDX-License-Identifier: Apache-2.0
// own: functions of the language as they were before user code could replace them.
'use strict';

const all = Promise.all.bind(Promise);
const uncurry = Function.prototype.bind.bind(Function.prototype.call);

module.exports = {
	parse: JSON.parse,
	stringify: JSON.stringify,
	now: Date.now,
	setImmediate,
	apply: Reflect.apply,
	keys: Object.keys,
	prototypeOf: Object.getPrototypeOf,
	define: Object.defineProperty,
	isArray: Array.isArray,
	byteLength: Buffer.byteLength,
	bytes: Buffer.from,
	Promise,
	resolve: Promise.resolve.bind(Promise),
	all,
	then: uncurry(Promise.prototype.then),
	push: uncurry(Array.prototype.push),
	join: uncurry(Array.prototype.join),
	split: uncurry(String.prototype.split),
	slice: uncurry(String.prototype.slice),
	indexOf: uncurry(String.prototype.indexOf),
	startsWith: uncurry(String.prototype.startsWith),
	replace: uncurry(String.prototype.replace),
	trim: uncurry(String.prototype.trim),
	test: uncurry(RegExp.prototype.test),
	exec: uncurry(RegExp.prototype.exec),
	errorToString: uncurry(Error.prototype.toString),
	tagOf: uncurry(Object.prototype.toString),
	wellFormed: uncurry(String.prototype.toWellFormed),
	inspect: require('util').inspect,
	types: require('util').types,
};
