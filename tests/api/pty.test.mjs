// SPDX-License-Identifier: Apache-2.0
// The terminal WebSocket: one shell for each session, many viewers, what was shown comes again.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { Terminal } from '../lib/pty.mjs';
import { until } from '../lib/wait.mjs';
import { Socket } from '../lib/ws.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

test('a shell with a prompt, of the size that was asked for, ends with an exit message', async t => {
	const box = await daemon.box(t);
	const terminal = await Terminal.open(t, box, { cols: 100, rows: 30 });
	await terminal.ready();
	terminal.type('stty size; tty; echo $TERM; echo pid=$$ fg=$(ps -o tpgid= -p $$ | tr -d " ")\n');
	await terminal.sees(/\r\n30 100\r\n\/dev\/pts\/\d+\r\nxterm-256color\r\n/);
	assert.doesNotMatch(terminal.shown, /job control|cannot set terminal/);
	terminal.type('exit 7\n');
	assert.deepEqual(await terminal.hears('exit'), { type: 'exit', code: 7 });
	assert.equal((await terminal.closed()).code, 1000);
	const next = await Terminal.open(t, box);
	await next.ready();
	next.type('echo "fresh $((1+1))"\n');
	await next.sees(/fresh 2/);
	assert.doesNotMatch(next.shown, /30 100/, 'a new shell, and nothing of the old one');
});

test('it has the directory and the exported variables of its session, and goes its own way', async t => {
	const box = await daemon.box(t);
	await box.out('mkdir -p /tmp/here && cd /tmp/here && export SEEN=yes && HIDDEN=no', { sessionId: 's' });
	const terminal = await Terminal.open(t, box, { sessionId: 's' });
	await terminal.ready();
	terminal.type('echo "[$PWD] [$SEEN] [$HIDDEN]"; cd /; export SEEN=changed; echo d""one\n');
	await terminal.sees(/\[\/tmp\/here\] \[yes\] \[\]/);
	await terminal.sees(/\r\ndone\r\n/);
	assert.equal(await box.out('echo "$PWD $SEEN"', { sessionId: 's' }), '/tmp/here yes\n');
	terminal.type('echo "<${PROMPT_COMMAND-unset}>"\n');
	await terminal.sees(/<unset>/);
});

test('control keys and job control work', async t => {
	const box = await daemon.box(t);
	const terminal = await Terminal.open(t, box);
	await terminal.ready();
	terminal.type('echo b""egin; sleep 1000\n');
	await terminal.sees(/\r\nbegin\r\n/);
	terminal.type('\x03');
	terminal.type('echo "status $?"\n');
	await terminal.sees(/status 130/);
	terminal.type('sleep 1000 & echo job""s; jobs\n');
	await terminal.sees(/jobs\r\n\[1\]\+ +Running/);
	terminal.type('fg\n');
	await terminal.sees(/fg\r\nsleep 1000/);
	terminal.type('\x1a');
	await terminal.sees(/Stopped/);
	terminal.type('kill %1; echo "l""ast"\n');
	await terminal.sees(/\r\nlast/);
});

test('a resize is heard by the program that runs; sizes that are none are refused', async t => {
	const box = await daemon.box(t);
	const terminal = await Terminal.open(t, box);
	await terminal.ready();
	terminal.type("trap 'stty size' WINCH; echo tr\"\"apped\n");
	await terminal.sees(/\r\ntrapped/);
	terminal.tell({ type: 'resize', cols: 120, rows: 40 });
	terminal.type('\n');
	await terminal.sees(/40 120/);
	const wrong = [{ cols: 0, rows: 5 }, { cols: -1, rows: 5 }, { cols: 5 }, { cols: 'x', rows: 5 }, { cols: 70_000, rows: 5 }, { cols: 1.5, rows: 2 }];
	for (const size of wrong)
		terminal.tell({ type: 'resize', ...size });
	terminal.tell('junk');
	terminal.tell({ type: 'unknown' });
	terminal.tell('5');
	await until('errors', () => terminal.texts.filter(m => m.type === 'error').length === wrong.length + 1);
	assert.equal(terminal.texts.filter(m => m.type === 'error').at(-1).message, 'Invalid control message');
	terminal.type('stty size; echo al""ive\n');
	await terminal.sees(/40 120\r\nalive/);
});

test('many viewers see the same, all may type, and one that leaves takes nothing with it', async t => {
	const box = await daemon.box(t);
	const first = await Terminal.open(t, box, { cols: 90, rows: 20 });
	await first.ready();
	first.type('echo on""e\n');
	await first.sees(/\r\none\r\n/);
	const others = await Promise.all(Array.from({ length: 5 }, () => Terminal.open(t, box, { cols: 10, rows: 5, shell: '/bin/false' })));
	for (const other of others) {
		await other.ready();
		assert.ok(other.beforeReady, 'what was shown comes before ready');
		assert.match(other.text, /\r\none\r\n/);
	}
	others[0].type('stty size; echo tw""o\n');
	for (const terminal of [first, ...others])
		await terminal.sees(/20 90\r\ntwo\r\n/);
	first.socket.destroy();
	others[0].socket.destroy();
	others[1].type('echo thr""ee\n');
	for (const terminal of others.slice(1)) {
		await terminal.sees(/\r\nthree\r\n/);
		assert.equal(terminal.text.split('\r\nthree\r\n').length, 2, 'once');
	}
	others[1].type('exit\n');
	for (const terminal of others.slice(1)) {
		assert.equal((await terminal.hears('exit')).code, 0);
		assert.equal((await terminal.closed()).code, 1000);
	}
});

