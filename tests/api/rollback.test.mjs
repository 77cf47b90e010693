// SPDX-License-Identifier: Apache-2.0
// A sandbox goes back to the files of a snapshot: in the same place, with its settings, ports and logs.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { refused } from '../lib/expect.mjs';
import { namesIn } from '../lib/host.mjs';
import { silt } from '../lib/silt.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const take = async box => (await daemon.api('POST', `/v1/sandboxes/${box.id}/snapshots`)).body.id;
const back = (box, snapshot) => daemon.api('POST', `/v1/sandboxes/${box.id}/rollback`, { snapshot });
const drop = id => daemon.api('DELETE', `/v1/snapshots/${id}`);
const layers = () => namesIn(path.join(daemon.state, 'pool', 'l'), daemon.pid);

async function rolledBack(box, snapshot) {
	const answer = await back(box, snapshot);
	assert.equal(answer.status, 200, answer.raw.toString());
	return answer.body;
}

test('a rollback brings the files back, ends the processes and keeps the rest', async t => {
	const box = await daemon.box(t, { labels: { a: '1' }, env: { A: 'x' } });
	await box.out('echo 1 > /workspace/file; mkdir -p /opt/dir; chown 1234:56 /opt/dir; rm -rf /srv');
	await daemon.api('POST', `/v1/sandboxes/${box.id}/ports`, { port: 8080 });
	const ports = (await daemon.api('GET', `/v1/sandboxes/${box.id}/ports`)).body;
	const one = await take(box);
	await box.api('POST', '/api/process/start', { command: 'echo logged', processId: 'ended' });
	await until('it has ended', async () => (await box.api('GET', '/api/process/ended')).body.process.status === 'completed');
	await box.out('echo 2 > /workspace/file; rm -rf /opt/dir; mkdir /srv; touch /workspace/new; (sleep 1000 &)');
	const two = await take(box);
	const before = await box.info();
	const stopped = await rolledBack(box, one);
	assert.deepEqual([stopped.state, stopped.lastDeath.cause, stopped.labels], ['stopped', 'rolledBack', { a: '1' }]);
	assert.equal(await box.out('cat /workspace/file; stat -c "%u %g" /opt/dir; ls /workspace; test -e /srv || echo no srv; echo $A; pgrep -c sleep || true'), '1\n1234 56\nfile\nno srv\nx\n0\n');
	assert.notEqual((await box.info()).incarnation, before.incarnation);
	assert.deepEqual((await daemon.api('GET', `/v1/sandboxes/${box.id}/ports`)).body, ports);
	assert.equal((await box.api('GET', '/api/process/ended/logs')).body.stdout, 'logged\n', 'logs stay');
	await rolledBack(box, two);
	assert.equal(await box.out('cat /workspace/file; ls /workspace; test -e /opt/dir || echo no dir'), '2\nfile\nnew\nno dir\n', 'also forward');
	await box.out('echo 3 > /workspace/file');
	await drop(one);
	await drop(two);
	assert.equal(await box.out('cat /workspace/file'), '3\n', 'it needs no snapshot');
	await box.destroy();
	await until('their files are gone', () => layers().length === 0);
});

test('a fork of a fork, below which layers lie, is rolled back, too; and again and again', async t => {
	const box = await daemon.box(t, {});
	await box.out('echo 1 > /workspace/file; echo below > /opt/below');
	const [{ id }] = (await daemon.api('POST', `/v1/sandboxes/${box.id}/fork`, { count: 1 })).body.sandboxes;
	const copy = Object.assign(Object.create(Object.getPrototypeOf(box)), box, { id });
	await copy.out('echo 2 > /workspace/file; rm /opt/below');
	const snapshot = await take(copy);
	for (let i = 0; i < 5; i++) {
		await copy.out(`echo more > /opt/below; rm /workspace/file; head -c 1000000 /dev/urandom > /opt/${i}`);
		await rolledBack(copy, snapshot);
		assert.equal(await copy.out('cat /workspace/file; ls /opt | wc -l'), '2\n0\n');
	}
	refused(await back(box, snapshot), 400, 'VALIDATION_FAILED');
	await drop(snapshot);
	await copy.destroy();
});

