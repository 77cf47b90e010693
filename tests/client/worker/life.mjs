// SPDX-License-Identifier: Apache-2.0
// Lives, settings, streams and what is not there.

import assert from 'node:assert/strict';
import { asyncIterableToSSEStream, getSandbox, isDurableObjectCodeUpdateReset, isExecResult, isPlatformTransientError, isProcess, isProcessStatus, parseSSEStream, responseToAsyncIterable } from '@cloudflare/sandbox';
import { rejects, stopped, until } from './lib.mjs';

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
	await stopped(sandbox);
	assert.equal((await sandbox.exec('echo again')).stdout, 'again\n');
}

/** Both while the stop is under way and after the client's hooks have run. These must follow the end at once: until they have, the client fails calls over rpc. */
async function callAfterStop(sandbox, signal) {
	await sandbox.exec('true');
	await sandbox.stop(signal);
	assert.equal((await sandbox.exec('echo at once')).stdout, 'at once\n', signal);
	await until('the end', async () => (await sandbox.getState()).status.startsWith('stopped'));
	await stopped(sandbox, 500);
	assert.equal((await sandbox.exec('echo afterwards')).stdout, 'afterwards\n', signal);
}

export async function firstCallAfterAStop(_, { env, id, transport }) {
	await Promise.all(['SIGTERM', 'SIGKILL'].map(async signal => {
		const sandbox = getSandbox(env.Sandbox, `${id}-${signal.toLowerCase()}`, { transport });
		try {
			await callAfterStop(sandbox, signal);
		} finally {
			await sandbox.destroy();
		}
	}));
}

export async function filesSurviveAStop(sandbox) {
	await sandbox.writeFile('/workspace/kept', 'still here');
	await sandbox.stop();
	await stopped(sandbox);
	assert.equal((await sandbox.readFile('/workspace/kept')).content, 'still here');
}

export async function idleOnesSleep(_, { env, id, transport }) {
	const sleepy = getSandbox(env.Sandbox, `${id}-a`, { transport, sleepAfter: 1 });
	const awakeOne = getSandbox(env.Sandbox, `${id}-b`, { transport, sleepAfter: '1s', keepAlive: true });
	try {
		await sleepy.writeFile('/workspace/kept', 'still here');
		await awakeOne.exec('export MARK=here');
		await stopped(sleepy);
		assert.equal((await awakeOne.getState()).status, 'healthy');
		assert.equal((await awakeOne.exec('echo $MARK')).stdout, 'here\n');
		const kept = await until('its file', () => sleepy.readFile('/workspace/kept').catch(() => undefined)); // it may fall asleep again before it is asked
		assert.equal(kept.content, 'still here');
		await awakeOne.setKeepAlive(false);
		await stopped(awakeOne);
	} finally {
		await Promise.all([sleepy.destroy(), awakeOne.destroy()]);
	}
}

/** A call that takes longer than the time after which idle ones sleep. */
export async function busyOnesDoNotSleep(_, { env, id, transport }) {
	const sandbox = getSandbox(env.Sandbox, `${id}-busy`, { transport, sleepAfter: 1 });
	try {
		assert.equal((await sandbox.exec('sleep 4; echo through')).stdout, 'through\n');
	} finally {
		await sandbox.destroy();
	}
}

export async function options(_, { env, id, transport }) {
	const containerTimeouts = { instanceGetTimeoutMS: 20_000, portReadyTimeoutMS: 30_000, waitIntervalMS: 100 };
	const sandbox = getSandbox(env.Sandbox, `${id}-O`, { transport, normalizeId: true, containerTimeouts, labels: { team: 'tests' } });
	try {
		await sandbox.writeFile('/workspace/mine', 'x');
		assert.equal((await getSandbox(env.Sandbox, `${id}-o`, { transport }).readFile('/workspace/mine')).content, 'x');
		assert.deepEqual(await sandbox.shownLabels(), { team: 'tests' });
	} finally {
		await sandbox.destroy();
	}
}

export async function upperCaseIds(_, { env, id, transport, host }) {
	const sandbox = getSandbox(env.Sandbox, `${id}-U`, { transport });
	try {
		assert.equal((await sandbox.exec('echo fine')).stdout, 'fine\n');
		await assert.rejects(sandbox.exposePort(8080, { hostname: host }), /normalizeId/);
	} finally {
		await sandbox.destroy();
	}
}

