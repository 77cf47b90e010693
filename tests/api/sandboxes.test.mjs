// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { refused, refusedAs4xx, TIME } from '../lib/expect.mjs';
import { collect } from '../lib/sse.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const create = body => daemon.api('POST', '/v1/sandboxes', body);

const TYPES = {
	lite: { cpu: 1 / 16, memoryMiB: 256, pids: 256, diskMiB: 2048 },
	basic: { cpu: 1 / 4, memoryMiB: 1024, pids: 512, diskMiB: 4096 },
	'standard-1': { cpu: 1 / 2, memoryMiB: 4096, pids: 1024, diskMiB: 8192 },
	'standard-2': { cpu: 1, memoryMiB: 6144, pids: 1024, diskMiB: 12_288 },
	'standard-3': { cpu: 2, memoryMiB: 8192, pids: 1024, diskMiB: 16_384 },
	'standard-4': { cpu: 4, memoryMiB: 12_288, pids: 1024, diskMiB: 20_480 },
};

test('a create answers 201 with the whole sandbox', async t => {
	const box = await daemon.box(t);
	const { status, body } = await create({ id: box.id });
	assert.equal(status, 201);
	assert.equal(body.id, box.id);
	assert.ok(['running', 'stopped'].includes(body.state));
	assert.match(body.image.digest, /^(sha256:)?[0-9a-f]{64}$/);
	assert.equal(typeof body.image.name, 'string');
	assert.equal(body.type, 'standard-1');
	assert.deepEqual(body.limits, TYPES['standard-1']);
	for (const key of ['memoryBytes', 'memoryPeakBytes', 'cpuMs', 'pids', 'diskBytes'])
		assert.ok(Number.isInteger(body.usage[key]) && body.usage[key] >= 0, key);
	assert.match(body.createdAt, TIME);
	assert.match(body.lastUsedAt, TIME);
	assert.deepEqual(body.labels, {});
	assert.ok(body.sleepAfter === null || typeof body.sleepAfter === 'number');
	assert.equal(body.ephemeral, false);
	assert.equal(body.hostname, box.id);
	assert.equal(body.lastDeath, null);
});

test('a create without an id makes one up', async t => {
	const { status, body } = await create({});
	t.after(() => daemon.api('DELETE', `/v1/sandboxes/${body.id}`));
	assert.equal(status, 201);
	assert.match(body.id, /^sb-[a-z2-7]{16}$/);
});

test('a create of an existing id answers 409 and changes nothing', async t => {
	const box = await daemon.box(t, { labels: { first: 'yes' } });
	refused(await create({ id: box.id, labels: { first: 'no' } }), 409, 'SANDBOX_ALREADY_EXISTS');
	assert.deepEqual((await box.info()).labels, { first: 'yes' });
});

test('of 20 creates of one id at the same time exactly one wins', async t => {
	const box = await daemon.box(t);
	const answers = await Promise.all(Array.from({ length: 20 }, () => create({ id: box.id })));
	assert.deepEqual(answers.map(a => a.status).sort(), [201, ...Array(19).fill(409)]);
});

test('looking at an unknown sandbox answers 404 and does not make it', async () => {
	refused(await daemon.api('GET', '/v1/sandboxes/unknown'), 404, 'SANDBOX_NOT_FOUND');
	refused(await daemon.api('GET', '/v1/sandboxes/unknown'), 404, 'SANDBOX_NOT_FOUND');
});

test('a destroy is idempotent and says whether there was something', async t => {
	const box = await daemon.box(t);
	await box.run('true');
	assert.deepEqual(await box.destroy(), { id: box.id, destroyed: true });
	assert.deepEqual(await box.destroy(), { id: box.id, destroyed: false });
	refused(await daemon.api('GET', `/v1/sandboxes/${box.id}`), 404, 'SANDBOX_NOT_FOUND');
});

test('an id used again after a destroy is a new computer', async t => {
	const box = await daemon.box(t);
	await box.out('echo old > /workspace/file; X=1');
	const first = await box.info();
	await box.destroy();
	assert.equal(await box.out('ls /workspace; echo [$X]'), '[]\n');
	assert.notEqual((await box.info()).incarnation, first.incarnation);
});

