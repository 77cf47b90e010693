// SPDX-License-Identifier: Apache-2.0
// Interpreter contexts: what is the same in every language.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { cell, context, open, run } from '../lib/code.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { envelope } from '../lib/expect.mjs';
import { until } from '../lib/wait.mjs';

let daemon, box, shared;
before(async () => {
	daemon = await startDaemon({ warm: true, flags: { 'interpreter.output_max': '1M' } });
	box = await daemon.box(); // it goes with the daemon
	shared = await context(box); // for tests that need an interpreter and care for no other: starting one takes long
});
after(() => daemon?.stop());

// User code that finds the pipe for lines and says something of its own.
const SPEAK = `import os, stat
for fd in map(int, os.listdir("/proc/self/fd")):
    try:
        if fd > 2 and stat.S_ISFIFO(os.fstat(fd).st_mode): os.write(fd, b"no json\\n")
    except OSError: pass
while True: pass`;

/** Kinds of events in their order; how output is cut into pieces is nobody's business. */
const types = answer => answer.events.map(e => e.type).filter((type, i, all) => type !== all[i - 1]);

test('a context keeps its variables, counts its runs and knows its times', async t => {
	const box = await daemon.box(t);
	const id = await context(box, { language: 'python' });
	assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
	assert.deepEqual(types(await run(box, id, 'x = 20')), ['execution_complete']);
	const answer = await run(box, id, 'print("hi")\nx + 1');
	assert.deepEqual(types(answer), ['stdout', 'result', 'execution_complete']);
	assert.deepEqual([answer.stdout, answer.results[0].text, answer.count], ['hi\n', '21', 2]);
	const [one] = (await box.api('GET', '/api/contexts')).body.contexts;
	assert.deepEqual([one.id, one.language, one.cwd, one.state, one.executionCount], [id, 'python', '/workspace', 'idle', 2]);
	assert.ok(Date.parse(one.lastUsed) >= Date.parse(one.createdAt));
});

test('INTERPRETER_EXECUTION_TIMEOUT_MS of the context or the sandbox bounds runs that name no timeout, in contexts that have none', async t => {
	const box = await daemon.box(t, { env: { INTERPRETER_EXECUTION_TIMEOUT_MS: '2000' } });
	const env_vars = { INTERPRETER_EXECUTION_TIMEOUT_MS: '500' };
	const [plain, other, hasty, patient] = await Promise.all([{}, {}, { env_vars }, { env_vars, timeout: 60_000 }].map(options => context(box, { language: 'python', ...options })));
	const forever = 'while True: pass';
	/** A run that began before one that a limit ends has outlived that limit. */
	const outlives = async (id, fields, limited, evalue) => {
		const code = 'import os, time\nprint("on", flush=True)\nwhile not os.path.exists("/tmp/go"): time.sleep(0.01)\n7';
		const results = [];
		for await (const { data } of cell(box, id, code, fields)) {
			if (data.type === 'result')
				results.push(data.text);
			if (data.type !== 'stdout')
				continue;
			const { error } = await run(box, limited, forever);
			assert.deepEqual([error.ename, error.evalue], ['TimeoutError', evalue]);
			await box.out('touch /tmp/go');
		}
		await box.out('rm /tmp/go');
		assert.deepEqual(results, ['7']);
	};
	await outlives(plain, { timeout_ms: 60_000 }, other, 'Execution timed out after 2000 ms');
	await outlives(patient, {}, hasty, 'Execution timed out after 500 ms');
});

test('directory, environment and timeout of a context are honoured', async t => {
	const box = await daemon.box(t, { env: { FROM: 'sandbox', BOTH: 'sandbox' } });
	const id = await context(box, { language: 'python', cwd: '/tmp', env_vars: { BOTH: 'context', ODD: 'a\nb"c' }, timeout: 5_000 });
	const answer = await run(box, id, 'import os\n[os.getcwd(), os.environ["FROM"], os.environ["BOTH"], os.environ["ODD"]]');
	assert.deepEqual(answer.results[0].json, ['/tmp', 'sandbox', 'context', 'a\nb"c']);
	const late = await run(box, id, 'y = 1\nwhile True: pass');
	assert.deepEqual([late.error.ename, late.error.evalue], ['TimeoutError', 'Execution timed out after 5000 ms']);
	assert.equal((await run(box, id, 'y')).results[0].text, '1', 'what it had done stays');
	const answered = await box.api('POST', '/api/contexts', { cwd: '/not/there' });
	envelope(answered, 400, 'VALIDATION_FAILED');
});

