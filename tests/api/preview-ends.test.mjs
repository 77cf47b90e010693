// SPDX-License-Identifier: Apache-2.0
// A sandbox that is killed, frozen, put to sleep or made anew while visitors talk to it: each of them is told or cut, nothing stays behind, and nobody
// is ever answered by another sandbox.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import * as host from '../lib/host.mjs';
import { expose, serve } from '../lib/preview.mjs';
import { until, within } from '../lib/wait.mjs';

const WAIT = 60_000;
const UPGRADE = 'Connection: Upgrade\r\nUpgrade: x\r\n';
let daemon;

before(async () => { daemon = await startDaemon({ flags: { 'preview.wait_ms': 120_000 } }); });
after(() => daemon?.stop());

async function started(t) {
	const box = await daemon.box(t, {});
	await serve(box, 8000);
	const preview = await expose(box, 8000);
	t.after(() => preview.close());
	assert.equal((await preview.get('/who', { deadline: 120_000 })).body, box.id);
	return { box, preview };
}

/** A command that keeps the sandbox awake, however long a test takes, until the function that comes back is called. */
function keepAwake(box) {
	const running = box.out('mkfifo /tmp/awake; read x < /tmp/awake', { sessionId: 'awake' }, { deadline: 300_000 });
	return async () => {
		await box.out('until [ -p /tmp/awake ]; do sleep 0.02; done; echo > /tmp/awake', { sessionId: 'release' });
		await running;
	};
}

/** One visitor of each kind, in the middle of it. */
async function visitors(preview) {
	const waiting = await preview.raw('POST /hold', 'Content-Length: 0\r\n'); // a GET may be asked again, of the next service
	const clock = await preview.raw('GET /clock');
	await clock.received(/data: 0/, WAIT);
	const download = await preview.raw('GET /big?mib=512');
	await download.received(/Content-Length: 536870912/, WAIT);
	download.socket.pause();
	const upload = await preview.raw('POST /echo', 'Content-Length: 100000000\r\n');
	upload.send(Buffer.alloc(100_000));
	const socket = await preview.raw('GET /ws', UPGRADE);
	await socket.received(/101 Switching/, WAIT);
	const seen = []; // who has not arrived yet would wait for the next service
	await until('all have arrived', async () => {
		seen.push(...(await preview.get('/seen')).body);
		return ['POST /hold', 'POST /echo'].every(line => seen.includes(line));
	}, WAIT);
	preview.close();
	return { waiting, clock, download, upload, socket };
}

/** Who has no answer yet gets one that says what happened, the others are cut: what came is never taken for the whole. */
async function allTold(held, codes) {
	for (const name of ['waiting', 'upload'])
		await held[name].received(/HTTP\/1\.1 50\d [^]*"code":"(\w+)"/, WAIT).then(text => assert.ok(codes.includes(/"code":"(\w+)"/.exec(text)[1]), text));
	held.download.socket.resume();
	for (const name of ['clock', 'download', 'socket'])
		await within(WAIT, `the end of ${name}`, held[name].closed);
	assert.ok(!held.clock.text.endsWith('0\r\n\r\n'), 'an answer that was cut has no end');
	assert.ok(held.download.text.length < 512 * 2 ** 20);
	for (const raw of Object.values(held))
		raw.destroy();
}

/** Sockets of silt-preview and siltd. */
const open = () => ['silt-preview', 'siltd'].map(name => host.descriptors(daemon.programs(name)[0]));

const nothingLeft = before => until('nothing is left open', () => open().every((count, i) => count <= before[i]), WAIT)
	.catch(error => assert.fail(`${error.message}: ${before} before, ${open()} now`));

test('a sandbox that is killed: who waits is told, who reads is cut, and the next one serves', async t => {
	const { box, preview } = await started(t);
	preview.close();
	await daemon.atRest(); // ready sandboxes are made in the background, and have descriptors too
	const before = open();
	const held = await visitors(preview);
	process.kill(await box.init(), 'SIGKILL');
	await allTold(held, ['SERVICE_BROKE_OFF', 'SANDBOX_ENDED']);
	const next = preview.get('/who', { deadline: 120_000 }); // wakes it, and waits for the port
	await serve(box, 8000, { name: 'again' });
	assert.equal((await next).body, 'again', 'the same URL leads to the next incarnation');
	preview.close();
	daemon.client.close();
	await nothingLeft(before.map(count => count + 4)); // sockets that are kept for the next request, the sandbox's own
});

test('a sandbox that is destroyed: the same, and its URL leads nowhere', async t => {
	const box = await daemon.box(undefined, {});
	await daemon.atRest();
	const before = open();
	await serve(box, 8000);
	const preview = await expose(box, 8000);
	t.after(() => preview.close());
	assert.equal((await preview.get('/who', { deadline: 120_000 })).body, box.id);
	const held = await visitors(preview);
	await box.destroy();
	await held.waiting.received(/HTTP\/1\.1 404 [^]*PREVIEW_NOT_FOUND/, WAIT);
	held.download.socket.resume();
	for (const name of ['clock', 'download', 'socket', 'upload'])
		await within(WAIT, `the end of ${name}`, held[name].closed);
	Object.values(held).forEach(raw => raw.destroy());
	assert.equal((await preview.get('/who')).status, 404);
	preview.close();
	daemon.client.close();
	await nothingLeft(before.map(count => count + 4));
});

/** Every process of the sandbox, silt-init too. */
async function everyone(box) {
	const { pidNamespace } = host.processInfo(await box.init());
	return host.pids().filter(pid => host.processInfo(pid).pidNamespace === pidNamespace);
}

