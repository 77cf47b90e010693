// SPDX-License-Identifier: Apache-2.0
// trouble: what went wrong, with real names and the user's own frames.
'use strict';

const { join, push, split, slice, indexOf, startsWith, exec, test, inspect, types, isArray, errorToString } = require('./own.cjs');

const NAME_MAX = 256;
const MESSAGE_MAX = 64 << 10;
const LINES_MAX = 100;
const LINE_MAX = 4 << 10;
const CAUSES_MAX = 5;

const FRAME = /^ +at /;
const INTERNAL = /(?:\(|at |async )node:/;

/** A cell that cannot run as it is written; line and column count from 1. */
class Refusal extends SyntaxError {
	constructor(message, line, column) {
		super(message);
		this.line = line;
		this.column = column;
	}
}

const cut = (text, max) => text.length > max ? `${slice(text, 0, max)}… (${text.length - max} more characters)` : text;

/* Every property of what was thrown may be a getter that throws, too. */
function read(object, name) {
	try {
		return object[name];
	} catch {
		return undefined;
	}
}

function isError(thrown) {
	if (thrown === null || typeof thrown !== 'object')
		return false;
	return types.isNativeError(thrown) || (typeof read(thrown, 'message') === 'string' && typeof read(thrown, 'name') === 'string');
}

/* A class that extends Error and does not set name is still called by its own name. */
function nameOf(error) {
	const name = read(error, 'name');
	const constructor = read(read(error, 'constructor') ?? {}, 'name');
	const isPlain = typeof name !== 'string' || name === '' || name === 'Error';
	return cut(isPlain && typeof constructor === 'string' && constructor ? constructor : String(isPlain ? 'Error' : name), NAME_MAX);
}

function textOfValue(value) {
	try {
		return inspect(value);
	} catch {
		return `[${typeof value} that cannot be shown]`;
	}
}

function messageOf(error) {
	const message = read(error, 'message');
	return cut(typeof message === 'string' ? message : message === undefined ? '' : textOfValue(message), MESSAGE_MAX);
}

const headOf = error => messageOf(error) ? `${nameOf(error)}: ${messageOf(error)}` : nameOf(error);

/* The frames of user code, of its files and its packages. */
function framesOf(error) {
	const stack = read(error, 'stack');
	const frames = [];
	if (typeof stack !== 'string')
		return frames;
	const lines = split(stack, '\n');
	for (let i = 0; i < lines.length && frames.length < LINES_MAX; i++)
		if (test(FRAME, lines[i]) && !test(INTERNAL, lines[i]) && indexOf(lines[i], __dirname) < 0)
			push(frames, cut(lines[i], LINE_MAX));
	return frames;
}

/* TypeScript's own room is loaded only when there was TypeScript. */
function translate(frame) {
	return indexOf(frame, '.ts:') < 0 ? frame : require('./typescript.cjs').translate(frame);
}

/* error.stack, as node makes it, but without us below the user's code, and with the user's lines. */
function stackOf(error, frames) {
	let stack;
	try {
		stack = errorToString(error);
	} catch {
		stack = 'Error';
	}
	for (let i = 0; i < frames.length; i++) {
		const file = frames[i].getFileName() ?? '';
		if (!startsWith(file, __dirname) && file !== 'node:inspector')
			stack += `\n    at ${translate(String(frames[i]))}`;
	}
	return stack;
}

function addLines(lines, more) {
	for (let i = 0; i < more.length && lines.length < LINES_MAX; i++)
		push(lines, more[i]);
}

function addErrors(lines, errors) {
	for (let i = 0; isArray(errors) && i < errors.length && i < CAUSES_MAX; i++)
		addLines(lines, [`  [errors] ${isError(errors[i]) ? headOf(errors[i]) : textOfValue(errors[i])}`]);
}

function tracebackOf(error) {
	const lines = split(headOf(error), '\n');
	addLines(lines, framesOf(error));
	addErrors(lines, read(error, 'errors'));
	let cause = read(error, 'cause');
	for (let i = 0; i < CAUSES_MAX && cause !== undefined && cause !== null; i++) {
		addLines(lines, split(`Caused by: ${isError(cause) ? headOf(cause) : textOfValue(cause)}`, '\n'));
		addLines(lines, isError(cause) ? framesOf(cause) : []);
		cause = isError(cause) ? read(cause, 'cause') : undefined;
	}
	return lines;
}

/* The line of the cell, if the trouble began in it. */
function lineIn(frames, name) {
	for (let i = 0; i < frames.length; i++) {
		const at = indexOf(frames[i], `${name}:`);
		if (at >= 0)
			return Number(exec(/^\d+/, slice(frames[i], at + name.length + 1))?.[0] ?? NaN) || undefined;
	}
	return undefined;
}

/* As node prints it: where, the line, an arrow, what. */
function describeSyntax(name, message, line, column, run) {
	const written = split(run.code, '\n')[line - 1] ?? '';
	const traceback = [`${run.name}:${line}:${column}`];
	if (written && written.length <= LINE_MAX)
		push(traceback, written, `${' '.repeat(Math.max(0, column - 1))}^`);
	push(traceback, `${name}: ${message}`);
	return { ename: name, evalue: message, traceback, line };
}

function describe(error, run) {
	if (error instanceof Refusal)
		return describeSyntax('SyntaxError', cut(error.message, MESSAGE_MAX), error.line, error.column, run);
	if (!isError(error)) {
		const value = cut(typeof error === 'string' ? error : textOfValue(error), MESSAGE_MAX);
		return { ename: 'Error', evalue: value, traceback: [cut(`Uncaught ${textOfValue(error)}`, MESSAGE_MAX)] };
	}
	const traceback = tracebackOf(error);
	return { ename: nameOf(error), evalue: messageOf(error), traceback, line: lineIn(traceback, run.name) };
}

/* V8 could not compile the cell. Its description is a stack: name, colon, message, our own frames. */
function refused(details, run) {
	const description = details?.exception?.description ?? details?.text ?? 'SyntaxError';
	const end = indexOf(description, '\n    at ');
	const head = end < 0 ? description : slice(description, 0, end);
	const colon = indexOf(head, ': ');
	const name = colon > 0 ? slice(head, 0, colon) : 'SyntaxError';
	let line = (details?.lineNumber ?? 0) + 1;
	let column = (details?.columnNumber ?? 0) + 1;
	if (startsWith(slice(run.name, -3), '.ts'))
		[line, column] = require('./typescript.cjs').original(run.name, line, column);
	return describeSyntax(name, cut(colon > 0 ? slice(head, colon + 2) : head, MESSAGE_MAX), line, column, run);
}

/* The name is node's for a script that SIGINT stopped. */
function interrupted() {
	const evalue = 'Script execution was interrupted by `SIGINT`';
	return { ename: 'ERR_SCRIPT_EXECUTION_INTERRUPTED', evalue, traceback: [`Error [ERR_SCRIPT_EXECUTION_INTERRUPTED]: ${evalue}`] };
}

function textOf(error) {
	return isError(error) ? join(tracebackOf(error), '\n') : textOfValue(error);
}

module.exports = { Refusal, describe, refused, interrupted, textOf, stackOf };
