// SPDX-License-Identifier: Apache-2.0
// silt exec as a part of pipelines and in terminals, and the commands that create, list, measure and remove.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import crypto from 'node:crypto';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { BUILD, startDaemon } from '../lib/daemon.mjs';
import { silt as runSilt } from '../lib/silt.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const silt = (args, options) => runSilt(daemon, args, options);
const shell = text => new Promise(resolve => {
	execFile('bash', ['--norc', '-c', text], { env: { PATH: `${BUILD}:${process.env.PATH}`, SILT_SERVER: daemon.address, SILT_TOKEN: daemon.token } },
		(error, stdout, stderr) => resolve({ stdout, stderr, code: error?.code ?? 0 }));
});

test('exec passes standard input on, of any size and kind, and its end', async t => {
	const box = await daemon.box(t);
	assert.equal((await silt(['exec', box.id, '--', 'while read -r x; do echo "got $x"; done; echo end'], { input: 'a\nb\n' })).stdout, 'got a\ngot b\nend\n');
	const bytes = crypto.randomBytes(5_000_000);
	const sum = crypto.createHash('sha256').update(bytes).digest('hex');
	assert.match((await silt(['exec', box.id, 'sha256sum'], { input: bytes })).stdout, new RegExp(`^${sum}`));
	assert.ok((await silt(['exec', box.id, 'cat'], { input: bytes })).raw.equals(bytes));
	assert.equal((await silt(['exec', box.id, '-i', '--', 'cat; echo end'])).stdout, 'end\n', '/dev/null ends at once');
	assert.deepEqual((({ stdout, stderr, code }) => [stdout, stderr, code])(await silt(['exec', box.id, '--', 'echo done; exit 3'], { input: bytes })), ['done\n', '', 3], 'a command that does not read');
	assert.equal((await shell(`silt exec ${box.id} cat < ${path.join(import.meta.dirname, 'cli-exec.test.mjs')} | head -1`)).stdout, '// SPDX-License-Identifier: Apache-2.0\n');
});

test('exec takes a user, a directory and variables of here', async t => {
	const box = await daemon.box(t);
	const end = await silt(['exec', box.id, '-u', 'nobody', '-w', '/tmp', '-e', 'A=x y', '-e', 'FROM_HERE', '--', 'id -un; echo $PWD "$A" $FROM_HERE'], { env: { FROM_HERE: 'yes' } });
	assert.deepEqual([end.stdout, end.code], ['nobody\n/tmp x y yes\n', 0], end.stderr);
	const wrong = await silt(['exec', box.id, '-e', 'NOT_SET', '--', 'true']);
	assert.deepEqual([wrong.code, wrong.stderr], [125, 'silt: --env NOT_SET: not NAME=VALUE, and not set here\n']);
	assert.equal((await silt(['exec', box.id, '-u', 'no body', '--', 'true'])).code, 125);
});

test('exec -t runs a command in a terminal and leaves nothing behind', async t => {
	const box = await daemon.box(t);
	await box.run('true');
	const end = await silt(['exec', '-it', box.id, '-w', '/tmp', '-e', 'A=x y', '--', 'bash', '-c', 'tty; echo "$A" $PWD; exit 7'], { terminal: true });
	assert.match(end.stdout, /\/dev\/pts\/\d+\r\nx y \/tmp\r\n/);
	assert.equal(end.code, 7);
	assert.equal((await box.run('ls -A /tmp | grep exec- || true')).stdout, '');
	const sessions = (await box.api('GET', '/api/session/list')).body.data;
	assert.ok(!JSON.stringify(sessions).includes('exec-'), JSON.stringify(sessions));
	for (const words of [['-t', '--keep'], ['-t', '-u', 'root'], ['-i', '--keep']])
		assert.equal((await silt(['exec', box.id, ...words, '--', 'true'])).code, 125, words.join(' '));
});

test('a command whose output nobody reads any more is ended', async t => {
	const box = await daemon.box(t);
	assert.deepEqual(await shell(`silt exec ${box.id} yes | head -2; echo "\${PIPESTATUS[@]}"`), { stdout: 'y\ny\n141 0\n', stderr: `silt: created sandbox ${box.id}\n`, code: 0 });
	await until('yes is gone', async () => (await box.run('pgrep -x yes || true')).stdout === '');
});

