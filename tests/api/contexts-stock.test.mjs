// SPDX-License-Identifier: Apache-2.0
// Interpreters that wait in ready sandboxes for their first context, where the settings say so.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { context, run } from '../lib/code.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import * as host from '../lib/host.mjs';
import { until } from '../lib/wait.mjs';

const POOL = 3;
const FLAGS = { 'pool.sandboxes': POOL, 'interpreter.ready_pythons': 2, 'interpreter.ready_nodes': 1 };
const PROCESSES = name => `for p in /proc/[0-9]*; do tr "\\0" " " <$p/cmdline 2>/dev/null | grep -q ${name} && basename $p; done; true`;

let daemon;
before(async () => {
	daemon = await startDaemon({ warm: true, flags: FLAGS });
	await daemon.warm();
});
after(() => daemon?.stop());

/** Waiting interpreters of this instance, as the machine sees them: {python, node}. */
function waiting(of) {
	const all = host.processesOf(of.instance).filter(p => p.nsPids.length > 1 && p.state !== 'Z').map(p => p.command.join(' '));
	return { python: all.filter(command => command.includes('python/kernel')).length, node: all.filter(command => command.includes('kernel.cjs')).length };
}

const stocked = (of, python, node) => until(`${python} Pythons and ${node} Nodes that wait`, () => {
	const now = waiting(of);
	return now.python === python && now.node === node;
}, 60_000);

const inside = async (box, name) => (await box.out(PROCESSES(name))).split('\n').filter(Boolean);
const value = async (box, id, code) => (await run(box, id, code)).results[0];

test('the first contexts of a sandbox are the interpreters that waited in it, and the next sandboxes get others', async t => {
	await stocked(daemon, 2, 1);
	const box = await daemon.box(t);
	const [python, ...more] = await inside(box, 'python/kernel');
	const [node] = await inside(box, 'kernel.cjs');
	assert.deepEqual(more, []);
	assert.deepEqual((await box.api('GET', '/api/contexts')).body.contexts, [], 'nobody has made one');
	const first = await context(box, { cwd: '/tmp', env_vars: { A: 'b' } });
	assert.deepEqual((await value(box, first, 'import os; [str(os.getpid()), os.getcwd(), os.environ["A"], os.environ["HOME"]]')).json, [python, '/tmp', 'b', '/root']);
	const second = await context(box);
	assert.notEqual((await value(box, second, 'import os; str(os.getpid())')).text, `'${python}'`);
	assert.equal((await value(box, await context(box, { language: 'typescript' }), 'String(process.pid)')).text, `'${node}'`);
	await box.destroy();
	await stocked(daemon, 2, 1);
});

test('no two of them draw the same numbers', async t => {
	await stocked(daemon, 2, 1);
	const boxes = [await daemon.box(t), await daemon.box(t)];
	const code = 'import numpy, random, tempfile, uuid\n[numpy.random.rand(), random.random(), tempfile.mktemp(), str(uuid.uuid4())]';
	const drawn = [];
	for (const box of boxes) {
		const [python] = await inside(box, 'python/kernel');
		const id = await context(box);
		assert.equal((await value(box, id, 'import os; str(os.getpid())')).text, `'${python}'`);
		drawn.push(...(await value(box, id, code)).json);
	}
	assert.equal(new Set(drawn).size, 8);
});

test('the first cell sees the same names in a context that waited as in one that did not', async t => {
	await stocked(daemon, 2, 1);
	const box = await daemon.box(t);
	const [python] = await inside(box, 'python/kernel');
	const names = 'import os\n[os.getpid(), sorted(name for name in globals()), repr(_), repr(__), len(Out), len(In)]';
	const [pid, ...waited] = (await value(box, await context(box), names)).json;
	const [other, ...forked] = (await value(box, await context(box), names)).json;
	assert.deepEqual([String(pid), waited], [python, forked]);
	assert.notEqual(pid, other);
});

test('variables that are for the start of a program get an interpreter that is started with them', async t => {
	await stocked(daemon, 2, 1);
	const box = await daemon.box(t, { env: { LANG: 'C', NODE_OPTIONS: '--stack-trace-limit=4' } });
	const before = [...await inside(box, 'python/kernel'), ...await inside(box, 'kernel.cjs')];
	assert.equal(before.length, 2);
	assert.ok(!before.includes((await value(box, await context(box), 'import os; os.getpid()')).text));
	const id = await context(box, { language: 'javascript' });
	assert.ok(!before.includes((await value(box, id, 'process.pid')).text));
	assert.equal((await value(box, id, 'Error.stackTraceLimit')).text, '4');
});

test('a package that was changed before the first context makes it start anew', async t => {
	await stocked(daemon, 2, 1);
	const box = await daemon.box(t);
	const [python] = await inside(box, 'python/kernel');
	await box.out('touch /usr/lib/python3/dist-packages/pandas/__init__.py');
	assert.notEqual((await value(box, await context(box), 'import os; str(os.getpid())')).text, `'${python}'`);
	await until('its end', async () => !(await inside(box, 'python/kernel')).includes(python));
});

test('one that was killed before the first context is not missed', async t => {
	await stocked(daemon, 2, 1);
	const box = await daemon.box(t);
	await box.out(`kill -9 ${(await inside(box, 'python/kernel'))[0]} ${(await inside(box, 'kernel.cjs'))[0]}`);
	assert.equal((await value(box, await context(box), '1 + 1')).text, '2');
	assert.equal((await value(box, await context(box, { language: 'javascript' }), '1 + 1')).text, '2');
});

test('a siltd that dies takes them along, and the next one puts others there', async () => {
	await stocked(daemon, 2, 1);
	const before = host.processesOf(daemon.instance).filter(p => p.command.join(' ').includes('python/kernel') && p.nsPids.length > 1).map(p => p.pid);
	const pid = daemon.siltd();
	process.kill(pid, 'SIGKILL');
	await until('another siltd', () => daemon.programs('siltd').some(p => p !== pid));
	await daemon.healthy();
	await until('others', () => {
		const now = host.processesOf(daemon.instance).filter(p => p.command.join(' ').includes('python/kernel') && p.nsPids.length > 1 && p.state !== 'Z').map(p => p.pid);
		return now.length === 2 && !now.some(each => before.includes(each));
	}, 60_000);
	await stocked(daemon, 2, 1);
	const box = await daemon.box();
	assert.equal((await value(box, await context(box), '1 + 1')).text, '2');
	await box.destroy();
});

test('they end when nobody has made a context for a while', async t => {
	const own = await startDaemon({ warm: true, flags: { ...FLAGS, 'interpreter.spare_idle': 5 } });
	t.after(() => own.stop());
	await own.warm();
	await stocked(own, 2, 1);
	const box = await own.box();
	assert.equal((await inside(box, 'python/kernel')).length, 1);
	await until('their end', async () => (await inside(box, 'python/kernel')).length + (await inside(box, 'kernel.cjs')).length === 0, 60_000);
	assert.equal((await value(box, await context(box), '1 + 1')).text, '2');
});

test('by default ready sandboxes hold none', async t => {
	const own = await startDaemon({ warm: true });
	t.after(() => own.stop());
	await own.warm();
	const box = await own.box();
	assert.deepEqual([await inside(box, 'python/kernel'), await inside(box, 'kernel.cjs')], [[], []]);
	assert.deepEqual(waiting(own), { python: 0, node: 0 });
});
