// SPDX-License-Identifier: Apache-2.0
// Interpreter contexts at their limits: too many, too large, too slow, and sandboxes that end underneath.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { cell, context, open, run } from '../lib/code.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { envelope } from '../lib/expect.mjs';
import { processInfo } from '../lib/host.mjs';
import { events } from '../lib/sse.mjs';
import { until } from '../lib/wait.mjs';

let daemon, box, shared;
before(async () => {
	daemon = await startDaemon({ warm: true });
	box = await daemon.box(); // it goes with the daemon
	shared = await context(box);
});
after(() => daemon?.stop());

/** A box whose interpreter is what the test says: a shell script that speaks for itself on descriptor 3. */
async function pretend(t, script, options) {
	const fake = await daemon.box(t, options);
	await fake.out(`cat > /usr/local/bin/python3 <<'END'\n#!/bin/sh\nread -r init <&3\necho '{"t":"ready"}' >&4\n${script}\nEND\nchmod +x /usr/local/bin/python3`);
	return fake;
}

const SILENT = 'while read -r line <&3; do :; done';

test('a result of 100 MB is cut or left out, and that is told', async () => {
	const { results: [text] } = await run(box, shared, '"x" * 100_000_000');
	assert.ok(text.text.length < 5 << 20 && text.text.startsWith("'xxx"), `${text.text.length} characters`);
	assert.ok(text.truncated.includes('text'));
	const { results: [html] } = await run(box, shared, 'from IPython.display import HTML\nHTML("y" * 100_000_000)');
	assert.equal(html.html, undefined);
	assert.ok(html.truncated.includes('html'));
	const { results: [list] } = await run(box, shared, '["z" * 1_000_000] * 100');
	assert.equal(list.json, undefined);
	assert.ok(list.truncated.includes('json'));
	assert.equal((await run(box, shared, '1')).results[0].text, '1');
});

test('an error that is too long is kept as far as it can be, and that is told', async t => {
	const fake = await pretend(t, `while read -r line <&3; do
id=$(expr "$line" : '.*"id":\\([0-9]*\\)')
{ printf '{"t":"error","id":%s,"ename":"Far","evalue":"' "$id"; head -c 20000000 /dev/zero | tr '\\0' z; printf '","traceback":["a"]}\\n{"t":"done","id":%s,"count":1}\\n' "$id"; } >&4
done`);
	const id = await context(fake);
	const { body } = await daemon.api('POST', `/v1/sandboxes/${fake.id}/contexts/${id}/run`, { code: '1' }, { deadline: 60_000 });
	for (const error of [(await run(fake, id, '1')).error, body.error]) {
		assert.deepEqual([error.ename, error.evalue], ['Far', 'z'.repeat(64 << 10)]);
		assert.match(error.traceback.join(), /too long/);
	}
});

test('names of values that are no text become text, and no context dies of them', async () => {
	const { results: [python] } = await run(box, shared, '{"\\ud800": 1, "\\ud801": 2, 1: 3, "1": 4, float("nan"): float("inf")}');
	assert.deepEqual(python.json, { '\ufffd': 2, 1: 4, nan: null });
	assert.equal((await run(box, shared, '1')).results[0].text, '1');
	const { results: [node] } = await run(box, null, '({"\\ud800": 1, "\\ud801": 2})', { language: 'javascript' });
	assert.deepEqual(node.json, { '\ufffd': 2 });
	const { error } = await run(box, null, 'process.exit(-1)', { language: 'javascript' });
	assert.deepEqual([error.cause, error.exitCode], ['exit', 255]);
});

