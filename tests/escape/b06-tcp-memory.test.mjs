// SPDX-License-Identifier: Apache-2.0
// B6: memory of the kernel for TCP connections of a sandbox to itself.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SESSIONLESS } from '../lib/box.mjs';
import { bothWays, daemonWithout } from '../lib/escape.mjs';
import { heldMiB, watchTcp } from '../lib/tcp.mjs';

export const without = ['tcp_memory'];

const MEMORY_MIB = 256;
const LIMIT_MIB = 64; // a quarter of it
const ATTACK_S = 3;
const WINDOW_MS = 500;
const DEADLINE = { deadline: 60_000 };

for (const kind of ['backlog', 'accepted', 'reset'])
	bothWays(`B6 memory of TCP connections: ${kind}`, {
		without,
		sandbox: { limits: { memoryMiB: MEMORY_MIB } },
		async attack(box, daemon) {
			const program = await box.install('tcp');
			const agent = await box.init();
			const { samples } = await watchTcp(agent, box.exec(`${program} ${kind} ${ATTACK_S}; true`, { sessionId: 'attack' }, DEADLINE));
			const held = heldMiB(samples, WINDOW_MS);
			return {
				succeeded: held > 1.1 * LIMIT_MIB, held, peak: Math.max(...samples.map(s => s.mib)), samples: samples.length,
				sameAgent: agent === await box.init(), log: daemon.log().split('\n').filter(line => / tcp\./.test(line)),
			};
		},
		async repelled(evidence, box) {
			assert.equal(evidence.sameAgent, true, 'silt-init was not killed');
			assert.equal(await box.out('echo alive', { sessionId: 'after' }), 'alive\n');
		},
	});

bothWays('B6 sockets of Multipath TCP', {
	without,
	async attack(box) {
		const said = await box.run(`${await box.install('tcp')} mptcp 1`, {}, DEADLINE);
		return { succeeded: !/^refused/.test(said.stdout), said };
	},
});

test('B6 user and operator see what was ended for TCP memory', async t => {
	const daemon = await daemonWithout([]);
	const box = await daemon.box(t, { limits: { memoryMiB: MEMORY_MIB } });
	const program = await box.install('tcp');
	const counts = async () => Object.fromEntries([...(await daemon.api('GET', '/metrics')).raw.toString().matchAll(/^silt_tcp_(\w+)_total (\d+)$/gm)].map(([, name, n]) => [name, Number(n)]));
	const before = await counts();
	assert.equal((await box.info()).tcpMemory, null);
	const said = await box.run(`${program} stubborn 20; echo lived on`, { sessionId: SESSIONLESS }, DEADLINE);
	assert.equal(said.exitCode, 137, JSON.stringify(said));
	assert.equal(said.death.cause, 'tcp_memory');
	assert.equal(said.death.limitBytes, LIMIT_MIB * 2 ** 20);
	assert.ok(said.death.peakBytes > said.death.limitBytes);
	const { tcpMemory, lastDeath } = await box.info();
	assert.equal(lastDeath.cause, 'tcp_memory');
	assert.equal(lastDeath.at, tcpMemory.exceededAt);
	assert.equal(tcpMemory.limitBytes, said.death.limitBytes);
	const now = await counts();
	assert.equal(now.kills, before.kills + 1);
	assert.ok(now.connections_reset + now.listeners_closed > before.connections_reset + before.listeners_closed);
});

test('B6 busy connections that are read are left alone', async t => {
	const daemon = await daemonWithout([]);
	const box = await daemon.box(t, { limits: { memoryMiB: MEMORY_MIB } });
	const program = await box.install('tcp');
	const before = daemon.log().length;
	assert.equal(await box.out(`${program} busy 3 200`, {}, DEADLINE), 'broken 0\n');
	assert.doesNotMatch(daemon.log().slice(before), / tcp\.(reset|kill) /);
});
