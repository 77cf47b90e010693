// SPDX-License-Identifier: Apache-2.0
// Interpreter contexts at their edges: code that does not want to end, what it leaves behind, and a lost siltd.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { cell, context, open, run } from '../lib/code.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { envelope } from '../lib/expect.mjs';
import { events } from '../lib/sse.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon({ warm: true, flags: { 'interpreter.output_max': '1M' } }); });
after(() => daemon?.stop());

const DEAF = 'import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\n';

test('code that prints without end after its time is over ends nevertheless', async t => {
	const box = await daemon.box(t);
	const id = await context(box);
	const { error } = await run(box, id, `${DEAF}time.sleep(0.8)\nwhile True: print("y" * 1000)`, { timeout_ms: 300 });
	assert.deepEqual([error.ename, error.contextTerminated], ['TimeoutError', true]);
});

test('who interrupts again and again does not put off the end of code that does not listen', async t => {
	const box = await daemon.box(t);
	const id = await context(box);
	let over = false, asking;
	const ask = async () => {
		while (!over)
			await daemon.api('POST', `/v1/sandboxes/${box.id}/contexts/${id}/interrupt`);
	};
	let last;
	for await (const { data } of cell(box, id, `${DEAF}print("on", flush=True)\nwhile True: time.sleep(0.1)`)) {
		asking ??= ask();
		last = data;
	}
	over = true;
	await asking;
	assert.deepEqual([last.ename, last.contextTerminated], ['ContextTerminated', true]);
});

test('an interpreter that ends by itself takes along what it started', async t => {
	const box = await daemon.box(t);
	const id = await context(box);
	const { error } = await run(box, id, 'import subprocess\nsubprocess.Popen(["setsid", "sleep", "1000.78"])\nexit(4)');
	assert.deepEqual([error.cause, error.exitCode], ['exit', 4]);
	assert.equal((await box.run('pgrep -f "[s]leep 1000.78"')).exitCode, 1);
});

// The pipe for lines, found by user code: it can be written to, and is none of the standard ones.
const CONTROL = `import fcntl, os, stat, json, threading, time
def is_control(fd):
    st = os.fstat(fd)
    return stat.S_ISFIFO(st.st_mode) and fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY and st.st_ino not in (os.fstat(1).st_ino, os.fstat(2).st_ino)
control = next(fd for fd in map(int, os.listdir("/proc/self/fd")) if os.path.exists(f"/proc/self/fd/{fd}") and is_control(fd))
def say(**line): os.write(control, (json.dumps(line) + "\\n").encode())
`;

test('lines that fit no run change nothing', async t => {
	const box = await daemon.box(t);
	const id = await context(box);
	const odd = 'for n in (0, 1, 1 << 62):\n    for word in ("result", "input", "done", "exit", "pong", "ready"): say(t=word, id=n, count=9, status=0, prompt="", text="odd") if word != "exit" else None\n';
	const answer = await run(box, id, `${CONTROL}${odd}say(t="failed", code="cwd", why="no")\n"mine"`);
	assert.deepEqual([answer.results.map(r => r.text), answer.count, answer.error], [["'mine'"], 1, null]);
	const later = await run(box, id, 'threading.Thread(target=lambda: (time.sleep(0.1), say(t="result", id=1, text="late"), os.write(2, b"e" * 4096))).start()');
	assert.equal(later.error, null);
	assert.deepEqual((await run(box, id, 'time.sleep(0.3)\n2')).results.map(r => r.text), ['2']);
});

test('a closed control descriptor, and children that keep the pipes, end the context and nothing else', async t => {
	const box = await daemon.box(t);
	const why = async code => {
		const id = await context(box);
		const { error } = await run(box, id, CONTROL + code);
		assert.equal((await box.api('DELETE', `/api/contexts/${id}`)).status, 200);
		return error.cause;
	};
	assert.equal(await why('os.close(control)\nwhile True: time.sleep(1)'), 'protocol');
	assert.equal(await why('os.write(control, b"x" * 70000)\nos.kill(os.getpid(), 9)'), 'signal');
	assert.equal(await why('if os.fork() == 0:\n    while True: time.sleep(1000)\nos._exit(3)'), 'exit');
	assert.equal((await box.run('echo fine')).stdout, 'fine\n');
});