test('a destroy ends running commands and answers when the sandbox is empty', async t => {
	const box = await daemon.box(t);
	await box.run('true');
	const running = box.exec('sleep 1000.71').then(a => a, error => error);
	await until('the command runs', () => daemon.marked('1000.71').length === 1);
	await box.destroy();
	assert.equal(daemon.marked('1000.71').length, 0);
	const end = await running;
	assert.ok(end instanceof Error || end.status >= 400, 'the call that waited was not told success');
	if (!(end instanceof Error))
		assert.equal(end.body.context.cause, 'destroyed');
});

test('each instance type has its numbers', async t => {
	for (const [type, limits] of Object.entries(TYPES)) {
		const box = await daemon.box(t, { type });
		const info = await box.info();
		assert.equal(info.type, type);
		assert.deepEqual(info.limits, limits, type);
		await box.destroy();
	}
});

test('own numbers replace those of the type', async t => {
	const box = await daemon.box(t, { limits: { cpu: 0.75, memoryMiB: 128, pids: 100, diskMiB: 300 } });
	const info = await box.info();
	assert.deepEqual(info.limits, { cpu: 0.75, memoryMiB: 128, pids: 100, diskMiB: 300 });
	assert.equal(info.type, null);
	assert.equal(await box.out('echo ok'), 'ok\n');
});

test('a sandbox made by first use has the default type', async t => {
	const box = await daemon.box(t);
	await box.run('true');
	const info = await box.info();
	assert.equal(info.state, 'running');
	assert.deepEqual(info.limits, TYPES['standard-1']);
	assert.equal(typeof info.incarnation, 'string');
	assert.match(info.startedAt, TIME);
});

test('wrong options are refused and make nothing', async () => {
	const wrong = [
		{ type: 'huge' }, { type: 5 }, { image: 5 }, { image: '../base' }, { image: '' },
		{ limits: 5 }, { limits: { cpu: 0 } }, { limits: { cpu: -1 } }, { limits: { cpu: '1' } },
		{ limits: { memoryMiB: 0 } }, { limits: { memoryMiB: -5 } }, { limits: { memoryMiB: 2 ** 60 } },
		{ limits: { pids: 0 } }, { limits: { pids: 2 ** 40 } }, { limits: { diskMiB: 0 } }, { limits: { diskMiB: 'all' } },
		{ env: [] }, { env: { 'A-B': '1' } }, { env: { '': '1' } }, { env: { '1A': 'x' } }, { env: { A: 1 } }, { env: { A: 'x\0y' } },
		{ labels: [] }, { labels: { a: 1 } }, { labels: 'x' },
		{ sleepAfter: 'soon' }, { sleepAfter: -1 }, { sleepAfter: '5x' }, { sleepAfter: {} }, { sleepAfter: '' },
		{ ephemeral: 'yes' }, { ephemeral: 1 },
	];
	for (const options of wrong)
		refused(await create({ id: 'never-made', ...options }), 400, 'VALIDATION_FAILED');
	refused(await daemon.api('GET', '/v1/sandboxes/never-made'), 404, 'SANDBOX_NOT_FOUND');
});

test('an unknown image is refused and makes nothing', async () => {
	refusedAs4xx(await create({ id: 'never-made', image: 'no-such-image' }));
	refused(await daemon.api('GET', '/v1/sandboxes/never-made'), 404, 'SANDBOX_NOT_FOUND');
});

test('a body that is no object is refused', async () => {
	for (const body of ['[]', '"x"', '5', 'null', 'true', '', '{'])
		refused(await daemon.api('POST', '/v1/sandboxes', body), 400, 'VALIDATION_FAILED');
});

test('env is seen by sessions, streams and sessionless commands', async t => {
	const value = 'it\'s "quoted" $HOME\nand a second line';
	const box = await daemon.box(t, { env: { GREETING: value } });
	assert.equal(await box.out('printf %s "$GREETING"'), value);
	assert.equal(await box.out('printf %s "$GREETING"', { sessionId: '__DISABLE_SESSION__' }), value);
	assert.equal((await collect(box.stream('printf %s "$GREETING"'))).stdout, value);
});

test('a session\'s env wins over the sandbox\'s env', async t => {
	const box = await daemon.box(t, { env: { A: 'box', B: 'box' } });
	await box.api('POST', '/api/session/create', { id: 's', env: { A: 'session' } });
	assert.equal(await box.out('echo $A $B', { sessionId: 's' }), 'session box\n');
	assert.equal(await box.out('echo $A $B', { sessionId: 's', env: { A: 'command' } }), 'command box\n');
});