test('runs of one context queue, other contexts go on', async t => {
	const box = await daemon.box(t);
	const [one, two] = await Promise.all([context(box), context(box)]);
	const first = run(box, one, 'import os, time\nwhile not os.path.exists("/tmp/go"): time.sleep(0.01)\n"first"');
	const second = run(box, one, 'open("/tmp/second", "w"); "second"');
	assert.equal((await run(box, two, 'import os; os.path.exists("/tmp/second")')).results[0].text, 'False');
	await run(box, two, 'open("/tmp/go", "w")');
	assert.deepEqual([(await first).results[0].text, (await second).results[0].text], ["'first'", "'second'"]);
});

test('output leaves while the code runs', async () => {
	const id = shared;
	const seen = [];
	for await (const { data } of cell(box, id, 'import os, time\nprint(".", end="")\nwhile not os.path.exists("/tmp/more"): time.sleep(0.01)\nprint("end")')) {
		seen.push(data.text ?? data.type);
		if (seen.length === 1)
			await box.out('touch /tmp/more');
	}
	assert.equal(seen[0], '.');
	assert.equal(seen.join(''), '.end\nexecution_complete');
});

test('what print writes comes with its line break, not as two pieces', async () => {
	const pieces = [];
	for (let i = 0; i < 10; i++)
		pieces.push(...(await run(box, shared, 'for i in range(10): print(i)')).events.filter(e => e.type === 'stdout').map(e => e.text));
	assert.equal(pieces.join(''), '0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n'.repeat(10));
	const cut = pieces.filter(text => !text.endsWith('\n')).length;
	assert.ok(cut < 20, `${cut} of ${pieces.length} pieces end within a line`); // a busy machine may part some
});

test('no context named: one per language, made on first use', async t => {
	const box = await daemon.box(t);
	assert.equal((await run(box, null, 'z = 3; z')).results[0].text, '3');
	assert.equal((await run(box, null, 'z', { language: 'python3' })).results[0].text, '3');
	const native = await daemon.api('POST', `/v1/sandboxes/${box.id}/contexts/python/run`, { code: 'print(1); print(2); z' });
	assert.equal(native.status, 200);
	assert.deepEqual(['success' in native.body, native.body.logs.stdout.join(''), native.body.results[0].text, native.body.executionCount, native.body.error], [false, '1\n2\n', '3', 3, null]);
	assert.equal((await box.api('GET', '/api/contexts')).body.contexts.length, 1);
});

test('a run that prints without end is cut and told, and the context stays usable', async () => {
	const id = shared;
	const answer = await run(box, id, 'x = 5\nwhile True: print("y" * 1000)');
	assert.equal(answer.error.ename, 'OutputLimitError');
	assert.equal(answer.stdout.length, 1 << 20);
	assert.equal((await run(box, id, 'x')).results[0].text, '5');
});

test('interrupt stops the code and keeps its variables; a stubborn one is ended with its context', async t => {
	const box = await daemon.box(t);
	const id = await context(box);
	const interrupt = async which => (await daemon.api('POST', `/v1/sandboxes/${box.id}/contexts/${which}/interrupt`)).body.interrupted;
	assert.equal(await interrupt(id), false);
	const answers = [];
	for await (const { data } of cell(box, id, 'x = 7\nprint("on", end="")\nimport time\ntime.sleep(1000)')) {
		answers.push(data);
		if (data.text === 'on')
			assert.equal(await interrupt(id), true);
	}
	assert.equal(answers.at(-1).ename, 'KeyboardInterrupt');
	assert.equal((await run(box, id, 'x')).results[0].text, '7');
	for await (const { data } of cell(box, id, 'import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\nprint("on", end="")\nwhile True: pass')) {
		answers.push(data);
		if (data.type === 'stdout')
			await interrupt(id);
	}
	assert.deepEqual([answers.at(-1).ename, answers.at(-1).contextTerminated], ['ContextTerminated', true]);
});

