// SPDX-License-Identifier: Apache-2.0
// Sandboxes made from another one or from a snapshot: what is copied, what is not, all or none, and how deep it goes.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Box } from '../lib/box.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { refused } from '../lib/expect.mjs';
import { namesIn } from '../lib/host.mjs';
import { silt } from '../lib/silt.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const fork = (id, fields) => daemon.api('POST', `/v1/sandboxes/${id}/fork`, fields);
const create = fields => daemon.api('POST', '/v1/sandboxes', fields);
const remove = id => daemon.api('DELETE', `/v1/sandboxes/${id}`);
const layers = () => namesIn(path.join(daemon.state, 'pool', 'l'), daemon.pid);
const volumes = () => namesIn(path.join(daemon.state, 'pool', 's'), daemon.pid);

async function forked(id, fields) {
	const answer = await fork(id, fields);
	assert.equal(answer.status, 201, answer.raw.toString());
	return answer.body.sandboxes.map(info => Object.assign(new Box(daemon, info.id), { made: info }));
}

async function created(fields) {
	const answer = await create(fields);
	assert.equal(answer.status, 201, answer.raw.toString());
	return new Box(daemon, answer.body.id);
}

const WRITE = `cd /; echo new > /opt/new; chown 1234:56 /opt/new; chmod 4751 /opt/new; ln /opt/new /opt/hard; ln -s new /opt/link; rm -rf /srv; mv /var/cache /var/moved;
	mkdir -p /opt/deep/er; echo x > /opt/deep/er/file; mkfifo /opt/fifo; touch -d @1000000000 /opt/deep; python3 -c 'import os; os.setxattr("/opt/deep", "user.mine", b"1")'`;
const LOOK = `cat /opt/new /opt/link; stat -c '%u %g %a %h' /opt/new; cat /opt/deep/er/file; stat -c '%Y %u' /opt/deep; test -p /opt/fifo && echo fifo; test -e /srv || echo no srv; test -e /var/cache || echo no cache;
	test -d /var/moved && echo moved; python3 -c 'import os; print(os.getxattr("/opt/deep", "user.mine"))'; stat -c %U /root`;
const WANT = "new\nnew\n1234 56 4751 2\nx\n1000000000 0\nfifo\nno srv\nno cache\nmoved\nb'1'\nroot\n";

test('a fork of a running sandbox has its files and settings, and its own life', async t => {
	const box = await daemon.box(t, { labels: { a: '1', b: '2' }, env: { A: 'x', B: 'y' }, limits: { memoryMiB: 300, diskMiB: 500 }, sleepAfter: 77, network: { mode: 'none' } });
	await box.out(`${WRITE}; cd /tmp; (sleep 1000 &); echo $$ > /workspace/pid`);
	const { incarnation, image, limits } = await box.info();
	const [one, two] = await forked(box.id, { ids: ['fork-one', 'fork-two'], labels: { b: null, c: '3' }, env: { B: null, C: 'z' } });
	assert.deepEqual([one.id, two.id], ['fork-one', 'fork-two']);
	const info = one.made;
	assert.equal(info.state, 'stopped');
	assert.match(info.stateReason, new RegExp(`made from ${box.id}`));
	assert.deepEqual([info.image.name, info.limits, info.labels, info.sleepAfter, info.lastDeath], [image.name, limits, { a: '1', c: '3' }, 77, null]);
	assert.equal((await box.info()).incarnation, incarnation, 'the source runs on');
	await box.out('echo later > /opt/new; rm -rf /opt/deep');
	assert.equal(await one.out(LOOK), WANT);
	assert.equal(await one.out('echo $A-$B-$C; pgrep -c sleep || true; hostname'), 'x--z\n0\nfork-one\n');
	await one.out('echo mine > /opt/new; rm /opt/hard');
	assert.equal(await two.out(LOOK), WANT, 'forks do not share what they write');
	assert.equal((await daemon.api('GET', `/v1/sandboxes/${one.id}/ports`)).body.ports.length, 0);
	await box.destroy();
	assert.equal(await two.out('cat /opt/deep/er/file'), 'x\n', 'they outlive their source');
	await one.destroy();
	await two.destroy();
	await until('their files are gone', () => layers().length === 0);
});

