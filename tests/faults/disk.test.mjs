// SPDX-License-Identifier: Apache-2.0
// A full disk is nobody's end: the pool is allocated ahead, sandboxes get ENOSPC or EDQUOT, and everything that reads or deletes goes on.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { BUILD, startDaemon } from '../lib/daemon.mjs';
import { makeDisk } from '../lib/disk.mjs';
import { refused } from '../lib/expect.mjs';
import { until } from '../lib/wait.mjs';

const MIB = 2 ** 20;
const LONG = { deadline: 240_000 };

const health = daemon => daemon.api('GET', '/healthz', undefined, { token: false });
const siltPool = daemon => fs.readFileSync(`/proc/${daemon.pid}/mounts`, 'utf8').split('\n').find(line => line.split(' ')[1] === path.join(daemon.state, 'pool'));
const gauge = async (daemon, name) => Number(new RegExp(`^${name} (\\d+)`, 'm').exec((await daemon.api('GET', '/metrics')).raw.toString())?.[1]);

/** The daemon ends before its disk is taken away. */
async function startOn(disk, options = {}) {
	const daemon = await startDaemon({ ...options, state: disk.state, flags: { 'disk.reserve': '256M', 'pool.sandboxes': 0, ...options.flags } });
	disk.usedBy(() => daemon.stop());
	return daemon;
}

/** Writes files until nothing more goes in; answers how many MiB did. */
async function fill(box, name, size = MIB) {
	const { stdout } = await box.run(`mkdir -p /workspace/${name}; cd /workspace/${name}; i=0; miss=0
		while [ $miss -lt 3 ]; do if head -c ${size} /dev/zero > f$i 2>/dev/null; then i=$((i+1)); else miss=$((miss+1)); sleep 0.3; fi; done
		sync . ; echo $i`, {}, LONG);
	return Number(stdout) * size / MIB;
}

const isRefused = async box => refused(await box.api('POST', '/api/write', { path: '/workspace/late', content: 'x'.repeat(3_000_000) }), 507, 'NO_SPACE');
const isRefusedNatively = async box => refused(await box.daemon.api('PUT', `/v1/sandboxes/${box.id}/files?path=/workspace/late`, Buffer.alloc(3_000_000)), 507, 'DISK_FULL');

/** The quota group of all sandboxes gets its present use as its limit; the daemon sets another only when the pool's room changes by a mebibyte. */
function leaveNothing(daemon) {
	const btrfs = (...words) => {
		const done = spawnSync('nsenter', ['-t', String(daemon.pid), '-m', 'btrfs', ...words, path.join(daemon.state, 'pool')], { encoding: 'utf8' });
		assert.equal(done.status, 0, done.stderr);
		return done.stdout;
	};
	btrfs('filesystem', 'sync');
	const [, group, used] = /^(1\/\d+)\s+(\d+)/m.exec(btrfs('qgroup', 'show', '--raw'));
	btrfs('qgroup', 'limit', used, group);
}

/** Room comes back some commits after a sandbox is destroyed. */
const hasRoom = box => until('there is room', async () => (await box.api('POST', '/api/write', { path: '/workspace/again', content: 'x'.repeat(3_000_000) })).status === 200, 120_000);