test('the end of the interpreter ends its context only, and says why', async t => {
	const box = await daemon.box(t, { limits: { memoryMiB: 256 } });
	const other = await context(box);
	await run(box, other, 'kept = 1');
	const why = async code => {
		const id = await context(box);
		await run(box, id, '1');
		const { error, count } = await run(box, id, code);
		assert.equal(count, 2, 'it counts');
		const next = await box.api('POST', '/api/execute/code', { context_id: id, code: '1' });
		envelope(next, 500, 'INTERNAL_ERROR');
		assert.match(next.body.message, /recreate the context/i);
		assert.equal(next.body.context.cause, error.cause);
		return [error.cause, error.exitCode, error.signal];
	};
	const codes = ['exit(3)', 'import os; os._exit(9)', 'import os, signal; os.kill(os.getpid(), signal.SIGSEGV)', SPEAK];
	const causes = [];
	for (const code of codes)
		causes.push(await why(code));
	assert.deepEqual(causes, [['exit', 3, undefined], ['exit', 9, undefined], ['signal', 139, 11], ['protocol', 137, 9]]);
	assert.equal((await why('x = bytearray(600 << 20)'))[0], 'oom');
	assert.equal((await run(box, other, 'kept')).results[0].text, '1');
});

test('delete ends all that a context started, also in the middle of a run', async t => {
	const box = await daemon.box(t);
	const id = await context(box);
	const running = run(box, id, 'import subprocess, time\nsubprocess.Popen(["setsid", "sleep", "1000.77"])\nprint("up")\ntime.sleep(1000)');
	await until('the sleep', async () => (await box.run('pgrep -f "[s]leep 1000.77"')).exitCode === 0);
	const answer = await box.api('DELETE', `/api/contexts/${id}`);
	assert.deepEqual([answer.status, answer.body.contextId], [200, id]);
	assert.equal((await running).error.cause, 'deleted');
	assert.equal((await box.run('pgrep -f "[s]leep 1000.77"')).exitCode, 1);
	envelope(await box.api('DELETE', `/api/contexts/${id}`), 404, 'CONTEXT_NOT_FOUND');
	envelope(await box.api('POST', '/api/execute/code', { context_id: id, code: '1' }), 404, 'CONTEXT_NOT_FOUND');
});

test('restart gives a context a new process under the same id', async t => {
	const box = await daemon.box(t);
	const id = await context(box, { cwd: '/tmp' });
	await run(box, id, 'x = 1');
	const answer = await daemon.api('POST', `/v1/sandboxes/${box.id}/contexts/${id}/restart`, undefined, { deadline: 60_000 });
	assert.deepEqual([answer.status, answer.body.id, answer.body.executionCount], [200, id, 0]);
	const after = await run(box, id, 'import os; os.getcwd()\nx');
	assert.equal(after.error.ename, 'NameError');
	await run(box, id, 'exit()');
	assert.equal((await daemon.api('POST', `/v1/sandboxes/${box.id}/contexts/${id}/restart`, undefined, { deadline: 60_000 })).status, 200);
	assert.equal((await run(box, id, '1')).count, 1);
});

test('a context that cannot be restarted is dead, and can be when what it lacked is there', async t => {
	const box = await daemon.box(t);
	for (const language of ['python', 'javascript']) {
		await box.out('mkdir /tmp/here');
		const id = await context(box, { language, cwd: '/tmp/here' });
		await box.out('rmdir /tmp/here');
		const path = `/v1/sandboxes/${box.id}/contexts/${id}`;
		const restart = () => daemon.api('POST', `${path}/restart`, undefined, { deadline: 60_000 });
		envelope(await restart(), 400, 'VALIDATION_FAILED');
		await until('its end', async () => (await daemon.api('GET', path)).body.state === 'dead');
		const refused = await box.api('POST', '/api/execute/code', { context_id: id, code: '1' });
		envelope(refused, 500, 'INTERNAL_ERROR');
		assert.match(refused.body.message, /\/tmp\/here/);
		await box.out('mkdir /tmp/here');
		assert.equal((await restart()).status, 200);
		assert.equal((await run(box, id, '1')).count, 1);
		await box.out('rmdir /tmp/here');
	}
});

