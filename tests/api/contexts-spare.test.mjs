// SPDX-License-Identifier: Apache-2.0
// Spare Nodes: started after the first JavaScript or TypeScript context, taken by the next, and never in anybody's way.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { context, run } from '../lib/code.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { envelope } from '../lib/expect.mjs';
import { until } from '../lib/wait.mjs';

const IDLE = { flags: { 'interpreter.spare_idle': 8 } };
const KERNELS = 'for p in /proc/[0-9]*; do tr "\\0" " " <$p/cmdline 2>/dev/null | grep -q kernel.cjs && basename $p; done; true';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

/** Process ids of all Nodes of contexts, taken or not. */
const kernels = async box => (await box.out(KERNELS)).split('\n').filter(Boolean);
const settled = (box, count) => until(`${count} kernels`, async () => {
	const found = await kernels(box);
	return found.length === count && found;
});
/** Until they use no more time: a spare has done all that it can do before. */
function rest(box, pids) {
	let before = '', same = 0;
	return until('spares that wait', async () => {
		const now = await box.out(`cut -d' ' -f3,14,15 ${pids.map(pid => `/proc/${pid}/stat`).join(' ')}`);
		same = now === before && !now.includes('R') ? same + 1 : 0;
		before = now;
		return same > 10;
	});
}

const value = async (box, id, code) => (await run(box, id, code)).results[0];
const pidOf = async (box, id) => (await value(box, id, 'process.pid')).text;

test('a spare is there after the first context, is taken by the next, and replaced', async t => {
	const box = await daemon.box(t);
	assert.deepEqual(await kernels(box), []);
	await context(box);
	assert.deepEqual(await kernels(box), [], 'Python needs no Node');
	const first = await pidOf(box, await context(box, { language: 'javascript' }));
	const spare = (await settled(box, 2)).find(pid => pid !== first);
	assert.equal((await box.api('GET', '/api/contexts')).body.contexts.length, 2);
	const id = await context(box, { language: 'typescript' });
	assert.equal(await pidOf(box, id), spare);
	assert.equal((await value(box, id, 'enum E { A = 7 }\nE.A')).text, '7');
	const other = (await settled(box, 3)).find(pid => pid !== first && pid !== spare);
	const restarted = await daemon.api('POST', `/v1/sandboxes/${box.id}/contexts/${id}/restart`);
	assert.equal(restarted.status, 200);
	assert.equal(await pidOf(box, id), other, 'also a context that is restarted takes it');
	assert.equal((await run(box, id, '1')).count, 2);
});

test('a context of a spare has its own directory, variables, clock and limits', async t => {
	const box = await daemon.box(t, { env: { FROM: 'sandbox', BOTH: 'sandbox' } });
	const first = await context(box, { language: 'javascript' });
	const spare = (await settled(box, 2)).find(async pid => pid !== await pidOf(box, first));
	const id = await context(box, { language: 'javascript', cwd: '/tmp', timeout: 3_000, env_vars: { BOTH: 'context', TZ: 'Asia/Kathmandu', EMPTY: '' } });
	assert.ok(spare && (await settled(box, 3)).includes(await pidOf(box, id)));
	const seen = await value(box, id, '[process.cwd(), __dirname, process.env.FROM, process.env.BOTH, process.env.EMPTY, process.env.HOME, new Date(0).getTimezoneOffset(), Intl.DateTimeFormat().resolvedOptions().timeZone, require("child_process").execSync("echo $BOTH $TZ $PWD").toString(), process.argv.length, process.execArgv.length]');
	assert.deepEqual(seen.json.slice(0, 7), ['/tmp', '/tmp', 'sandbox', 'context', '', '/root', -330]);
	assert.match(seen.json[7], /Kathmandu|Katmandu/);
	assert.deepEqual(seen.json.slice(8), ['context Asia/Kathmandu /tmp\n', 2, 0]);
	assert.equal((await run(box, id, 'while (true) {}')).error.ename, 'TimeoutError');
	envelope(await box.api('POST', '/api/contexts', { language: 'javascript', cwd: '/not/there' }), 400, 'VALIDATION_FAILED');
});

