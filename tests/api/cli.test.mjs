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

// Every command with its verbs, from the table that help prints.
const commandsOf = help => [...help.matchAll(/^ {2}([a-z-]+(?: [a-z]+)?) {2,}\S/gm)].map(match => match[1]);

test('help shows each command with its options, an example and where each default comes from', async () => {
	const root = path.join(import.meta.dirname, '../..');
	const manual = fs.readFileSync(path.join(root, 'docs/man/silt.1'), 'utf8').replaceAll('\\-', '-');
	const commands = commandsOf((await silt(['help'])).stdout);
	assert.ok(commands.length > 30, commands.join(' '));
	for (const name of commands) {
		assert.match(manual, new RegExp(`^\\.B ${name}( |$)`, 'm'), `${name} in the man page`);
		const help = await silt([...name.split(' '), '--help']);
		assert.deepEqual([help.code, help.stderr], [0, ''], name);
		assert.match(help.stdout, new RegExp(`^silt ${name}\\b`), name);
		assert.match(help.stdout, /\nExample:\n {2}.*silt /, name);
		assert.equal((await silt(['help', ...name.split(' ')])).stdout, help.stdout, name);
		const refused = await silt([...name.split(' '), '--no-such-option']);
		assert.deepEqual([refused.code, refused.stdout], [125, ''], name);
		assert.match(refused.stderr, /unknown option --no-such-option|no command/, name);
	}
	assert.match((await silt(['image', '--help'])).stdout, /silt image ls[^]*silt image rm NAME/);
	assert.equal((await silt(['exec', 'box', 'ls', '--help'], { env: { SILT_SERVER: '127.0.0.1:1' } })).code, 125, '--help of the command is not ours');
});

test('words of docker and slips of the finger are understood or answered', async () => {
	assert.match((await silt(['images'])).stdout, /^base\b/m);
	for (const [words, want] of [
		[['crate'], /no command crate\nDid you mean: silt create\n/],
		[['xyzzy'], /no command xyzzy\nTry: silt help\n/],
		[['push'], /no command push\nsilt image export/],
		[['exec', 'b', '--sesion', 's', '--', 'true'], /--sesion\nDid you mean: --session\n/],
		[['image', 'tag', '--format', 'x'], /unknown option --format/],
		[['rmi'], /usage: silt image rm NAME/],
	]) {
		const end = await silt(words);
		assert.deepEqual([end.code, end.stdout], [125, ''], words.join(' '));
		assert.match(end.stderr, want);
	}
});

// What a shell shows for the words of a line, asked of the shell's own machinery.
const shells = {
	bash: words => ['bash', ['--norc', '-c', `source docs/completion/silt.bash; COMP_WORDS=(${words.join(' ')}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _silt; printf '%s\\n' "\${COMPREPLY[@]}"`]],
	zsh: words => ['zsh', ['-f', '-c', `compdef() { :; }; _describe() { print -l -- "\${(@)described%%:*}"; }; compadd() { print -l -- $places; }; _files() { print -l -- *; }; source docs/completion/silt.zsh; words=(${words.join(' ')}); CURRENT=\${#words}; _silt`]],
	fish: words => ['fish', ['--no-config', '-c', `source docs/completion/silt.fish; complete -C "${words.join(' ').replace(/''$/, '')}" | cut -f1`]],
};

test('completion offers in every shell what the table and the daemon know', async t => {
	const root = path.join(import.meta.dirname, '../..');
	const box = await daemon.box(t);
	await silt(['run', '-d', box.id, '--name', 'web', '--', 'sleep 1000']);
	const complete = (shell, ...words) => {
		const [program, args] = shells[shell](['silt', ...words]);
		return execFileSync(program, args, { cwd: root, env: { HOME: daemon.home, PATH: `${BUILD}:${process.env.PATH}`, SILT_SERVER: daemon.address, SILT_TOKEN: daemon.token } }).toString().trim().split('\n');
	};
	const commands = commandsOf((await silt(['help'])).stdout);
	for (const shell of Object.keys(shells)) {
		const same = (words, want, what) => assert.deepEqual(complete(shell, ...words).sort(), want.toSorted(), `${shell}: ${what ?? words.join(' ')}`);
		same(["''"], [...new Set(commands.map(name => name.split(' ')[0]))], 'commands');
		same(['image', "''"], commands.filter(name => name.startsWith('image ')).map(name => name.slice(6)), 'verbs');
		same(['create', '--network', "''"], ['none', 'public', 'allow']);
		assert.ok(complete(shell, 'info', "''").includes(box.id), `${shell}: sandboxes`);
		same(['logs', box.id, "''"], ['web']);
		assert.ok(complete(shell, 'create', '--image', "''").includes('base'), `${shell}: images`);
		assert.ok(complete(shell, 'cp', "''").some(word => word === `${box.id}:`), `${shell}: places`);
		assert.ok(complete(shell, 'image', 'build', "''").some(word => /^docs/.test(word)), `${shell}: directories`);
	}
	for (const name of commands) {
		const help = (await silt([...name.split(' '), '--help'])).stdout;
		const options = [...help.matchAll(/^ {2}(?:(-\w), | {4})(--[a-z-]+)/gm)].flatMap(match => [match[1], match[2]]).filter(Boolean);
		assert.deepEqual(complete('bash', ...name.split(' '), '-').filter(word => word !== '--').sort(), options.toSorted(), name);
	}
	for (const shell of Object.keys(shells))
		assert.equal((await silt(['completion', shell])).stdout, fs.readFileSync(path.join(root, `docs/completion/silt.${shell}`), 'utf8'));
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
		[['exec', 'b', '--bogus', '--', 'true'], /--bogus\n.*silt exec --help/],
		[['exec', 'b', '--no-session', '--session', 's', '--', 'true'], /--no-session/],
		[['exec', 'a b', '--', 'true'], /'a b'/],
		[['ls', 'b'], /usage: silt ls /],
		[['create', 'x', '--type', 'huge'], /must be one of lite, .*standard-4\n$/],
		[['kill', 'never-made', '--all'], /'never-made' does not exist/],
		[['kill', 'never-made', 'web'], /'never-made' does not exist/],
		[['image', 'tag', 'x'], /^silt: usage: silt image tag NAME OTHER\nTry: silt help image tag\n$/],
		[['image', 'build'], /^silt: usage: silt image build -t .*\n {7}silt image build base.*\nTry: /],
		[['image', 'bogus'], /silt image ls \| build .*\nTry: silt help image\n$/],
	]) {
		const end = await silt(words);
		assert.deepEqual([end.code, end.stdout], [125, ''], words.join(' '));
		assert.match(end.stderr, want);
	}
});
