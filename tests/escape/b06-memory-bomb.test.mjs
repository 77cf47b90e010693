// SPDX-License-Identifier: Apache-2.0
// B6: memory of every kind.
import assert from 'node:assert/strict';
import { bothWays, daemonWithout } from '../lib/escape.mjs';
import { test } from 'node:test';

export const without = ['memory_limit'];

const MIB = 2 ** 20;
const LIMIT_MIB = 64;
const KINDS = ['anon', 'memfd', 'shm', 'tmpfs'];

export async function attack(box) {
	const program = await box.install('eat');
	const agent = await box.init();
	const ate = {};
	for (const kind of KINDS)
		ate[kind] = (await box.run(`${program} ${kind} 256`, { sessionId: kind })).stdout;
	await box.out('rm -f /dev/shm/eat');
	return { succeeded: ate.anon === 'ate 256\n' && ate.memfd === 'ate 256\n', ate, sameAgent: agent === await box.init() };
}

bothWays('B6 memory bombs', {
	without,
	attack,
	sandbox: { limits: { memoryMiB: LIMIT_MIB } },
	async repelled(evidence, box) {
		assert.deepEqual(Object.values(evidence.ate), KINDS.map(() => ''), 'every kind counts');
		assert.equal(evidence.sameAgent, true, 'silt-init was not chosen');
		const { lastDeath, state } = await box.info();
		assert.equal(state, 'running');
		assert.equal(lastDeath.cause, 'oom');
		assert.equal(lastDeath.limitBytes, LIMIT_MIB * MIB);
		assert.ok(lastDeath.peakBytes > LIMIT_MIB * MIB * 0.8);
	},
});

test('B6 the page cache of large files stays below the limit and kills nobody', async t => {
	const daemon = await daemonWithout([]);
	const box = await daemon.box(t, { limits: { memoryMiB: LIMIT_MIB, diskMiB: 1024 } });
	const neighbour = await daemon.box(t);
	await box.out('X=kept; head -c 400000000 /dev/zero > /workspace/big; cat /workspace/big > /dev/null', {}, { deadline: 120_000 });
	const info = await box.info();
	assert.ok(info.usage.memoryBytes <= LIMIT_MIB * MIB * 1.05, `${info.usage.memoryBytes}`);
	assert.equal(info.lastDeath, null);
	assert.equal(await box.out('echo $X'), 'kept\n');
	assert.equal(await neighbour.out('echo fine'), 'fine\n');
});

test('B6 many shells growing at once end alone', async t => {
	const daemon = await daemonWithout([]);
	const box = await daemon.box(t, { limits: { memoryMiB: LIMIT_MIB } });
	const neighbour = await daemon.box(t);
	await neighbour.out('X=kept');
	const eat = "x=$(head -c 60000000 /dev/zero | tr '\\0' x)";
	const answers = await Promise.all(Array.from({ length: 6 }, (_, i) => box.exec(eat, { sessionId: `s${i}` }, { deadline: 60_000 })));
	for (const answer of answers)
		assert.ok([200, 410].includes(answer.status), answer.raw.toString().slice(0, 300));
	assert.equal(await box.out('echo alive', { sessionId: 'after' }), 'alive\n');
	assert.equal(await neighbour.out('echo $X'), 'kept\n');
});
