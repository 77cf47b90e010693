// SPDX-License-Identifier: Apache-2.0
// run: one cell from its line to `done`.
//
//   start --evaluate--> cell's promise --its value--> a promise? await it --value--> show --> finish
//
// An error or an interrupt goes to finish from everywhere. Between its steps a run belongs to user code and is watched
// for SIGINT; each step begins by taking it back (pause), because the kernel's own code must not be stopped half-way.
'use strict';

const { then, resolve, setImmediate, now } = require('./own.cjs');
const { send, call, watch, pause, rest, guard, balance, hush, onExitSay } = require('./control.cjs');
const { evaluate, STOPPED } = require('./evaluate.cjs');
const scope = require('./scope.cjs');
const source = require('./source.cjs');
const timers = require('./timers.cjs');

const RESULTS_MAX = 1000;
const BUDGET = 8 << 20;
const REHEARSAL = 0; // the id of a run that nobody sees

let language = 'javascript';
let budget = BUDGET;
let current = null;
let count = 0;
let used = 0; // when the last run ended
let prepared = false;

const trouble = () => require('./trouble.cjs');

function finish(run) {
	run.over = true;
	current = null;
	used = now();
	rest();
	send({ t: 'done', id: run.id, count: run.count });
	if (run.id === REHEARSAL)
		endRehearsal();
}

function fail(run, error) {
	if (run.over)
		return;
	pause();
	let fields;
	if (call(() => { fields = trouble().describe(error, run); }))
		failWith(run, fields);
	else
		stop(run);
}

function failWith(run, fields) {
	pause();
	send({ t: 'error', id: run.id, ...fields });
	finish(run);
}

/* step: user code that is asked something by us, a getter or toJSON. True when it went well. */
function step(run, work) {
	try {
		if (call(work))
			return true;
		stop(run);
	} catch (error) {
		fail(run, error);
	}
	return false;
}

/* What goes on when a promise has a value: the run is ours again. */
function continuing(run, next) {
	return value => {
		if (run.over)
			return;
		pause();
		try {
			next(value);
		} catch (error) {
			fail(run, error); // ours, and not to be waited for in vain
		}
	};
}

/* From here on the run is user code's, until the promise has a value for us. */
function wait(run, promise, next) {
	then(promise, continuing(run, next), error => fail(run, error));
	if (!watch())
		stop(run);
}

/* A value whose `then` cannot even be read is nothing to wait for. */
function isThenable(value) {
	try {
		return value !== null && (typeof value === 'object' || typeof value === 'function') && typeof value.then === 'function';
	} catch {
		return false;
	}
}

function settle(run, value) {
	let promise = null;
	if (!step(run, () => { promise = isThenable(value) ? resolve(value) : null; }))
		return;
	if (promise)
		wait(run, promise, awaited => show(run, awaited));
	else
		show(run, value);
}

function show(run, value) {
	scope.remember(value);
	if (value === undefined)
		return finish(run);
	let formats = null;
	if (!step(run, () => { formats = require('./result.cjs').formatsOf(value, budget); }))
		return;
	const end = ready => {
		result(run, true, ready);
		finish(run);
	};
	if (formats.later)
		wait(run, formats.later, end);
	else
		end(formats);
}

function result(run, main, formats) {
	run.results++;
	if (run.results <= RESULTS_MAX)
		send({ t: 'result', id: run.id, main, ...formats });
	else if (run.results === RESULTS_MAX + 1)
		require('./output.cjs').complain(`[${RESULTS_MAX} results were shown; the others of this run are left out]\n`);
}

/* display(): in the middle of a run, or of a timer that outlived it. */
function display(formats) {
	if (current)
		result(current, false, formats);
}

function start(message) {
	const run = { id: message.id, count: ++count, name: source.nameOf(count, language), code: String(message.code), over: false, results: 0, owner: { stopped: false } };
	current = run;
	watch();
	try {
		guard();
		scope.follow();
		go(run, source.prepare(run.code, language, run.name));
	} catch (error) {
		fail(run, error);
	}
}

/* What V8 refuses has not begun: it may be said in another way. */
function go(run, expression, redeclare = null) {
	const onRefused = details => {
		redeclare ??= require('./redeclare.cjs').redeclarer(expression);
		const other = redeclare(details);
		if (other === null)
			failWith(run, trouble().refused(details, run));
		else
			go(run, other, redeclare);
	};
	if (evaluate(expression, continuing(run, value => settle(run, value)), error => fail(run, error), onRefused) === STOPPED)
		stop(run);
}

/* SIGINT: user code was stopped by force, or has awaited something and the event loop answers. */
function stop(run) {
	run.owner.stopped = true;
	failWith(run, trouble().interrupted());
}

function stopCurrent() {
	if (current)
		stop(current);
	else
		rest();
}

function interrupt() {
	balance();
	stopCurrent();
}

/* What escapes from timers and promises that nobody waits for. The context lives on. */
function onUncaught(what, error) {
	if (process.listenerCount(what) > 1)
		return; // user code deals with it
	require('./output.cjs').complain(`Uncaught ${trouble().textOf(error)}\n`);
}

/* What is the same for every context. */
function prepare() {
	if (prepared)
		return;
	prepared = true;
	onExitSay(() => current?.id);
	timers.install(() => current?.owner, stopCurrent);
	Error.prepareStackTrace = (error, frames) => trouble().stackOf(error, frames);
	process.on('uncaughtException', error => onUncaught('uncaughtException', error));
	process.on('unhandledRejection', error => onUncaught('unhandledRejection', error));
	process.on('newListener', name => name === 'SIGINT' && guard());
	process.on('removeListener', name => name === 'SIGINT' && guard());
}

function begin(contextLanguage, limits) {
	endRehearsal();
	language = contextLanguage;
	budget = limits?.result ?? BUDGET;
	prepare();
	if (language === 'typescript')
		setImmediate(warmTypeScript);
}

/* In the time between a TypeScript context's birth and its first cell. */
function warmTypeScript() {
	if (!current)
		require('./typescript.cjs').toJavaScript('0', 'warm.ts', code => code);
}

function endRehearsal() {
	hush(false);
	scope.remember(undefined);
	current = null;
	count = used = 0;
}

/* A process that waits for its context: everything that can be done before, and a whole cell that nobody sees. */
function warm(expected) {
	scope.enter('/', {});
	prepare();
	if (expected === 'typescript')
		warmTypeScript();
	hush(true);
	start({ id: REHEARSAL, code: '[1 + 1]' });
}

module.exports = { past: () => ({ count, used }), begin, start, interrupt, display, warm, budgetOf: () => budget };