test('exec --rm leaves no sandbox, however it ends, and touches none that was there', async t => {
	const id = `cli-rm-${process.pid}`;
	t.after(() => daemon.api('DELETE', `/v1/sandboxes/${id}`));
	const isGone = async what => assert.equal((await daemon.api('GET', `/v1/sandboxes/${id}`)).status, 404, what);
	const end = await silt(['exec', '--rm', id, '--', 'echo out; exit 3']);
	assert.deepEqual([end.stdout, end.said, end.code], ['out\n', '', 3]);
	await isGone('after a command');
	const kept = await silt(['exec', '--rm', '--keep', id, '--', 'cd /tmp; pwd']);
	assert.deepEqual([kept.stdout, kept.code], ['/tmp\n', 0], kept.said);
	await isGone('after a command with --keep');
	const shown = await silt(['exec', '-it', '--rm', id, '--', 'bash', '-c', 'tty; exit 7'], { terminal: true });
	assert.match(shown.stdout, /\/dev\/pts\/\d+\r\n/);
	assert.equal(shown.code, 7);
	await isGone('after a terminal');
	for (const [signal, ...words] of [['SIGINT'], ['SIGTERM'], ['SIGHUP'], ['SIGTERM', '-t']]) {
		let sent = false;
		const cut = await silt(['exec', '--rm', ...words, id, '--', 'echo ready; exec sleep 600'], {
			onOutput: (text, child) => { if (!sent && text.includes('ready')) { sent = true; child.kill(signal); } },
		});
		assert.deepEqual([cut.code, cut.said], [words.length > 0 ? 0 : 130, ''], signal);
		await isGone(`after ${signal} ${words}`);
	}
	const box = await daemon.box(t);
	await box.run('echo mine > /workspace/file');
	const refused = await silt(['exec', '--rm', box.id, '--', 'rm /workspace/file']);
	assert.deepEqual([refused.code, refused.said], [125, `silt: sandbox ${box.id} exists, and --rm destroys only a new one: use another id\n`]);
	assert.equal((await box.run('cat /workspace/file')).stdout, 'mine\n');
});

test('exec --rm leaves a sandbox that goes by itself if silt is killed', async t => {
	const id = `cli-rm-killed-${process.pid}`;
	t.after(() => daemon.api('DELETE', `/v1/sandboxes/${id}`));
	let sent = false;
	await silt(['exec', '--rm', id, '--', 'echo ready; exec sleep 600'], {
		onOutput: (text, child) => { if (!sent && text.includes('ready')) { sent = true; child.kill('SIGKILL'); } },
	});
	assert.equal((await daemon.api('GET', `/v1/sandboxes/${id}`)).body.removeAfterStop, true);
	await daemon.api('POST', `/v1/sandboxes/${id}/stop`);
	await until('it is gone', async () => (await daemon.api('GET', `/v1/sandboxes/${id}`)).status === 404);
});

test('what creates a sandbox says so; what only reads does not create one', async t => {
	const id = `cli-new-${process.pid}`;
	t.after(() => daemon.api('DELETE', `/v1/sandboxes/${id}`));
	for (const words of [['cp', `${id}:/etc/passwd`, '/tmp/never'], ['info', id], ['ps', id], ['logs', id, 'p'], ['net', id], ['ports', id], ['watch', id, '/tmp'], ['image', 'commit', id, 'never']]) {
		const end = await silt(words);
		assert.equal(end.code, 125, words.join(' '));
		assert.match(end.stderr, new RegExp(`'${id}' does not exist`), words.join(' '));
	}
	assert.equal((await daemon.api('GET', `/v1/sandboxes/${id}`)).status, 404);
	for (const words of [['exec', id, '--', 'true'], ['run', id, '--', 'true'], ['cp', '/etc/hostname', `${id}:/tmp/x`]]) {
		await daemon.api('DELETE', `/v1/sandboxes/${id}`);
		const [first, again] = [await silt(words), await silt(words)];
		assert.deepEqual([first.said, first.code, again.said, again.code], [`silt: created sandbox ${id}\n`, 0, '', 0], words.join(' '));
	}
});

