// SPDX-License-Identifier: Apache-2.0
// kill -9 of any program of ours in the middle of work: nothing leaks, the next call works or answers a typed error.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { Box, SESSIONLESS } from '../lib/box.mjs';
import { BUILD, startDaemon } from '../lib/daemon.mjs';
import { envelope } from '../lib/expect.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

/** Ends a program of the instance and waits for its successor. */
async function killAndWait(name, pid) {
	process.kill(pid, 'SIGKILL');
	await until(`another ${name}`, () => daemon.programs(name).some(p => p !== pid) && !daemon.programs(name).includes(pid));
	await daemon.healthy();
}

test('a killed siltd finds sandboxes and sessions again', async t => {
	const box = await daemon.box(t, { labels: { a: 'b' }, limits: { memoryMiB: 300 } });
	await box.out('X=1; export Y=2; cd /tmp; f() { echo f; }; sleep 1000.51 &', { sessionId: 'one' });
	await box.out('X=other', { sessionId: 'two' });
	await box.api('POST', '/api/session/create', { id: 'three', commandTimeoutMs: 4_000, env: { Z: '3' } });
	const shell = await box.out('echo $$', { sessionId: 'one' });
	const before = await box.info();
	await killAndWait('siltd', daemon.siltd());
	assert.equal(await box.out('echo $X $Y $PWD $(f)', { sessionId: 'one' }), '1 2 /tmp f\n');
	assert.equal(await box.out('echo $$', { sessionId: 'one' }), shell);
	assert.equal(await box.out('echo $X', { sessionId: 'two' }), 'other\n');
	assert.equal(await box.out('echo $Z', { sessionId: 'three' }), '3\n');
	assert.equal((await box.exec('sleep 30', { sessionId: 'three' })).status, 500, 'the session kept its timeout');
	assert.match(await box.out('jobs', { sessionId: 'one' }), /Running/);
	assert.deepEqual((await box.api('GET', '/api/session/list')).body.data, ['one', 'two', 'three']);
	const now = await box.info();
	assert.equal(now.incarnation, before.incarnation);
	assert.deepEqual([now.labels, now.limits, now.createdAt], [before.labels, before.limits, before.createdAt]);
});

test('a command that ran while siltd was killed runs to its end', async t => {
	const box = await daemon.box(t);
	await box.out('mkfifo /tmp/gate', { sessionId: 'other' });
	const cut = box.exec('X=set; echo in > /tmp/gate; read line < /tmp/gate; touch /tmp/finished', { sessionId: 's' }).then(a => a, error => error);
	assert.equal(await box.out('cat /tmp/gate', { sessionId: 'other' }), 'in\n');
	await killAndWait('siltd', daemon.siltd());
	assert.ok(await cut instanceof Error, 'the client saw the connection break');
	const waiting = box.out('ls /tmp/finished; echo $X', { sessionId: 's' });
	await box.out('echo out > /tmp/gate', { sessionId: 'other' });
	assert.equal(await waiting, '/tmp/finished\nset\n', 'the session was busy until its command ended');
});

test('streams cut by a killed siltd run to their end', async t => {
	const box = await daemon.box(t);
	await box.out('mkfifo /tmp/gate', { sessionId: 'other' });
	for (const sessionId of ['s', SESSIONLESS]) {
		await box.out('rm -f /tmp/finished', { sessionId: 'other' });
		const stream = box.stream('echo on; read line < /tmp/gate; yes | head -c 3000000; touch /tmp/finished', { sessionId });
		while ((await stream.next()).value.event !== 'stdout')
			;
		await killAndWait('siltd', daemon.siltd());
		await assert.rejects(stream.next());
		await box.out('echo go > /tmp/gate; until [ -e /tmp/finished ]; do sleep 0.01; done', { sessionId: 'other', timeoutMs: 60_000 });
	}
});

test('a killed siltd comes back under load and nothing is lost', async t => {
	const boxes = await Promise.all(Array.from({ length: 8 }, () => daemon.box(t)));
	await Promise.all(boxes.map((box, i) => box.out(`N=${i}`)));
	const load = boxes.map(box => (async () => {
		for (let i = 0; i < 30; i++)
			await box.exec('M=$((M+1))').catch(() => {});
	})());
	await killAndWait('siltd', daemon.siltd());
	await Promise.all(load);
	const outs = await Promise.all(boxes.map(box => box.out('echo $N')));
	assert.deepEqual(outs, boxes.map((_, i) => `${i}\n`));
});

test('a killed silt-priv is replaced; running sandboxes do not notice, new ones work', async t => {
	const box = await daemon.box(t);
	await box.out('X=kept');
	const [pid] = daemon.programs('silt-priv');
	assert.ok(pid, 'silt-priv runs');
	await killAndWait('silt-priv', pid);
	assert.equal(await box.out('echo $X'), 'kept\n');
	const fresh = await daemon.box(t, { type: 'lite' });
	assert.equal(await fresh.out('echo fresh'), 'fresh\n');
	assert.equal((await box.destroy()).destroyed, true);
});