test('a guest within its quota on a disk that others fill', { timeout: 400_000 }, async t => {
	const disk = makeDisk(t, 'ext4', 3072);
	const daemon = await startOn(disk);
	const neighbour = await daemon.box(null, {});
	const greedy = await daemon.box(null, {});
	await neighbour.out('echo kept > /workspace/file');
	disk.fill(0);
	const wrote = await fill(greedy, 'full');
	assert.ok(wrote > 1024, `${wrote} MiB of the 2 GiB that were allocated ahead`);
	assert.match(siltPool(daemon), / btrfs rw,/);
	await until('the pool is known to be full', async () => (await health(daemon)).body.disk === 'full');
	const told = await health(daemon);
	assert.equal(told.status, 200, 'it still serves');
	assert.equal(told.body.status, 'degraded');
	assert.match(told.body.message, /machine's disk has no room.*Remove sandboxes/);
	assert.equal((await isRefused(neighbour)).cause, 'disk');
	await isRefusedNatively(neighbour);
	const { stdout } = spawnSync(path.join(BUILD, 'silt'), ['doctor'], { encoding: 'utf8', env: { PATH: process.env.PATH, SILT_ADDRESS: daemon.address, SILT_TOKEN: daemon.token, SILT_CONFIG: '', SILT_RUN: daemon.run } });
	assert.match(stdout, /warn +daemon +.*disk pool: full/);

	process.kill(daemon.siltd(), 'SIGKILL');
	await daemon.healthy();
	assert.equal(await neighbour.out('cat /workspace/file'), 'kept\n');
	assert.equal((await daemon.api('GET', '/v1/sandboxes')).body.sandboxes.length, 2);
	await greedy.destroy();
	await hasRoom(neighbour);
	await until('it is full no more', async () => (await health(daemon)).body.disk !== 'full');

	disk.empty();
	await until('all is well', async () => (await health(daemon)).body.status === 'ok', 60_000);
	const before = await gauge(daemon, 'silt_pool_bytes');
	await fill(await daemon.box(null, { limits: { diskMiB: 1600 } }), 'more');
	await until('the pool has grown', async () => await gauge(daemon, 'silt_pool_bytes') > before, 60_000);
	assert.ok(disk.free() > 200, `${disk.free()} MiB: the disk keeps its reserve`);
});

test('without its allocation ahead, the same guest turns the pool read-only for everybody', { timeout: 300_000 }, async t => {
	const disk = makeDisk(t, 'ext4', 768);
	const daemon = await startOn(disk, { build: process.env.SILT_UNSAFE_BUILD, without: ['pool_ahead'] });
	const neighbour = await daemon.box(null, {});
	const greedy = await daemon.box(null, {});
	await neighbour.out('echo kept > /workspace/file; sync /workspace/file');
	disk.fill(0);
	await greedy.run('head -c 300000000 /dev/zero > /workspace/f; sync /workspace/f', { timeoutMs: 60_000 }, LONG);
	const told = await until('the pool is read-only', async () => { const answer = await health(daemon); return answer.status === 503 && answer; }, 60_000);
	assert.equal(told.body.disk, 'read_only');
	assert.match(siltPool(daemon), / btrfs ro,/);
});

test('an instance on a full disk starts again after everything was killed', { timeout: 300_000 }, async t => {
	const disk = makeDisk(t, 'ext4', 768);
	const first = await startDaemon({ state: disk.state, flags: { 'disk.reserve': '256M', 'pool.sandboxes': 0 } });
	disk.usedBy(() => first.abandon());
	const box = await first.box(null, {});
	await box.out('echo kept > /workspace/file');
	disk.fillAll();
	await fill(box, 'full');
	await first.kill();
	const second = await startOn(disk, { home: first.home });
	const again = await second.box(null, undefined);
	again.id = box.id;
	assert.equal(await again.out('cat /workspace/file'), 'kept\n');
	await again.out('rm /workspace/full/f1');
	await again.destroy();
});

test('a sandbox starts, and deletes, where all together have filled the pool to the last byte', async t => {
	const daemon = await startDaemon({ flags: { 'disk.pool': '1G', 'pool.sandboxes': 0 } });
	t.after(() => daemon.stop());
	const box = await daemon.box(null, {});
	await box.out('head -c 3000000 /dev/zero > /workspace/file; sync /workspace/file');
	process.kill(daemon.programs('memfd:silt-init')[0], 'SIGKILL');
	await until('it has crashed', async () => (await box.info()).state !== 'running');
	leaveNothing(daemon);
	refused(await daemon.api('POST', '/v1/sandboxes', { id: 'new' }), 507, 'DISK_FULL');
	const more = 'head -c 1000000 /dev/zero > /workspace/more'; // more than what commits in the background give back
	assert.notEqual((await box.run(more)).exitCode, 0, 'it has no room');
	await box.out('rm -f /workspace/file /workspace/more; sync /workspace');
	await box.out(more);
	await box.destroy();
});

test('a state directory on btrfs keeps the reserve free, too', { timeout: 300_000 }, async t => {
	const disk = makeDisk(t, 'btrfs', 2048);
	const daemon = await startOn(disk, { flags: { 'disk.reserve': '512M' } });
	assert.ok(!fs.existsSync(path.join(disk.state, 'pool.img')));
	const neighbour = await daemon.box(null, {});
	const greedy = await daemon.box(null, {});
	await neighbour.out('echo kept > /workspace/file');
	const wrote = await fill(greedy, 'full', 4 * MIB);
	assert.ok(wrote > 900, `${wrote} MiB`);
	assert.ok(disk.free() > 400, `${disk.free()} MiB of the 512 stay free`);
	await until('that is known', async () => (await health(daemon)).body.disk === 'full');
	await isRefused(neighbour);
	assert.equal(await neighbour.out('cat /workspace/file'), 'kept\n');
	await greedy.destroy();
	await hasRoom(neighbour);
});

test('a small pool that was full is empty again, five times', { timeout: 500_000 }, async t => {
	const daemon = await startDaemon({ flags: { 'disk.pool': '1G', 'pool.sandboxes': 0 } });
	t.after(() => daemon.stop());
	const wrote = [];
	for (let round = 0; round < 5; round++) {
		const box = await daemon.box(null, { limits: { diskMiB: 1024 } });
		await box.run('mkdir /workspace/small; cd /workspace/small; for i in $(seq 3000); do echo > $i; done'); // metadata
		wrote.push(await fill(box, 'full', 4 * MIB));
		await box.destroy();
		await until('its room is back', async () => await gauge(daemon, 'silt_pool_left_bytes') > 920 * MIB, 60_000);
	}
	assert.ok(wrote.every(mib => mib > 920), `${wrote} MiB of 1024`);
	assert.match(siltPool(daemon), / btrfs rw,/);
});

test('a limit larger than the pool is refused, all limits together may be', async t => {
	const daemon = await startDaemon({ flags: { 'disk.pool': '1G', 'pool.sandboxes': 0 } });
	t.after(() => daemon.stop());
	await until('the pool is known', async () => await gauge(daemon, 'silt_pool_max_bytes') === 2 ** 30);
	const answer = await daemon.api('POST', '/v1/sandboxes', { id: 'large', limits: { diskMiB: 1025 } });
	assert.equal(refused(answer, 400, 'VALIDATION_FAILED').validationErrors[0].code, 'DISK_LARGER_THAN_POOL');
	assert.match(answer.body.message, /1025.*1024 MiB/);
	for (let i = 0; i < 2; i++)
		await daemon.box(null, { limits: { diskMiB: 1024 } });
});

test('a pool that turns read-only is told, survives a restart of siltd, and is well after the next start', { timeout: 300_000 }, async t => {
	const daemon = await startDaemon({ flags: { 'disk.pool': '1G', 'pool.sandboxes': 0 } });
	let running = daemon;
	t.after(() => running.stop());
	const box = await daemon.box(null, {});
	await box.out('echo kept > /workspace/file');
	const remount = how => assert.equal(spawnSync('nsenter', ['-t', String(daemon.pid), '-m', 'mount', '-o', `remount,${how}`, path.join(daemon.state, 'pool')], { encoding: 'utf8' }).stderr, '');
	remount('ro');
	const told = await until('it is told', async () => { const answer = await health(daemon); return answer.status === 503 && answer; });
	assert.equal(told.body.status, 'failed');
	assert.equal(told.body.disk, 'read_only');
	assert.match(told.body.message, /restart the daemon.*btrfs check/);
	assert.match((await daemon.api('GET', '/metrics')).raw.toString(), /silt_pool_state\{state="read_only"\} 1/);
	assert.match(daemon.log(), /pool\.state state=read_only/);
	process.kill(daemon.siltd(), 'SIGKILL');
	await until('siltd serves', async () => (await daemon.api('GET', '/v1/sandboxes').catch(() => ({}))).status === 200, 60_000);
	assert.equal(await box.out('cat /workspace/file'), 'kept\n');
	refused(await daemon.api('POST', '/v1/sandboxes', { id: 'new' }), 507, 'DISK_READ_ONLY');
	await daemon.stop({ keep: true });
	const again = running = await startDaemon({ home: daemon.home });
	assert.equal((await health(again)).body.status, 'ok');
	assert.equal((await again.api('POST', `/sandboxes/${box.id}/api/execute`, { command: 'cat /workspace/file' })).body.stdout, 'kept\n');
});
