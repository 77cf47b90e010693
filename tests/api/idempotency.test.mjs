// SPDX-License-Identifier: Apache-2.0
// The header Idempotency-Key: a request that is sent again is carried out once.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { refused } from '../lib/expect.mjs';
import { processInfo } from '../lib/host.mjs';
import { events } from '../lib/sse.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const send = (path, body, key, headers = {}) => daemon.api('POST', `/v1${path}`, body, { headers: { 'idempotency-key': key, ...headers }, deadline: 60_000 });
const exec = (box, command, key, rest = {}) => send(`/sandboxes/${box.id}/exec`, { command, sessionId: null, ...rest }, key);
const count = async box => Number((await daemon.api('POST', `/v1/sandboxes/${box.id}/exec`, { command: 'cat /tmp/count 2>/dev/null | wc -l', sessionId: null })).body.stdout);

test('a command that is sent again is run once, and both get one answer', async t => {
	const box = await daemon.box(t, {});
	const key = randomUUID();
	const first = await exec(box, 'echo x >> /tmp/count; echo $$; exit 3', key);
	const second = await exec(box, 'echo x >> /tmp/count; echo $$; exit 3', key);
	assert.equal(first.status, 200, first.raw.toString());
	assert.deepEqual(second.body, first.body);
	assert.deepEqual([first.headers['x-silt-idempotent'], second.headers['x-silt-idempotent']], [undefined, 'replayed']);
	assert.equal(await count(box), 1);
	assert.notEqual((await exec(box, 'echo x >> /tmp/count; echo $$; exit 3', randomUUID())).body.stdout, first.body.stdout);
	assert.equal(await count(box), 2);
});

test('another body with the same key is refused, as is another path', async t => {
	const box = await daemon.box(t, {});
	const key = randomUUID();
	await exec(box, 'true', key);
	refused(await exec(box, 'false', key), 422, 'IDEMPOTENCY_KEY_REUSED');
	refused(await send(`/sandboxes/${box.id}/processes`, { command: 'true' }, key), 422, 'IDEMPOTENCY_KEY_REUSED');
	refused(await send(`/sandboxes/${box.id}/exec`, { command: 'true', sessionId: null }, key, { accept: 'text/event-stream' }), 422, 'IDEMPOTENCY_KEY_REUSED');
});

test('while the first request is carried out the others wait for it', async t => {
	const box = await daemon.box(t, {});
	const key = randomUUID();
	const answers = Array.from({ length: 20 }, () => exec(box, 'echo x >> /tmp/count; while [ ! -e /tmp/go ]; do sleep 0.05; done; echo done', key));
	await until('it runs', async () => await count(box) === 1);
	await exec(box, 'touch /tmp/go', randomUUID());
	assert.deepEqual((await Promise.all(answers)).map(a => a.body.stdout), Array(20).fill('done\n'));
	assert.equal(await count(box), 1);
});

test('a client that leaves gets the answer with its next try', async t => {
	const box = await daemon.box(t, {});
	const key = randomUUID();
	const body = { command: 'echo x >> /tmp/count; while [ ! -e /tmp/go ]; do sleep 0.05; done; echo here', sessionId: null };
	const controller = new AbortController();
	const left = fetch(`http://${daemon.address}/v1/sandboxes/${box.id}/exec`, { method: 'POST', signal: controller.signal, headers: { authorization: `Bearer ${daemon.token}`, 'idempotency-key': key }, body: JSON.stringify(body) }).catch(error => error.name);
	await until('it runs', async () => await count(box) === 1);
	controller.abort();
	assert.equal(await left, 'AbortError');
	await exec(box, 'touch /tmp/go', randomUUID());
	assert.equal((await send(`/sandboxes/${box.id}/exec`, body, key)).body.stdout, 'here\n');
	assert.equal(await count(box), 1);
});

test('a stream is repeated from its begin, also while it runs', async t => {
	const box = await daemon.box(t, {});
	const key = randomUUID();
	const open = () => daemon.client.open('POST', `/v1/sandboxes/${box.id}/exec`, { command: 'echo x >> /tmp/count; echo one; while [ ! -e /tmp/go ]; do sleep 0.05; done; echo two', sessionId: null }, { headers: { 'idempotency-key': key, accept: 'text/event-stream' } });
	const collect = async response => {
		const all = [];
		for await (const { data } of events(response, 30_000))
			all.push(data);
		return all;
	};
	const first = await open();
	for await (const { data } of events(first, 30_000)) {
		if (data.type === 'stdout')
			break;
	}
	first.destroy();
	const second = collect(await open());
	await exec(box, 'touch /tmp/go', randomUUID());
	const all = await second;
	assert.deepEqual(all.map(e => e.type), ['start', 'stdout', 'stdout', 'complete']);
	assert.deepEqual(await collect(await open()), all);
	assert.equal(await count(box), 1);
});

