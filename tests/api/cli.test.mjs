// SPDX-License-Identifier: Apache-2.0
// The silt command line, as a user types it, against a daemon of the test's own.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { BUILD, startDaemon } from '../lib/daemon.mjs';
import { silt as runSilt } from '../lib/silt.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const silt = (args, options) => runSilt(daemon, args, options);

test('exec prints stdout and stderr apart and passes the exit code on', async t => {
	const box = await daemon.box(t);
	const end = await silt(['exec', box.id, '--', 'echo out; echo err >&2; exit 7']);
	assert.deepEqual([end.stdout, end.stderr, end.code], ['out\n', 'err\n', 7]);
});

test('exec passes bytes of any kind on as they are', async t => {
	const box = await daemon.box(t);
	const end = await silt(['exec', box.id, '--', "printf 'gr\\303'; printf '\\274n\\0\\377\\n'; printf 'e\\200' >&2; head -c 3000000 /dev/urandom | tee /tmp/random; printf '\\303'"]);
	assert.equal(end.code, 0, end.stderr);
	const { raw } = await daemon.api('GET', `/v1/sandboxes/${box.id}/files?path=/tmp/random`);
	assert.ok(end.raw.equals(Buffer.concat([Buffer.from('gr\u00fcn\0', 'utf8'), Buffer.from([0xff, 0x0a]), raw, Buffer.from([0xc3])])), `${end.raw.length} bytes`);
});

test('exec quotes several words for the shell', async t => {
	const box = await daemon.box(t);
	const end = await silt(['exec', box.id, '--', 'printf', '%s|', 'a b', "it's", '$HOME', '*']);
	assert.deepEqual([end.stdout, end.code], ["a b|it's|$HOME|*|", 0]);
});

test('exec shows output while the command runs', async t => {
	const box = await daemon.box(t);
	let touched;
	const end = await silt(['exec', box.id, '--', 'echo first; until [ -e /tmp/go ]; do sleep 0.05; done; echo last'], {
		onOutput: text => {
			if (text === 'first\n')
				touched ??= box.run('touch /tmp/go', { sessionId: 'other' });
		},
	});
	assert.ok(await touched, 'the first line came before the end');
	assert.deepEqual([end.stdout, end.code], ['first\nlast\n', 0]);
});

test('exec takes a session, a directory, variables and a timeout', async t => {
	const box = await daemon.box(t);
	assert.equal((await silt(['exec', box.id, '--session', 's', '--cwd', '/tmp', '--env', 'A=x y', '--', 'echo $PWD $A'])).stdout, '/tmp x y\n');
	const end = await silt(['exec', box.id, '--timeout', '300ms', '--', 'sleep 60']);
	assert.equal(end.code, 124);
	assert.match(end.stderr, /timed out/);
});

test('exec keeps changes of the shell with --keep', async t => {
	const box = await daemon.box(t);
	assert.equal((await silt(['exec', box.id, '--keep', '--', 'cd /var; X=1'])).code, 0);
	assert.equal((await silt(['exec', box.id, '--', 'echo $PWD $X'])).stdout, '/var 1\n');
});

test('Ctrl-C detaches and the command runs on', async t => {
	const box = await daemon.box(t);
	let sent = false;
	const end = await silt(['exec', box.id, '--', 'echo started; sleep 1; touch /tmp/finished'], {
		onOutput: (text, child) => { if (!sent) { sent = true; child.kill('SIGINT'); } },
	});
	assert.equal(end.stdout, 'started\n');
	assert.notEqual(end.code, 0);
	await until('the command has finished', async () => (await box.exec('test -e /tmp/finished')).body.exitCode === 0);
});

test('create makes a sandbox of the image, type, network, variables and labels that were named', async t => {
	const id = `made-${process.pid}`;
	t.after(() => daemon.api('DELETE', `/v1/sandboxes/${id}`));
	const made = await silt(['create', id, '--image', 'host', '--type', 'lite', '--network', 'none', '--env', 'GREETING=good day', '--label', 'team=x=y', '--sleep-after', '20m']);
	assert.deepEqual([made.stdout, made.code], [`${id}\n`, 0], made.stderr);
	const { image, type, labels, sleepAfter } = JSON.parse((await silt(['info', id, '--json'])).stdout);
	assert.deepEqual([image.name, type, labels, sleepAfter], ['host', 'lite', { team: 'x=y' }, 1200]);
	assert.equal((await silt(['exec', id, '--', 'echo $GREETING'])).stdout, 'good day\n');
	const again = await silt(['create', id]);
	assert.match(again.stderr, new RegExp(`${id}.*exists`));
	assert.equal(again.code, 125);
});

test('create gives an id when none is named, and says what was wrong', async t => {
	const made = JSON.parse((await silt(['create', '--json', '--ephemeral'])).stdout);
	t.after(() => daemon.api('DELETE', `/v1/sandboxes/${made.id}`));
	assert.equal(made.ephemeral, true);
	for (const [words, why] of [[['--image', 'nowhere'], /nowhere/], [['--type', 'huge'], /type/], [['--label', 'x'], /KEY=VALUE/], [['--env', '1=x'], /NAME=VALUE/]]) {
		const end = await silt(['create', ...words]);
		assert.equal(end.code, 125);
		assert.match(end.stderr, why);
	}
});

