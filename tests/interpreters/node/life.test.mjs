// SPDX-License-Identifier: Apache-2.0
// The life of a kernel: how it begins and all the ways it ends.

import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { within } from '../../lib/wait.mjs';
import { Kernel } from './kernel.mjs';

const ended = kernel => within(60_000, 'the end of the process', kernel.ended);

test('cwd and environment are those of the context', async t => {
	const kernel = await Kernel.start(t, { cwd: '/usr', env: { NAME: 'välue', TZ: 'Asia/Tokyo' } });
	assert.equal((await kernel.run('[process.cwd(), process.env.NAME, new Date(0).getHours()].join()')).result.text, "'/usr,välue,9'");
	assert.equal((await kernel.run('require("child_process").execSync("echo $NAME; pwd").toString()')).result.text, "'välue\\n/usr\\n'");
});

test('a directory that is not there is told', async t => {
	const kernel = await Kernel.start(t, { cwd: '/nowhere' });
	assert.equal(kernel.first.t, 'failed');
	assert.equal(kernel.first.code, 'cwd');
	assert.match(kernel.first.why, /\/nowhere.*ENOENT/);
	assert.equal(await ended(kernel), 1);
});

test('process.exit() ends the context and tells its status, after the handlers of exit', async t => {
	const kernel = await Kernel.start(t);
	const { end, stdout } = await kernel.run('process.on("exit", c => console.log("bye", c)); process.exit(3)');
	assert.deepEqual(end, { t: 'exit', id: 1, status: 3 });
	assert.equal(stdout, 'bye 3\n');
	assert.equal(await ended(kernel), 3);
});

test('process.exit() in a timer after its run, without a status', async t => {
	const kernel = await Kernel.start(t);
	const told = kernel.message('exit', m => m.t === 'exit');
	await kernel.run('setTimeout(() => process.exit(), 1); 0');
	assert.deepEqual(await told, { t: 'exit', status: 0 });
	assert.equal(await ended(kernel), 0);
});

test('quit and the end of control end the process after the handlers of exit', async t => {
	for (const leave of [kernel => kernel.send({ t: 'quit' }), kernel => kernel.control.end()]) {
		const kernel = await Kernel.start(t);
		await kernel.run('process.on("exit", () => fs.writeFileSync("left", "")); setInterval(() => 0, 1000); 0');
		leave(kernel);
		assert.equal(await ended(kernel), 0);
		assert.ok(existsSync(join(kernel.cwd, 'left')));
		assert.ok(!kernel.events.some(event => event.t === 'exit'));
	}
});

test('a crash is the end of control and of this process only', async t => {
	const kernel = await Kernel.start(t);
	void kernel.begin('process.kill(process.pid, "SIGKILL")').over().catch(() => undefined);
	assert.equal(await ended(kernel), 'SIGKILL');
});

test('a process that waits for its context is the same afterwards', async t => {
	for (const args of [[], ['javascript'], ['typescript']]) {
		const kernel = new Kernel({ args });
		t.after(() => kernel.end());
		const ready = kernel.message('ready', m => m.t === 'ready');
		process.kill(kernel.child.pid, 0);
		setImmediate(() => kernel.send({ t: 'init', cwd: '/', env: {}, language: args[0] ?? 'javascript', budget: { result: 1000 } }));
		await ready;
		const { end, result } = await kernel.run('[_, process.cwd(), process.argv.length].join()');
		assert.deepEqual([end.count, result.text], [1, "',/,2'"]);
	}
});

test('where node has closed its old door to the inspector, and V8 its hook, cells run all the same', async t => {
	const directory = new Kernel();
	t.after(() => directory.end());
	const preload = join(directory.temporary, 'preload.cjs');
	writeFileSync(preload, 'const { dlopen } = process;\nprocess.binding = undefined;\nprocess.dlopen = (module, file) => { dlopen(module, file); module.exports.onPromise = () => false; };\n');
	const kernel = await Kernel.start(t, { flags: ['--require', preload] });
	assert.equal((await kernel.run('const v = await Promise.resolve(4); v')).result.text, '4');
	assert.equal((await kernel.run('let = ;')).error.ename, 'SyntaxError');
	assert.equal((await kernel.run('throw new RangeError("far")')).error.ename, 'RangeError');
	assert.equal((await kernel.run('v + 1')).result.text, '5');
});

test('nobody is warned of what the kernel uses, and hooks of user code stay', async t => {
	const kernel = await Kernel.start(t, { flags: ['--pending-deprecation'] });
	const first = await kernel.run('let made = 0; v8.promiseHooks.onInit(() => { made++; }); 1');
	assert.deepEqual([first.stderr, first.result.text], ['', '1']);
	assert.equal((await kernel.run('made = 0; await Promise.resolve(); made > 0')).result.text, 'true');
	assert.equal((await kernel.run('made = 0; new Promise(() => {}); made')).result.text, '1');
	assert.equal(kernel.stderr, '');
});