test('what is replayed and what comes live is together exactly what was shown', async t => {
	const box = await daemon.box(t);
	const first = await Terminal.open(t, box);
	await first.ready();
	first.type("stty -echo; PS1=; echo be\"\"gin; for i in $(seq 1 20000); do echo \"line $i of many\"; done; echo e\"\"nd\n");
	await first.sees(/\r\nbegin\r\n/);
	const others = [];
	for (let i = 0; i < 8; i++) {
		const other = await Terminal.open(t, box);
		others.push(other);
		await other.ready();
	}
	await first.sees(/\r\nend\r\n/);
	for (const other of others) {
		await other.sees(/\r\nend\r\n/);
		await until('the end of what the first saw, byte for byte', () => first.shown.endsWith(other.shown)); // each hears it in its own time
		assert.ok(other.shown.length > 1000);
	}
	const late = await Terminal.open(t, box);
	await late.ready();
	assert.equal(late.first.payload.length, 262_144, 'the last 256 KiB in one message');
	await until('the same as the first', () => first.shown.endsWith(late.shown));
});

test('a viewer that does not read slows nobody; one that is a whole log behind is told so and may come again', async t => {
	const box = await daemon.box(t);
	const slow = await Terminal.open(t, box);
	await slow.ready();
	slow.keep = 4096;
	slow.socket.raw.pause();
	const quick = await Terminal.open(t, box);
	quick.keep = 4096;
	await quick.ready();
	for (let round = 1; round <= 8; round++) { // a log holds 16 MiB: on a busy machine this viewer would be too slow itself for all at once
		quick.type(`head -c 4000000 /dev/zero | tr "\\0" x | fold -w 70; echo rou""nd ${round}\n`);
		await until(`round ${round}`, () => quick.shown.includes(`round ${round}\r\n`), 120_000);
	}
	quick.type('echo st""ill\n');
	await quick.sees(/\r\nstill/);
	slow.socket.raw.resume();
	const { code, reason } = await slow.closed();
	assert.equal(code, 1013);
	assert.match(reason, /^This viewer is too slow: \d+ bytes were not shown\. Connect again/);
	assert.deepEqual(slow.texts.at(-1), { type: 'error', message: reason });
	const again = await Terminal.open(t, box);
	await again.sees(/\r\nstill/);
	quick.type('echo go""es on\n');
	for (const terminal of [quick, again])
		await terminal.sees(/\r\ngoes on/);
});

test('input is taken as fast as it is read, and its sender waits', async t => {
	const box = await daemon.box(t);
	const terminal = await Terminal.open(t, box);
	await terminal.ready();
	terminal.type('stty raw -echo; echo "go: r"eady; head -c 3000000 | md5sum; stty sane; echo don""e\n');
	await terminal.sees(/go: ready/);
	const bytes = Buffer.alloc(3_000_000, 'abcdefghij\n');
	for (let at = 0; at < bytes.length; at += 100_000)
		terminal.type(bytes.subarray(at, at + 100_000));
	const { createHash } = await import('node:crypto');
	await terminal.sees(new RegExp(createHash('md5').update(bytes).digest('hex')));
	await terminal.sees(/\ndone/);
});

test('another shell can be chosen, and one that is not there is told', async t => {
	const box = await daemon.box(t);
	const sh = await Terminal.open(t, box, { sessionId: 'a', shell: '/bin/sh' });
	await sh.ready();
	sh.type('echo "$0 $(readlink /proc/$$/exe)"\n');
	await sh.sees(/\/bin\/sh \S+sh\r\n/);
	for (const shell of ['no-such-shell', "it's; touch /tmp/hacked", '/etc/passwd']) {
		const none = await Terminal.open(t, box, { sessionId: 'b', shell });
		assert.ok((await none.hears('error')).message);
		assert.equal((await none.closed()).code, 1011);
	}
	assert.equal((await box.exec('test -e /tmp/hacked', { sessionId: 'c' })).body.exitCode, 1);
});