export async function otherTransports(sandbox, { transport }) {
	await sandbox.exec('export MARK=kept');
	for (const other of ['http', 'websocket', 'rpc', transport]) {
		await sandbox.setTransport(other);
		assert.equal((await sandbox.exec('echo $MARK')).stdout, 'kept\n', other);
	}
}

export async function schedules(sandbox) {
	const soon = await sandbox.schedule(1, 'noted', 'now');
	const late = await sandbox.schedule(new Date(Date.now() + 3_600_000), 'noted', 'later');
	const [listed] = await sandbox.listSchedules('noted'); // the client lists one
	assert.ok([soon.taskId, late.taskId].includes(listed.taskId));
	assert.equal((await sandbox.getSchedule(late.taskId)).payload, 'later');
	await until('the call', async () => (await sandbox.notes()).includes('now'), 60_000);
	await sandbox.deleteSchedules('noted');
	assert.deepEqual(await sandbox.listSchedules('noted'), []);
}

export async function hooksAndFields(_, { env, id, transport }) {
	const sandbox = getSandbox(env.Guarded, `${id}-h`, { transport });
	try {
		assert.equal((await sandbox.exec('echo $MARK')).stdout, 'of the class\n');
		await until('the program of the class', async () => (await sandbox.exec('cat /tmp/program')).stdout === 'started true\n');
		assert.deepEqual(await sandbox.shownLabels(), { kind: 'guarded' });
		await sandbox.stop();
		await stopped(sandbox);
		await until('the hook', async () => (await sandbox.hooks()).length === 2);
		assert.deepEqual(await sandbox.hooks(), [{ hook: 'start' }, { hook: 'stop', exitCode: 0, reason: 'exit' }]);
	} finally {
		await sandbox.destroy();
	}
}

export async function settings(sandbox) {
	assert.equal(await sandbox.getContainerPlacementId(), undefined);
	await sandbox.setSandboxName('other'); // it has one
	await sandbox.setSleepAfter('5m');
	await sandbox.setKeepAlive(false);
	await sandbox.setLabels({ team: 'tests' });
	await sandbox.configure({ labels: { team: 'others' }, sleepAfter: '6m', containerTimeouts: { waitIntervalMS: 200 } });
	await assert.rejects(sandbox.setContainerTimeouts({ waitIntervalMS: 1 }), /between/);
	await sandbox.renewActivityTimeout();
	await sandbox.exec('true');
	assert.deepEqual(await sandbox.shownLabels(), { team: 'others' });
	assert.equal(typeof await sandbox.waitForPort({ portToCheck: 3000 }), 'number');
	assert.ok([null, undefined].includes(await sandbox.getContainerPlacementId()) || typeof await sandbox.getContainerPlacementId() === 'string');
}

export async function badIds(_, { env }) {
	for (const [id, code] of [['', 'LENGTH'], ['x'.repeat(64), 'LENGTH'], ['-x', 'HYPHENS'], ['Admin', 'RESERVED']])
		assert.throws(() => getSandbox(env.Sandbox, id), error => error.name === 'SandboxSecurityError' && error.code.includes(code));
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
	await assert.rejects(sandbox.tunnels.get(8080), /not available.*exposePort/);
	await rejects(sandbox.tunnels.get(8080, { name: 'No name' }), 'SandboxSecurityError');
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
	const odd = new Blob(['event: x\ndata: {"n":1}\n\ndata: no json\n\ndata: [DONE]\n\n: a remark\n\ndata: {"n":2}']).stream();
	const found = [];
	for await (const event of parseSSEStream(odd))
		found.push(event.n);
	assert.deepEqual(found, [1, 2]);
	await assert.rejects(async () => { for await (const _ of parseSSEStream(new Blob([]).stream(), AbortSignal.abort())); }, /aborted/);
	await assert.rejects(async () => { for await (const _ of responseToAsyncIterable(new Response('no', { status: 500 }))); });
}

export async function guards() {
	assert.ok(isExecResult({ success: true, exitCode: 0, stdout: '', stderr: '' }) && !isExecResult({ success: true }));
	assert.ok(isProcess({ id: 'a', command: 'b', status: 'running' }) && !isProcess({ id: 'a' }));
	assert.ok(isProcessStatus('killed') && !isProcessStatus('gone'));
	assert.ok(isPlatformTransientError(new Error('Network connection lost.')) && !isPlatformTransientError(new Error('other')));
	assert.ok(isDurableObjectCodeUpdateReset(new Error('Durable Object reset because its code was updated.')) && !isDurableObjectCodeUpdateReset(new Error('other')));
}