test('ls, info and rm see the same sandboxes as the API', async t => {
	const box = await daemon.box(t, { labels: { team: 'x' } });
	assert.match((await silt(['ls'])).stdout, new RegExp(`^${box.id}\\b.*running`, 'm'));
	const listed = JSON.parse((await silt(['ls', '--json'])).stdout);
	assert.ok((listed.sandboxes ?? listed).some(s => s.id === box.id));
	assert.equal(JSON.parse((await silt(['info', box.id, '--json'])).stdout).labels.team, 'x');
	assert.match((await silt(['info', box.id])).stdout, /standard-1/);
	assert.equal((await silt(['rm', box.id])).code, 0);
	const end = await silt(['info', box.id]);
	assert.notEqual(end.code, 0);
	assert.match(end.stderr, new RegExp(box.id));
});

test('image ls lists what can be used', async () => {
	assert.match((await silt(['image', 'ls'])).stdout, /^base\b/m);
});

test('image rm takes several names; one that is not there keeps none of the others', async () => {
	await silt(['image', 'tag', 'base', 'rm-a']);
	await silt(['image', 'tag', 'base', 'rm-b']);
	const end = await silt(['image', 'rm', 'rm-a', 'rm-none', 'rm-never', 'rm-b']);
	assert.deepEqual([end.stdout, end.stderr, end.code], ['rm-a\nrm-b\n', 'silt: no image rm-none\nsilt: no image rm-never\n', 125]);
	assert.doesNotMatch((await silt(['image', 'ls'])).stdout, /^rm-/m);
});

test('token, version, help and doctor answer', async () => {
	assert.equal((await silt(['token'])).stdout.trim(), daemon.token);
	assert.match((await silt(['version'])).stdout, /\d+\.\d+\.\d+/);
	assert.match((await silt(['help'])).stdout, /exec/);
	const doctor = await silt(['doctor']);
	assert.match(doctor.stdout, /control groups/);
	assert.match(doctor.stdout, /btrfs/i);
	assert.match(doctor.stdout, /registries +skopeo/);
});

test('help, man page and completion know the same commands', async () => {
	const root = path.join(import.meta.dirname, '../..');
	const read = name => fs.readFileSync(path.join(root, 'docs', name), 'utf8');
	const commands = [...new Set([...(await silt(['help'])).stdout.matchAll(/^ {2}silt (\S+)/gm)].map(match => match[1]))];
	const manual = read('man/silt.1').replaceAll('\\-', '-');
	for (const name of commands.filter(name => name !== 'help'))
		assert.match(manual, new RegExp(`^\\.B ${name}( |$)`, 'm'), `${name} in the man page`);
	const complete = words => execFileSync('bash', ['--norc', '-c', `source docs/completion/silt.bash; COMP_WORDS=(${words}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _silt; printf '%s\\n' "\${COMPREPLY[@]}"`],
		{ cwd: root, env: { PATH: `${BUILD}:${process.env.PATH}`, SILT_SERVER: daemon.address, SILT_TOKEN: daemon.token } }).toString().trim().split('\n');
	assert.deepEqual(complete("silt ''").sort(), commands.toSorted());
	for (const name of commands) {
		const help = (await silt([name, '--help'])).stdout;
		const options = [...help.matchAll(/(?<= |\[)--?[a-z][a-z-]*/g)].map(match => match[0]);
		const known = options.length > 0 && name !== 'image' ? complete(`silt ${name} x -`) : options;
		for (const option of options)
			assert.ok(known.includes(option), `${option} of ${name} in the completion`);
	}
});

test('errors name the object and the way out', async () => {
	const wrong = await silt(['exec', 'bad..id', '--', 'true']);
	assert.equal(wrong.code, 125);
	assert.match(wrong.stderr, /^silt: /);
	const token = await silt(['ls'], { env: { SILT_TOKEN: 'wrong-token-of-enough-length' } });
	assert.equal(token.code, 125);
	assert.match(token.stderr, /no valid API token\nSILT_TOKEN/);
	const none = await silt(['ls'], { env: { SILT_TOKEN: '', SILT_TOKEN_FILE: '/no/such/file' } });
	assert.equal(none.code, 125);
	assert.match(none.stderr, /no valid API token\n.*try sudo/);
	const unreachable = await silt(['ls'], { env: { SILT_SERVER: '127.0.0.1:1' } });
	assert.equal(unreachable.code, 125);
	assert.match(unreachable.stderr, /127\.0\.0\.1:1/);
	assert.equal((await silt(['no-such-command'])).code, 125);
	for (const [words, want] of [
		[['exec', 'b', '--bogus', '--', 'true'], /--bogus\n.*--help/],
		[['exec', 'b', '--no-session', '--session', 's', '--', 'true'], /--no-session/],
		[['exec', 'a b', '--', 'true'], /'a b'/],
		[['ls', 'b'], /usage: silt ls /],
		[['create', 'x', '--type', 'huge'], /must be one of lite, .*standard-4\n$/],
		[['kill', 'never-made', '--all'], /'never-made' does not exist/],
		[['kill', 'never-made', 'web'], /'never-made' does not exist/],
		[['image', 'tag', 'x'], /^silt: usage:\n {2}silt image tag NAME OTHER\n$/],
		[['image', 'build'], /^silt: usage:\n {2}silt image build -t .*\n {2}silt image build base.*\n$/],
		[['image', 'bogus'], /silt image ls \| build .*\nTry: silt image --help\n$/],
	]) {
		const end = await silt(words);
		assert.deepEqual([end.code, end.stdout], [125, ''], words.join(' '));
		assert.match(end.stderr, want);
	}
});