test('an answer that is too large to be kept comes once, and the command is not run again', async t => {
	const box = await daemon.box(t, {});
	const key = randomUUID();
	const command = 'echo x >> /tmp/count; head -c 6000000 /dev/zero | tr "\\0" y';
	assert.equal((await exec(box, command, key)).body.stdout.length, 6_000_000);
	refused(await exec(box, command, key), 409, 'IDEMPOTENCY_KEY_USED');
	assert.equal(await count(box), 1);
});

test('streams with keys, too large or not read to the end, do not fill the memory', async t => {
	const box = await daemon.box(t, {});
	const memory = () => processInfo(daemon.siltd()).residentKiB / 1024;
	const slack = process.env.SILT_SANITIZED ? 300 : 0; // a sanitizer keeps what was freed for a while
	const open = (key, command) => fetch(`http://${daemon.address}/v1/sandboxes/${box.id}/exec`, {
		method: 'POST', headers: { authorization: `Bearer ${daemon.token}`, accept: 'text/event-stream', 'idempotency-key': key }, body: JSON.stringify({ command, sessionId: null }),
	});
	const read = async (response, most = Infinity) => {
		let bytes = 0;
		for await (const piece of response.body) {
			bytes += piece.length;
			if (bytes > most)
				break; // leaves
		}
		return bytes;
	};
	await box.out('head -c 2900000 /dev/zero | tr "\\0" x | fold -w 1000 > /tmp/much; cat /tmp/much /tmp/much > /tmp/more');
	const before = memory();
	for (let i = 0; i < 30; i++)
		assert.ok(await read(await open(`more-${i}`, 'cat /tmp/more')) > 5_800_000);
	assert.ok(memory() - before < 60 + slack, `${memory() - before} MiB for 30 answers that are not kept`);
	refused(await send(`/sandboxes/${box.id}/exec`, { command: 'cat /tmp/more', sessionId: null }, 'more-0', { accept: 'text/event-stream' }), 409, 'IDEMPOTENCY_KEY_USED');
	const much = 'cat /tmp/much; while [ ! -e /tmp/go ]; do sleep 0.1; done';
	await Promise.all(Array.from({ length: 40 }, async (_, i) => read(await open(`much-${i}`, much), 2_900_000)));
	assert.ok(memory() - before < 110 + slack, `${memory() - before} MiB for 40 streams without a reader`);
	const again = await Promise.all(Array.from({ length: 40 }, (_, i) => open(`much-${i}`, much)));
	const kept = again.filter(r => r.status === 200);
	assert.deepEqual(again.filter(r => r.status !== 200).map(r => r.status), Array(40 - kept.length).fill(409));
	assert.ok(kept.length > 5 && kept.length < 30, `${kept.length} of 40 are kept`);
	await box.out('touch /tmp/go');
	for (const answer of kept)
		assert.ok(await read(answer) > 2_900_000);
});

test('sandboxes, processes and contexts are made once; a refusal is not kept', async t => {
	const box = await daemon.box(t);
	const key = randomUUID();
	refused(await send(`/sandboxes/${box.id}/processes`, { command: 'sleep 1000' }, key), 404, 'SANDBOX_NOT_FOUND');
	const made = await Promise.all([1, 2, 3].map(() => send('/sandboxes', { id: box.id }, `${key}-s`)));
	assert.deepEqual(made.map(a => a.status), [201, 201, 201]);
	assert.deepEqual(made[1].body, made[0].body);
	const started = [await send(`/sandboxes/${box.id}/processes`, { command: 'sleep 1000' }, key), await send(`/sandboxes/${box.id}/processes`, { command: 'sleep 1000' }, key)];
	assert.deepEqual(started.map(a => [a.status, a.body.id]), Array(2).fill([201, started[0].body.id]));
	assert.equal((await daemon.api('GET', `/v1/sandboxes/${box.id}/processes`)).body.processes.filter(p => p.kind === 'process').length, 1);
	const contexts = [await send(`/sandboxes/${box.id}/contexts`, {}, `${key}-c`), await send(`/sandboxes/${box.id}/contexts`, {}, `${key}-c`)];
	assert.equal(contexts[0].status, 201, contexts[0].raw.toString());
	assert.equal(contexts[1].body.id, contexts[0].body.id);
	assert.equal((await daemon.api('GET', `/v1/sandboxes/${box.id}/contexts`)).body.contexts.length, 1);
});

test('a key has 1 to 128 printable characters', async t => {
	const box = await daemon.box(t, {});
	for (const key of ['', 'x'.repeat(129), 'a b'])
		refused(await exec(box, 'true', key), 400, 'VALIDATION_FAILED');
	assert.equal((await exec(box, 'true', 'x'.repeat(128))).status, 200);
	refused(await daemon.api('POST', `/v1/sandboxes/${box.id}/exec`, Buffer.from('{'), { headers: { 'idempotency-key': randomUUID() } }), 400, 'VALIDATION_FAILED');
});