test('a sandbox that is frozen: what passes stands still, and goes on when it thaws', async t => {
	const { box, preview } = await started(t);
	const { preview: neighbour, box: other } = await started(t);
	const socket = await preview.raw('GET /ws', UPGRADE);
	await socket.received(/101 Switching/, WAIT);
	const clock = await preview.raw('GET /clock');
	await clock.received(/data: 0/, WAIT);
	const pids = await everyone(box);
	pids.forEach(pid => process.kill(pid, 'SIGSTOP'));
	let answered = false;
	const answer = preview.get('/who', { deadline: 120_000 }).finally(() => { answered = true; });
	try {
		socket.send('hello\n');
		for (let i = 0; i < 20; i++)
			assert.equal((await neighbour.get('/who')).body, other.id, 'its neighbour notices nothing');
		assert.ok(!answered && !socket.text.includes('HELLO'));
	} finally {
		pids.forEach(pid => process.kill(pid, 'SIGCONT'));
	}
	assert.equal((await answer).body, box.id);
	await socket.received(/HELLO\n/, WAIT);
	await preview.get('/tick');
	await clock.received(/data: [1-9]/, WAIT);
	for (const raw of [socket, clock])
		raw.destroy();
});

test('a sandbox that stays frozen: after the time for silence everybody is told or cut', async t => {
	const hasty = await startDaemon({ flags: { 'preview.wait_ms': 120_000, 'preview.silence_timeout_ms': 3_000 } });
	t.after(() => hasty.stop());
	const box = await hasty.box(undefined, {});
	await serve(box, 8000);
	const preview = await expose(box, 8000);
	t.after(() => preview.close());
	assert.equal((await preview.get('/who', { deadline: 120_000 })).body, box.id);
	const pids = await everyone(box);
	const held = { waiting: await preview.raw('GET /hold'), socket: await preview.raw('GET /ws', UPGRADE), clock: await preview.raw('GET /clock') };
	await held.socket.received(/101 Switching/, WAIT);
	await held.clock.received(/data: 0/, WAIT);
	pids.forEach(pid => process.kill(pid, 'SIGSTOP'));
	try {
		await held.waiting.received(/HTTP\/1\.1 504 [^]*PREVIEW_TIMEOUT/, WAIT);
		for (const name of ['clock', 'socket'])
			await within(WAIT, `the end of ${name}`, held[name].closed);
	} finally {
		pids.forEach(pid => process.kill(pid, 'SIGCONT'));
	}
	Object.values(held).forEach(raw => raw.destroy());
	assert.equal((await preview.get('/who')).body, box.id, 'it is not held against the sandbox');
});

test('a visitor keeps its sandbox awake; one that sleeps is woken by the next', async t => {
	const box = await daemon.box(t, { sleepAfter: '1s' });
	const release = keepAwake(box);
	await serve(box, 8000, { loose: true });
	const preview = await expose(box, 8000);
	t.after(() => preview.close());
	const socket = await preview.raw('GET /ws', UPGRADE);
	await socket.received(/101 Switching/, WAIT);
	await release();
	const began = Date.now();
	await until('three times the time to sleep', () => Date.now() - began > 3_000, WAIT);
	socket.send('awake\n');
	await socket.received(/AWAKE\n/, WAIT);
	assert.equal((await box.info()).state, 'running');
	const idle = await preview.raw('GET /who'); // and leaves its connection open
	await idle.received(new RegExp(`${box.id}$`), WAIT);
	socket.destroy();
	await until('sleep', async () => (await box.info()).state === 'paused', WAIT);
	assert.equal((await preview.get('/who')).body, box.id, 'the next visitor notices nothing');
	await box.stop();
	idle.send(`GET /who HTTP/1.1\r\nHost: ${preview.host}\r\nConnection: close\r\n\r\n`);
	await until('it wakes', async () => (await box.info()).state === 'running', WAIT);
	await serve(box, 8000, { name: 'woken' });
	assert.ok((await idle.answer(WAIT)).text.endsWith('woken'));
});

test('a port that another program takes over is served by that one, and by nobody else', async t => {
	const { box, preview } = await started(t);
	for (const name of ['second', 'third']) {
		await box.out('pkill -f service.cjs; while (exec 3<>/dev/tcp/127.0.0.1/8000) 2> /dev/null; do sleep 0.01; done');
		const next = preview.get('/who', { deadline: 120_000 });
		await serve(box, 8000, { name });
		assert.equal((await next).body, name);
	}
});

test('sandboxes come and go, and each URL is answered by its own sandbox or not at all', async t => {
	const { box: steady, preview: fixed } = await started(t);
	const urls = [];
	let over = false;
	const ask = async (preview, allowed) => {
		const answer = await preview.get('/who', { deadline: 120_000 }).catch(() => ({ status: 0 })); // cut
		assert.ok(answer.status !== 200 || answer.body === allowed, `${answer.body} answers for ${allowed}`);
		return answer.status;
	};
	const crowd = (async () => {
		while (!over) {
			for (const url of urls.filter(one => !one.gone))
				url.gone = await ask(url.preview, url.id) === 404; // who asks on is taken for somebody who guesses
			assert.equal(await ask(fixed, steady.id), 200, 'one that stays is always served');
		}
	})();
	crowd.catch(() => {}); // told below
	for (let i = 0; i < 6; i++) {
		const box = await daemon.box(undefined, {}); // with the number, the addresses and the port of the one before
		await serve(box, 8000);
		const preview = await expose(box, 8000);
		t.after(() => preview.close());
		assert.equal((await preview.get('/who', { deadline: 120_000 })).body, box.id);
		urls.push({ preview, id: box.id });
		if (i % 2 === 1)
			process.kill(await box.init(), 'SIGKILL');
		await box.destroy();
	}
	over = true;
	await crowd;
	for (const { preview, id } of urls)
		assert.equal(await ask(preview, id), 404);
});
