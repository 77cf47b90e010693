// SPDX-License-Identifier: Apache-2.0
// silt-super executes itself again (silt-super --reload, which systemctl reload runs): everything in the sandboxes lives on. A reload that cannot
// be done changes nothing.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import * as code from '../lib/code.mjs';
import { BUILD, startDaemon } from '../lib/daemon.mjs';
import * as host from '../lib/host.mjs';
import { expose } from '../lib/preview.mjs';
import { follow, start } from '../lib/process.mjs';
import { until } from '../lib/wait.mjs';

const programs = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-reload-'));
const own = path.join(programs, 'silt-super');
let daemon;

/** An installation of its own, whose programs can be replaced. */
before(async () => {
	fs.chmodSync(programs, 0o755);
	for (const name of fs.readdirSync(BUILD).filter(name => /^silt[a-z-]*$/.test(name)))
		fs.copyFileSync(path.join(BUILD, name), path.join(programs, name));
	fs.cpSync(path.join(BUILD, 'interpreters'), path.join(programs, 'interpreters'), { recursive: true });
	daemon = await startDaemon({ build: programs, warm: true });
});

after(async () => {
	await daemon?.stop();
	fs.rmSync(programs, { recursive: true, force: true });
});

/** silt-super --reload: its exit status and what it said. */
const reload = (of = daemon) => new Promise(resolve => {
	execFile(path.join(BUILD, 'silt-super'), ['--config=', `--run=${of.run}`, '--reload'], (error, _, said) => resolve({ status: error?.code ?? 0, said }));
});

async function reloaded(of = daemon) {
	const { status, said } = await reload(of);
	assert.equal(status, 0, `${said}\n${of.log().slice(-3000)}`);
}

/** As an upgrade does it. */
function replace(bytes) {
	fs.writeFileSync(`${own}.new`, bytes, { mode: 0o755 });
	fs.renameSync(`${own}.new`, own);
}

/** A sandbox with one of everything that has to live on. */
async function inhabited(t) {
	const box = await daemon.box(t, { labels: { a: 'b' } });
	await box.out('X=kept; export Y=too; cd /tmp; sleep 1000.7001 &', { sessionId: 'one' });
	const shell = await box.out('echo $$', { sessionId: 'one' });
	const python = await code.context(box, { language: 'python' });
	await code.run(box, python, 'import os\nx = 41; pid = os.getpid()');
	await start(box, 'cd /tmp && exec python3 -m http.server 8000 --bind 127.0.0.1', { processId: 'server' });
	await box.out('echo served > /tmp/page', { sessionId: 'two' });
	const preview = await expose(box, 8000);
	const { incarnation } = await box.info();
	return { box, shell, python, preview, incarnation };
}

async function livesOn({ box, shell, python, preview, incarnation }) {
	assert.equal(await box.out('echo $X $Y $PWD', { sessionId: 'one' }), 'kept too /tmp\n');
	assert.equal(await box.out('echo $$', { sessionId: 'one' }), shell);
	assert.match(await box.out('jobs', { sessionId: 'one' }), /Running/);
	assert.equal((await code.run(box, python, 'x += 1; x, pid == os.getpid()')).results[0].text, `(${++inhabited.x}, True)`);
	assert.equal((await preview.get('/page')).raw.toString(), 'served\n');
	const info = await box.info();
	assert.deepEqual([info.incarnation, info.state, info.labels], [incarnation, 'running', { a: 'b' }]);
	assert.equal(daemon.marked('1000.7001').length, 1);
}

