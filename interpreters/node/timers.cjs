// SPDX-License-Identifier: Apache-2.0
// timers: those of a run that was interrupted do nothing any more. What a timer starts belongs to the run that started
// the timer, so that a chain of timers ends as a whole, and that of an earlier run does not.
'use strict';

const { apply, define } = require('./own.cjs');
const timers = require('timers');
const { promisify } = require('util');

let active = null; // the owner of the timer whose function runs now
let ownerOfRun = () => null;

/* An owner is an object that may become `stopped`. */
function owned(owner, callback, stop) {
	return function run(...args) {
		if (owner?.stopped)
			return stop(this);
		const before = active;
		active = owner;
		try {
			return apply(callback, this, args);
		} finally {
			active = before;
		}
	};
}

function wrap(name, stop) {
	const start = timers[name];
	function timer(callback, ...rest) {
		if (typeof callback !== 'function')
			return start(callback, ...rest); // node says what is wrong
		return start(owned(active ?? ownerOfRun(), callback, stop), ...rest);
	}
	const properties = Object.getOwnPropertyDescriptors(start);
	delete properties.prototype;
	delete properties[promisify.custom];
	Object.defineProperties(timer, properties);
	return timer;
}

/* util.promisify(setTimeout): as node's own, and still a timer of its run. */
function addPromise(timer, original, shift) {
	define(timer, promisify.custom, {
		enumerable: true,
		configurable: true,
		value: (...args) => args[shift + 1] === undefined
			? new Promise(resolve => timer(...[resolve, ...args].slice(0, shift + 2)))
			: original[promisify.custom](...args),
	});
}

function install(owner) {
	ownerOfRun = owner;
	const { setTimeout, setImmediate } = timers;
	const replaced = {
		setTimeout: wrap('setTimeout', () => undefined),
		setImmediate: wrap('setImmediate', () => undefined),
		setInterval: wrap('setInterval', timers.clearInterval),
	};
	addPromise(replaced.setTimeout, setTimeout, 1);
	addPromise(replaced.setImmediate, setImmediate, 0);
	for (const [name, timer] of Object.entries(replaced))
		globalThis[name] = timers[name] = timer;
}

/* A timer that SIGINT stopped has not said that it is over. */
function settle() {
	active = null;
}

module.exports = { install, settle };
