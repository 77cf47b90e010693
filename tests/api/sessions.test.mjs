// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { refused, refusedAs4xx, TIME } from '../lib/expect.mjs';
import { until, within } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const create = (box, body) => box.api('POST', '/api/session/create', body);
const remove = (box, sessionId) => box.api('POST', '/api/session/delete', { sessionId });
const list = async box => (await box.api('GET', '/api/session/list')).body.data;

test('a session is made with id, env and cwd', async t => {
	const box = await daemon.box(t);
	await box.out('mkdir -p /workspace/app');
	const { status, body } = await create(box, { id: 'build', env: { CI: '1' }, cwd: '/workspace/app' });
	assert.equal(status, 200);
	assert.equal(body.success, true);
	assert.equal(body.data.id, 'build');
	assert.equal(body.containerPlacementId, null);
	assert.match(body.timestamp, TIME);
	assert.equal(await box.out('echo $PWD $CI; env | grep ^CI=', { sessionId: 'build' }), '/workspace/app 1\nCI=1\n');
});

test('a second create of a live session answers 409', async t => {
	const box = await daemon.box(t);
	await create(box, { id: 'build' });
	assert.deepEqual(refused(await create(box, { id: 'build' }), 409, 'SESSION_ALREADY_EXISTS'), { sessionId: 'build', containerPlacementId: null });
});

test('a create without a body takes every default', async t => {
	const box = await daemon.box(t);
	for (const body of [undefined, {}, { id: '' }]) {
		const answer = await create(box, body);
		assert.equal(answer.status, 200);
		assert.match(answer.body.data.id, /^session_\d+_[0-9a-f]{12}$/);
		assert.equal(await box.out('pwd', { sessionId: answer.body.data.id }), '/workspace\n');
	}
});

test('broken or mistyped bodies of a create are refused', async t => {
	const box = await daemon.box(t);
	const wrong = ['{', '[]', '5', { id: 5 }, { env: [] }, { env: { A: 5 } }, { env: { 'A B': 'x' } }, { cwd: 5 }, { commandTimeoutMs: 'x' }, { commandTimeoutMs: -1 }, { id: 'a\0b' }, { cwd: '/a\0b' }];
	for (const body of wrong)
		refused(await create(box, body), 400, 'VALIDATION_FAILED');
	assert.deepEqual(await list(box), []);
});

test('null values of env are skipped', async t => {
	const box = await daemon.box(t);
	await create(box, { id: 's', env: { A: null, B: 'b' } });
	assert.equal(await box.out('echo [${A-unset}][$B]', { sessionId: 's' }), '[unset][b]\n');
});

test('a start directory that does not exist becomes the home', async t => {
	const box = await daemon.box(t);
	await create(box, { id: 's', cwd: '/no/such/place' });
	const [pwd, home] = (await box.out('pwd; echo ${HOME:-/root}', { sessionId: 's' })).trim().split('\n');
	assert.equal(pwd, home);
});

test('the list shows ids in the order they were made', async t => {
	const box = await daemon.box(t);
	assert.deepEqual(await list(box), []);
	await create(box, { id: 'zebra' });
	await box.run('true');
	await box.run('true', { sessionId: 'ant' });
	await create(box, { id: 'mole' });
	assert.deepEqual(await list(box), ['zebra', 'default', 'ant', 'mole']);
});

test('a deleted session is gone and its id starts fresh', async t => {
	const box = await daemon.box(t);
	await box.out('X=1; cd /tmp', { sessionId: 's' });
	const { status, body } = await remove(box, 's');
	assert.equal(status, 200);
	assert.deepEqual({ ...body, timestamp: 0 }, { success: true, sessionId: 's', timestamp: 0 });
	assert.deepEqual(await list(box), []);
	assert.equal(await box.out('echo [$X] $PWD', { sessionId: 's' }), '[] /workspace\n');
});

test('deleting an unknown session says so', async t => {
	const box = await daemon.box(t);
	const context = refused(await remove(box, 'nobody'), 500, 'INTERNAL_ERROR');
	assert.equal(context.sessionId, 'nobody');
	assert.equal(context.originalError, 'Session not found');
});

test('deleting without a session id is refused', async t => {
	const box = await daemon.box(t);
	for (const body of [{}, { sessionId: '' }, { sessionId: 5 }, '', '{', '[]'])
		refused(await box.api('POST', '/api/session/delete', body), 400, 'VALIDATION_FAILED');
});

test('deleting waits for the running command', async t => {
	const box = await daemon.box(t);
	await box.out('mkfifo /tmp/gate', { sessionId: 'helper' });
	const order = [];
	const running = box.run('read line < /tmp/gate; echo got $line', { sessionId: 's' }).then(body => { order.push('command'); return body; });
	await until('session s exists', async () => (await list(box)).includes('s'));
	const removing = remove(box, 's').then(answer => { order.push('delete'); return answer; });
	await box.out('echo through > /tmp/gate', { sessionId: 'helper' });
	assert.equal((await running).stdout, 'got through\n');
	assert.equal((await removing).status, 200);
	assert.deepEqual(order, ['command', 'delete']);
});

