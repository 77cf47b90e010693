// SPDX-License-Identifier: Apache-2.0
// control: what the kernel says to siltd, a line each, and how the process ends.
'use strict';

const { stringify, replace, indexOf, keys, isArray, apply } = require('./own.cjs');

/* Not require, which looks for much before it does just this. */
function load(file) {
	const module = { exports: {} };
	process.dlopen(module, file);
	return module.exports;
}

const native = load(`${__dirname}/native.node`);

const reallyExit = process.reallyExit;
const capture = process.setUncaughtExceptionCaptureCallback.bind(process);
const LONE_SURROGATE = /\\(?:\\|u[dD][89a-fA-F][0-9a-fA-F]{2})/g;
const SURROGATE = '\\ud';

let said = () => undefined; // the id of the run that is under way
let leaving = false;
let hushed = false; // lines are made, and not sent

/** JSON text that is put into a line as it is. */
class Raw {
	constructor(text) {
		this.text = text;
	}
}

/* Half characters are legal in JavaScript and nowhere else. stringify writes them, and nothing else, as \ud…. */
function wholeCharacters(json) {
	if (indexOf(json, SURROGATE) < 0)
		return json;
	return replace(json, LONE_SURROGATE, match => match === '\\\\' ? match : '\\ufffd');
}

const quote = text => wholeCharacters(stringify(text));

function list(texts) {
	let json = '';
	for (let i = 0; i < texts.length; i++)
		json += (i ? ',' : '') + quote(texts[i]);
	return `[${json}]`;
}

/* Not stringify for the whole: a toJSON that user code gave to Object.prototype would be asked. */
function encode(value) {
	if (typeof value === 'string')
		return quote(value);
	if (value instanceof Raw)
		return value.text;
	return isArray(value) ? list(value) : String(value);
}

function send(message) {
	const names = keys(message);
	let json = '';
	for (let i = 0; i < names.length; i++)
		if (message[names[i]] !== undefined)
			json += `${json && ','}"${names[i]}":${encode(message[names[i]])}`;
	if (!hushed && native.send(`{${json}}`) !== 0)
		leave(1); // nobody is there any more
}

/* Handlers of 'exit' run; nobody has to be told. */
function leave(status) {
	leaving = true;
	process.exit(status);
}

/* Where every process.exit() ends, after the handlers of 'exit'. */
process.reallyExit = status => {
	if (!leaving) {
		leaving = true;
		send({ t: 'exit', id: said(), status: status & 255 });
	}
	native.stop();
	apply(reallyExit, process, [status]);
};

/* No listener of user code hears of it; if user code has taken the only place for that, the books stay as they are. */
function balance() {
	try {
		capture(() => undefined);
	} catch {
		return;
	}
	native.unwind();
	capture(null);
}

function open(requests, lines, onLine, onInterrupt) {
	const error = native.open(requests, lines, onLine, onInterrupt);
	if (error)
		throw new Error(`control descriptors: error ${error}`);
}

module.exports = {
	Raw, open, send, leave, wholeCharacters, balance,
	call: native.call,
	watch: native.watch,
	pause: native.pause,
	shield: native.shield,
	rest: native.rest,
	forget: native.forget,
	guard: native.guard,
	write: native.write,
	onPromise: native.onPromise,
	awaitPromise: native.awaitPromise,
	hush(on) {
		hushed = on;
	},
	onExitSay(id) {
		said = id;
	},
};
