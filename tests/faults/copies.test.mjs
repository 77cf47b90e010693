// SPDX-License-Identifier: Apache-2.0
// Each program is killed in the middle of snapshots and forks: afterwards all of a fork is there and works, or none of it, and nothing is left over.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { Box } from '../lib/box.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { namesIn } from '../lib/host.mjs';
import { until } from '../lib/wait.mjs';

const ROUNDS = 6;
const sleep = ms => new Promise(resolve => { setTimeout(resolve, ms); }); // where in the work the kill falls

async function round(daemon, box, program, n) {
	const ids = [1, 2, 3].map(i => `${program}-${n}-${i}`);
	const ask = (method, target, body) => daemon.api(method, target, body, { deadline: 20_000 }).catch(() => ({ status: 0 }));
	const asked = [ask('POST', `/v1/sandboxes/${box.id}/fork`, { ids }), ask('POST', `/v1/sandboxes/${box.id}/snapshots`, { name: `${program}-${n}` }),
		ask('POST', '/v1/sandboxes', { id: `${program}-${n}-from`, from: { sandbox: box.id } })];
	await sleep(n * 1.5);
	for (const pid of daemon.programs(program))
		process.kill(pid, 'SIGKILL');
	const [forked, taken, made] = await Promise.all(asked);
	await daemon.healthy();
	/* Until silt-priv is back, a start is answered with a code that says: try again. */
	const works = id => until(`${id} works`, async () => (await new Box(daemon, id).exec('cat /workspace/file')).body.stdout === 'kept\n');
	const known = (await daemon.api('GET', '/v1/sandboxes')).body.sandboxes.map(s => s.id);
	const there = ids.filter(id => known.includes(id));
	assert.ok(there.length === 0 || there.length === 3, `all or none of ${ids}: ${there}`);
	if (forked.status === 201)
		assert.equal(there.length, 3, 'what was answered is there');
	if (made.status === 201)
		assert.ok(known.includes(`${program}-${n}-from`));
	for (const id of known.filter(id => id !== box.id))
		await works(id);
	const snapshots = (await daemon.api('GET', '/v1/snapshots')).body.snapshots;
	if (taken.status === 201)
		assert.ok(snapshots.some(s => s.id === taken.body.id), 'what was answered is there');
	for (const snapshot of snapshots) {
		const copy = await until('a copy is made', async () => { const made = await daemon.api('POST', '/v1/sandboxes', { from: { snapshot: snapshot.id } }); return made.status === 201 && made.body.id; });
		await works(copy);
		known.push(copy);
		await daemon.api('DELETE', `/v1/snapshots/${snapshot.id}`);
	}
	await Promise.all(known.filter(id => id !== box.id).map(id => daemon.api('DELETE', `/v1/sandboxes/${id}`)));
}

for (const program of ['siltd', 'silt-priv'])
	test(`${program} is killed in the middle of snapshots and forks`, async t => {
		const daemon = await startDaemon({ flags: { 'pool.sandboxes': 0 } });
		t.after(() => daemon.stop());
		const box = await daemon.box(null, {});
		await box.out('echo kept > /workspace/file; mkdir /opt/many; cd /opt/many; seq 500 | xargs touch');
		for (let n = 0; n < ROUNDS; n++)
			await round(daemon, box, program, n);
		const names = directory => namesIn(path.join(daemon.state, 'pool', directory), daemon.pid);
		await until('no layer is left', () => names('l').length === 0);
		await until('one volume is left', () => names('s').length === 1);
		await until('one record of a sandbox is left', () => names('r').filter(name => /^\d+$/.test(name)).length === 1);
	});
