// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { SESSIONLESS } from '../lib/box.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { refused, TIME } from '../lib/expect.mjs';
import { collect, events } from '../lib/sse.mjs';
import { within } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const MODES = [undefined, 'named', SESSIONLESS];

test('a stream is start, output, complete', async t => {
	const box = await daemon.box(t);
	const command = 'echo a; echo b >&2; printf c; false';
	for (const sessionId of MODES) {
		const end = await collect(box.stream(command, { sessionId }));
		assert.equal(end.names[0], 'start');
		assert.equal(end.names.at(-1), 'complete');
		assert.equal(end.names.filter(n => n === 'start' || n === 'complete').length, 2);
		assert.equal(end.all[0].data.command, command);
		assert.deepEqual([end.stdout, end.stderr, end.exitCode], ['a\nc', 'b\n', 1]);
		for (const { data } of end.all)
			assert.match(data.timestamp, TIME);
	}
});

test('the answer is an event stream that is not cached', async t => {
	const box = await daemon.box(t);
	const response = await box.open('true');
	assert.match(response.headers['content-type'], /^text\/event-stream/);
	assert.equal(response.headers['cache-control'], 'no-cache');
	assert.equal(response.headers['transfer-encoding'], 'chunked');
	await collect(events(response));
});

test('events leave while the command still runs', async t => {
	const box = await daemon.box(t);
	for (const sessionId of MODES) {
		await box.out('rm -f /tmp/gate; mkfifo /tmp/gate', { sessionId: 'helper' });
		const stream = box.stream('echo first; echo also >&2; read x < /tmp/gate; echo $x', { sessionId });
		const seen = { stdout: '', stderr: '' };
		while (seen.stdout !== 'first\n' || seen.stderr !== 'also\n') {
			const { value } = await stream.next();
			if (value.event !== 'start')
				seen[value.event] += value.data.data;
		}
		await box.out('echo second > /tmp/gate', { sessionId: 'helper' });
		const end = await collect(stream);
		assert.deepEqual([end.stdout, end.exitCode], ['second\n', 0]);
	}
});

test('output is byte exact', async t => {
	const box = await daemon.box(t);
	const commands = { 'printf a': 'a', "printf 'a\\n\\n'": 'a\n\n', "printf '\\r\\n \\t'": '\r\n \t', "printf 'data: x\\n\\nevent: y\\n\\n'": 'data: x\n\nevent: y\n\n', "printf 'a\\0b'": 'ab', "printf 'ü\\377😀'": 'ü\ufffd😀', true: '' };
	for (const sessionId of MODES) {
		for (const [command, expected] of Object.entries(commands))
			assert.equal((await collect(box.stream(command, { sessionId }))).stdout, expected, command);
	}
});

test('a character that arrives in two halves stays one', async t => {
	const box = await daemon.box(t);
	for (const sessionId of MODES) {
		const end = await collect(box.stream("printf '\\342\\202'; sleep 0.1; printf '\\254'; sleep 0.1; printf '\\360\\237'; sleep 0.1; printf '\\230\\200'; printf '\\342\\202'", { sessionId }));
		assert.equal(end.stdout, '€😀\ufffd');
	}
});

test('5 MB on each stream arrive whole and in order', async t => {
	const box = await daemon.box(t);
	for (const sessionId of MODES) {
		const end = await collect(box.stream('seq 1 700000; seq 1 700000 >&2', { sessionId }));
		const expected = Array.from({ length: 700_000 }, (_, i) => `${i + 1}\n`).join('');
		assert.ok(end.stdout === expected && end.stderr === expected);
	}
});

test('a streamed command sees the session\'s state and does not change it', async t => {
	const box = await daemon.box(t);
	await box.out('plain=1; export exported=2; arr=(a "b c"); f() { echo f; }; cd /var; umask 027; shopt -s extglob; set -o noglob');
	const end = await collect(box.stream('echo $plain $exported "${arr[1]}" $(f) $PWD $(umask) *; shopt -q extglob && echo extglob; plain=9; cd /'));
	assert.equal(end.stdout, '1 2 b c f /var 0027 *\nextglob\n');
	assert.equal(await box.out('echo $plain $PWD'), '1 /var\n');
});

