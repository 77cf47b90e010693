// SPDX-License-Identifier: Apache-2.0
// Snapshots of a sandbox: taken while it runs, listed, deleted, expired; they outlive it.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { refused, TIME } from '../lib/expect.mjs';
import { namesIn } from '../lib/host.mjs';
import { silt } from '../lib/silt.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const take = (id, fields) => daemon.api('POST', `/v1/sandboxes/${id}/snapshots`, fields);
const list = async id => (await daemon.api('GET', id ? `/v1/sandboxes/${id}/snapshots` : '/v1/snapshots')).body.snapshots;
const show = id => daemon.api('GET', `/v1/snapshots/${id}`);
const remove = async id => (await daemon.api('DELETE', `/v1/snapshots/${id}`)).body.deleted;
const layers = () => namesIn(path.join(daemon.state, 'pool', 'l'), daemon.pid);

async function taken(id, fields) {
	const answer = await take(id, fields);
	assert.equal(answer.status, 201, answer.raw.toString());
	return answer.body;
}

test('a snapshot of a running sandbox stops nothing in it and is listed, shown and deleted', async t => {
	const box = await daemon.box(t, {});
	await box.out('x=kept; echo 1 > /workspace/file; head -c 3000000 /dev/urandom > /workspace/noise');
	const { incarnation } = await box.info();
	const first = await taken(box.id);
	assert.match(first.id, /^snap_[a-z2-7]{16}$/);
	assert.match(first.createdAt, TIME);
	assert.ok(first.bytes >= 3_000_000, `${first.bytes}`);
	assert.deepEqual([first.sandboxId, first.name, first.expiresAt], [box.id, null, null]);
	const second = await taken(box.id, { name: 'before the change', ttl: '1h' });
	assert.equal(second.name, 'before the change');
	assert.ok(second.expiresAt > second.createdAt);
	assert.equal(await box.out('echo $x'), 'kept\n');
	assert.equal((await box.info()).incarnation, incarnation);
	assert.deepEqual(await list(box.id), [first, second]);
	assert.deepEqual((await show(first.id)).body, first);
	assert.equal(await remove(first.id), true);
	assert.equal(await remove(first.id), false);
	refused(await show(first.id), 404, 'SNAPSHOT_NOT_FOUND');
	assert.deepEqual(await list(box.id), [second]);
	assert.equal(await remove(second.id), true);
	await until('their files are gone', () => layers().length === 0);
	assert.deepEqual((await daemon.api('GET', '/v1/images?all=1')).body.images.filter(i => i.name === null), []);
});

test('a snapshot outlives its sandbox; a stopped sandbox has snapshots, too', async t => {
	const box = await daemon.box(t, {});
	await box.out('echo 1 > /workspace/file');
	await box.stop();
	const one = await taken(box.id);
	assert.equal((await box.info()).state, 'stopped', 'it was not started for that');
	await box.destroy();
	assert.deepEqual(await list(box.id), [one]);
	assert.deepEqual(await list(), [one]);
	assert.equal(await remove(one.id), true);
	await until('its files are gone', () => layers().length === 0);
});

test('a snapshot with a ttl is deleted when it is over', async t => {
	const box = await daemon.box(t, {});
	await taken(box.id, { ttl: 1 });
	await until('it has expired', async () => (await list(box.id)).length === 0);
	await until('its files are gone', () => layers().length === 0);
});

test('what a snapshot keeps counts against the disk of its sandbox until it is deleted', async t => {
	const box = await daemon.box(t, { limits: { diskMiB: 64 } });
	await box.out('head -c 40000000 /dev/urandom > /workspace/noise; sync');
	const one = await taken(box.id);
	await box.out('rm /workspace/noise');
	assert.notEqual((await box.run('head -c 40000000 /dev/urandom > /workspace/more')).exitCode, 0, 'the snapshot has its space');
	await box.out('rm /workspace/more');
	assert.equal(await remove(one.id), true);
	await until('the space is given back', async () => (await box.run('head -c 40000000 /dev/urandom > /workspace/more')).exitCode === 0);
});

