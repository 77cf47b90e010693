// SPDX-License-Identifier: Apache-2.0
// F6: many callers make, use, seal, watch and destroy the same few ids, each as if it were alone.
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, before, test } from 'node:test';
import { Box, SESSIONLESS } from '../lib/box.mjs';
import { startDaemon } from '../lib/daemon.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const IDS = ['one', 'two', 'three'];
const CALLERS = 12;
const ROUNDS = 50; // of each

const DEEDS = {
	create: box => daemon.api('POST', '/v1/sandboxes', { id: box.id, type: ['lite', 'standard-1'][randomInt(2)] }),
	run: box => box.exec(`echo ${box.id}`),
	'run alone': box => box.exec(`echo ${box.id}; exit 3`, { sessionId: SESSIONLESS }),
	'run too long': box => box.exec('sleep 100', { sessionId: `s${randomInt(3)}`, timeoutMs: 30 }),
	write: box => box.api('POST', '/api/write', { path: `/workspace/${randomInt(4)}`, content: box.id }),
	read: box => box.api('POST', '/api/read', { path: `/workspace/${randomInt(4)}` }),
	start: box => box.api('POST', '/api/process/start', { command: 'sleep 1000', processId: `p${randomInt(3)}` }),
	'kill all': box => box.api('DELETE', '/api/process/kill-all'),
	expose: box => daemon.api('POST', `/v1/sandboxes/${box.id}/ports`, { port: 8000 + randomInt(3) }),
	look: box => daemon.api('GET', `/v1/sandboxes/${box.id}`),
	context: box => box.api('POST', '/api/contexts', { language: 'python' }),
	destroy: box => daemon.api('DELETE', `/v1/sandboxes/${box.id}`),
};

async function call(answers) {
	const names = Object.keys(DEEDS);
	for (let i = 0; i < ROUNDS; i++) {
		const box = new Box(daemon, IDS[randomInt(IDS.length)]);
		const name = names[randomInt(names.length)];
		const answer = await DEEDS[name](box);
		answers.push([name, answer.status, answer.body?.code]);
		// What comes back is of this id, and an error says which it is.
		if (answer.status === 200 && answer.body?.stdout)
			assert.equal(answer.body.stdout, `${box.id}\n`);
		if (name === 'read' && answer.status === 200)
			assert.equal(answer.body.content, box.id);
		assert.ok(answer.status < 500 || answer.body?.code, `${name}: ${answer.status}`);
		assert.notEqual(answer.body?.code, 'INTERNAL_ERROR', name);
	}
}

test('F6 callers of one id who know nothing of each other are each answered, and nothing is left', async () => {
	for (const id of IDS)
		await daemon.api('DELETE', `/v1/sandboxes/${id}`);
	const before = await daemon.atRest();
	const answers = [];
	await Promise.all(Array.from({ length: CALLERS }, () => call(answers)));
	assert.ok(answers.some(([name, status]) => name === 'run' && status === 200));
	assert.ok(answers.some(([, status]) => status === 410 || status === 404), 'some met a sandbox that was being destroyed, or was gone');
	for (const id of IDS)
		await daemon.api('DELETE', `/v1/sandboxes/${id}`);
	await daemon.settles(before);
});