test('cwd and env are for the streamed command only', async t => {
	const box = await daemon.box(t);
	await box.run('true'); // a session that is made by the request itself would start in its cwd
	for (const sessionId of MODES)
		assert.equal((await collect(box.stream('echo $PWD $A', { sessionId, cwd: '/tmp', env: { A: 'x y', B: null } }))).stdout, '/tmp x y\n');
	assert.equal(await box.out('echo $PWD [$A]'), '/workspace []\n');
});

test('a bad cwd completes with 1 and says why', async t => {
	const box = await daemon.box(t);
	const end = await collect(box.stream('echo never', { cwd: '/missing' }));
	assert.match(end.stderr, /^Failed to change directory to '\/missing'\n?$/);
	assert.deepEqual([end.stdout, end.exitCode], ['', 1]);
	refused(await box.api('POST', '/api/execute/stream', { command: 'true', sessionId: SESSIONLESS, cwd: '/missing' }), 500, 'STREAM_START_ERROR');
});

test('exit and signals complete with their code and keep the session', async t => {
	const box = await daemon.box(t);
	await box.out('X=kept');
	for (const [command, code] of [['exit 7', 7], ['exit', 0], ['kill -9 $BASHPID', 137], ['kill -TERM $BASHPID', 143], ['exec sh -c "exit 3"', 3], ['echo "', 2]])
		assert.equal((await collect(box.stream(command))).exitCode, code, command);
	assert.equal(await box.out('echo $X'), 'kept\n');
});

test('stdin of a stream is empty', async t => {
	const box = await daemon.box(t);
	for (const sessionId of MODES)
		assert.equal((await collect(box.stream('cat; read x; echo $?', { sessionId }))).stdout, '1\n');
});

test('streams of one session run beside each other and beside its commands', async t => {
	const box = await daemon.box(t);
	await box.out('mkfifo /tmp/a /tmp/b');
	const [one, two, own] = await Promise.all([
		collect(box.stream('echo 1 > /tmp/a; read x < /tmp/b; echo $x')),
		collect(box.stream('read x < /tmp/a; echo 2 > /tmp/b; echo $x')),
		box.out('echo own'),
	]);
	assert.deepEqual([one.stdout, two.stdout, own], ['2\n', '1\n', 'own\n']);
});

test('a stream waits for the foreground command of its session', async t => {
	const box = await daemon.box(t);
	await box.out('mkfifo /tmp/gate /tmp/ready', { sessionId: 'helper' });
	const foreground = box.run('echo on > /tmp/ready; read X < /tmp/gate');
	await box.out('cat /tmp/ready', { sessionId: 'helper' });
	const stream = collect(box.stream('echo $X'));
	await box.out('echo set > /tmp/gate', { sessionId: 'helper' });
	await foreground;
	assert.equal((await stream).stdout, 'set\n');
});

test('a grandchild that keeps stdout open does not delay complete', async t => {
	const box = await daemon.box(t);
	for (const sessionId of MODES) {
		const end = await within(60_000, 'complete', collect(box.stream('sleep 1000.91 & echo started', { sessionId })));
		assert.deepEqual([end.stdout, end.exitCode], ['started\n', 0]);
	}
});

test('a reader that leaves does not stop the command', async t => {
	const box = await daemon.box(t);
	for (const sessionId of MODES) {
		await box.out('rm -f /tmp/gate /tmp/finished; mkfifo /tmp/gate', { sessionId: 'helper' });
		const stream = box.stream('echo hello; read x < /tmp/gate; echo output into nowhere; touch /tmp/finished', { sessionId });
		for await (const { event } of stream) {
			if (event === 'stdout')
				break; // ends the iteration: the connection is cut
		}
		await box.out('echo go > /tmp/gate; until [ -e /tmp/finished ]; do sleep 0.01; done', { sessionId: 'helper', timeoutMs: 60_000 });
	}
});