test('input() is answered where somebody said so, and is at its end elsewhere', async () => {
	const id = shared;
	assert.equal((await run(box, id, 'input("? ")')).error.ename, 'EOFError');
	const path = `/v1/sandboxes/${box.id}/contexts/${id}`;
	envelope(await daemon.api('POST', `${path}/input`, { text: 'x' }), 409, 'RESOURCE_BUSY');
	const response = await daemon.client.open('POST', `${path}/run`, { code: 'name = input("name? ")\nname * 2', stdin: true }, { headers: { accept: 'text/event-stream' } });
	const seen = [];
	const { events } = await import('../lib/sse.mjs');
	for await (const { data } of events(response)) {
		seen.push(data);
		if (data.type === 'input')
			assert.equal((await daemon.api('POST', `${path}/input`, { text: 'ab' })).status, 200);
	}
	assert.equal(seen.find(e => e.type === 'input').prompt, 'name? ');
	assert.equal(seen.find(e => e.type === 'result').text, "'abab'");
});

test('who leaves a stream is not missed: the code runs to its end', async () => {
	const id = shared;
	const response = await open(box, id, 'print("on", flush=True)\nimport time\nfor i in range(900): print("z" * 1000)\nopen("/tmp/done", "w").write("yes")');
	await new Promise(resolve => response.once('data', resolve));
	response.destroy();
	await until('its last deed', async () => (await box.run('cat /tmp/done')).stdout === 'yes');
	const { count } = await run(box, id, '1');
	assert.equal((await run(box, id, '1')).count, count + 1);
});

test('contexts, and what runs in them, survive a killed siltd', async t => {
	const box = await daemon.box(t);
	const [idle, busy, timed] = await Promise.all([context(box), context(box), context(box)]);
	await run(box, idle, 'x = 11');
	const lost = open(box, busy, 'import os, time\nprint("on", flush=True)\nwhile not os.path.exists("/tmp/go"): time.sleep(0.01)\nprint("late")\ny = 12');
	const late = open(box, timed, 'print("on", flush=True)\nimport time\nz = 13\ntime.sleep(1000)', { timeout_ms: 5_000 });
	for (const response of await Promise.all([lost, late])) {
		await new Promise(resolve => response.once('data', resolve));
		response.on('error', () => {});
	}
	const pid = daemon.siltd();
	process.kill(pid, 'SIGKILL');
	await until('another siltd', () => daemon.programs('siltd').some(p => p !== pid));
	await daemon.healthy();
	assert.equal((await run(box, idle, 'x')).results[0].text, '11');
	const list = (await box.api('GET', '/api/contexts')).body.contexts;
	assert.deepEqual(list.map(c => c.id).sort(), [idle, busy, timed].sort());
	await box.out('touch /tmp/go');
	const answer = await run(box, busy, 'y');
	assert.deepEqual([answer.results[0].text, answer.stdout], ['12', ''], 'what the lost run printed is not mine');
	assert.equal((await run(box, timed, 'z')).results[0].text, '13', 'its deadline held');
});

test('bad requests are told what is wrong', async t => {
	const box = await daemon.box(t);
	envelope(await box.api('POST', '/api/contexts', { language: 'cobol' }), 400, 'VALIDATION_FAILED');
	envelope(await box.api('POST', '/api/contexts', { language: 5 }), 400, 'VALIDATION_FAILED');
	envelope(await box.api('POST', '/api/contexts', { cwd: 'relative' }), 400, 'VALIDATION_FAILED');
	envelope(await box.api('POST', '/api/execute/code', { code: 5 }), 400, 'VALIDATION_FAILED');
	envelope(await box.api('POST', '/api/execute/code', {}), 400, 'VALIDATION_FAILED');
	envelope(await box.api('POST', '/api/execute/code', { code: '1', language: 'cobol' }), 400, 'VALIDATION_FAILED');
	const id = await context(box);
	const answer = await box.api('POST', '/api/execute/code', { context_id: id, code: '1', language: 'javascript' });
	envelope(answer, 500, 'CODE_EXECUTION_ERROR');
	assert.ok(answer.body.error && answer.body.details.contextId === id);
	assert.equal((await run(box, id, `len("""${'x'.repeat(10 << 20)}""")`)).results[0].text, String(10 << 20));
	envelope(await box.api('POST', '/api/execute/code', { context_id: id, code: 'len("a\0b")' }), 400, 'VALIDATION_FAILED');
});

test('contexts leave nothing behind', async t => {
	const box = await daemon.box(t);
	await box.out('true');
	const before = await daemon.atRest();
	for (let round = 0; round < 2; round++) {
		const ids = await Promise.all([1, 2, 3].map(() => context(box)));
		await Promise.all(ids.map(id => run(box, id, '1')));
		await Promise.all(ids.map(id => box.api('DELETE', `/api/contexts/${id}`)));
	}
	await daemon.settles(before);
});