test('requests that are wrong are refused', async t => {
	const box = await daemon.box(t, {});
	refused(await take('nobody'), 404, 'SANDBOX_NOT_FOUND');
	for (const fields of [{ name: 1 }, { name: '' }, { name: ' ' }, { name: 'x'.repeat(129) }, { name: 'a\0b' }, { ttl: 0 }, { ttl: -1 }, { ttl: 'soon' }, { other: 1 }])
		refused(await take(box.id, fields), 400, 'VALIDATION_FAILED');
	assert.deepEqual(await list(box.id), []);
	assert.equal(await remove('snap_aaaaaaaaaaaaaaaa'), false);
	assert.deepEqual(layers(), []);
});

test('many snapshots at once are all taken', async t => {
	const box = await daemon.box(t, {});
	await box.out('echo 1 > /workspace/file');
	const all = await Promise.all(Array.from({ length: 20 }, () => taken(box.id)));
	assert.equal(new Set(all.map(s => s.id)).size, 20);
	assert.equal((await list(box.id)).length, 20);
	await Promise.all(all.map(s => remove(s.id)));
	await until('their files are gone', () => layers().length === 0);
});

test('snapshots outlive siltd, silt-priv and the whole daemon; half-made ones go', async t => {
	const own = await startDaemon();
	let current = own;
	t.after(() => current.stop());
	const snapshots = async () => (await current.api('GET', '/v1/snapshots')).body.snapshots;
	const box = await own.box(null, {});
	await box.out('echo 1 > /workspace/file');
	const kept = (await own.api('POST', `/v1/sandboxes/${box.id}/snapshots`, { name: 'kept' })).body;
	process.kill(own.siltd(), 'SIGKILL');
	await own.healthy();
	assert.deepEqual(await snapshots(), [kept]);
	const home = own.home;
	await own.stop({ keep: true });
	current = await startDaemon({ home });
	assert.deepEqual(await snapshots(), [kept]);
	await current.api('DELETE', `/v1/snapshots/${kept.id}`);
	await until('its files are gone', () => namesIn(path.join(current.state, 'pool', 'l'), current.pid).length === 0);
});

test('silt snapshot takes, lists and deletes', async t => {
	const box = await daemon.box(t, {});
	const run = args => silt(daemon, ['snapshot', ...args]);
	const made = await run(['take', box.id, '--name', 'two words', '--ttl', '1h']);
	assert.equal(made.code, 0, made.stderr);
	const id = made.stdout.trim();
	assert.match(id, /^snap_/);
	assert.match((await run(['ls', box.id])).stdout, new RegExp(`SNAPSHOT.*\\n${id} +${box.id} two words +`));
	assert.equal(JSON.parse((await run(['ls', '--json'])).stdout)[0].id, id);
	assert.equal((await run(['rm', id])).stdout, `${id}\n`);
	const again = await run(['rm', id]);
	assert.deepEqual([again.code, again.stderr], [125, `silt: no snapshot ${id}\n`]);
	assert.equal((await run(['take'])).code, 125);
});

test('the limit of snapshots holds when all are taken at once; those that wait end with the sandbox', async t => {
	const box = await daemon.box(t, {});
	await box.out('echo 1 > /workspace/file');
	const all = Array.from({ length: 1001 }, () => daemon.api('POST', `/v1/sandboxes/${box.id}/snapshots`, undefined, { deadline: 60_000 }));
	const first = await Promise.race(all.map(one => one.then(answer => (answer.status === 201 ? new Promise(() => {}) : answer))).concat(Promise.all(all).then(answers => answers[0])));
	refused(first, 429, 'LIMIT_REACHED');
	await box.destroy();
	const answers = await Promise.all(all);
	const taken = answers.filter(answer => answer.status === 201);
	const ended = answers.filter(answer => answer.status !== 201 && answer.status !== 429);
	assert.ok(ended.length > 0);
	for (const answer of ended)
		refused(answer, 410, 'SESSION_TERMINATED');
	for (const answer of taken)
		await remove(answer.body.id);
});