test('deleting a session ends its background jobs and streamed commands', async t => {
	const box = await daemon.box(t);
	await box.out('sleep 1000.81 & (setsid sleep 1000.82 &)', { sessionId: 's' });
	const stream = box.stream('sleep 1000.83', { sessionId: 's' });
	assert.equal((await stream.next()).value.event, 'start');
	await until('all three run', () => ['1000.81', '1000.82', '1000.83'].every(m => daemon.marked(m).length === 1));
	await remove(box, 's');
	assert.deepEqual(['1000.81', '1000.82', '1000.83'].flatMap(m => daemon.marked(m)), []);
	await stream.return();
});

test('first use of an id makes the session', async t => {
	const box = await daemon.box(t);
	await box.out('X=kept', { sessionId: 'implicit' });
	assert.equal(await box.out('echo $X', { sessionId: 'implicit' }), 'kept\n');
	assert.deepEqual(await list(box), ['implicit']);
});

test('a session made by first use starts in the request\'s cwd and stays there', async t => {
	const box = await daemon.box(t);
	assert.equal(await box.out('pwd', { sessionId: 's', cwd: '/tmp' }), '/tmp\n');
	assert.equal(await box.out('pwd', { sessionId: 's' }), '/tmp\n');
});

test('the timeout of the call that made a session does not stick to it', async t => {
	const box = await daemon.box(t);
	await box.out('true', { sessionId: 's', timeoutMs: 4_000 });
	assert.equal(await box.out('sleep 4.5; echo later', { sessionId: 's' }), 'later\n');
});

test('commandTimeoutMs bounds every command, a request\'s own timeout wins', async t => {
	const box = await daemon.box(t);
	await create(box, { id: 's', commandTimeoutMs: 300 });
	const context = refused(await box.exec('sleep 30', { sessionId: 's' }), 500, 'COMMAND_EXECUTION_ERROR');
	assert.match(context.stderr, /Command timeout after 300ms/);
	assert.equal(await box.out('sleep 0.6; echo later', { sessionId: 's', timeoutMs: 20_000 }), 'later\n');
});

test('the session is taken from body, then X-Session-Id, then the query', async t => {
	const box = await daemon.box(t);
	const ask = async (path, body, headers) => (await box.api('POST', path, { command: 'true', ...body }, { headers })).body.sessionId;
	assert.equal(await ask('/api/execute?session=q', { sessionId: 'b' }, { 'x-session-id': 'h' }), 'b');
	assert.equal(await ask('/api/execute?session=q', {}, { 'x-session-id': 'h' }), 'h');
	assert.equal(await ask('/api/execute?session=q', {}), 'q');
	assert.equal(await ask('/api/execute?sessionId=p', {}), 'p');
	assert.equal(await ask('/api/execute', {}), undefined);
	assert.deepEqual(await list(box), ['b', 'h', 'q', 'p', 'default']);
});

test('an empty session id counts as none', async t => {
	const box = await daemon.box(t);
	await box.out('X=default');
	assert.equal(await box.out('echo $X', { sessionId: '' }), 'default\n');
	assert.equal(await box.out('echo $X', { sessionId: 'default' }), 'default\n');
});

test('a blank session id is refused', async t => {
	const box = await daemon.box(t);
	for (const sessionId of [' ', '\t', '\n  ']) {
		refused(await box.exec('true', { sessionId }), 500, 'COMMAND_EXECUTION_ERROR');
		refused(await box.api('POST', '/api/execute/stream', { command: 'true', sessionId }), 500, 'STREAM_START_ERROR');
	}
});

test('session ids are any text', async t => {
	const box = await daemon.box(t);
	const ids = ['a b', '../../etc', 'quote\'"`$(touch /tmp/x)', 'ünïcode \u{1f600}', 'line\nbreak', '-rf', '*'];
	for (const sessionId of ids) {
		const body = await box.run('X=1', { sessionId });
		assert.equal(body.sessionId, sessionId);
		assert.equal(await box.out('echo $X', { sessionId }), '1\n');
	}
	assert.deepEqual(await list(box), ids);
	assert.equal((await box.run('ls /tmp/x', { sessionId: '__DISABLE_SESSION__' })).exitCode, 2);
});

test('an endless session id is refused', async t => {
	const box = await daemon.box(t);
	refusedAs4xx(await box.exec('true', { sessionId: 's'.repeat(1_000_000) }));
	refusedAs4xx(await create(box, { id: 's'.repeat(1_000_000) }));
});

test('more sessions than a sandbox may have are refused as a limit', async t => {
	const box = await daemon.box(t);
	const answers = [];
	for (let i = 0; i < 80 && answers.at(-1)?.status !== 429; i++)
		answers.push(await create(box, { id: `s${i}` }));
	refused(answers.at(-1), 429, 'LIMIT_REACHED');
	assert.ok(answers.length > 32);
	assert.equal((await remove(box, 's0')).status, 200);
	assert.equal((await create(box, { id: 'again' })).status, 200);
});

