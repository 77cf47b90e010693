// SPDX-License-Identifier: Apache-2.0
// The events of a run of code, read again after the connection broke.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { refused } from '../lib/expect.mjs';
import { events } from '../lib/sse.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon({ warm: true }); });
after(() => daemon?.stop());

const SSE = { headers: { accept: 'text/event-stream' } };

/** Starts code; answers its stream of events, and where its context is. */
async function start(box, code, fields = {}, context = 'python') {
	const path = `/v1/sandboxes/${box.id}/contexts/${context}`;
	const response = await daemon.client.open('POST', `${path}/run`, { code, ...fields }, SSE);
	assert.equal(response.statusCode, 200);
	const stream = events(response);
	const { value: { data: first } } = await stream.next();
	assert.equal(first.type, 'start');
	assert.match(first.runId, /^run-[a-z2-7]{20}$/);
	assert.equal(first.cursor, 1);
	return { path, stream, first, again: cursor => follow(`${path}/runs/${first.runId}/stream${cursor === undefined ? '' : `?cursor=${cursor}`}`) };
}

async function* follow(path) {
	const response = await daemon.client.open('GET', path, undefined, SSE);
	assert.equal(response.statusCode, 200);
	for await (const { data } of events(response))
		yield data;
}

async function all(stream) {
	const list = [];
	for await (const event of stream)
		list.push(event.data ?? event);
	return list;
}

const box = async t => {
	const made = await daemon.box(t);
	await made.run('true');
	return made;
};

test('a run that has ended is read again from any cursor', async t => {
	const { stream, first, again, path } = await start(await box(t), 'import sys\nfor n in range(20): print(n, flush=True); print(n, file=sys.stderr, flush=True)\n"v" * 100_000');
	const list = [first, ...await all(stream)];
	assert.deepEqual(list.map(event => event.cursor), list.map((_, n) => n + 1), 'they count up');
	assert.equal(list.at(-1).type, 'execution_complete');
	assert.ok(list.some(event => event.type === 'result'));
	assert.deepEqual(await all(again()), list);
	for (let cursor = 1; cursor <= list.length; cursor += 7)
		assert.deepEqual(await all(again(cursor)), list.slice(cursor));
	assert.deepEqual(await all(again(list.length)), [], 'after the last event there is none');
	const { body: { contexts } } = await daemon.api('GET', path.replace(/\/python$/, ''));
	assert.equal(contexts[0].id, first.contextId);
	assert.deepEqual(await all(follow(`${path.replace('python', first.contextId)}/runs/${first.runId}/stream`)), list, 'the context by its id');
});

test('a client that comes back 50 times while the code runs gets each event once', async t => {
	const { stream, first, again } = await start(await box(t), 'import time\nfor n in range(3000): print(n, flush=True); time.sleep(0.0005 if n % 10 else 0)');
	const seen = [first];
	await stream.return(); // cuts the connection
	let times = 0;
	while (seen.at(-1).type !== 'execution_complete') {
		times++;
		let left = 30;
		for await (const event of again(seen.at(-1).cursor)) {
			seen.push(event);
			if (--left === 0)
				break;
		}
	}
	assert.ok(times >= 50, `${times} times`);
	assert.deepEqual(seen.map(event => event.cursor), seen.map((_, n) => n + 1));
	assert.equal(seen.filter(event => event.type === 'stdout').map(event => event.text).join(''), Array.from({ length: 3000 }, (_, n) => `${n}\n`).join(''));
});

test('readers beside the client get the same events, and one that does not read holds the code back', async t => {
	const there = await box(t);
	const { stream, first, again, path } = await start(there, 'import os\nfor n in range(400): os.write(1, b"x" * 65535 + b"\\n")\nopen("/tmp/done", "w").close()');
	const idle = await daemon.client.open('GET', `${path}/runs/${first.runId}/stream`, undefined, SSE); // nobody reads it
	const rest = all(stream);
	const halted = await there.run('sleep 1; test -e /tmp/done', { sessionId: 'look' });
	assert.equal(halted.exitCode, 1, '26 MB do not fit where nobody reads');
	idle.destroy();
	const list = await rest;
	assert.equal(list.filter(event => event.type === 'stdout').reduce((sum, event) => sum + event.text.length, 0), 400 * 65536);
	const kept = await all(again());
	assert.equal(kept[0].type, 'gap', 'more than 16 MiB are not kept');
	assert.equal(kept[0].droppedEvents, kept[0].cursor);
	assert.deepEqual(kept.slice(1), list.slice(kept[0].cursor - 1));
	assert.ok(Buffer.byteLength(JSON.stringify(kept)) > 15 << 20);
});

test('a reader can answer questions; without any client the code gets no input', async t => {
	const code = 'try:\n    got = input("? ")\nexcept EOFError:\n    got = "nothing"\ngot';
	const there = await box(t);
	const asked = await start(there, code, { stdin: true });
	const reader = asked.again(1);
	assert.equal((await reader.next()).value.type, 'input');
	await asked.stream.return();
	assert.equal((await daemon.api('POST', `${asked.path}/input`, { text: 'this' })).status, 200);
	assert.deepEqual((await all(reader)).map(event => event.text), ["'this'", undefined]);
	const alone = await start(there, `import time\n${code}`, { stdin: true });
	assert.equal((await alone.stream.next()).value.data.type, 'input');
	await alone.stream.return();
	await until('the code has ended', async () => (await daemon.api('GET', alone.path)).body.state === 'idle');
	assert.equal((await all(alone.again(2)))[0].text, "'nothing'");
});

test('runs that are not kept, and cursors that fit none, are refused', async t => {
	const there = await box(t);
	const { stream, first, path } = await start(there, '1');
	await all(stream);
	const run = `${path}/runs/${first.runId}/stream`;
	for (const cursor of ['99', '-1', 'x', '18446744073709551616'])
		refused(await daemon.api('GET', `${run}?cursor=${cursor}`), 400, 'VALIDATION_FAILED');
	refused(await daemon.api('GET', `${path}/runs/run-none/stream`), 404, 'RUN_NOT_FOUND');
	refused(await daemon.api('GET', run.replace('/python/', '/javascript/')), 404, 'RUN_NOT_FOUND');
	refused(await daemon.api('GET', run.replace(there.id, 'nobody')), 404, 'SANDBOX_NOT_FOUND');
	refused(await daemon.api('GET', `${run}?curser=1`), 400, 'VALIDATION_FAILED');
	await daemon.api('POST', `/v1/sandboxes/${there.id}/stop`);
	assert.equal((await all(follow(run.replace('/python/', `/${first.contextId}/`)))).at(-1).type, 'execution_complete', 'also of a stopped sandbox');
	await until('its log is gone with it', async () => {
		await daemon.api('DELETE', `/v1/sandboxes/${there.id}`);
		return (await daemon.api('GET', run)).status === 404;
	});
});

test('readers see the end of a run whose context ends, and many of them are refused', async t => {
	const there = await box(t);
	const { first, again, path } = await start(there, 'import time\nprint("on", flush=True)\ntime.sleep(1000)');
	const readers = Array.from({ length: 16 }, () => again(1));
	for (const reader of readers)
		assert.equal((await reader.next()).value.text, 'on\n');
	refused(await daemon.api('GET', `${path}/runs/${first.runId}/stream`), 429, 'LIMIT_REACHED');
	await daemon.api('POST', `/v1/sandboxes/${there.id}/stop`);
	for (const reader of readers)
		assert.deepEqual((await all(reader)).map(event => [event.type, event.ename]), [['error', 'ContextTerminated']]);
});
