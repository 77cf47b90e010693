// SPDX-License-Identifier: Apache-2.0
// What sessions keep when the processes of their sandbox end: directory, exported variables, timeout.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const sessions = async box => (await box.api('GET', '/api/session/list')).body.data.toSorted();

test('directory and exported variables of every session come back after a stop at once', async t => {
	const box = await daemon.box(t, { env: { GIVEN: 'once', GONE: 'yes' } });
	await box.api('POST', '/api/session/create', { id: 'own', cwd: '/usr', env: { MINE: '1' } });
	await box.out('mkdir -p /tmp/a\\ b; cd /tmp/a\\ b; export PLAIN=1 QUOTED="a\\"b\\$c\\`d\\\\" LINES=$\'x\\ny\\t\\\'z\\x01\\xff\' EMPTY= ÜBER=1 2>/dev/null; export UTF=häß; HIDDEN=1; unset GONE; export PATH=$PATH:/opt/x');
	await box.out('export MINE=2', { sessionId: 'own' });
	await box.change('restart');
	assert.deepEqual(await sessions(box), ['default', 'own']);
	assert.equal(await box.out('echo "$PWD|$PLAIN|$QUOTED|${EMPTY+set}|$UTF|$HIDDEN|${GONE-unset}|$GIVEN|${PATH##*:}|$SHLVL"; printf %s "$LINES" | od -An -tx1'),
		'/tmp/a b|1|a"b$c`d\\|set|häß||unset|once|/opt/x|1\n 78 0a 79 09 27 7a 01 ff\n');
	assert.equal(await box.out('echo $PWD $MINE $PLAIN', { sessionId: 'own' }), '/usr 2\n');
	assert.equal(await box.out('printenv PLAIN UTF'), '1\nhäß\n', 'programs see them');
});

test('they come back after a crash of the sandbox, and the notice says what is lost', async t => {
	const box = await daemon.box(t, {});
	await until('a crash that came after the report', async () => { // it is made some milliseconds after the command
		await box.out('cd /tmp; export A=1; B=2');
		const { incarnation } = await box.info();
		process.kill(await box.init(), 'SIGKILL');
		await until('the crash is noticed', async () => (await box.info()).incarnation !== incarnation);
		const body = await box.run('echo $PWD $A $B; unset A');
		assert.match(body.notice.message, /directory and exported variables are kept/);
		return body.stdout === '/tmp 1\n';
	});
});

test('they come back after a restart and a crash of siltd, and after one of all of Silt', async t => {
	const own = await startDaemon();
	let last = own;
	t.after(() => last.stop());
	const box = await own.box(undefined, { id: 'lasting' });
	await box.out('cd /tmp; export A=1');
	await box.stop();
	process.kill(own.siltd(), 'SIGKILL');
	await own.healthy();
	assert.equal(await box.out('echo $PWD $A'), '/tmp 1\n', 'stopped when siltd was killed');
	await box.out('export A=2');
	process.kill(own.siltd(), 'SIGKILL');
	await own.healthy();
	await box.stop();
	assert.equal(await box.out('echo $PWD $A'), '/tmp 2\n', 'running when siltd was killed');
	await own.stop({ keep: true });
	last = await startDaemon({ home: own.home });
	const again = await last.box(undefined, { id: 'other' });
	again.id = 'lasting';
	assert.equal(await again.out('echo $PWD $A'), '/tmp 2\n', 'after a restart of all');
});

test('a session that sleeps is amended by a create; a deleted or exited one is gone', async t => {
	const box = await daemon.box(t, {});
	await box.out('cd /tmp; export A=1 B=1', { sessionId: 'x' });
	await box.out('cd /tmp; export A=1', { sessionId: 'deleted' });
	await box.out('cd /tmp; export A=1', { sessionId: 'exited' });
	assert.equal((await box.api('POST', '/api/session/delete', { sessionId: 'deleted' })).status, 200);
	await box.exec('exit 3', { sessionId: 'exited' });
	await box.stop();
	assert.equal((await box.api('POST', '/api/session/create', { id: 'x', env: { B: '2', C: '3' } })).status, 200);
	assert.equal((await box.api('POST', '/api/session/create', { id: 'x' })).status, 409, 'it is awake now');
	assert.equal(await box.out('echo $PWD $A $B $C', { sessionId: 'x' }), '/tmp 1 2 3\n');
	for (const sessionId of ['deleted', 'exited'])
		assert.equal(await box.out('echo $PWD $A', { sessionId }), '/workspace\n');
});

test('variables that a client set for all sessions stay, and an update of the sandbox reaches sessions that did not set their own', async t => {
	const box = await daemon.box(t, { env: { A: '1', B: '1' } });
	await box.out('export B=mine');
	await box.out("export FROM='client'", { origin: 'internal' });
	await box.update({ env: { A: '2', B: '2' } });
	await box.stop();
	assert.equal(await box.out('echo $A $B $FROM'), '2 mine client\n');
	assert.equal(await box.out('echo $A $B $FROM', { sessionId: 'new' }), '2 2 client\n');
});

test('a directory that is gone, too many variables and a hostile report cost only themselves', async t => {
	const box = await daemon.box(t, {});
	await box.out('mkdir /tmp/d; cd /tmp/d; export A=1');
	await box.out('rmdir /tmp/d');
	await box.out('export A=1; for i in {1..700}; do printf -v V$i %0100d $i; export V$i; done', { sessionId: 'much' });
	await box.out('cd /tmp; export A=1', { sessionId: 'hostile' });
	await box.out('rm -f /dev/silt/*x; ln -s /tmp/elsewhere /dev/silt/1x; echo "declare -x A=\\"broken" > /dev/silt/2x', { sessionId: 'hostile' });
	await box.stop();
	assert.equal(await box.out('echo $A; test -d "$PWD"'), '1\n');
	assert.equal(await box.out('echo ${V1-none}', { sessionId: 'much' }), 'none\n', 'more than 60 KiB are not kept');
	assert.equal(await box.out('echo $PWD', { sessionId: 'hostile' }), '/tmp\n');
});

test('destroy forgets them', async t => {
	const box = await daemon.box(t, {});
	await box.out('cd /tmp; export A=1');
	await box.stop();
	await box.destroy();
	assert.equal(await box.out('echo $PWD $A'), '/workspace\n');
});