test('a sandbox is made from a snapshot, or from a sandbox, and runs', async t => {
	const box = await daemon.box(t, { labels: { a: '1' }, env: { A: 'x' } });
	await box.out('echo 1 > /workspace/file');
	const snapshot = (await daemon.api('POST', `/v1/sandboxes/${box.id}/snapshots`)).body;
	await box.out('echo 2 > /workspace/file');
	const copy = await created({ from: { sandbox: box.id }, type: 'lite' });
	await box.destroy();
	const old = await created({ id: 'from-old', from: { snapshot: snapshot.id }, labels: { b: '2' } });
	assert.equal(old.id, 'from-old');
	assert.equal((await old.info()).state, 'running');
	assert.deepEqual((await old.info()).labels, { a: '1', b: '2' });
	assert.equal((await copy.info()).type, 'lite');
	assert.equal(await old.out('cat /workspace/file; echo $A'), '1\nx\n');
	assert.equal(await copy.out('cat /workspace/file'), '2\n');
	await daemon.api('DELETE', `/v1/snapshots/${snapshot.id}`);
	await old.stop();
	assert.equal(await old.out('cat /workspace/file'), '1\n', 'a fork keeps what it is made of');
	await old.destroy();
	await copy.destroy();
	await until('their files are gone', () => layers().length === 0);
});

test('all or none: taken ids are named, and nothing is made', async t => {
	const box = await daemon.box(t, {});
	await box.out('true');
	for (const id of ['taken-1', 'taken-2'])
		await daemon.box(t, { id });
	const before = volumes().length;
	const { taken } = refused(await fork(box.id, { ids: ['free-1', 'taken-1', 'free-2', 'taken-2'] }), 409, 'SANDBOX_ALREADY_EXISTS');
	assert.deepEqual(taken, ['taken-1', 'taken-2']);
	assert.equal((await daemon.api('GET', '/v1/sandboxes/free-1')).status, 404);
	refused(await create({ id: 'taken-1', from: { sandbox: box.id } }), 409, 'SANDBOX_ALREADY_EXISTS');
	assert.equal(volumes().length, before);
	assert.deepEqual(layers(), []);
});

test('two forks to the same ids at once: one of them gets all of them', async t => {
	const box = await daemon.box(t, {});
	await box.out('echo 1 > /workspace/file');
	const answers = await Promise.all([1, 2, 3].map(() => fork(box.id, { count: 5 })));
	assert.deepEqual(answers.map(a => a.status).toSorted(), [201, 409, 409]);
	const made = answers.find(a => a.status === 201).body.sandboxes;
	assert.deepEqual(made.map(s => s.id), [1, 2, 3, 4, 5].map(n => `${box.id}-${n}`));
	assert.deepEqual(await Promise.all(made.map(s => new Box(daemon, s.id).out('cat /workspace/file'))), Array(5).fill('1\n'));
	await Promise.all(made.map(s => remove(s.id)));
	await box.destroy();
	await until('their files are gone', () => layers().length === 0);
});

test('a hundred forks at once all answer a command', async t => {
	const box = await daemon.box(t, { type: 'lite' });
	await box.out('echo 1 > /workspace/file');
	const made = await forked(box.id, { count: 100 });
	assert.deepEqual(await Promise.all(made.map(fork => fork.out('cat /workspace/file'))), Array(100).fill('1\n'));
	await Promise.all(made.map(fork => remove(fork.id)));
});

test('forks of forks go on as deep as one likes, and nothing is lost on the way', async t => {
	const depth = 20; // layers below 16 are shared, the topmost one above is copied
	let box = await daemon.box(null, {});
	await box.out(`${WRITE}; python3 -c 'import os, struct; os.setxattr("/opt/new", "security.capability", struct.pack("<5I", 0x02000001, 1 << 10, 0, 0, 0))'; setfacl -m u:77:rwx /opt/deep 2>/dev/null || true`);
	for (let i = 1; i <= depth; i++) {
		const [next] = await forked(box.id, { ids: [`deep-${i}`] });
		await next.out(`echo ${i} > /opt/${i}; rm -f /opt/${i - 2}; mkdir -p /opt/dir; mv /opt/dir /opt/dir2; mkdir /opt/dir; echo ${i} > /opt/dir/in; rm -rf /opt/dir2; echo ${i} >> /opt/deep/er/log; chmod 2755 /opt/deep/er; touch -d @1000000000 /opt/deep`);
		await box.destroy();
		box = next;
	}
	assert.equal(await box.out(LOOK), WANT);
	assert.equal(await box.out(`ls /opt | grep -E '^[0-9]' | sort -n; cat /opt/dir/in; wc -l < /opt/deep/er/log; stat -c %a /opt/deep/er`), `${depth - 1}\n${depth}\n${depth}\n${depth}\n2755\n`);
	assert.equal(await box.out(`python3 -c 'import os; print(os.getxattr("/opt/new", "security.capability").hex())'`), '0100000200040000000000000000000000000000\n');
	assert.equal(layers().length, 16);
	await box.destroy();
	await until('their files are gone', () => layers().length === 0);
});