test('what is typed before the terminal is ready is not lost', async t => {
	const box = await daemon.box(t);
	const socket = await Socket.open(daemon, `/sandboxes/${box.id}/ws/pty?sessionId=early`);
	t.after(() => socket.destroy());
	socket.send(Buffer.from('echo ear""ly\n'));
	socket.send({ type: 'resize', cols: 77, rows: 11 });
	socket.send(Buffer.from('stty size\n'));
	let shown = '';
	while (!/\r\nearly\r\n[^]*11 77\r\n/.test(shown)) {
		const frame = await socket.next();
		if (frame.op === 'binary')
			shown = (shown + frame.payload.toString('latin1')).replace(/\x1b\[\?2004[hl]\r?/g, '');
	}
});

test('a terminal is in no list of processes, and kill-all leaves it', async t => {
	const box = await daemon.box(t);
	const terminal = await Terminal.open(t, box);
	await terminal.ready();
	terminal.type('echo $((40+2))\n');
	await terminal.sees(/42/);
	assert.deepEqual((await box.api('GET', '/api/process/list')).body.processes, []);
	assert.deepEqual((await daemon.api('GET', `/v1/sandboxes/${box.id}/processes`)).body.processes, []);
	const killed = await box.api('DELETE', '/api/process/kill-all');
	assert.equal(killed.status, 200);
	terminal.type('echo $((40+3))\n');
	await terminal.sees(/43/);
});

test('a deleted session takes its terminal along', async t => {
	const box = await daemon.box(t);
	await box.out('true', { sessionId: 'gone' });
	const terminal = await Terminal.open(t, box, { sessionId: 'gone' });
	await terminal.ready();
	terminal.type('sleep 4711 & echo st""arted\n');
	await terminal.sees(/\r\nstarted/);
	assert.equal((await box.api('POST', '/api/session/delete', { sessionId: 'gone' })).status, 200);
	assert.ok(await terminal.closed());
	assert.ok(terminal.texts.some(m => m.type === 'exit' || m.type === 'error'));
	await until('nothing is left of it', async () => !(await box.out('cat /proc/[0-9]*/cmdline | tr "\\0" " "', { sessionId: 'other' })).includes('sleep 4711'));
});

test('a destroyed sandbox ends its terminals', async t => {
	const box = await daemon.box();
	const terminal = await Terminal.open(t, box);
	await terminal.ready();
	await box.destroy();
	assert.ok(await terminal.closed());
	assert.ok(terminal.texts.some(m => m.type === 'exit' || m.type === 'error'));
});

test('a shell killed by a signal tells which', async t => {
	const box = await daemon.box(t);
	const terminal = await Terminal.open(t, box);
	await terminal.ready();
	terminal.type('kill -9 $$\n');
	assert.deepEqual(await terminal.hears('exit'), { type: 'exit', code: 137, signal: 'SIGKILL' });
	assert.equal((await terminal.closed()).code, 1000);
});

test('a viewer keeps the sandbox awake, a terminal alone only where processes do; a stop ends it', async t => {
	const box = await daemon.box(t, { id: 'pty-sleeper', sleepAfter: '1s', keepProcesses: false });
	const terminal = await Terminal.open(t, box);
	await terminal.ready();
	terminal.type('sleep 3; echo aw""ake\n');
	await terminal.sees(/\r\nawake/);
	terminal.socket.destroy();
	await until('it sleeps', async () => (await box.info()).state === 'paused', 60_000);
	const again = await Terminal.open(t, box);
	await again.ready();
	again.type('echo st""ill\n');
	await again.sees(/\r\nstill/);
	assert.match(again.text, /awake/, 'nothing is lost');
	await box.stop();
	const next = await Terminal.open(t, box);
	await next.ready();
	next.type('echo ne""w\n');
	await next.sees(/\r\nnew/);
	assert.doesNotMatch(next.shown, /awake/);
});

test('a terminal survives the daemon, with what it showed', async t => {
	const own = await startDaemon();
	try {
		const box = await own.box(undefined);
		const terminal = await Terminal.open(t, box);
		await terminal.ready();
		terminal.type('x=kept; echo bef""ore\n');
		await terminal.sees(/\r\nbefore/);
		process.kill(own.siltd(), 'SIGKILL');
		await terminal.done;
		await own.healthy();
		const again = await Terminal.open(t, box);
		await again.ready();
		assert.match(again.text, /\r\nbefore/);
		again.type('echo "still $x"\n');
		await again.sees(/still kept/);
		assert.deepEqual((await box.api('GET', '/api/process/list')).body.processes, []);
		again.type('exit 3\n');
		assert.equal((await again.hears('exit')).code, 3);
		await box.destroy();
	} finally {
		await own.stop();
	}
});

test('requests that are no terminal are refused', async t => {
	const box = await daemon.box(t);
	const plain = await box.api('GET', '/ws/pty?sessionId=a');
	assert.deepEqual([plain.status, plain.body.code], [404, 'UNKNOWN_ERROR']);
	for (const query of ['', '?sessionId=', '?sessionId=%20', '?sessionId=%zz', `?sessionId=${'x'.repeat(300)}`]) {
		await assert.rejects(Socket.open(daemon, `/sandboxes/${box.id}/ws/pty${query}`), error => error.status === 400 && (query !== '' || error.body === 'sessionId query parameter required'));
	}
	await assert.rejects(Socket.open(daemon, `/sandboxes/${box.id}/ws/pty?sessionId=a`, { token: false }), error => error.status === 401);
	const odd = await Terminal.open(t, box, { cols: 'x', rows: '-1' });
	await odd.ready();
	odd.type('stty size\n');
	await odd.sees(/24 80/);
});
