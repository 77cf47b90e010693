// SPDX-License-Identifier: Apache-2.0
// silt run, ps, logs and kill: background processes from the command line, against a daemon of the test's own.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { silt as runSilt } from '../lib/silt.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const silt = (args, options) => runSilt(daemon, args, options);

test('run -d prints the id of a process that goes on', async t => {
	const box = await daemon.box(t);
	const end = await silt(['run', '-d', box.id, '--name', 'web', '--', 'echo up; sleep 1000']);
	assert.deepEqual([end.stdout, end.stderr, end.code], ['web\n', '', 0]);
	assert.match((await silt(['ps', box.id])).stdout, /^web +\d+ running +\d{4}-\d\d-\d\dT.* echo up; sleep 1000$/m);
	const made = (await silt(['run', '-d', box.id, '--', 'true'])).stdout.trim();
	assert.match(made, /^\S+$/);
	assert.notEqual(made, 'web');
});

test('ps shows ended ones with --all, and everything as JSON', async t => {
	const box = await daemon.box(t);
	await box.run('true');
	assert.match((await silt(['ps', box.id])).stderr, /no running processes/);
	assert.equal((await silt(['run', box.id, '--name', 'p', '--', 'exit 3'])).code, 3);
	assert.doesNotMatch((await silt(['ps', box.id])).stdout, /^p /m);
	assert.match((await silt(['ps', '--all', box.id])).stdout, /^p +\d+ failed +3 /m);
	const [p] = JSON.parse((await silt(['ps', box.id, '--json'])).stdout);
	assert.deepEqual([p.id, p.exitCode], ['p', 3]);
});

test('run shows the output and passes the exit code on', async t => {
	const box = await daemon.box(t);
	const end = await silt(['run', box.id, '--', 'echo out; echo err >&2; exit 7']);
	assert.deepEqual([end.stdout, end.stderr, end.code], ['out\n', 'err\n', 7]);
	const words = await silt(['run', box.id, '--', 'printf', '%s|', 'a b', "it's", '$HOME']);
	assert.equal(words.stdout, "a b|it's|$HOME|");
});

test('run takes a directory, variables, a user, a session and a timeout', async t => {
	const box = await daemon.box(t);
	assert.equal((await silt(['run', box.id, '--cwd', '/tmp', '--env', 'A=x y', '--', 'echo $PWD $A'])).stdout, '/tmp x y\n');
	assert.equal((await silt(['run', box.id, '--user', 'nobody', '--', 'id -un'])).stdout, 'nobody\n');
	await box.run('cd /var; greet() { echo hi; }', { sessionId: 's' });
	assert.equal((await silt(['run', box.id, '--session', 's', '--', 'pwd; greet'])).stdout, '/var\nhi\n');
	assert.equal((await silt(['run', box.id, '--timeout', '300ms', '--', 'sleep 60'])).code, 124);
});

test('Ctrl-C ends what run has started, and shows its last words', async t => {
	const box = await daemon.box(t);
	let sent = false;
	const end = await silt(['run', box.id, '--name', 'p', '--', 'trap "echo bye; exit 9" TERM; echo up; while :; do sleep 0.05; done'], {
		onOutput: (text, child) => { if (!sent) { sent = true; child.kill('SIGINT'); } },
	});
	assert.equal(end.stdout, 'up\nbye\n');
	assert.equal(end.code, 9);
	assert.doesNotMatch((await silt(['ps', box.id])).stdout, /^p /m);
});

test('logs replays what a process wrote, one stream or both', async t => {
	const box = await daemon.box(t);
	await silt(['run', '-d', box.id, '--name', 'p', '--', 'echo out; until [ -e /tmp/go ]; do sleep 0.05; done; echo err >&2']);
	await until('the first line is in the log', async () => (await silt(['logs', box.id, 'p'])).stdout === 'out\n'); // two pipes have no order
	await box.run('touch /tmp/go');
	assert.equal((await silt(['logs', '-f', box.id, 'p'])).code, 0);
	assert.equal((await silt(['logs', box.id, 'p', '--stdout'])).stdout, 'out\n');
	assert.equal((await silt(['logs', box.id, 'p', '--stderr'])).stdout, 'err\n');
	const both = await silt(['logs', box.id, 'p']);
	assert.deepEqual([both.stdout, both.stderr, both.code], ['out\nerr\n', '', 0]);
});

test('logs gives bytes as they were written', async t => {
	const box = await daemon.box(t);
	await silt(['run', box.id, '--name', 'p', '--', "printf 'a\\000b\\377\\303'; sleep 0.1; printf 'x\\303'; sleep 0.1; printf '\\244\\303'"]);
	const bytes = Buffer.from([0x61, 0, 0x62, 0xff, 0xc3, 0x78, 0xc3, 0xa4, 0xc3]);
	assert.deepEqual((await silt(['logs', box.id, 'p'])).raw, bytes);
	assert.deepEqual((await silt(['logs', '-f', box.id, 'p'])).raw, bytes);
});

