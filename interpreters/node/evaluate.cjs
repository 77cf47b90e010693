// SPDX-License-Identifier: Apache-2.0
// evaluate: a cell through V8's own REPL mode: await at the top, let, const and class declared again, the value of the
// last statement. Only the inspector offers it.
'use strict';

const { Session } = require('inspector');
const { onInit } = require('v8').promiseHooks;
const { then } = require('./own.cjs');
const { call } = require('./control.cjs');

const VALUE = '.repl_result'; // V8's name for it
const BEGUN = 'begun';
const STOPPED = 'stopped';
const REFUSED = 'refused';

const session = new Session();
session.connect();
const post = session.post.bind(session);

/* The cell is an asynchronous function to V8, and its promise is the first that is made. Asking that promise before
 * the inspector does gives us the live value; the inspector's answer would be a copy, of 100 MB of text five copies.
 * (async_hooks would do as well, but goes on counting calls afterwards, and SIGINT upsets its count.) */
let forget = () => undefined;

function listen(ask) {
	forget = onInit(promise => {
		forget();
		ask(promise);
	});
}

/* Takes the value out of V8's box, so that the inspector, which looks into it after us, copies nothing. */
function take(box) {
	const value = box[VALUE];
	box[VALUE] = undefined;
	return value;
}

/* BEGUN: onValue or onError comes, never before this returns. STOPPED by SIGINT. REFUSED by V8, which tells why. */
function evaluate(expression, onValue, onError, onRefused) {
	let refusal = null;
	let begun = false;
	const finished = call(() => {
		listen(promise => {
			begun = true;
			then(promise, box => onValue(take(box)), onError);
		});
		post('Runtime.evaluate', { expression, replMode: true, userGesture: false }, (error, answer) => {
			refusal = error ? { text: error.message } : answer.exceptionDetails;
		});
	});
	forget();
	if (!finished)
		return STOPPED;
	if (begun)
		return BEGUN;
	onRefused(refusal);
	return REFUSED;
}

module.exports = { evaluate, STOPPED };
