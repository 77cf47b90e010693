// SPDX-License-Identifier: Apache-2.0
// Streams of the remote procedure calls in both directions: order, flow control, cancelling, what a lost connection leaves.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import * as host from '../lib/host.mjs';
import { atRest, bytesOf, connect, eventsOf, failure } from '../lib/rpc.mjs';
import { until, within } from '../lib/wait.mjs';

const SID = 'default';
const MIB = 1 << 20;
const LONG_MS = 120_000;

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

async function open(t) {
	const box = await daemon.box(t);
	return { box, ...await connect(t, box) };
}

/** Bytes that siltd has in memory. */
const memory = () => host.processInfo(daemon.siltd()).residentKiB * 1024;

function source(size, piece = 65_536) {
	const hash = createHash('sha256');
	let made = 0;
	const block = Buffer.alloc(piece, 'silt rpc ');
	const stream = new ReadableStream({
		pull(controller) {
			if (made >= size)
				return controller.close();
			const bytes = Buffer.from(block.subarray(0, Math.min(piece, size - made)));
			bytes.writeUInt32LE(made / piece, 0);
			made += bytes.length;
			hash.update(bytes);
			controller.enqueue(new Uint8Array(bytes));
		},
	});
	return { stream, hash: () => hash.digest('hex'), made: () => made };
}

test('files.writeFileStream writes 64 MiB that come back as they were, in flat memory', async t => {
	const link = await open(t);
	const size = 64 * MIB;
	await link.api.utils.ping();
	host.resetPeak(daemon.siltd());
	const before = memory();
	const { stream, hash } = source(size);
	const written = await within(LONG_MS, 'the upload', link.api.files.writeFileStream('/workspace/new/large.bin', stream, SID));
	assert.deepEqual([written.success, written.path, written.bytesWritten], [true, '/workspace/new/large.bin', size]);
	const sum = hash();
	assert.equal((await link.box.out('sha256sum < /workspace/new/large.bin')).split(' ')[0], sum);
	await atRest(link);
	const { content, size: told } = await link.api.files.readFile('/workspace/new/large.bin', SID, { encoding: 'none' });
	assert.equal(told, size);
	const back = createHash('sha256');
	for await (const part of content)
		back.update(part);
	assert.equal(back.digest('hex'), sum);
	await atRest(link);
	const grown = host.processInfo(daemon.siltd()).peakKiB * 1024 - before;
	assert.ok(grown < 40 * MIB, `grew by ${grown / MIB} MiB`);
});

test('a stream replaces a file at once and keeps its mode; one that is aborted leaves it alone', async t => {
	const link = await open(t);
	await link.box.out('cd /workspace && echo old > f && chmod 750 f');
	const parts = ['n', 'e', 'w', ''];
	const good = new ReadableStream({ pull: controller => (parts.length ? controller.enqueue(new TextEncoder().encode(parts.shift())) : controller.close()) });
	assert.equal((await link.api.files.writeFileStream('f', good, SID)).bytesWritten, 3);
	assert.equal(await link.box.out('cd /workspace && cat f && stat -c " %a" f'), 'new 750\n');
	let pulls = 0;
	const bad = new ReadableStream({
		pull(controller) {
			if (++pulls < 4)
				controller.enqueue(new Uint8Array(1000));
			else
				controller.error(new RangeError('source broke'));
		},
	});
	const error = await failure(link.api.files.writeFileStream('/workspace/f', bad, SID));
	assert.deepEqual([error.name, error.message], ['RangeError', 'source broke']);
	await until('the old file, and nothing else', async () => await link.box.out('cd /workspace && cat f && ls -A') === 'newf\n');
	const empty = new ReadableStream({ start: controller => controller.close() });
	assert.equal((await link.api.files.writeFileStream('/workspace/empty', empty, SID)).bytesWritten, 0);
	await atRest(link);
});

test('a stream into a place that cannot be written is refused, and its source is stopped', async t => {
	const link = await open(t);
	const { stream, made } = source(256 * MIB);
	const error = await failure(link.api.files.writeFileStream('/proc/nope/x', stream, SID));
	assert.equal(typeof error.code, 'string');
	await atRest(link);
	assert.ok(made() < 64 * MIB);
	typed(await failure(link.api.files.writeFileStream('', source(1).stream, SID)), 'VALIDATION_FAILED');
	await atRest(link);
});

function typed(error, code) {
	assert.equal(error.code, code, error.message);
}

test('a reader that is slow holds the writer back', async t => {
	const link = await open(t);
	await link.api.utils.ping();
	const before = memory();
	const stream = await link.api.commands.executeStream('yes | head -c 200000000', SID);
	const reader = stream.getReader();
	await reader.read();
	const start = link.transport.received;
	await until('the stream stands still', async () => {
		const seen = link.transport.received;
		await new Promise(resolve => setTimeout(resolve, 300));
		return link.transport.received === seen;
	});
	assert.ok(link.transport.received - start < 4 * MIB, `${link.transport.received} bytes`);
	assert.ok(memory() - before < 32 * MIB);
	assert.equal(await link.api.utils.ping(), 'healthy');
	await reader.cancel('enough');
	await atRest(link);
});

test('streams that are cancelled end, also when they are silent', async t => {
	const link = await open(t);
	await link.api.processes.startProcess('sleep 600', SID, { processId: 'quiet' });
	const streams = [
		await link.api.processes.streamProcessLogs('quiet'),
		await link.api.ports.watchPort({ port: 9999, mode: 'tcp', interval: 10_000 }),
		await link.api.watch.watch({ path: '/workspace' }),
		await link.api.commands.executeStream('sleep 600', SID),
		await link.api.commands.executeStream('yes', '__DISABLE_SESSION__'),
	];
	for (const stream of streams)
		await stream.cancel('not wanted any more');
	await atRest(link);
	assert.equal((await link.api.processes.getProcess('quiet')).process.status, 'running');
	await link.api.processes.killAllProcesses();
	await atRest(link);
});