test('its disk limit holds after a rollback', async t => {
	const box = await daemon.box(t, { limits: { diskMiB: 64 } });
	await box.out('echo 1 > /workspace/file');
	const snapshot = await take(box);
	await rolledBack(box, snapshot);
	assert.notEqual((await box.run('head -c 80000000 /dev/urandom > /workspace/noise')).exitCode, 0);
	assert.equal(await box.out('rm /workspace/noise; cat /workspace/file'), '1\n');
	await drop(snapshot);
});

test('a rollback and uses at once leave it working', async t => {
	const box = await daemon.box(t, {});
	await box.out('echo 1 > /workspace/file');
	const snapshot = await take(box);
	for (let i = 0; i < 3; i++) {
		const answers = await Promise.all([back(box, snapshot), box.exec('echo 2 > /workspace/file'), back(box, snapshot), daemon.api('POST', `/v1/sandboxes/${box.id}/stop`)]);
		for (const { status, raw } of answers)
			assert.ok([200, 409, 410].includes(status), raw.toString());
		await rolledBack(box, snapshot);
		assert.equal(await box.out('cat /workspace/file'), '1\n');
	}
	await drop(snapshot);
});

test('a rollback outlives siltd; a copy whose maker died goes', async t => {
	const own = await startDaemon();
	t.after(() => own.stop());
	const box = await own.box(null, {});
	await box.out('echo 1 > /workspace/file');
	const snapshot = (await own.api('POST', `/v1/sandboxes/${box.id}/snapshots`)).body.id;
	for (const program of ['siltd', 'silt-priv']) {
		await until('it can be used', async () => (await box.exec('echo 2 > /workspace/file')).status === 200);
		const asked = own.api('POST', `/v1/sandboxes/${box.id}/rollback`, { snapshot }).catch(() => {});
		await until('its processes end', async () => (await box.info().catch(() => ({}))).state !== 'running');
		for (const pid of own.programs(program))
			process.kill(pid, 'SIGKILL');
		await asked;
		await own.healthy();
		const file = await until('it works', async () => { const { status, body } = await box.exec('cat /workspace/file'); return status === 200 && body.stdout; });
		assert.match(file, /^[12]\n$/, 'all of it, or nothing');
	}
	assert.equal(await until('again', async () => { const { status, body } = await own.api('POST', `/v1/sandboxes/${box.id}/rollback`, { snapshot }); return status === 200 && body.state; }), 'stopped');
	assert.equal(await box.out('cat /workspace/file'), '1\n');
	assert.ok(namesIn(path.join(own.state, 'pool', 's'), own.pid).every(name => !name.startsWith('.new-')), 'no half-made volume');
});

test('requests that are wrong are refused', async t => {
	const [box, other] = [await daemon.box(t, {}), await daemon.box(t, {})];
	await box.out('echo 1 > /workspace/file');
	await other.out('true');
	const snapshot = await take(box);
	refused(await back({ id: 'nobody' }, snapshot), 404, 'SANDBOX_NOT_FOUND');
	refused(await back(box, 'snap_aaaaaaaaaaaaaaaa'), 404, 'SNAPSHOT_NOT_FOUND');
	refused(await back(other, snapshot), 400, 'VALIDATION_FAILED');
	for (const wrong of [undefined, 1, []])
		refused(await back(box, wrong), 400, 'VALIDATION_FAILED');
	assert.equal((await box.info()).state, 'running', 'nothing was ended');
	const end = await silt(daemon, ['rollback', box.id, snapshot]);
	assert.deepEqual([end.code, end.stdout], [0, `${box.id} stopped\n`], end.stderr);
	await drop(snapshot);
});