test('sandboxes, sessions, processes, contexts, previews and logs live through five reloads, and nothing is left over', async t => {
	const life = await inhabited(t);
	inhabited.x = 41;
	await livesOn(life);
	const { box } = life;
	await start(box, 'mkfifo /tmp/words; exec 3<>/tmp/words; while read -r line <&3; do echo "$line"; done', { processId: 'log' });
	await box.out('until [ -p /tmp/words ]; do sleep 0.01; done', { sessionId: 'two' });
	let cursor = 0;
	const superPid = daemon.pid;
	await reloaded(); // the first one: what is cached is there
	await livesOn(life);
	const settled = await daemon.atRest();
	for (let round = 0; round < 5; round++) {
		const siltd = daemon.siltd();
		const [priv] = daemon.programs('silt-priv');
		await box.out(`echo round ${round} > /tmp/words`, { sessionId: 'two' });
		const stream = follow(box, 'log', `?cursor=${cursor}`);
		for await (const { event, data } of stream) {
			if (event !== 'stdout')
				continue;
			assert.equal(data.data, `round ${round}\n`, 'exactly what came since');
			cursor = data.cursor;
			break;
		}
		const open = follow(box, 'log', `?cursor=${cursor}`);
		assert.equal((await open.next()).value.event, 'process_info');
		const cut = open.next().catch(error => error);
		await reloaded();
		assert.ok(await cut instanceof Error, 'the stream broke, without an event that was not there');
		assert.equal(daemon.pid, superPid);
		assert.notEqual(daemon.siltd(), siltd, 'a new siltd');
		assert.notEqual(daemon.programs('silt-priv')[0], priv, 'a new silt-priv');
		await livesOn(life);
	}
	const now = await daemon.atRest(); // a worker that waits for file operations may have ended meanwhile
	assert.ok(now.processes <= settled.processes, `${now.processes} processes, ${settled.processes} before`);
	assert.deepEqual({ ...now, processes: settled.processes }, settled);
	assert.equal(fs.readlinkSync(`/proc/${superPid}/exe`), own);
	const fresh = await daemon.box(t);
	assert.equal(await fresh.out('echo new'), 'new\n');
});

test('a new program takes over; the old one is no longer in use', async t => {
	const box = await daemon.box(t);
	await box.out('X=kept');
	replace(fs.readFileSync(path.join(BUILD, 'silt-super')));
	assert.match(fs.readlinkSync(`/proc/${daemon.pid}/exe`), / \(deleted\)$/);
	await reloaded();
	assert.equal(fs.readlinkSync(`/proc/${daemon.pid}/exe`), own);
	assert.equal(await box.out('echo $X'), 'kept\n');
});

for (const [what, bytes] of [['is missing', undefined], ['is no program', 'no program\n'], ['ends at once', '#!/bin/sh\nexit 3\n']]) {
	test(`a new silt-super that ${what}: the reload fails, and everything runs on`, async t => {
		const box = await daemon.box(t);
		await box.out('X=kept');
		const before = [daemon.siltd(), daemon.programs('silt-priv')[0]];
		if (bytes === undefined)
			fs.rmSync(own);
		else
			replace(bytes);
		t.after(() => replace(fs.readFileSync(path.join(BUILD, 'silt-super'))));
		const { status, said } = await reload();
		assert.equal(status, 1);
		assert.match(said, /^silt-super: reload: failed: /);
		assert.match(daemon.log(), /reload\.failed /);
		assert.deepEqual([daemon.siltd(), daemon.programs('silt-priv')[0]], before, 'nobody was restarted');
		assert.equal(await box.out('echo $X'), 'kept\n');
	});
}

test('siltd may be killed right before a reload and right after it', async t => {
	const box = await daemon.box(t);
	await box.out('X=kept; sleep 1000.7002 &');
	process.kill(daemon.siltd(), 'SIGKILL');
	await reloaded();
	process.kill(daemon.siltd(), 'SIGKILL');
	await daemon.healthy();
	assert.equal(await box.out('echo $X'), 'kept\n');
	const old = daemon.siltd();
	const reloading = reload();
	process.kill(await until('the next siltd', () => daemon.programs('siltd').find(pid => pid !== old)), 'SIGKILL'); // before anybody knows that it is ready
	await reloading;
	await daemon.healthy();
	assert.equal(await box.out('echo $X'), 'kept\n');
	assert.equal(daemon.marked('1000.7002').length, 1);
});

