// SPDX-License-Identifier: Apache-2.0
// SIGINT: every kind of endless code ends, and what the context knows stays.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Kernel } from './kernel.mjs';

const START = 'process.stdout.write("started");';
const FOREVER = 'new Promise(() => undefined)';
const ENDLESS = {
	'a loop': `${START} while (true);`,
	'a loop that catches everything': `${START} for (;;) { try { for (;;); } catch {} finally { } }`,
	'a flood': `${START} for (;;) console.log("flood");`,
	'a regular expression': `${START} /^(a+)+$/.test("a".repeat(50) + "b")`,
	'a promise that never settles': `${START} await ${FOREVER}`,
	'a promise as last value': `${START} ${FOREVER}`,
	'a loop after an await': `await 1; ${START} while (true);`,
	'a loop after a timer': `await new Promise(r => setTimeout(r, 1)); ${START} while (true);`,
	'a loop after input and output': `await fs.promises.readFile("/etc/passwd"); ${START} while (true);`,
	'a loop in a timer': `setTimeout(() => { ${START} while (true); }, 1); await ${FOREVER}`,
	'a loop in an immediate': `setImmediate(() => { ${START} while (true); }); await ${FOREVER}`,
	'a loop in a tick': `process.nextTick(() => { ${START} while (true); }); await ${FOREVER}`,
	'microtasks that never end': `${START} for (;;) await 0;`,
	'a chain of timers': `${START} while (true) await new Promise(r => setTimeout(r, 1));`,
	'a sleep of the whole thread': `${START} Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)`,
	'a child that sleeps': 'require("child_process").execSync("echo started; exec sleep 60", {stdio: "inherit"})',
	'a getter of the result': `${START} ({ get then() { while (true); } })`,
	'a result that shows itself for ever': `${START} ({ toJSON() { while (true); } })`,
	'the description of an error': `${START} throw { get message() { while (true); } }`,
};

for (const [what, code] of Object.entries(ENDLESS))
	test(`SIGINT ends ${what}, and state is kept`, async t => {
		const kernel = await Kernel.start(t);
		await kernel.run('const kept = {value: 1}');
		const { error, end } = await kernel.interrupt(code);
		assert.equal(end.t, 'done');
		assert.equal(error.ename, what === 'a child that sleeps' ? error.ename : 'ERR_SCRIPT_EXECUTION_INTERRUPTED');
		const after = await kernel.run('console.log("on"); await new Promise(r => setTimeout(r, 1)); kept.value + 1');
		assert.equal(after.result.text, '2');
		assert.ok(after.stdout.endsWith('on\n'));
	});

test('TypeScript is interrupted the same way', async t => {
	const kernel = await Kernel.start(t, { language: 'typescript' });
	assert.equal((await kernel.interrupt(`const n: number = 1; ${START} while (true);`)).error.ename, 'ERR_SCRIPT_EXECUTION_INTERRUPTED');
	assert.equal((await kernel.run('n')).result.text, '1');
});

test('SIGINT while idle does nothing', async t => {
	const kernel = await Kernel.start(t);
	await kernel.run('const kept = 1');
	for (let i = 0; i < 20; i++) {
		process.kill(kernel.child.pid, 'SIGINT');
		assert.equal((await kernel.run('kept')).end.t, 'done');
	}
	assert.equal((await kernel.run('kept')).result?.text ?? '1', '1');
});

test('timers of an interrupted run stop, those of an earlier run go on', async t => {
	const kernel = await Kernel.start(t);
	await kernel.run('let early = 0, late = 0; (function again() { early++; setTimeout(again, 1) })()');
	await kernel.interrupt(`setInterval(() => late++, 1); (function again() { late++; setImmediate(again) })(); ${START} await ${FOREVER}`);
	const before = (await kernel.run('[early, late]')).result.json;
	const after = (await kernel.run('const from = early; while (early < from + 5) await new Promise(r => setTimeout(r, 1)); [early, late]')).result.json;
	assert.equal(after[1], before[1]);
	assert.ok(after[0] > before[0]);
});

test('a second interrupt finds the next run, and only that', async t => {
	const kernel = await Kernel.start(t);
	for (let i = 0; i < 5; i++) {
		assert.ok((await kernel.interrupt(`${START} while (true);`)).error);
		assert.equal((await kernel.run('1')).result.text, '1');
		assert.ok((await kernel.interrupt(`${START} await ${FOREVER}`)).error);
		assert.equal((await kernel.run('2')).result.text, '2');
	}
});

test('a timer that blocks the context after its run is stopped when the next run is interrupted', async t => {
	const kernel = await Kernel.start(t);
	const blocked = kernel.message('the timer', event => event.stdout?.includes('started'));
	await kernel.run(`setTimeout(() => { ${START} while (true); }, 1); 0`);
	await blocked;
	const run = kernel.begin('"never begun"');
	const again = setInterval(() => process.kill(kernel.child.pid, 'SIGINT'), 100); // until its line has arrived
	const { end } = await run.over();
	clearInterval(again);
	assert.equal(end.t, 'done');
	assert.equal((await kernel.run('5')).end.t, 'done');
});

test('listeners of user code do not take SIGINT away', async t => {
	const kernel = await Kernel.start(t);
	assert.ok((await kernel.interrupt(`process.on("SIGINT", () => process.exit(9)); ${START} while (true);`)).error);
	assert.ok((await kernel.interrupt(`process.removeAllListeners("SIGINT"); ${START} while (true);`)).error);
	assert.equal((await kernel.run('1')).result.text, '1');
});