test('a sandbox has 64 contexts, and dead ones make room', async t => {
	const fake = await pretend(t, 'read -r line <&3');
	const ids = [];
	while (ids.length < 64)
		ids.push(...await Promise.all(Array.from({ length: 8 }, () => context(fake))));
	envelope(await fake.api('POST', '/api/contexts', {}), 429, 'LIMIT_REACHED');
	envelope(await fake.api('POST', '/api/execute/code', { code: '1' }), 429, 'LIMIT_REACHED');
	assert.equal((await fake.api('GET', '/api/contexts')).body.contexts.length, 64);
	assert.equal((await run(fake, ids[5], '1')).error.cause, 'exit');
	await context(fake);
	envelope(await fake.api('POST', '/api/contexts', {}), 429, 'LIMIT_REACHED');
	envelope(await fake.api('POST', '/api/execute/code', { context_id: ids[5], code: '1' }), 404, 'CONTEXT_NOT_FOUND');
});

test('a context has 64 runs, and the others are refused with a status', async t => {
	const fake = await pretend(t, SILENT);
	const id = await context(fake);
	const open64 = await Promise.all(Array.from({ length: 64 }, () => open(fake, id, '1')));
	envelope(await fake.api('POST', '/api/execute/code', { context_id: id, code: '1' }), 429, 'LIMIT_REACHED');
	envelope(await daemon.api('POST', `/v1/sandboxes/${fake.id}/contexts/${id}/run`, { code: '1' }), 429, 'LIMIT_REACHED');
	const ends = open64.map(async response => {
		for await (const { data } of events(response))
			return data;
	});
	await fake.api('DELETE', `/api/contexts/${id}`);
	for (const end of await Promise.all(ends))
		assert.deepEqual([end.type, end.contextTerminated], ['error', true]);
});

test('a slow reader holds the code back, and siltd keeps nothing for it', async t => {
	const slow = await daemon.box(t);
	const id = await context(slow);
	const resident = () => processInfo(daemon.siltd()).residentKiB;
	const before = resident();
	const response = await open(slow, id, `import os
for i in range(24):
    print(chr(97 + i) * (1 << 20), end="", flush=True)
    os.write(os.open("/tmp/at", os.O_CREAT | os.O_WRONLY), b"%02d" % i)`);
	response.pause();
	let at = '', same = 0; // until it stands still
	await until('the code to wait', async () => {
		const now = (await slow.run('cat /tmp/at')).stdout;
		same = now !== '' && now === at ? same + 1 : 0;
		at = now;
		return same > 20;
	});
	assert.ok(Number(at) < 20, `it has written ${at} MiB`);
	assert.ok(resident() - before < 6 << 10, `siltd grew by ${resident() - before} KiB`);
	let text = '';
	for await (const { data } of events(response, 60_000))
		text += data.text ?? '';
	assert.equal(text, Array.from({ length: 24 }, (_, i) => String.fromCharCode(97 + i).repeat(1 << 20)).join(''));
});

test('a sandbox that is destroyed in the middle of a run tells the reader', async () => {
	const doomed = await daemon.box();
	const id = await context(doomed);
	const seen = [];
	for await (const { data } of cell(doomed, id, 'print("on", flush=True)\nimport time\ntime.sleep(1000)')) {
		seen.push(data);
		if (seen.length === 1)
			await doomed.destroy();
	}
	assert.deepEqual([seen.at(-1).type, seen.at(-1).ename, seen.at(-1).contextTerminated], ['error', 'ContextTerminated', true]);
	assert.equal(seen.at(-1).cause, 'destroyed');
});

test('an idle context keeps no sandbox awake, lives on in a pause, and is gone after a stop', async t => {
	const fake = await pretend(t, SILENT, { sleepAfter: 1 });
	const id = await context(fake);
	await until('its sleep', async () => (await fake.info()).state === 'paused');
	assert.equal((await daemon.api('GET', `/v1/sandboxes/${fake.id}/contexts/${id}`)).status, 200);
	await fake.stop();
	envelope(await daemon.api('GET', `/v1/sandboxes/${fake.id}/contexts/${id}`), 404, 'CONTEXT_NOT_FOUND');
	envelope(await fake.api('POST', '/api/execute/code', { context_id: id, code: '1' }), 404, 'CONTEXT_NOT_FOUND');
	assert.deepEqual((await fake.api('GET', '/api/contexts')).body.contexts, []);
	await context(fake);
});