test('restart, interrupt and delete at once are all answered, whoever wins', async t => {
	const box = await daemon.box(t);
	const path = id => `/v1/sandboxes/${box.id}/contexts/${id}`;
	for (const code of ['1', 'while True: pass']) {
		const id = await context(box);
		const streams = [await open(box, id, code), await open(box, id, '2')]; // both are taken before anything else is
		const runs = streams.map(async stream => {
			let last;
			for await (const { data } of events(stream))
				last = data;
			assert.match(last?.type ?? '', /^(execution_complete|error)$/, 'the last event');
		});
		const answers = await Promise.all([
			daemon.api('POST', `${path(id)}/restart`, undefined, { deadline: 60_000 }),
			daemon.api('POST', `${path(id)}/restart`, undefined, { deadline: 60_000 }),
			daemon.api('POST', `${path(id)}/interrupt`),
			box.api('DELETE', `/api/contexts/${id}`),
			box.api('DELETE', `/api/contexts/${id}`),
		]);
		await Promise.all(runs);
		assert.ok(answers.some(a => a.status === 200));
		assert.deepEqual((await box.api('GET', '/api/contexts')).body.contexts, []);
	}
	assert.equal((await run(box, null, '3')).results[0].text, '3');
});

test('many deletions at once are each answered', async t => {
	const box = await daemon.box(t);
	const ids = await Promise.all(Array.from({ length: 6 }, () => context(box)));
	const answers = await Promise.all(ids.map(id => box.api('DELETE', `/api/contexts/${id}`)));
	assert.deepEqual(answers.map(a => [a.status, a.body.contextId]), ids.map(id => [200, id]));
	assert.deepEqual((await box.api('GET', '/api/contexts')).body.contexts, []);
});

test('a new siltd goes by the run that is under way, not by the one before, and answers its questions', async t => {
	const box = await daemon.box(t);
	const LIMIT_MS = 4_000;
	const [free, asking] = [await context(box), await context(box)];
	assert.equal((await run(box, free, '1', { timeout_ms: LIMIT_MS })).count, 1);
	const lost = await open(box, free, 'import os, time\nprint("on", flush=True)\nwhile not os.path.exists("/tmp/go"): time.sleep(0.01)\ny = 12');
	lost.on('error', () => {});
	await new Promise(resolve => lost.once('data', resolve));
	const code = 'seen = []\nfor i in range(3):\n    try: input("? ")\n    except EOFError: seen.append(i)';
	const asked = await daemon.client.open('POST', `/v1/sandboxes/${box.id}/contexts/${asking}/run`, { code, stdin: true }, { headers: { accept: 'text/event-stream' } });
	asked.on('error', () => {});
	for await (const { data } of events(asked))
		if (data.type === 'input')
			break;
	const pid = daemon.siltd();
	process.kill(pid, 'SIGKILL');
	await until('another siltd', () => daemon.programs('siltd').some(p => p !== pid));
	await daemon.healthy();
	assert.deepEqual((await run(box, asking, 'seen')).results[0].json, [0, 1, 2]);
	assert.equal((await run(box, asking, 'while True: pass', { timeout_ms: LIMIT_MS })).error.ename, 'TimeoutError'); // as long as the run before had
	await box.out('touch /tmp/go');
	assert.equal((await run(box, free, 'y')).results[0].text, '12');
});

test('code of a former siltd that prints without end is stopped, too', async t => {
	const box = await daemon.box(t);
	const flooding = { python: 'x = 5\nwhile True: print("y" * 1000)', javascript: 'var x = 5; for (;;) console.log("y".repeat(1000))' };
	const ids = await Promise.all(Object.keys(flooding).map(language => context(box, { language })));
	for (const [i, code] of Object.values(flooding).entries()) { // who does not read holds the code back
		const lost = await open(box, ids[i], code);
		lost.on('error', () => {});
		await new Promise(resolve => lost.once('readable', resolve));
	}
	const pid = daemon.siltd();
	process.kill(pid, 'SIGKILL');
	await until('another siltd', () => daemon.programs('siltd').some(p => p !== pid));
	await daemon.healthy();
	for (const id of ids)
		assert.equal((await run(box, id, 'x')).results[0].text, '5');
});

for (const [language, first, second] of [
	['python', 'import os, time\nprint("on", flush=True)\nwhile not os.path.exists("/tmp/go"): time.sleep(0.01)', 'time.sleep(0.5)\n"fine"'],
	['javascript', 'process.stdout.write("on"); while (!fs.existsSync("/tmp/go")) await new Promise(done => setTimeout(done, 10))', 'for (const end = Date.now() + 500; Date.now() < end;); "fine"'],
]) {
	test(`${language}: an interrupt that comes too late for its run does not hit the next one`, async t => {
		const box = await daemon.box(t);
		const id = await context(box, { language });
		const init = await box.init();
		const path = `/v1/sandboxes/${box.id}/contexts/${id}`;
		let next, asked;
		for await (const { data } of cell(box, id, first)) {
			if (!data.text?.startsWith('on'))
				continue;
			next = run(box, id, second);
			process.kill(init, 'SIGSTOP'); // who is to send the signal is busy, until the run has ended
			setTimeout(() => process.kill(init, 'SIGCONT'), 1_500);
			asked = daemon.api('POST', `${path}/interrupt`);
			await daemon.api('GET', path); // served after it
			fs.writeFileSync(`/proc/${init}/root/tmp/go`, '');
		}
		assert.equal((await asked).body.interrupted, true);
		const { error, results } = await next;
		assert.deepEqual([error, results[0]?.text], [null, "'fine'"]);
		assert.equal((await daemon.api('GET', path)).body.executionCount, 2);
	});
}