test('an ephemeral sandbox works like another', async t => {
	const box = await daemon.box(t, { ephemeral: true });
	assert.equal((await box.info()).ephemeral, true);
	assert.equal(await box.out('echo x > /workspace/f; sync /workspace/f; cat /workspace/f'), 'x\n');
});

test('lists are sorted by id and paged', async t => {
	const ids = ['page-c', 'page-a', 'page-e', 'page-B', 'page-d'];
	for (const id of ids)
		await daemon.box(t, { id, labels: { paging: 'yes' } });
	const seen = [];
	let after = '';
	for (let pages = 1; ; pages++) {
		const { status, body } = await daemon.api('GET', `/v1/sandboxes?limit=2&label=paging%3Dyes${after && `&after=${after}`}`);
		assert.equal(status, 200);
		assert.ok(body.sandboxes.length <= 2);
		seen.push(...body.sandboxes.map(s => s.id));
		if (body.next === undefined) {
			assert.equal(pages, 3);
			break;
		}
		after = body.next;
	}
	assert.deepEqual(seen, ids.toSorted());
});

test('a page that starts after an id that does not exist goes on behind it', async t => {
	await daemon.box(t, { id: 'gap-b', labels: { gap: '1' } });
	const { body } = await daemon.api('GET', '/v1/sandboxes?label=gap%3D1&after=gap-a');
	assert.deepEqual(body.sandboxes.map(s => s.id), ['gap-b']);
});

test('several labels must all fit', async t => {
	await daemon.box(t, { id: 'label-1', labels: { team: 'x', tier: 'gold' } });
	await daemon.box(t, { id: 'label-2', labels: { team: 'x', tier: 'tin' } });
	await daemon.box(t, { id: 'label-3', labels: { team: 'y', tier: 'gold' } });
	const ids = async query => (await daemon.api('GET', `/v1/sandboxes?${query}`)).body.sandboxes.map(s => s.id);
	assert.deepEqual(await ids('label=team=x'), ['label-1', 'label-2']);
	assert.deepEqual(await ids('label=team=x&label=tier=gold'), ['label-1']);
	assert.deepEqual(await ids('label=team=z'), []);
});

test('a list shows the usage of each sandbox as a look at one does, also of stopped ones', async t => {
	const boxes = await Promise.all(Array.from({ length: 20 }, () => daemon.box(t)));
	await Promise.all(boxes.map(box => box.run('sleep 600 & head -c 3000000 /dev/urandom > /workspace/f; sync')));
	const listed = async () => {
		const { sandboxes } = (await daemon.api('GET', '/v1/sandboxes?limit=1000')).body;
		return boxes.map(box => sandboxes.find(one => one.id === box.id).usage);
	};
	for (const [i, usage] of (await listed()).entries()) {
		assert.ok(usage.pids >= 2 && usage.memoryBytes > 100_000 && usage.memoryPeakBytes >= usage.memoryBytes && usage.diskBytes >= 3_000_000, `${i}: ${JSON.stringify(usage)}`);
		assert.equal(usage.pids, (await boxes[i].info()).usage.pids);
	}
	await boxes[0].stop();
	const [stopped, other] = await listed();
	assert.deepEqual([stopped.pids, stopped.memoryBytes], [0, 0], 'numbers of before the stop are not shown');
	assert.ok(stopped.diskBytes >= 3_000_000 && other.pids >= 2, JSON.stringify([stopped, other]));
	await boxes[0].run('sleep 600 &');
	assert.ok((await listed())[0].pids >= 2);
	const lists = Array.from({ length: 20 }, () => daemon.api('GET', '/v1/sandboxes?limit=1000'));
	const gone = Promise.all(boxes.slice(1, 6).map(box => box.destroy()));
	for (const { status } of await Promise.all(lists))
		assert.equal(status, 200, 'while some go');
	await gone;
});

test('bad queries of the list are refused', async () => {
	for (const query of ['limit=0', 'limit=-1', 'limit=x', 'limit=1e3', 'limit=99999999999999999999', 'label=novalue', 'label=%zz'])
		refused(await daemon.api('GET', `/v1/sandboxes?${query}`), 400, 'VALIDATION_FAILED');
});

