// SPDX-License-Identifier: Apache-2.0
// output: process.stdout, process.stderr and console. Everything is written at once and in order, so that nothing is
// left behind when a line on control says that a run is over.
'use strict';

const { keys, define, bytes, test } = require('./own.cjs');
const { write } = require('./control.cjs');

const { isView } = ArrayBuffer;
const nextTick = process.nextTick;
const UTF8 = /^utf-?8$/i;

/* A descriptor that user code has closed takes nothing, as a terminal that has gone. */
function writeChunk(fd, chunk, encoding) {
	if (typeof chunk === 'string')
		write(fd, encoding === undefined || test(UTF8, encoding) ? chunk : bytes(chunk, encoding));
	else if (isView(chunk))
		write(fd, chunk);
	else
		throw new TypeError('The "chunk" argument must be of type string or an instance of Buffer, TypedArray, or DataView');
}

/* Instead of Writable's own, whose books would stay open for ever when SIGINT stops user code in the middle of it. */
function writerOf(fd) {
	return function (chunk, encoding, written) {
		if (typeof encoding === 'function')
			[encoding, written] = [undefined, encoding];
		writeChunk(fd, chunk, encoding ?? undefined);
		if (typeof written === 'function')
			nextTick(written);
		return true;
	};
}

/* As node's own: the process has output as long as it lives. */
function end(chunk, encoding, ended) {
	const callback = [chunk, encoding, ended].find(each => typeof each === 'function');
	if (chunk !== undefined && chunk !== null && chunk !== callback)
		this.write(chunk, typeof encoding === 'string' ? encoding : undefined);
	if (callback)
		nextTick(callback);
	return this;
}

function makeStream(fd) {
	const { Writable } = require('stream');
	const stream = new Writable();
	stream.write = writerOf(fd);
	stream.end = end;
	stream.destroy = stream.destroySoon = () => stream;
	return Object.assign(stream, { fd, _type: 'pipe', _isStdio: true });
}

/* The stream, which node needs a millisecond to load, comes when user code asks for it. From then on console goes
 * through it, too, because its write may be replaced. */
function provideStream(name, fd) {
	let stream = null;
	define(process, name, { configurable: true, enumerable: true, get: () => stream ??= makeStream(fd) });
	return { write: text => stream ? stream.write(text) : write(fd, text) };
}

/* The global console also tells the inspector, which keeps what was logged; a Console of one's own does not. */
function install() {
	const plain = new console.Console({ stdout: provideStream('stdout', 1), stderr: provideStream('stderr', 2), ignoreErrors: false });
	const names = keys(plain);
	for (let i = 0; i < names.length; i++)
		console[names[i]] = plain[names[i]];
}

module.exports = { install, complain: text => write(2, text) };
