// SPDX-License-Identifier: Apache-2.0
// All of Silt ends and comes back, while who uses its containers lives on. In a network of its own: nobody else takes a port meanwhile.
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { Engine, execute, newName, raw } from '../lib/engine.mjs';
import { until } from '../lib/wait.mjs';

before(() => execFileSync('ip', ['link', 'set', 'lo', 'up']));

const sidecarSays = async (port, line) => (await raw(port, `${line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)).toString();

test('after all of Silt was away its sidecars are where they were, with their certificates, and containers that start again find their files', async t => {
	let own = await startDaemon();
	t.after(() => own.stop());
	let its = new Engine(own);
	const apps = await Promise.all(Array.from({ length: 3 }, () => its.app(undefined)));
	const [kept, taken] = apps;
	const spare = await its.sidecar(undefined, newName());
	for (const { port } of apps)
		await execute(port, 'echo kept > /workspace/file');
	const ca = (await sidecarSays(kept.port, 'GET /ca')).split('\r\n\r\n')[1];
	assert.match(ca, /BEGIN CERTIFICATE/);
	await own.stop({ keep: true });
	const thief = net.createServer().listen(taken.port, '127.0.0.1');
	t.after(() => new Promise(resolve => thief.close(resolve)));
	await once(thief, 'listening');
	own = await startDaemon({ home: own.home });
	its = new Engine(own);
	const status = async name => (await its.expect(200, 'GET', `/containers/${name}/json`)).State.Status;
	await until('the port that is somebody else\'s is given up', async () => await status(`${taken.name}-proxy`) === 'exited', 60_000);
	assert.equal(await its.port(`${kept.name}-proxy`), kept.port);
	assert.match(await sidecarSays(spare, 'GET /ca'), /BEGIN CERTIFICATE/, 'also one that has no container');
	assert.equal((await sidecarSays(kept.port, 'GET /ca')).split('\r\n\r\n')[1], ca);
	assert.equal(await status(kept.id), 'exited');
	// What workerd does then.
	await its.expect(409, 'POST', `/containers/create?name=${kept.id}`, { Image: 'base' });
	await its.expect(204, 'DELETE', `/containers/${kept.id}?force=true`);
	await its.create(kept.name);
	await its.expect(204, 'POST', `/containers/${kept.id}/start`, '');
	assert.equal(await execute(kept.port, 'cat /workspace/file'), 'kept\n');
	await its.expect(204, 'POST', `/containers/${taken.name}-proxy/start`, '');
	assert.notEqual(await its.port(`${taken.name}-proxy`), taken.port, 'one that was given up can be started elsewhere');
});