test('logs says what is no longer kept', async t => {
	const box = await daemon.box(t);
	const size = 20 << 20;
	await silt(['run', '-d', box.id, '--name', 'p', '--', `yes | head -c ${size}`]);
	await until('it has ended', async () => /no running/.test((await silt(['ps', box.id])).stderr));
	for (const words of [['logs', box.id, 'p'], ['logs', '-f', box.id, 'p']]) {
		const end = await silt(words);
		const [, dropped] = /^silt: (\d+) bytes of older output are no longer kept\n$/.exec(end.stderr);
		assert.ok(Number(dropped) > 0);
		assert.equal(end.raw.length + Number(dropped), size, words.join(' '));
	}
});

test('logs -f follows until the end and passes the exit code on', async t => {
	const box = await daemon.box(t);
	await silt(['run', '-d', box.id, '--name', 'p', '--', 'echo first; until [ -e /tmp/go ]; do sleep 0.05; done; echo last; exit 5']);
	let touched;
	const end = await silt(['logs', '-f', box.id, 'p'], {
		onOutput: text => {
			if (text === 'first\n')
				touched ??= box.run('touch /tmp/go', { sessionId: 'other' });
		},
	});
	await touched;
	assert.deepEqual([end.stdout, end.code], ['first\nlast\n', 5]);
});

test('logs -f goes on over a restart of the daemon, without a gap or a line twice', async t => {
	const box = await daemon.box(t);
	await silt(['run', '-d', box.id, '--name', 'p', '--', 'echo first; until [ -e /tmp/go ]; do sleep 0.05; done; echo last']);
	const touch = () => {
		process.kill(daemon.siltd(), 'SIGKILL');
		return until('the daemon is back', () => box.run('touch /tmp/go', { sessionId: 'other' }));
	};
	let touched;
	const end = await silt(['logs', '-f', box.id, 'p'], {
		onOutput: text => {
			if (text === 'first\n')
				touched ??= touch();
		},
	});
	assert.ok(await touched);
	assert.deepEqual([end.stdout, end.code], ['first\nlast\n', 0]);
});

test('Ctrl-C leaves a followed process running', async t => {
	const box = await daemon.box(t);
	await silt(['run', '-d', box.id, '--name', 'p', '--', 'echo up; sleep 1000']);
	const end = await silt(['logs', '-f', box.id, 'p'], { onOutput: (text, child) => child.kill('SIGINT') });
	assert.equal(end.code, 130);
	assert.match((await silt(['ps', box.id])).stdout, /^p +\d+ running/m);
});

test('kill ends a process with the signal that is asked for', async t => {
	const box = await daemon.box(t);
	await silt(['run', '-d', box.id, '--name', 'a', '--', 'sleep 1000']);
	await silt(['run', '-d', box.id, '--name', 'b', '--', 'sleep 1000']);
	assert.deepEqual((({ stdout, code }) => [stdout, code])(await silt(['kill', box.id, 'a'])), ['a\n', 0]);
	assert.equal((await silt(['kill', box.id, 'b', '-s', 'KILL'])).code, 0);
	const all = () => silt(['ps', box.id, '--json']).then(end => JSON.parse(end.stdout).map(p => [p.id, p.status, p.exitCode]).sort());
	await until('both have ended', async () => (await all()).every(p => p[1] !== 'running'));
	assert.deepEqual(await all(), [['a', 'killed', 143], ['b', 'killed', 137]]);
	const again = await silt(['kill', box.id, 'a']);
	assert.equal(again.code, 125);
	assert.match(again.stderr, /'a'.*already completed/);
	assert.equal((await all()).length, 2, 'the record of an ended process stays');
	await silt(['run', '-d', box.id, '--name', 'c', '--', 'trap "echo got it; exit 4" USR1; echo up; while :; do sleep 0.05; done']);
	await until('it has set its trap', async () => (await silt(['logs', box.id, 'c'])).stdout === 'up\n');
	assert.equal((await silt(['kill', box.id, 'c', '-s', 'USR1'])).code, 0);
	assert.deepEqual((({ stdout, code }) => [stdout, code])(await silt(['logs', '-f', box.id, 'c'])), ['up\ngot it\n', 4]);
});

test('kill --all ends every process', async t => {
	const box = await daemon.box(t);
	for (const name of ['a', 'b', 'c'])
		await silt(['run', '-d', box.id, '--name', name, '--', 'sleep 1000']);
	assert.equal((await silt(['kill', box.id, '--all'])).code, 0);
	assert.match((await silt(['ps', box.id])).stderr, /no running processes/);
});

test('a process that is not there is named, with the way out', async t => {
	const box = await daemon.box(t);
	await box.run('true');
	for (const words of [['logs', box.id, 'nope'], ['logs', '-f', box.id, 'nope'], ['kill', box.id, 'nope']]) {
		const end = await silt(words);
		assert.equal(end.code, 125, words.join(' '));
		assert.match(end.stderr, /nope/);
	}
	assert.match((await silt(['kill', box.id])).stderr, /usage/);
	assert.match((await silt(['run', box.id])).stderr, /usage/);
	assert.match((await silt(['logs', box.id])).stderr, /usage/);
	assert.match((await silt(['ps'])).stderr, /usage/);
});