test('create takes limits, and ls, stats and df count what is there', async t => {
	const id = `cli-size-${process.pid}`;
	t.after(() => daemon.api('DELETE', `/v1/sandboxes/${id}`));
	assert.equal((await silt(['create', id, '--cpu', '0.5', '--memory', '512M', '--disk', '1G', '--pids', '100'])).code, 0);
	assert.deepEqual(JSON.parse((await silt(['info', id, '--json'])).stdout).limits, { cpu: 0.5, memoryMiB: 512, pids: 100, diskMiB: 1024 });
	assert.equal((await silt(['create', `${id}-x`, '--memory', 'much'])).stderr, 'silt: --memory much: not a size like 512, 512M or 2G\n');
	assert.ok((await silt(['ls', '-qa'])).stdout.split('\n').includes(id));
	await silt(['exec', id, '--', 'head -c 3000000 /dev/urandom > /tmp/x; sync']);
	await silt(['run', '-d', id, '--', 'while :; do :; done']);
	const row = async () => JSON.parse((await silt(['stats', id, '--json'])).stdout)[0];
	await until('the loop is seen', async () => (await row()).cpuPercent > 5);
	const { memoryLimitBytes, pidsLimit, diskBytes } = await row();
	assert.deepEqual([memoryLimitBytes, pidsLimit], [512 << 20, 100]);
	assert.ok(diskBytes >= 3_000_000, `${diskBytes}`);
	assert.match((await silt(['stats', '--no-stream'])).stdout, new RegExp(`^ID .*CPU.*\\n(.*\\n)*${id} +running .*512 MiB`));
	const sums = JSON.parse((await silt(['df', '--json'])).stdout);
	assert.ok(sums.sandboxBytes >= 3_000_000 && sums.images >= 1 && sums.poolBytes > 0, JSON.stringify(sums));
	assert.match((await silt(['df'])).stdout, /^sandboxes +\d+ +[\d.]+ .iB$/m);
	assert.match((await silt(['stats', 'never-made'])).stderr, /'never-made' does not exist/);
});

test('stats goes on until Ctrl-C on a terminal', async t => {
	const box = await daemon.box(t);
	await box.run('true');
	let sent = false;
	const end = await silt(['stats', box.id], {
		terminal: true,
		onOutput: (text, child) => {
			if (!sent && text.split('PROCESSES').length > 2) {
				sent = true;
				execFile('bash', ['--norc', '-c', `for p in $(pgrep -P ${child.pid}); do kill -INT $(pgrep -P $p || echo $p); done`]);
			}
		},
	});
	assert.equal(sent, true, 'two rounds');
	assert.equal(end.code, 0);
});

test('rm -f takes unknown ids, rm --all everything', async () => {
	assert.deepEqual((({ stdout, stderr, code }) => [stdout, stderr, code])(await silt(['rm', '-f', 'never-made'])), ['', '', 0]);
	assert.equal((await silt(['rm', 'never-made'])).code, 125);
	assert.equal((await silt(['create', 'rm-one'])).code, 0);
	assert.equal((await silt(['create', 'rm-two'])).code, 0);
	const asked = await silt(['rm', '--all']);
	assert.equal(asked.code, 125);
	assert.match(asked.stderr, /\d+ sandboxes with their files\nTry: silt rm --all -f\n/);
	const answer = await silt(['rm', '--all'], { terminal: true, input: 'n\n' });
	assert.match(answer.stdout, /nothing was destroyed/);
	const end = await silt(['rm', '--all', '-f']);
	assert.ok(end.stdout.includes('rm-one\n') && end.stdout.includes('rm-two\n'), end.stdout);
	assert.equal(end.code, 0);
	const none = await silt(['ls']);
	assert.deepEqual([none.stdout, none.code], ['', 0]);
	assert.match(none.stderr, /^silt: no sandboxes yet/);
});

test('a sandbox that is full of processes says so', async t => {
	const box = await daemon.box(t, { limits: { pids: 64 } });
	await box.run('true');
	await silt(['run', '-d', box.id, '--', 'while :; do sleep 1000 & done']);
	await until('it is full', async () => (await box.info()).usage.pids >= 60);
	const end = await silt(['exec', box.id, '--timeout', '2s', '--', '/bin/true; /bin/true; /bin/true']);
	assert.match(end.stderr, new RegExp(`silt: sandbox ${box.id} has \\d\\d of 64 processes: silt kill ${box.id} --all ends them\n`));
	assert.match((await silt(['info', box.id])).stdout, /^full +pids: /m);
	assert.equal((await silt(['kill', box.id, '--all'])).code, 0);
	const after = await silt(['exec', box.id, '--', '/bin/true']);
	assert.deepEqual([after.code, after.stderr], [0, '']);
	assert.doesNotMatch((await silt(['info', box.id])).stdout, /^full/m);
});

test('a build without a Dockerfile says so', async () => {
	const end = await silt(['image', 'build', '-t', 'x', import.meta.dirname]);
	assert.deepEqual([end.code, end.stderr], [125, `silt: no Dockerfile in ${import.meta.dirname}\n-f FILE names another one\n`]);
});
