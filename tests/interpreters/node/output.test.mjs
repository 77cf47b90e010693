// SPDX-License-Identifier: Apache-2.0
// Output: which stream, when, in which order.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Kernel } from './kernel.mjs';

test('each method of console writes to its stream', async t => {
	const kernel = await Kernel.start(t);
	const { stdout, stderr } = await kernel.run('console.log("log %d", 1, {a: 1}); console.info("info"); console.debug("debug"); console.error("error"); console.warn("warn"); console.assert(false, "assert"); console.table([{a: 1}]); console.group("g"); console.log("in"); console.groupEnd(); console.count()');
	assert.match(stdout, /^log 1 \{ a: 1 \}\ninfo\ndebug\n┌[^]*\ng\n {2}in\ndefault: 1\n$/);
	assert.equal(stderr, 'error\nwarn\nAssertion failed: assert\n');
	const trace = await kernel.run('function where() { console.trace("here") }\nwhere()');
	assert.equal(trace.stderr, 'Trace: here\n    at where (cell-2.js:1:28)\n    at cell-2.js:2:1\n');
});

test('output comes while the run goes on, also without a newline', async t => {
	const kernel = await Kernel.start(t);
	const first = kernel.message('the first dot', event => event.stdout === '.');
	const run = kernel.begin('process.stdout.write("."); await new Promise(r => { globalThis.go = r; setTimeout(r, 20000) })');
	await first;
	process.kill(kernel.child.pid, 'SIGINT');
	assert.ok((await run.over()).error);
});

test('output is there before the result that follows it', async t => {
	const kernel = await Kernel.start(t);
	const { events } = await kernel.run('process.stdout.write("a"); display(1); console.log("b"); display(2); require("child_process").execSync("echo c; echo d >&2", {stdio: "inherit"}); 3');
	const written = { stdout: '', stderr: '' };
	const before = {}; // what had been written when a result came; later output may have come early, and two pipes have no order
	for (const event of events) {
		written.stdout += event.stdout ?? '';
		written.stderr += event.stderr ?? '';
		if (event.t === 'result')
			before[event.text] = { ...written };
	}
	assert.ok(before[1].stdout.startsWith('a'), before[1].stdout);
	assert.ok(before[2].stdout.startsWith('ab\n'), before[2].stdout);
	assert.deepEqual(before[3], { stdout: 'ab\nc\n', stderr: 'd\n' });
});

test('large output is complete', async t => {
	const kernel = await Kernel.start(t);
	const { stdout } = await kernel.run('console.log("x".repeat(3e6)); process.stdout.write(Buffer.alloc(1e6, "y")); process.stdout.write("ÿ", "latin1"); 1');
	assert.equal(stdout.length, 3e6 + 1 + 1e6 + 1);
});

test('children and worker threads write to the same streams', async t => {
	const kernel = await Kernel.start(t);
	const { stdout } = await kernel.run(`
		const { spawn } = require("child_process"), { Worker } = require("worker_threads");
		console.log("first");
		await new Promise(r => spawn("sh", ["-c", "echo child"], {stdio: ["ignore", process.stdout, "inherit"]}).on("exit", r));
		await new Promise(r => new Worker('console.log("worker")', {eval: true}).on("exit", r));
		console.log("last")`);
	assert.equal(stdout, 'first\nchild\nworker\nlast\n');
});

test('a pipe that a child made non-blocking loses nothing', async t => {
	const kernel = await Kernel.start(t);
	const nonblocking = 'import fcntl, os; fcntl.fcntl(1, fcntl.F_SETFL, fcntl.fcntl(1, fcntl.F_GETFL) | os.O_NONBLOCK)';
	const { stdout } = await kernel.run(`require("child_process").execFileSync("python3", ["-c", ${JSON.stringify(nonblocking)}], {stdio: "inherit"}); console.log("x".repeat(2e6)); 1`);
	assert.equal(stdout.length, 2e6 + 1);
});

test('ended and piped-into streams still write', async t => {
	const kernel = await Kernel.start(t);
	await kernel.run('process.stdout.end("end"); process.stdout.destroy()');
	assert.equal((await kernel.run('console.log("on")')).stdout, 'on\n');
	const piped = 'const {Readable} = require("stream"), {pipeline} = require("stream/promises"); await pipeline(Readable.from(["p"]), process.stdout, {end: false})';
	assert.equal((await kernel.run(piped)).stdout, 'p');
});

test('a replaced process.stdout.write catches console', async t => {
	const kernel = await Kernel.start(t);
	const { stdout, result } = await kernel.run('const seen = [], write = process.stdout.write; process.stdout.write = s => (seen.push(s), true); console.log("caught"); process.stdout.write = write; console.log("free"); seen');
	assert.equal(stdout, 'free\n');
	assert.deepEqual(result.json, ['caught\n']);
});

test('what fails after its run is told on stderr, and the context lives', async t => {
	const kernel = await Kernel.start(t);
	const told = kernel.message('the late error', event => event.stderr?.includes('late'));
	await kernel.run('setTimeout(() => { throw new TypeError("late") }, 1); 0');
	assert.match((await told).stderr, /^Uncaught TypeError: late\n {4}at .*cell-1\.js:1:26/);
	const { stderr } = await kernel.run('Promise.reject(new RangeError("nobody")); Promise.reject("text"); await new Promise(r => setTimeout(r, 5))');
	assert.match(stderr, /^Uncaught RangeError: nobody\n {4}at cell-2\.js:1:16\nUncaught 'text'\n$/);
	await kernel.run('process.on("uncaughtException", e => console.log("mine", e.message))');
	assert.equal((await kernel.run('setTimeout(() => { throw new Error("m") }, 1); await new Promise(r => setTimeout(r, 5))')).stdout, 'mine m\n');
});