test('an interpreter that lies loses its context, and nobody else theirs', async t => {
	const lies = {
		'no JSON': 'echo no json >&4',
		'two names alike': `echo '{"t":"result","id":1,"id":2}' >&4`,
		'a wrong number': `echo '{"t":"done","id":1e3,"count":-1}' >&4`,
		'a line without an end': 'head -c 40000000 /dev/zero | tr "\\0" x >&4',
		'much too deep': `printf '{"t":"result","id":1,"json":' >&4; head -c 100000 /dev/zero | tr "\\0" "[" >&4; echo >&4`,
		'an end of file': 'exec 4>&-',
	};
	const fake = await pretend(t, `read -r line <&3\n. /tmp/lie\necho '{"t":"done","id":1,"count":1}' >&4\nsleep 1000`);
	for (const [name, script] of Object.entries(lies)) {
		await fake.out(`cat > /tmp/lie <<'END'\n${script}\nEND`);
		const id = await context(fake);
		const { error } = await run(fake, id, '1');
		assert.deepEqual([error?.cause, error?.contextTerminated], ['protocol', true], name);
	}
	assert.equal((await run(box, shared, '1')).results[0].text, '1');
});

test('contexts that never end their lines hold up their own sandbox and no other', async t => {
	const liar = await pretend(t, `read -r line <&3\nhead -c 31000000 /dev/zero | tr "\\0" x >&4\nsleep 1000`);
	const open20 = [];
	for (let i = 0; i < 20; i++)
		open20.push(await open(liar, await context(liar), '1'));
	for (const response of open20)
		response.on('error', () => {}).resume();
	const big = async id => (await run(box, id, '"y" * 3_000_000')).results[0].text.length;
	assert.deepEqual(await Promise.all([big(shared), big(await context(box))]), [3_000_002, 3_000_002]);
	await liar.destroy();
	for (const response of open20)
		response.destroy();
});

test('code that interpreters do not take has a bound for each sandbox', async t => {
	const deaf = await pretend(t, 'sleep 1000');
	const code = 'x'.repeat(15 << 20);
	const responses = [];
	for (let i = 0; i < 5; i++)
		responses.push(await open(deaf, await context(deaf), code));
	envelope(await deaf.api('POST', '/api/execute/code', { context_id: await context(deaf), code: '1' }), 429, 'LIMIT_REACHED');
	assert.equal((await run(box, shared, '1')).results[0].text, '1');
	for (const response of responses)
		response.on('error', () => {}).destroy();
});

test('answers that are collected have a bound for each sandbox, and say that they are cut', async t => {
	const busy = await daemon.box(t);
	const code = n => `import os, time\nprint("x" * 30_000_000, end="", flush=True)\nopen("/tmp/at${n}", "w").close()\nwhile not os.path.exists("/tmp/go"): time.sleep(0.05)`;
	const answers = [];
	for (let n = 0; n < 5; n++) {
		const id = await context(busy);
		answers.push(daemon.api('POST', `/v1/sandboxes/${busy.id}/contexts/${id}/run`, { code: code(n) }, { deadline: 120_000 }));
		await until('its output', async () => (await busy.run(`test -e /tmp/at${n}`)).exitCode === 0, 60_000);
	}
	await busy.out('touch /tmp/go');
	const bodies = (await Promise.all(answers)).map(answer => answer.body);
	const sizes = bodies.map(body => body.logs.stdout.reduce((sum, text) => sum + text.length, 0));
	assert.deepEqual(bodies.map(body => [body.error, body.truncated]), [[null, false], [null, false], [null, false], [null, false], [null, true]]);
	assert.ok(sizes.reduce((a, b) => a + b) <= 128 << 20, `${sizes}`);
	assert.deepEqual(sizes.slice(0, 4), [30_000_000, 30_000_000, 30_000_000, 30_000_000]);
});