test('runs that wait in a context that is deleted are told that, and so is who created it', async t => {
	const box = await daemon.box(t);
	const id = await context(box);
	const path = `/v1/sandboxes/${box.id}/contexts/${id}`;
	let streams, whole;
	for await (const { data } of cell(box, id, 'print("on", flush=True)\nimport time\ntime.sleep(1000)')) {
		if (data.type !== 'stdout')
			assert.deepEqual([data.type, data.cause, data.contextTerminated], ['error', 'deleted', true]);
		if (!data.text?.startsWith('on'))
			continue;
		streams = await Promise.all([open(box, id, '1'), open(box, id, '2')]);
		whole = daemon.api('POST', `${path}/run`, { code: '3' });
		assert.equal((await box.api('DELETE', `/api/contexts/${id}`)).status, 200);
	}
	for (const stream of streams)
		for await (const { data } of events(stream))
			assert.deepEqual([data.type, data.cause, data.contextTerminated], ['error', 'deleted', true]);
	envelope(await whole, 404, 'CONTEXT_NOT_FOUND');
	// A Python that never gets ready.
	await box.out("printf '#!/bin/sh\\nexec sleep 1000\\n' > /usr/local/bin/python3; chmod +x /usr/local/bin/python3");
	const creating = box.api('POST', '/api/contexts', { env_vars: { LANG: 'C' } }, { deadline: 60_000 });
	const [starting] = await until('it in the list', async () => {
		const { contexts } = (await box.api('GET', '/api/contexts')).body;
		return contexts.length === 1 && contexts;
	});
	assert.equal(starting.state, 'starting');
	assert.equal((await box.api('DELETE', `/api/contexts/${starting.id}`)).status, 200);
	const answer = await creating;
	envelope(answer, 404, 'CONTEXT_NOT_FOUND');
	assert.match(answer.body.message, /was deleted/);
});

for (const language of ['python', 'javascript']) {
	test(`${language}: how often and when a context was used last is true after a lost siltd`, async t => {
		const box = await daemon.box(t);
		const id = await context(box, { language });
		for (let i = 0; i < 2; i++)
			await run(box, id, '1');
		const begun = Date.now();
		await run(box, id, '1');
		const look = async () => (await daemon.api('GET', `/v1/sandboxes/${box.id}/contexts/${id}`)).body;
		const before = await look();
		const over = Date.now();
		const pid = daemon.siltd();
		process.kill(pid, 'SIGKILL');
		await until('another siltd', () => daemon.programs('siltd').some(p => p !== pid));
		await daemon.healthy();
		const after = await until('its answer', async () => {
			const seen = await look();
			return seen.state === 'idle' && seen;
		});
		assert.deepEqual([before.executionCount, after.executionCount, after.createdAt], [3, 3, before.createdAt]);
		for (const used of [before.lastUsedAt, after.lastUsedAt].map(Date.parse))
			assert.ok(used >= begun && used <= over, `${before.lastUsedAt}, then ${after.lastUsedAt}, and its last run was from ${begun} to ${over}`);
	});
}

test('a Python that was started for its context leaves no directory of its own', async t => {
	const box = await daemon.box(t);
	const id = await context(box, { env_vars: { LANG: 'C' } }); // no warm one has that
	assert.equal((await run(box, id, 'import os; [os.path.exists(p) for p in ("/nonexistent", "/root/.ipython")]')).results[0].text, '[False, False]');
});

test('many interrupts while a traceback is being made print nothing', async t => {
	const box = await daemon.box(t);
	const id = await context(box);
	const deep = 'def f(n):\n    if n: f(n - 1)\n    else:\n        print("on", flush=True)\n        while True: pass\n';
	for (let i = 0; i < 3; i++) {
		let over = false, stderr = '', last;
		const ask = async () => {
			while (!over)
				await daemon.api('POST', `/v1/sandboxes/${box.id}/contexts/${id}/interrupt`);
		};
		let asking = [];
		for await (const { data } of cell(box, id, `${deep}f(200)`)) {
			if (data.text?.startsWith('on'))
				asking = [ask(), ask()];
			stderr += data.type === 'stderr' ? data.text : '';
			last = data;
		}
		over = true;
		await Promise.all(asking);
		assert.deepEqual([last.ename, stderr], ['KeyboardInterrupt', '']);
	}
});
