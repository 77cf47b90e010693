// SPDX-License-Identifier: Apache-2.0
// Lives, settings, streams and what is not there.

import assert from 'node:assert/strict';
import { asyncIterableToSSEStream, getSandbox, parseSSEStream, responseToAsyncIterable } from '@cloudflare/sandbox';
import { until } from './lib.mjs';

export async function destroy(sandbox, { transport }) {
	await sandbox.writeFile('/workspace/file', 'x');
	await sandbox.destroy();
	if (transport === 'rpc') // the client itself fails the first call after an end that it has not noticed yet
		await sandbox.exec('true').catch(() => {});
	assert.equal((await sandbox.exists('/workspace/file')).exists, false);
}

export async function stopAndState(sandbox) {
	await sandbox.exec('true');
	assert.ok(['running', 'healthy'].includes((await sandbox.getState()).status));
	await sandbox.stop();
	await until('stopped', async () => (await sandbox.getState()).status.startsWith('stopped'));
	await scheduler.wait(1_500); // the client itself fails the first call after an exit that it has not noticed yet
	assert.equal((await sandbox.exec('echo again')).stdout, 'again\n');
}

export async function filesSurviveAStop(sandbox) {
	await sandbox.writeFile('/workspace/kept', 'still here');
	await sandbox.stop();
	await until('stopped', async () => (await sandbox.getState()).status.startsWith('stopped'));
	await scheduler.wait(1_500);
	assert.equal((await sandbox.readFile('/workspace/kept')).content, 'still here');
}

export async function settings(sandbox) {
	await sandbox.setSleepAfter('5m');
	await sandbox.setKeepAlive(false);
	await sandbox.setLabels({ team: 'tests' });
	await sandbox.renewActivityTimeout();
	await sandbox.exec('true');
	assert.ok([null, undefined].includes(await sandbox.getContainerPlacementId()) || typeof await sandbox.getContainerPlacementId() === 'string');
}

export async function badIds(_, { env }) {
	assert.throws(() => getSandbox(env.Sandbox, ''), /id/i);
	assert.throws(() => getSandbox(env.Sandbox, '-x'));
	assert.throws(() => getSandbox(env.Sandbox, 'admin'));
}

export async function startTwice(sandbox) {
	await sandbox.start();
	await sandbox.startAndWaitForPorts();
	assert.equal((await sandbox.exec('echo up')).stdout, 'up\n');
}

export async function manyAtOnce(sandbox) {
	const said = await Promise.all(Array.from({ length: 20 }, (_, i) => sandbox.exec(`echo ${i}`)));
	assert.deepEqual(said.map(r => r.stdout.trim()), Array.from({ length: 20 }, (_, i) => String(i)));
}

export async function tunnels(sandbox, { transport }) {
	if (transport !== 'rpc')
		return assert.rejects(async () => sandbox.tunnels.get(8080));
	await assert.rejects(sandbox.tunnels.get(8080)); // there is no cloudflared
	assert.deepEqual(await sandbox.tunnels.list(), []);
	await sandbox.tunnels.destroy(8080);
}

export async function streamHelpers() {
	const stream = asyncIterableToSSEStream((async function* () { yield { n: 1 }; yield { n: 2 }; })());
	const [one, two] = stream.tee();
	const seen = [];
	for await (const event of parseSSEStream(one))
		seen.push(event.n);
	for await (const event of responseToAsyncIterable(new Response(two)))
		seen.push(event.n);
	assert.deepEqual(seen, [1, 2, 1, 2]);
}