test('variables that node reads when it starts are true, too', async t => {
	const box = await daemon.box(t);
	await context(box, { language: 'javascript' });
	const waiting = await settled(box, 2);
	const id = await context(box, { language: 'javascript', env_vars: { NODE_OPTIONS: '--stack-trace-limit=3', LC_ALL: 'de_DE.UTF-8' } });
	assert.ok(!waiting.includes(await pidOf(box, id)), 'it was started');
	assert.equal((await value(box, id, 'Error.stackTraceLimit')).text, '3');
	assert.equal((await value(box, id, 'Intl.DateTimeFormat().resolvedOptions().locale')).text, "'de-DE'");
});

test('a spare of a node that was replaced is not used, and nobody notices', async t => {
	const box = await daemon.box(t);
	await context(box, { language: 'javascript' });
	const waiting = await settled(box, 2);
	await rest(box, waiting);
	await box.out('printf \'#!/bin/sh\\nexec %s "$@"\\n\' "$(command -v node)" > /usr/local/sbin/node; chmod +x /usr/local/sbin/node');
	const id = await context(box, { language: 'javascript' });
	assert.ok(!waiting.includes(await pidOf(box, id)));
	const next = await settled(box, 3);
	assert.ok(next.includes(await pidOf(box, await context(box, { language: 'javascript' }))), 'the next spare is the new one');
});

test('a spare that was killed is not missed', async t => {
	const box = await daemon.box(t);
	const first = await pidOf(box, await context(box, { language: 'javascript' }));
	const spare = (await settled(box, 2)).find(pid => pid !== first);
	await box.out(`kill -9 ${spare}`);
	const id = await context(box, { language: 'javascript' });
	assert.equal((await value(box, id, '1 + 1')).text, '2');
	const stopped = (await settled(box, 3)).find(pid => pid !== first);
	assert.ok(stopped);
});

test('it ends when nobody has needed it for a while, and keeps no sandbox awake', async t => {
	const own = await startDaemon(IDLE);
	t.after(() => own.stop());
	const box = await own.box();
	const first = await pidOf(box, await context(box, { language: 'javascript' }));
	await settled(box, 2);
	assert.deepEqual(await settled(box, 1), [first]);
	await context(box, { language: 'javascript' });
	await settled(box, 3);
	const sleepy = await daemon.box(t, {});
	await context(sleepy, { language: 'javascript' });
	await sleepy.stop();
	const awake = await sleepy.open('sleep 1000', { sessionId: '__DISABLE_SESSION__' }); // however long it takes to look
	t.after(() => awake.destroy());
	await context(sleepy, { language: 'javascript' });
	await settled(sleepy, 2);
});

test('it ends when memory gets short', async t => {
	const box = await daemon.box(t, { type: 'lite' });
	const first = await pidOf(box, await context(box, { language: 'javascript' }));
	const spare = (await settled(box, 2)).find(pid => pid !== first);
	// In steps, and no further than it takes: all at once may end the hog itself before anybody has looked.
	await box.put('/tmp/hog.py', Buffer.from(`import os, time
x = [bytearray(b"x" * (128 << 20))]
while os.path.exists("/proc/${spare}"):
    if len(x) < 14: x.append(bytearray(b"x" * (4 << 20)))
    time.sleep(0.5)
time.sleep(1000)
`));
	const hog = await box.open('exec python3 /tmp/hog.py', { sessionId: '__DISABLE_SESSION__' });
	t.after(() => hog.destroy());
	assert.deepEqual(await settled(box, 1), [first]);
});

test('it goes with a siltd that dies, and contexts stay', async t => {
	const box = await daemon.box(t);
	const id = await context(box, { language: 'javascript' });
	const first = await pidOf(box, id);
	await settled(box, 2);
	const pid = daemon.siltd();
	process.kill(pid, 'SIGKILL');
	await until('another siltd', () => daemon.programs('siltd').some(p => p !== pid));
	await daemon.healthy();
	assert.deepEqual(await settled(box, 1), [first]);
	assert.equal(await pidOf(box, id), first);
	await context(box, { language: 'javascript' });
	await settled(box, 3);
});

test('without spares every context starts its own', async t => {
	const own = await startDaemon({ flags: { 'interpreter.spares': 0 } });
	t.after(() => own.stop());
	const box = await own.box();
	const pids = [];
	for (let i = 0; i < 2; i++)
		pids.push(await pidOf(box, await context(box, { language: 'javascript' })));
	assert.deepEqual((await kernels(box)).sort(), pids.sort());
});
