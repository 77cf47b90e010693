// SPDX-License-Identifier: Apache-2.0
// The disk below the state and run directories has not a byte left, and whatever comes free there is taken at once: siltd serves, also after it
// was killed. What would add to its database is refused once its own reserve is used up; nothing that was acknowledged is lost.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { Box } from '../lib/box.mjs';
import { BUILD, startDaemon } from '../lib/daemon.mjs';
import { makeDisk } from '../lib/disk.mjs';
import { refused } from '../lib/expect.mjs';
import { until } from '../lib/wait.mjs';

const ROW = 32 << 10; // what a sandbox's variables add to the database, so that its reserve is used up soon

const health = daemon => daemon.api('GET', '/healthz', undefined, { token: false });
const ids = async daemon => (await daemon.api('GET', '/v1/sandboxes?limit=1000')).body.sandboxes.map(s => s.id).toSorted();

/** What a file system counts as free and gives to nobody is a block or two. */
const fillUp = disk => until('not a block is free', () => {
	disk.fillAll();
	return disk.free() < 1 / 64;
});

async function killSiltd(daemon) {
	const before = daemon.siltd();
	process.kill(before, 'SIGKILL');
	await until('another siltd', () => daemon.programs('siltd').some(pid => pid !== before), 60_000);
	await daemon.healthy();
}

/** Creates sandboxes until one is refused; answers the ids of those that were acknowledged. */
async function createUntilRefused(daemon, prefix) {
	const made = [];
	for (let i = 0; i < 200; i++) {
		const id = `${prefix}${i}`;
		const answer = await daemon.api('POST', '/v1/sandboxes', { id, type: 'lite', labels: { number: String(i) }, env: { LONG: 'x'.repeat(ROW) } });
		if (answer.status !== 201) {
			refused(answer, 507, 'DISK_FULL');
			assert.match(answer.body.message, /database/);
			return made;
		}
		made.push(id);
	}
	assert.fail('200 sandboxes were stored on a full disk');
}

const flags = { 'disk.reserve': '16M', 'disk.pool': '512M', 'pool.sandboxes': 1 };

test('what was acknowledged on a full disk is there after a restart, what was refused is not', { timeout: 300_000 }, async t => {
	const disk = makeDisk(t, 'ext4', 1024);
	const daemon = await startDaemon({ state: disk.state, flags });
	disk.usedBy(() => daemon.stop());
	await fillUp(disk);
	const made = await createUntilRefused(daemon, 'b');
	disk.empty();
	await killSiltd(daemon);
	assert.deepEqual(await ids(daemon), made.toSorted());
	for (const id of made)
		await new Box(daemon, id).out('true');
});

