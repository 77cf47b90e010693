// SPDX-License-Identifier: Apache-2.0
// Create, use, destroy, a thousand times: processes, mounts, cgroups, namespaces, descriptors and files are exactly as before.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SESSIONLESS } from '../lib/box.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { collect } from '../lib/sse.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

/** One life of a sandbox; every tenth does a little of everything. */
async function live(n) {
	const box = await daemon.box(undefined);
	try {
		assert.equal(await box.out(`echo ${n}`, {}, { deadline: 60_000 }), `${n}\n`);
		if (n % 10 === 0) {
			await box.out('sleep 1000 & (setsid sleep 1000 &); head -c 100000 /dev/urandom > /workspace/f', { sessionId: 'two' });
			await collect(box.stream('echo streamed', { sessionId: SESSIONLESS }));
			await box.exec('while :; do :; done', { timeoutMs: 50 });
		}
	} finally {
		await box.destroy();
	}
}

test('1,000 rounds of create, execute, destroy leave everything as before', async () => {
	for (let i = 0; i < 20; i++)
		await live(i); // warm up
	const before = await daemon.atRest();
	for (let i = 0; i < 1000; i++)
		await live(i);
	await daemon.settles(before);
});

test('200 at the same time leave everything as before', async () => {
	const before = await daemon.atRest();
	await Promise.all(Array.from({ length: 200 }, (_, i) => live(i)));
	await daemon.settles(before);
});

test('refused and abandoned requests leave everything as before', async t => {
	const box = await daemon.box(t);
	await box.run('true');
	const before = await daemon.atRest();
	for (let i = 0; i < 100; i++) {
		await daemon.api('POST', '/v1/sandboxes', { id: 'x', image: 'none' });
		await box.exec('exit 1', { sessionId: 'ends' });
		const raw = await daemon.client.raw();
		const body = JSON.stringify({ command: 'echo nobody listens', sessionId: SESSIONLESS });
		raw.send(`POST /sandboxes/${box.id}/api/execute HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${daemon.token}\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
		raw.destroy();
	}
	await box.run('true');
	await daemon.settles(before);
});
