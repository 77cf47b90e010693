// SPDX-License-Identifier: Apache-2.0
// evaluate: a cell through V8's own REPL mode: await at the top, let, const and class declared again, the value of the
// last statement. Only the inspector offers it.
'use strict';

const { then, parse, stringify } = require('./own.cjs');
const { call, onPromise, awaitPromise } = require('./control.cjs');

const VALUE = '.repl_result'; // V8's name for it
const BEGUN = 'begun';
const STOPPED = 'stopped';
const REFUSED = 'refused';

let lastId = 0;
let onAnswer = () => undefined; // of the last command; none is asked twice

function hear(text) {
	const { id, error, result } = parse(text);
	if (id === lastId)
		onAnswer(error ? { text: error.message } : result.exceptionDetails);
}

/* The inspector by node's old door to its own parts, which says that it is deprecated. */
function connect() {
	const { emitWarning } = process;
	process.emitWarning = () => undefined;
	try {
		const connection = new (process.binding('inspector').Connection)(hear);
		return connection.dispatch.bind(connection);
	} finally {
		process.emitWarning = emitWarning;
	}
}

/* The same by its module, which takes node two milliseconds to load. */
function connectByModule() {
	const session = new (require('inspector').Session)();
	session.connect();
	return text => {
		const { id, method, params } = parse(text);
		session.post(method, params, (error, result) => hear(stringify({ id, error: error ? { message: error.message } : undefined, result })));
	};
}

function open() {
	try {
		return connect();
	} catch {
		return connectByModule();
	}
}

const dispatch = open();

/* The cell is an asynchronous function to V8, and its promise is the first that is made. Asking that promise before
 * the inspector does gives us the live value; the inspector's answer would be a copy, of 100 MB of text five copies.
 * (async_hooks would do as well, but goes on counting calls afterwards, and SIGINT upsets its count.) */
let ask = () => undefined;

const listen = onPromise(promise => ask(promise)) ? awaitPromise : listenByModule();

/* Where the native part cannot: another millisecond. */
function listenByModule() {
	const { onInit } = require('v8').promiseHooks;
	let forget = () => undefined;
	return on => {
		forget();
		if (on)
			forget = onInit(promise => {
				forget();
				ask(promise);
			});
	};
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
		ask = promise => {
			begun = true;
			then(promise, box => onValue(take(box)), onError);
		};
		onAnswer = details => { refusal = details; };
		const id = ++lastId;
		listen(true);
		dispatch(`{"id":${id},"method":"Runtime.evaluate","params":{"expression":${stringify(expression)},"replMode":true,"userGesture":false}}`);
	});
	listen(false);
	if (!finished)
		return STOPPED;
	if (begun && !refusal) // a var of the name of a let is refused when its promise is there, which nobody keeps then
		return BEGUN;
	onRefused(refusal);
	return REFUSED;
}

module.exports = { evaluate, STOPPED };