test('a reader that stops reading holds the command back, leaving frees it', async t => {
	const box = await daemon.box(t);
	for (const sessionId of [undefined, SESSIONLESS]) {
		await box.out('rm -f /tmp/end /tmp/pid', { sessionId: 'helper' });
		const total = 300_000_000;
		const response = await box.open(`yes | { echo $BASHPID > /tmp/pid; exec head -c ${total}; }; touch /tmp/end`, { sessionId });
		response.pause();
		// The command is held back when what it has written stays the same for 300 ms.
		const written = Number(await box.out(`until [ -s /tmp/pid ]; do sleep 0.01; done; read pid < /tmp/pid
			wrote() { while read -r key value; do [ "$key" = wchar: ] && echo $value; done < /proc/$pid/io; }
			last=-1; now=$(wrote); until [ "$now" = "$last" ] && [ "$now" -gt 0 ]; do last=$now; sleep 0.3; now=$(wrote); done; echo $now`, { sessionId: 'helper', timeoutMs: 120_000 }));
		assert.ok(written > 0 && written < 50_000_000, `held back after ${written} bytes`);
		assert.equal((await box.run('ls /tmp/end', { sessionId: 'helper' })).exitCode, 2);
		response.destroy();
		await once(response, 'close');
		await box.out('until [ -e /tmp/end ]; do sleep 0.05; done', { sessionId: 'helper', timeoutMs: 120_000 });
	}
});

test('a slow reader gets every byte', async t => {
	const box = await daemon.box(t);
	const response = await box.open('yes 0123456789abcde | head -c 20000000');
	response.pause();
	await box.out('true', { sessionId: 'other' });
	const end = await collect(events(response));
	assert.equal(end.stdout, '0123456789abcde\n'.repeat(20_000_000 / 16));
	assert.equal(end.exitCode, 0);
});

test('a held-back stream does not hold back others', async t => {
	const box = await daemon.box(t);
	const response = await box.open('yes | head -c 100000000');
	response.pause();
	t.after(() => response.destroy());
	assert.equal((await collect(box.stream('echo free'))).stdout, 'free\n');
	assert.equal(await box.out('echo free'), 'free\n');
});

test('a missing or blank command is refused before the stream starts', async t => {
	const box = await daemon.box(t);
	for (const command of ['', '  ', '\n'])
		assert.deepEqual(refused(await box.api('POST', '/api/execute/stream', { command }), 400, 'INVALID_COMMAND'), {});
	refused(await box.api('POST', '/api/execute/stream', {}), 400, ['INVALID_COMMAND', 'VALIDATION_FAILED']);
	for (const body of ['{', '[]', { command: 5 }, { command: 'a\0b' }, { command: 'true', env: { 'A-B': 'x' } }, { command: 'true', cwd: 5 }])
		refused(await box.api('POST', '/api/execute/stream', body), 400, 'VALIDATION_FAILED');
});

test('destroying the sandbox ends its streams', async t => {
	const box = await daemon.box(t);
	const stream = box.stream('echo on; sleep 1000');
	await stream.next();
	await box.destroy();
	const names = [];
	await within(60_000, 'end of the stream', (async () => {
		try {
			for await (const { event } of stream)
				names.push(event);
		} catch {
			// a cut connection is an end too
		}
	})());
	assert.ok(!names.includes('start'));
});

test('the connection serves on after a stream', async t => {
	const box = await daemon.box(t);
	const raw = await daemon.client.raw();
	t.after(() => raw.destroy());
	const body = JSON.stringify({ command: 'echo x' });
	const request = `POST /sandboxes/${box.id}/api/execute/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${daemon.token}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
	raw.send(request);
	await raw.received(/"complete"[^]*\r\n0\r\n\r\n$/);
	raw.send(request);
	await raw.received(/"complete"[^]*"complete"[^]*\r\n0\r\n\r\n$/);
});

test('sixty streams at once all complete', async t => {
	const box = await daemon.box(t);
	const ends = await Promise.all(Array.from({ length: 60 }, (_, i) => collect(box.stream(`echo ${i}`, { sessionId: SESSIONLESS }))));
	assert.deepEqual(ends.map(end => end.stdout), ends.map((_, i) => `${i}\n`));
});