test('requests that begin during a reload wait for the new siltd; one that is under way ends by itself or is refused with a code', async t => {
	const box = await daemon.box(t);
	await box.out('X=1; mkfifo /tmp/gate', { sessionId: 's' });
	const held = box.exec('read line < /tmp/gate; echo held', { sessionId: 's' });
	await until('it runs', async () => /read line/.test(await box.out('cat /proc/[0-9]*/cmdline | tr "\\0" " "; echo read line', { sessionId: 'o' })));
	const reloading = reload();
	await until('the old siltd leaves', () => /reload\.begin/.test(daemon.log()));
	// A connection that was idle, or had not sent its request yet, is closed: as always with HTTP/1.1, the client sends it once more.
	const during = Array.from({ length: 20 }, (_, i) => box.exec(`echo ${i}`, { sessionId: `p${i % 4}` }).catch(() => box.exec(`echo ${i}`, { sessionId: `p${i % 4}` })));
	for (const [i, answer] of (await Promise.all(during)).entries()) {
		if (answer.status === 200)
			assert.equal(answer.body.stdout, `${i}\n`);
		else
			assert.equal(answer.body.code, 'OPERATION_INTERRUPTED', answer.raw.toString());
	}
	assert.equal((await reloading).status, 0);
	const answer = await held;
	assert.equal(answer.status, 409, answer.raw.toString());
	assert.equal(answer.body.code, 'OPERATION_INTERRUPTED');
	await box.out('echo go > /tmp/gate', { sessionId: 'o' });
	assert.equal(await box.out('echo $X', { sessionId: 's' }), '1\n');
});

test('reloads that are asked for at once are done one after the other', async t => {
	const box = await daemon.box(t);
	await box.out('X=kept');
	for (const { status, said } of await Promise.all([reload(), reload(), reload()]))
		assert.equal(status, 0, said);
	await until('the last one is done', () => daemon.log().split('reload.begin').length - 1 === daemon.log().split(/reload\.(?:done|failed)/).length - 1 || daemon.programs('siltd').length === 1);
	await daemon.healthy();
	assert.equal(await box.out('echo $X'), 'kept\n');
});

test('a stop during a reload stops the instance in order', async () => {
	const other = await startDaemon();
	const box = await other.box();
	await box.out('sleep 1000.7003 &');
	const reloading = reload(other);
	await until('it hands over', () => /reload\.begin/.test(other.log()));
	await other.stop();
	await reloading;
});

/** Faults that only a build for tests has. */
const unsafe = (without, options) => startDaemon({ build: process.env.SILT_UNSAFE_BUILD, without: [without], ...options });

test('an execve that fails after the check: the programs are started again, and everything lives on', async t => {
	const other = await unsafe('reload_exec');
	t.after(() => other.stop());
	const box = await other.box(undefined);
	await box.out('X=kept');
	const { status, said } = await reload(other);
	assert.equal(status, 1);
	assert.match(said, /failed: execute \/nonexistent\/silt-super: No such file or directory/);
	await other.healthy();
	assert.equal(await box.out('echo $X'), 'kept\n');
});

test('a damaged handover: the instance starts anew, the sandboxes have ended with a cause, their files are there', async t => {
	const other = await unsafe('reload_table');
	t.after(() => other.stop());
	const box = await other.box(undefined);
	await box.out('X=lost; echo kept > /workspace/file; sleep 1000.7004 &');
	const address = other.address;
	const { status, said } = await reload(other);
	assert.equal(status, 1);
	assert.match(said, /failed: started anew, without the running sandboxes: .*a damaged handover/);
	other.address = await until('an address', () => fs.existsSync(path.join(other.run, 'address')) && fs.readFileSync(path.join(other.run, 'address'), 'utf8').trim());
	if (other.address !== address)
		other.client = new other.client.constructor(other.address, other.token);
	await other.healthy();
	const info = await box.info();
	assert.deepEqual([info.state, info.lastDeath.cause], ['stopped', 'daemon_restart']);
	assert.equal(await box.out('cat /workspace/file; echo [$X]'), 'kept\n[]\n');
	assert.deepEqual(host.processesOf(other.instance).filter(p => p.command.includes('1000.7004')), []);
});
