// SPDX-License-Identifier: Apache-2.0
// kernel: one JavaScript or TypeScript context. Lines from descriptor 3 tell it what to do, it says lines to descriptor 4;
// 1 and 2 are its output. All are pipes. Started as: node --no-force-async-hooks-checks kernel.cjs [javascript|typescript]
// With a word it waits for its context, and prepares for one of that language.
//
// (Stopping user code on SIGINT leaves node's books about asynchronous calls unbalanced when it strikes in a timer;
// without the flag node ends the process then.)
//
// User code shares this process and may change every object it can reach. So the kernel takes what it needs later
// from own.cjs, before the first cell, and walks arrays by index.
'use strict';

const { parse, setImmediate } = require('./own.cjs');
const control = require('./control.cjs');
const program = require('./program.cjs');

const REQUESTS_FD = 3;
const LINES_FD = 4;

let language = null; // of the context, once it has begun

function begin(message) {
	if (!program.isCurrent()) {
		control.send({ t: 'stale', why: 'another node is installed' });
		return control.leave(0);
	}
	const scope = require('./scope.cjs');
	try {
		scope.enter(message.cwd, message.env);
	} catch (error) {
		control.send({ t: 'failed', code: 'cwd', why: `${message.cwd}: ${error.message}` });
		return control.leave(1);
	}
	language = message.language;
	require('./run.cjs').begin(language, message.budget);
	control.send({ t: 'ready', version: process.versions.node });
}

/* Nothing runs: an interrupt that came is not for the next run. */
function answer(id) {
	control.forget();
	control.send({ t: 'pong', id, ...(language ? require('./run.cjs').past() : undefined) });
}

function obey(message) {
	if (message.t === 'init' && !language)
		begin(message);
	else if (message.t === 'run' && language)
		return require('./run.cjs').start(message);
	else if (message.t === 'ping')
		answer(message.id);
	else if (message.t === 'quit')
		return control.leave(0);
	control.rest();
}

function onLine(line) {
	if (line === null)
		return control.leave(0);
	let message;
	try {
		message = parse(line);
	} catch {
		return control.rest(); // not from siltd
	}
	try {
		obey(message);
	} catch (error) {
		control.send({ t: 'failed', code: 'internal', why: String(error.stack) }); // ours
		control.leave(1);
	}
}

/* Unless it comes at once. */
function prepare(expected) {
	if (language)
		return;
	program.remember();
	require('./run.cjs').warm(expected);
}

control.open(REQUESTS_FD, LINES_FD, onLine, () => require('./run.cjs').interrupt());
require('./output.cjs').install();
const [, , expected] = process.argv; // user code gets others
if (expected)
	setImmediate(() => prepare(expected));