test('stopped forks outlive siltd and the daemon; a destroyed one goes', async t => {
	const own = await startDaemon();
	let current = own;
	t.after(() => current.stop());
	const box = await own.box(null, {});
	await box.out('echo 1 > /workspace/file');
	assert.equal((await own.api('POST', `/v1/sandboxes/${box.id}/fork`, { ids: ['a', 'b'] })).status, 201);
	process.kill(own.siltd(), 'SIGKILL');
	await own.healthy();
	assert.equal((await own.api('GET', '/v1/sandboxes/a')).body.state, 'stopped');
	assert.equal(await new Box(own, 'a').out('cat /workspace/file'), '1\n');
	const home = own.home;
	await own.stop({ keep: true });
	current = await startDaemon({ home });
	assert.equal(await new Box(current, 'b').out('cat /workspace/file'), '1\n');
});

test('requests that are wrong are refused', async t => {
	const box = await daemon.box(t, {});
	await box.out('true');
	refused(await fork('nobody', { count: 1 }), 404, 'SANDBOX_NOT_FOUND');
	for (const fields of [{}, { count: 0 }, { count: 101 }, { count: '1' }, { ids: [] }, { ids: ['a', 'a'] }, { ids: ['..'] }, { ids: [1] }, { ids: ['a'], count: 1 }, { ids: ['a'], image: 'base' }, { ids: ['a'], limits: { memoryMiB: 1 } }, { ids: 'a' }])
		refused(await fork(box.id, fields), 400, 'VALIDATION_FAILED');
	for (const from of [{}, { snapshot: 1 }, { snapshot: 'a', sandbox: 'b' }, 'a'])
		refused(await create({ id: 'a', from }), 400, 'VALIDATION_FAILED');
	refused(await create({ id: 'a', image: 'base', from: { sandbox: box.id } }), 400, 'VALIDATION_FAILED');
	refused(await create({ id: 'a', from: { snapshot: 'snap_aaaaaaaaaaaaaaaa' } }), 404, 'SNAPSHOT_NOT_FOUND');
	refused(await create({ id: 'a', from: { sandbox: 'nobody' } }), 404, 'SANDBOX_NOT_FOUND');
	assert.equal((await daemon.api('GET', '/v1/sandboxes/a')).status, 404);
	assert.deepEqual(layers(), []);
});

test('silt fork and silt create --from', async t => {
	const box = await daemon.box(t, { id: 'by-hand' });
	await box.out('echo 1 > /workspace/file');
	const many = await silt(daemon, ['fork', box.id, '--count', '2']);
	assert.deepEqual([many.code, many.stdout], [0, 'by-hand-1\nby-hand-2\n'], many.stderr);
	const named = await silt(daemon, ['fork', box.id, 'by-name']);
	assert.deepEqual([named.code, named.stdout], [0, 'by-name\n'], named.stderr);
	const snapshot = (await silt(daemon, ['snapshot', 'take', box.id])).stdout.trim();
	for (const [id, from] of [['of-box', box.id], ['of-snapshot', snapshot]]) {
		const made = await silt(daemon, ['create', id, '--from', from]);
		assert.deepEqual([made.code, made.stdout], [0, `${id}\n`], made.stderr);
		assert.equal(await new Box(daemon, id).out('cat /workspace/file'), '1\n');
	}
	const taken = await silt(daemon, ['fork', box.id, 'by-name']);
	assert.equal(taken.code, 125);
	assert.match(taken.stderr, /taken/);
	assert.equal((await silt(daemon, ['fork', box.id])).code, 125);
	await Promise.all(['by-hand-1', 'by-hand-2', 'by-name', 'of-box', 'of-snapshot'].map(remove));
	await daemon.api('DELETE', `/v1/snapshots/${snapshot}`);
});
