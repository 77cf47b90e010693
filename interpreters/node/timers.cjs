// SPDX-License-Identifier: Apache-2.0
// timers: those of a run that was interrupted do nothing any more. What a timer starts belongs to the run that started
// the timer, so that a chain of timers ends as a whole, and that of an earlier run does not.
// SIGINT stops no more than their functions, and never the starting of one: stopped in the middle of a round of
// immediates, or with a timer half in its list, node would not find its way any more.
'use strict';

const { apply, define } = require('./own.cjs');
const { call, shield } = require('./control.cjs');
const timers = require('timers');
const { promisify } = require('util');

let active = null; // the owner of the timer whose function runs now
let ownerOfRun = () => null;
let onStopped = () => undefined;

/* True when f has begun; false when an interrupt, which is not for f but for the run, was quicker. */
function begin(f) {
	let begun = false;
	const finished = call(() => {
		begun = true;
		f();
	});
	if (!finished)
		onStopped();
	return begun;
}

/* begin() comes back when SIGINT has stopped f, so that this finally runs; one inside f would not. */
function runAs(owner, f) {
	const before = active;
	active = owner;
	try {
		if (!begin(f) && !owner?.stopped)
			begin(f);
	} finally {
		active = before;
	}
}

/* An owner is an object that may become `stopped`. */
function owned(owner, callback, stop) {
	return function run(...args) {
		if (owner?.stopped)
			stop(this);
		else
			runAs(owner, () => apply(callback, this, args));
	};
}

function wrap(name, stop) {
	const start = timers[name];
	function timer(...args) {
		if (typeof args[0] === 'function') // else node says what is wrong
			args[0] = owned(active ?? ownerOfRun(), args[0], stop);
		shield(true);
		try {
			return apply(start, undefined, args);
		} finally {
			shield(false);
		}
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

function install(owner, stopped) {
	ownerOfRun = owner;
	onStopped = stopped;
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

module.exports = { install };
