// SPDX-License-Identifier: Apache-2.0
// The log of a process that runs, or has only just begun: what it wrote before the question is in the answer.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SESSIONLESS } from '../lib/box.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { kill, logs, look, start } from '../lib/process.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

for (const sessionId of [undefined, SESSIONLESS]) {
	const where = sessionId ?? 'in a session';
	test(`what a short process says is in its log at once, ${where}`, async t => {
		const box = await daemon.box(t);
		let incomplete = 0;
		for (let i = 0; i < 100; i++) {
			const { processId } = await start(box, `echo x${i}; echo y >&2; echo z | cat`, { sessionId });
			const { stdout, stderr } = await logs(box, processId);
			incomplete += stdout !== `x${i}\nz\n` || stderr !== 'y\n';
		}
		assert.equal(incomplete, 0, `${incomplete} of 100 are incomplete`);
	});

	test(`a process that computes and says nothing delays no answer, ${where}`, async t => {
		const box = await daemon.box(t);
		let best = Infinity;
		for (let i = 0; i < 10 && best > 300; i++) { // the machine may be busy
			const { processId } = await start(box, 'while :; do :; done', { sessionId });
			const before = performance.now();
			assert.equal((await logs(box, processId)).stdout, '');
			best = Math.min(best, performance.now() - before);
			await kill(box, processId);
		}
		assert.ok(best <= 300, `${best} ms`);
	});
}

test('many who ask at once about a process that writes without end are all answered', async t => {
	const box = await daemon.box(t);
	const { processId } = await start(box, 'exec yes');
	const answers = await Promise.all(Array.from({ length: 200 }, () => daemon.api('GET', `/v1/sandboxes/${box.id}/processes/${processId}/logs?stream=stderr`)));
	assert.deepEqual([...new Set(answers.map(answer => answer.status))], [200]);
	assert.equal((await look(box, processId)).status, 'running');
	await kill(box, processId);
});

test('what was written before the question is in the answer, however often it is asked', async t => {
	const box = await daemon.box(t);
	const { processId } = await start(box, 'mkfifo /tmp/in; exec 3<>/tmp/in; while read line <&3; do echo $line; touch /tmp/$line; done');
	for (let i = 0; i < 30; i++) {
		await box.out(`until [ -p /tmp/in ]; do :; done; echo ${i} > /tmp/in; until [ -e /tmp/${i} ]; do :; done`);
		assert.ok((await logs(box, processId)).stdout.endsWith(`${i}\n`), `line ${i}`);
	}
	await kill(box, processId);
});