test('each command of a session runs once, also while many others start', async t => {
	const box = await daemon.box(t);
	for (let round = 0; round < 4; round++) {
		const commands = [], others = [];
		for (let i = 0; i < 80; i++) {
			commands.push(box.out(`echo ${i} >> /tmp/round-${round}; echo ${i}`));
			others.push(box.run(i % 4 ? 'true' : 'seq 20000', { sessionId: '__DISABLE_SESSION__' }));
		}
		const outputs = await within(120_000, 'all commands', Promise.all(commands));
		await Promise.all(others);
		assert.deepEqual(outputs, outputs.map((_, i) => `${i}\n`));
		assert.equal(await box.out(`cat /tmp/round-${round}`), outputs.join(''));
	}
});

test('sessions do not see each other\'s state', async t => {
	const box = await daemon.box(t);
	await box.out('X=a; cd /tmp; f() { echo f; }; umask 077', { sessionId: 'a' });
	assert.equal(await box.out('echo [$X] $PWD $(type -t f) $(umask)', { sessionId: 'b' }), '[] /workspace 0022\n');
});

test('a shell that stops itself goes on, with its session', async t => {
	const box = await daemon.box(t);
	assert.equal(await box.out('X=kept; kill -STOP $$; echo on', { sessionId: 's' }), 'on\n');
	assert.equal(await box.out('echo $X', { sessionId: 's' }), 'kept\n');
});

test('a session whose shell stands still can be deleted', async t => {
	const box = await daemon.box(t);
	const pid = (await box.out('echo $$', { sessionId: 'idle' })).trim();
	await box.out(`kill -STOP ${pid}`, { sessionId: '__DISABLE_SESSION__' });
	assert.equal((await remove(box, 'idle')).status, 200);
	const busy = box.exec('kill -STOP $$; sleep 1', { sessionId: 'busy' });
	await until('it is busy', async () => (await list(box)).includes('busy'));
	assert.equal((await remove(box, 'busy')).status, 200);
	await busy;
	assert.deepEqual(await list(box), []);
});

test('a session whose directory is cleared away is followed by a fresh one', async t => {
	const box = await daemon.box(t);
	await box.out('X=1', { sessionId: 's' });
	await box.out('rm -rf /dev/silt/*', { sessionId: '__DISABLE_SESSION__' });
	refused(await box.exec('echo a', { sessionId: 's' }), 410, 'SESSION_TERMINATED');
	assert.equal(await box.out('echo [$X]', { sessionId: 's' }), '[]\n');
});

const internally = (box, command, sessionId = 'sandbox-x') => box.run(command, { sessionId, origin: 'internal' });
const shown = async (box, sessionId) => (await box.out('echo "[$A|$B|$C]"', { sessionId })).trim();

test('variables that a client sets by commands of its own are those of later sessions, also after a crash', async t => {
	const box = await daemon.box(t);
	await create(box, { id: 'before' });
	await internally(box, "export A='it'\\''s $(here) \n'");
	await internally(box, "export B='old'");
	await internally(box, "export B=''");
	await internally(box, "export C='c'");
	await internally(box, 'unset C');
	assert.equal(await shown(box, 'before'), '[||]');
	assert.equal(await shown(box, 'sandbox-x'), "[it's $(here) \n||]");
	await create(box, { id: 'after', env: { B: 'own' } });
	assert.equal(await shown(box, 'after'), "[it's $(here) \n|own|]");
	assert.equal(await shown(box, 'first use'), "[it's $(here) \n||]");
	assert.equal((await box.run('echo "[$A]"', { sessionId: '__DISABLE_SESSION__' })).stdout, '[]\n');
	process.kill(await box.init(), 'SIGKILL');
	await until('a new shell', async () => (await box.exec('true', { sessionId: 'later' })).status === 200);
	assert.equal(await shown(box, 'later'), "[it's $(here) \n||]");
});

test('other commands set nothing for later sessions', async t => {
	const box = await daemon.box(t);
	await box.run("export A='a'", { sessionId: 's' });
	await box.run("export A='a'", { sessionId: 's', origin: 'user' });
	await box.run("export A='a'", { sessionId: 's', origin: 5 });
	for (const command of ["export A='a'; true", "export A='a' B='b'", 'export A=a', "export A='a", "export A=", "export A", "export ='a'", "export 1A='a'", "export A-B='a'", "true; export A='a'", "export A='a'\\''", "export A=''a''", ' unset A', 'unset A B'])
		await box.exec(command, { sessionId: 'sandbox-x', origin: 'internal' });
	assert.equal(await shown(box, 'later'), '[||]');
	for (let i = 0; i < 6; i++)
		await internally(box, `export A='${String(i).repeat(60_000)}'; true`.replace('; true', ''));
	assert.equal((await box.out('echo ${A:0:3} ${#A}', { sessionId: 'latest' })), '555 60000\n');
	await internally(box, `export B='${'x'.repeat(120_000)}'`); // more than is kept
	assert.equal((await box.out('echo ${#A} ${#B}', { sessionId: 'latest of all' })), '60000 0\n');
});
