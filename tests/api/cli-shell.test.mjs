// SPDX-License-Identifier: Apache-2.0
// silt shell, on a terminal of its own (script makes one) and without.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { BUILD, startDaemon } from '../lib/daemon.mjs';
import { silt } from '../lib/silt.mjs';
import { until, within } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

/** silt on a terminal of 33 x 101. */
function onTerminal(t, own, words) {
	const note = path.join(own.home, `tty-${Math.random().toString(36).slice(2)}`);
	const line = `stty rows 33 cols 101; tty > ${note}; ${path.join(BUILD, 'silt')} ${words.join(' ')}; code=$?; stty -a | grep -q ' echo ' && echo "[echo again] code=$code"`;
	const child = spawn('script', ['-qfc', line, '/dev/null'], { env: { PATH: process.env.PATH, SILT_SERVER: own.address, SILT_TOKEN: own.token, SHELL: '/bin/sh' }, stdio: ['pipe', 'pipe', 'inherit'] });
	t.after(() => child.kill('SIGKILL'));
	let shown = '';
	child.stdout.on('data', piece => { shown += piece.toString('latin1'); });
	child.stdin.on('error', () => {});
	const ended = new Promise(resolve => child.once('close', resolve));
	const shows = pattern => pattern.exec(shown.replace(/\x1b\[\?2004[hl]\r?/g, ''));
	return {
		type: text => child.stdin.write(text),
		shows,
		sees: async pattern => {
			try {
				return await until(`${pattern}`, () => shows(pattern));
			} catch (error) {
				throw new Error(`${error.message}: ${JSON.stringify(shown.slice(-1500))}`, { cause: error });
			}
		},
		resize: (rows, cols) => execFileSync('stty', ['-F', fs.readFileSync(note, 'utf8').trim(), 'rows', rows, 'cols', cols]),
		ended: () => within(60_000, 'the end of silt', ended),
	};
}

test('a terminal: its size, its keys, its exit status, and what was before is restored', async t => {
	const box = await daemon.box(t);
	const shell = onTerminal(t, daemon, ['shell', box.id]);
	await shell.sees(/# $/);
	shell.type('stty size\n');
	await shell.sees(/\n33 101\r\n/);
	shell.resize(40, 90);
	await until('the new size is inside', async () => {
		shell.type('stty size\n');
		await new Promise(resolve => setTimeout(resolve, 200));
		return shell.shows(/\n40 90\r\n/);
	});
	shell.type('sleep 1000\n');
	await shell.sees(/sleep 1000\r\n/);
	shell.type('\x03');
	shell.type('echo "st""atus $?"\n');
	await shell.sees(/status 130/);
	shell.type('exit 5\n');
	await shell.sees(/\[echo again\] code=5/);
	await shell.ended();
});

test('Ctrl-] leaves a terminal, and the same words come back to it', async t => {
	const box = await daemon.box(t);
	const first = onTerminal(t, daemon, ['shell', box.id, '--session', 'w', '--shell', '/bin/bash']);
	await first.sees(/# $/);
	first.type('x=kept; echo mar""k\n');
	await first.sees(/\nmark\r\n/);
	first.type('\x1d');
	await first.sees(/detached; `silt shell/);
	await first.sees(/\[echo again\] code=0/);
	await first.ended();
	const second = onTerminal(t, daemon, ['shell', box.id, '--session', 'w']);
	await second.sees(/\nmark\r\n/);
	second.type('echo "still $x"\n');
	await second.sees(/\nstill kept\r\n/);
	second.type('exit\n');
	await second.sees(/\[echo again\] code=0/);
});

test('a broken connection is taken up again', async t => {
	const own = await startDaemon({ flags: { listen: '127.0.0.1:0' } });
	try {
		const shell = onTerminal(t, own, ['shell', 'again']);
		await shell.sees(/# $/);
		shell.type('x=kept; echo mar""k\n');
		await shell.sees(/\nmark\r\n/);
		process.kill(own.siltd(), 'SIGKILL');
		await shell.sees(/the connection broke/);
		shell.type('typed meanwhile'); // is no reason to try at once, or less often
		await own.healthy();
		await shell.sees(/the connection broke[^]*\nmark\r\n/);
		shell.type('\x15echo "still $x"\n'); // Ctrl-U: what was typed meanwhile is there where the connection was back already
		await shell.sees(/\nstill kept\r\n/);
		shell.type('exit 4\n');
		await shell.sees(/\[echo again\] code=4/);
		await own.api('DELETE', '/v1/sandboxes/again');
	} finally {
		await own.stop();
	}
});

test('what is piped in is typed, and its end is Ctrl-D', async t => {
	const box = await daemon.box(t);
	const run = await silt(daemon, ['shell', box.id], { input: 'echo $((6*7))\ncd /tmp; pwd\nfalse\n' });
	assert.match(run.stdout, /42/);
	assert.match(run.stdout, /\/tmp/);
	assert.equal(run.code, 1);
});

test('errors are told as everywhere', async t => {
	const box = await daemon.box(t);
	for (const [words, pattern] of [[['shell'], /usage: silt shell/], [['shell', '..'], /./], [['shell', box.id, '--shell', 'no-such'], /could not be started/]]) {
		const run = await silt(daemon, words, { input: undefined });
		assert.equal(run.code, 125, run.stderr);
		assert.match(run.stderr, pattern);
	}
	const denied = await silt(daemon, ['shell', box.id], { env: { SILT_TOKEN: 'wrong' } });
	assert.equal(denied.code, 125);
	assert.match(denied.stderr, /token/);
});