test('creates in flight while silt-priv is killed work or answer a typed error, and nothing is left of them', async t => {
	const boxes = await Promise.all(Array.from({ length: 20 }, () => daemon.box(t)));
	const [pid] = daemon.programs('silt-priv');
	const answers = boxes.map(box => box.exec('echo made'));
	await killAndWait('silt-priv', pid);
	for (const answer of await Promise.all(answers)) {
		if (answer.status !== 200)
			envelope(answer);
	}
	for (const box of boxes)
		assert.equal(await box.out('echo works'), 'works\n');
});

test('every worker of silt-priv may be killed', async t => {
	for (const pid of daemon.programs('silt-priv')) {
		try {
			process.kill(pid, 'SIGKILL');
		} catch (error) {
			assert.equal(error.code, 'ESRCH'); // went with its parent
		}
		const box = await daemon.box(t);
		await until('a new sandbox works', async () => (await box.exec('echo works')).status === 200);
	}
});

test('killing siltd, silt-priv and a silt-init at once leaves a working instance', async t => {
	const box = await daemon.box(t);
	await box.out('echo kept > /workspace/file');
	const priv = await until('silt-priv runs', () => daemon.programs('silt-priv')[0]);
	const [siltd, init] = [daemon.siltd(), await box.init()];
	for (const pid of [init, priv, siltd])
		process.kill(pid, 'SIGKILL');
	await until('both are replaced', () => daemon.programs('siltd').some(p => p !== siltd) && daemon.programs('silt-priv').some(p => p !== priv));
	await daemon.healthy();
	await until('the sandbox works', async () => (await box.exec('cat /workspace/file')).body?.stdout === 'kept\n');
});

test('killing things over and over leaks nothing', async t => {
	const box = await daemon.box(t);
	await box.run('true');
	const before = await daemon.atRest();
	for (let round = 0; round < 4; round++) {
		const victim = await daemon.box(t);
		await victim.run('true');
		process.kill(await victim.init(), 'SIGKILL');
		await killAndWait('siltd', daemon.siltd());
		await killAndWait('silt-priv', daemon.programs('silt-priv')[0]);
		await until('it works', async () => (await victim.exec('true')).status === 200);
		await victim.destroy();
	}
	await box.run('true');
	await daemon.settles(before);
});

test('a stopped and started instance has its sandboxes and their files', async () => {
	const first = await startDaemon();
	const box = await first.box(undefined, { id: 'survivor', labels: { k: 'v' }, limits: { memoryMiB: 200 } });
	await box.out('echo kept > /workspace/file; chmod 640 /workspace/file; chown 5:6 /workspace/file; X=gone');
	const before = await box.info();
	await first.stop({ keep: true });
	const second = await startDaemon({ home: first.home });
	try {
		const again = new Box(second, 'survivor');
		const info = await again.info();
		assert.equal(info.state, 'stopped');
		assert.equal(info.lastDeath.cause, 'daemon_restart');
		assert.deepEqual([info.labels, info.limits, info.createdAt, info.image], [before.labels, before.limits, before.createdAt, before.image]);
		assert.equal(await again.out('cat /workspace/file; stat -c "%u %g %a" /workspace/file; echo [$X]'), 'kept\n5 6 640\n[]\n');
		assert.notEqual((await again.info()).incarnation, before.incarnation);
	} finally {
		await second.stop();
	}
});

test('an instance that is ended while everything is busy leaves nothing', async () => {
	const busy = await startDaemon();
	const boxes = await Promise.all(Array.from({ length: 10 }, () => busy.box(undefined)));
	await Promise.all(boxes.map(box => box.out('sleep 1000 & (setsid sleep 1000 &) ; mkdir -p /tmp/x')));
	const cut = boxes.map(box => box.exec('while :; do :; done').catch(() => {}));
	await busy.stop(); // looks for leftovers itself
	await Promise.all(cut);
});

test('a second instance on the same state or ids is refused', async () => {
	const end = spawnSync(`${BUILD}/silt-super`, [`--state=${daemon.state}`, `--run=${daemon.home}/run2`, `--token_file=${daemon.home}/token2`, '--instance=other', '--listen=127.0.0.1:0', '--preview.listen=127.0.0.1:0', '--ids.count=256', `--ids.base=${0x7f * 2 ** 24}`], { timeout: 60_000, encoding: 'utf8' });
	assert.ok(end.status !== 0 && end.status !== null, 'it ends by itself with an error');
	assert.match(end.stderr + end.stdout, /state|lock|in use|overlap/i);
});

test('no other user can take the locks of an instance, and so keep it from starting again', () => {
	const files = [`${daemon.state}/lock`, `/run/silt-locks/instance-${daemon.instance}`];
	const tries = spawnSync('/bin/sh', ['-c', 'for f; do (: < "$f") 2>/dev/null && echo "$f can be read"; done', 'sh', ...files], { uid: 12_345, gid: 12_345, encoding: 'utf8' });
	assert.equal(tries.stdout, '');
	for (const file of files)
		assert.equal(fs.statSync(file).mode & 0o777, 0o600, file);
	for (const directory of ['/run', '/run/silt-locks'])
		assert.deepEqual([fs.statSync(directory).uid, fs.statSync(directory).mode & 0o022], [0, 0], `${directory}: nobody else is there first`);
});