test('comments in silence are no events', async t => {
	const link = await open(t);
	const seen = [];
	let text = '';
	const stream = await link.api.commands.executeStream('sleep 8; echo late', SID);
	const [one, two] = stream.tee();
	const raw = bytesOf(two).then(bytes => { text = bytes.toString(); });
	for await (const event of eventsOf(one))
		seen.push(event.type);
	await raw;
	assert.deepEqual(seen, ['start', 'stdout', 'complete']);
	assert.match(text, /^: ka$/m);
	await atRest(link);
});

test('many calls at once are all answered, in the order of their ends', async t => {
	const link = await open(t);
	const done = [];
	const calls = Array.from({ length: 200 }, (_, i) => link.api.commands.execute(`echo ${i}`, i % 2 ? '__DISABLE_SESSION__' : SID).then(r => { done.push(i); return r.stdout; }));
	calls.push(link.api.commands.execute('sleep 1; echo slow', 'other').then(r => { done.push('slow'); return r.stdout; }));
	assert.deepEqual(await within(LONG_MS, 'the calls', Promise.all(calls)), [...Array.from({ length: 200 }, (_, i) => `${i}\n`), 'slow\n']);
	const streams = await Promise.all(Array.from({ length: 20 }, () => link.api.commands.executeStream('seq 20000', '__DISABLE_SESSION__')));
	const texts = await Promise.all(streams.map(async stream => {
		let text = '';
		for await (const event of eventsOf(stream))
			text += event.type === 'stdout' ? event.data : '';
		return text;
	}));
	const expected = Array.from({ length: 20_000 }, (_, i) => `${i + 1}\n`).join('');
	assert.ok(texts.every(text => text === expected));
	await atRest(link);
});

test('a large answer and a large file pass in one message', async t => {
	const link = await open(t);
	const run = await link.api.commands.execute('head -c 12000000 /dev/zero | tr "\\0" "]"', SID);
	assert.equal(run.stdout.length, 12_000_000);
	const content = '["\\é\n'.repeat(5_000_000);
	assert.equal((await link.api.files.writeFile('/workspace/big.txt', content, SID)).bytesWritten, Buffer.byteLength(content));
	assert.equal((await link.api.files.readFile('/workspace/big.txt', SID)).content === content, true);
	await atRest(link);
});

test('what a lost connection has begun runs on, and nothing of it is left in the daemon', async t => {
	const { box, ...link } = await open(t);
	const { id } = await link.api.interpreter.createCodeContext({});
	const pid = daemon.siltd();
	await box.out('true', { sessionId: 'looker' });
	const files = host.descriptors(pid);
	const other = await connect(t, box);
	const wait = 'while [ ! -e /tmp/go ]; do sleep 0.1; done';
	const called = Promise.withResolvers();
	const pending = [
		failure(other.api.commands.execute(`echo x > /workspace/begun; ${wait}; echo x > /workspace/done`, 'lost')),
		failure(other.api.interpreter.runCodeStream(id, `import os\nprint(1, flush=True)\nos.system("${wait}")\nopen("/workspace/code", "w").write("x")`, undefined, { onStdout: () => { called.resolve(); return new Promise(() => {}); } })),
		failure(other.api.files.writeFileStream('/workspace/half', new ReadableStream({ start: controller => controller.enqueue(new Uint8Array(100_000)) }), 'third')),
	];
	const stream = await other.api.commands.executeStream(`${wait}; echo x > /workspace/streamed`, '__DISABLE_SESSION__');
	await within(60_000, 'a callback', called.promise);
	await until('the command has begun', async () => (await box.run('ls /workspace/begun', { sessionId: 'looker' })).exitCode === 0);
	other.socket.close();
	for (const error of await Promise.all(pending))
		assert.match(error.message, /closed WebSocket/);
	await failure(bytesOf(stream));
	await box.out('touch /tmp/go', { sessionId: 'looker' });
	await until('all went on', async () => (await box.run('cd /workspace && ls done code streamed', { sessionId: 'looker' })).exitCode === 0, 60_000);
	await until('nothing half is there', async () => await box.out('ls -A /workspace | grep half || true', { sessionId: 'looker' }) === '');
	await until('the descriptors are back', () => host.descriptors(pid) <= files + 8);
	assert.equal(await link.api.utils.ping(), 'healthy');
});

test('connections that come and go leave neither memory nor descriptors', async t => {
	const box = await daemon.box(t);
	const pid = daemon.siltd();
	const round = async () => {
		const link = await connect(t, box);
		const stream = await link.api.commands.executeStream('yes | head -c 3000000', '__DISABLE_SESSION__');
		await stream.getReader().read();
		await link.api.files.writeFileStream('/workspace/x', source(100_000).stream, SID);
		link.api.commands.execute('true', SID).catch(() => undefined);
		link.socket.close();
		await link.transport.closed;
	};
	for (let i = 0; i < 10; i++)
		await round();
	await link0(box, t);
	const files = host.descriptors(pid);
	const memory0 = memory();
	for (let i = 0; i < 60; i++)
		await round();
	await link0(box, t);
	await until('the descriptors are back', () => host.descriptors(pid) <= files + 8);
	assert.ok(memory() - memory0 < 24 * MIB, `grew by ${(memory() - memory0) / MIB} MiB`);
});

/** Ends what a test has left running. */
async function link0(box, t) {
	const link = await connect(t, box);
	await link.api.processes.killAllProcesses();
	link.socket.close();
	await link.transport.closed;
}