test('usage follows what the sandbox does', async t => {
	const box = await daemon.box(t);
	await box.out('head -c 20000000 /dev/urandom > /workspace/big; sync; sleep 300 & sleep 300 & :');
	const info = await until('usage shows it', async () => {
		const now = await box.info();
		return now.usage.diskBytes >= 20_000_000 && now.usage.pids >= 2 && now;
	});
	assert.ok(info.usage.memoryBytes > 0 && info.usage.memoryPeakBytes >= info.usage.memoryBytes);
	assert.ok(info.usage.cpuMs > 0);
	assert.ok(info.lastUsedAt >= info.createdAt);
});

test('an idle sandbox is paused, later stopped, keeps its files and wakes as another incarnation', async t => {
	const box = await daemon.box(t, { sleepAfter: '1s', stopAfter: '1s' });
	assert.equal((await box.info()).sleepAfter, 1);
	const held = box.out('mkfifo /tmp/gate; read x < /tmp/gate; echo kept > /workspace/file; X=gone'); // awake, however long it takes to look
	const awake = await until('it runs', async () => {
		const info = await box.info();
		return info.incarnation !== null && info;
	});
	assert.equal(awake.state, 'running');
	await box.out('until [ -p /tmp/gate ]; do sleep 0.02; done; echo > /tmp/gate', { sessionId: 'other' });
	await held;
	const asleep = await until('it sleeps', async () => {
		const info = await box.info();
		return info.state === 'stopped' && info;
	});
	assert.equal(asleep.lastDeath.cause, 'idle');
	assert.match(asleep.lastDeath.at, TIME);
	assert.equal(asleep.incarnation, null);
	assert.equal(asleep.usage.pids, 0);
	const woken = box.out('cat /workspace/file; echo [$X]; mkfifo /tmp/again; read x < /tmp/again');
	const seen = []; // while it starts there is none
	const again = await until('it runs again', async () => {
		const info = await box.info();
		seen.push(info.incarnation);
		return info.incarnation !== null && info;
	});
	assert.equal(again.state, 'running');
	assert.equal(typeof again.incarnation, 'string');
	assert.ok(!seen.includes(awake.incarnation), 'of the one before nothing is told');
	await box.out('until [ -p /tmp/again ]; do sleep 0.02; done; echo > /tmp/again', { sessionId: 'other' });
	assert.equal(await woken, 'kept\n[]\n');
});

test('a sandbox does not sleep while a command runs', async t => {
	const box = await daemon.box(t, { sleepAfter: 1 });
	const held = box.out('mkfifo /tmp/gate; touch /tmp/begun; read x < /tmp/gate; echo done');
	await box.out('until [ -e /tmp/begun ]; do sleep 0.02; done', { sessionId: 'other' });
	const begun = Date.now();
	await until('three times the time to sleep', () => Date.now() - begun > 3_000);
	assert.equal((await box.info()).state, 'running');
	await box.out('echo > /tmp/gate', { sessionId: 'other' });
	assert.equal(await held, 'done\n');
});

test('sleepAfter takes seconds, minutes and hours', async t => {
	for (const [given, seconds] of [['30s', 30], ['5m', 300], ['1h', 3600], [90, 90]]) {
		const box = await daemon.box(t, { sleepAfter: given });
		assert.equal((await box.info()).sleepAfter, seconds);
	}
});

test('neighbours share nothing', async t => {
	const [one, two] = [await daemon.box(t), await daemon.box(t)];
	await one.out('echo secret | tee /tmp/f /workspace/f /dev/shm/f > /dev/null; export SECRET=1');
	assert.equal((await two.run('cat /tmp/f /workspace/f /dev/shm/f; env | grep SECRET')).stdout, '');
	const namespaces = box => box.out('for n in user mnt pid net ipc uts cgroup; do readlink /proc/self/ns/$n; done');
	const [a, b] = [(await namespaces(one)).split('\n'), (await namespaces(two)).split('\n')];
	assert.equal(a.filter(n => n && b.includes(n)).length, 0);
});

test('a hundred ids at once all get their sandbox', async t => {
	const boxes = await Promise.all(Array.from({ length: 100 }, () => daemon.box(t)));
	const outs = await Promise.all(boxes.map(box => box.out('echo $HOSTNAME', {}, { deadline: 240_000 })));
	assert.deepEqual(outs, boxes.map(box => `${box.id}\n`));
});