test('not a byte left below state and run: it serves, refuses what it cannot store, and recovers by itself', { timeout: 400_000 }, async t => {
	const disk = makeDisk(t, 'ext4', 1024);
	const options = { state: disk.state, run: path.join(disk.directory, 'run'), flags };
	let daemon = await startDaemon(options);
	disk.usedBy(() => daemon.stop());
	const box = await daemon.box(undefined, { id: 'kept', type: 'basic' });
	await box.out('echo content > /workspace/file; X=1', { sessionId: 'one' });
	const { body: { id: process } } = await daemon.api('POST', '/v1/sandboxes/kept/processes', { command: 'sleep 1000' });
	assert.equal((await daemon.api('POST', '/v1/sandboxes/kept/ports', { port: 8000 })).status, 201);

	/** Everything that needs no new row, on the disk as it is. */
	const serves = async (session = '1\n') => {
		assert.equal(await box.out('cat /workspace/file; echo "$X"', { sessionId: 'one' }), `content\n${session}`);
		await box.out('echo more > /workspace/more; rm /workspace/more');
		assert.deepEqual((await daemon.api('GET', '/v1/sandboxes/kept/ports')).body.ports.map(p => p.port), [8000]);
		const { status, body } = await daemon.api('GET', `/v1/sandboxes/kept/processes/${process}`);
		assert.equal(status, 200);
		return body.status ?? body.process.status;
	};

	await fillUp(disk);
	assert.equal(await serves(), 'running');
	await killSiltd(daemon);
	await fillUp(disk);
	assert.equal(await serves(), 'running');

	const made = await createUntilRefused(daemon, 'a');
	await fillUp(disk);
	const told = await health(daemon);
	assert.equal(told.status, 200, 'it still serves');
	assert.equal(told.body.status, 'degraded');
	assert.equal(told.body.database, 'full');
	assert.match(told.body.message, /database.*[Ff]ree room on the disk/);
	assert.match((await daemon.api('GET', '/metrics')).raw.toString(), /^silt_database_full 1$/m);
	const doctor = spawnSync(path.join(BUILD, 'silt'), ['doctor'], { encoding: 'utf8', env: { PATH: globalThis.process.env.PATH, SILT_ADDRESS: daemon.address, SILT_TOKEN: daemon.token, SILT_CONFIG: '', SILT_RUN: daemon.run } });
	assert.match(doctor.stdout, /warn +daemon +.*database: full/);
	refused(await daemon.api('POST', '/v1/sandboxes/kept/ports', { port: 8001 }), 507, 'DISK_FULL');
	refused(await daemon.api('POST', '/v1/sandboxes/kept/processes', { command: 'sleep 1001' }), 507, 'DISK_FULL');
	refused(await daemon.api('POST', '/v1/sandboxes/kept/contexts', { language: 'python' }), 507, 'DISK_FULL');
	assert.equal((await daemon.api('PUT', '/v1/sandboxes/kept/network', { mode: 'none' })).status, 200, 'a network can be closed');
	refused(await daemon.api('POST', '/sandboxes/unborn/api/execute', { command: 'true' }), 507, 'NO_SPACE');
	assert.deepEqual(daemon.marked('1001'), []);

	const all = ['kept', ...made].toSorted();
	for (let round = 0; round < 3; round++) {
		assert.deepEqual(await ids(daemon), all, 'those that were acknowledged, and no other');
		await fillUp(disk);
		await killSiltd(daemon);
		assert.equal(await serves(), 'running');
	}
	assert.equal((await new Box(daemon, made.at(-1)).info()).labels.number, String(made.length - 1));

	const gone = made.splice(0, 5);
	for (const id of gone)
		assert.equal((await daemon.api('DELETE', `/v1/sandboxes/${id}`)).status, 200);
	assert.equal((await daemon.api('DELETE', '/v1/sandboxes/kept/ports/8000')).status, 200);
	await fillUp(disk);
	await killSiltd(daemon);
	assert.deepEqual(await ids(daemon), ['kept', ...made].toSorted(), 'what was destroyed stays so');
	assert.deepEqual((await daemon.api('GET', '/v1/sandboxes/kept/ports')).body.ports, []);

	await fillUp(disk);
	await daemon.kill();
	const run = path.join(daemon.home, 'run'); // an address and the like are new files of a start: they are on a tmpfs everywhere but here
	daemon = await startDaemon({ ...options, home: daemon.home, run, flags: { ...options.flags, run } });
	assert.deepEqual(await ids(daemon), ['kept', ...made].toSorted(), 'after everything was killed');
	const again = new Box(daemon, 'kept');
	assert.equal(await again.out('cat /workspace/file'), 'content\n');

	disk.empty();
	await until('it takes new ones', async () => (await daemon.api('POST', '/v1/sandboxes', { id: 'after', labels: { a: 'b' } })).status === 201, 60_000);
	await until('all is well', async () => (await health(daemon)).body.status === 'ok', 60_000);
	await killSiltd(daemon);
	assert.deepEqual((await new Box(daemon, 'after').info()).labels, { a: 'b' });
	assert.deepEqual(await ids(daemon), ['after', 'kept', ...made].toSorted());
});
