// SPDX-License-Identifier: Apache-2.0
// Containers and siltd's death, many of them at once, and nothing that stays behind.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { connect, Engine, execute, newName, talk } from '../lib/engine.mjs';
import * as host from '../lib/host.mjs';
import { until, within } from '../lib/wait.mjs';

const MANY = 44;
let daemon, engine;
before(async () => {
	daemon = await startDaemon();
	engine = new Engine(daemon);
});
after(() => daemon.stop());

async function killSiltd(of = daemon, its = engine) {
	const pid = of.siltd();
	process.kill(pid, 'SIGKILL');
	await until('a new siltd', () => of.programs('siltd').some(other => other !== pid));
	await of.healthy();
	await until('the engine socket', async () => (await its.ask('GET', '/_ping', undefined, { deadline: 2_000 })).status === 200);
}

/** How many connections to the engine socket silt-super has. */
const kept = () => fs.readFileSync('/proc/net/unix', 'utf8').split('\n').map(line => line.trim().split(/\s+/))
	.filter(([, , , flags, , , inode, file]) => file === engine.socket && flags === '00000000' && host.hasOpen(daemon.pid, `socket:[${inode}]`)).length;

/** Sends a request and does not wait for its answer, but until siltd has taken it. */
async function begin(t, method, url) {
	const socket = net.connect(engine.socket).on('error', () => {});
	t.after(() => socket.destroy());
	await new Promise(resolve => socket.write(`${method} ${url} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n`, resolve));
	await engine.expect(200, 'GET', '/_ping'); // served after it
	return socket;
}

test('containers, their programs, sidecars and files are found again by a new siltd', async t => {
	const server = await engine.app(t, { cmd: ['sh', '-c', 'echo begun >> /workspace/log; exec python3 -m http.server 8080'] });
	const ending = await engine.app(t, { cmd: ['sh', '-c', 'while [ ! -e /tmp/go ]; do sleep 0.05; done; exit 9'] });
	const exited = await engine.app(t, { cmd: ['sh', '-c', 'exit 4'] });
	await engine.wait(exited.name);
	const created = newName();
	await engine.sidecar(t, `${created}-proxy`);
	t.after(() => engine.ask('DELETE', `/containers/${created}?force=true`));
	await engine.create(created, { env: ['A=b'] });
	const before = await engine.expect(200, 'GET', `/containers/${server.id}/json`);
	await killSiltd();
	const now = await engine.expect(200, 'GET', `/containers/${server.id}/json`);
	assert.equal(now.Id, before.Id);
	assert.equal(now.State.Status, 'running');
	assert.equal(await engine.port(`${server.name}-proxy`), server.port, 'the same port');
	assert.equal(await execute(server.port, 'cat /workspace/log'), 'begun\n', 'it was not started again');
	const tunnel = await connect(server.port, 8080);
	assert.equal(tunnel.status, 200);
	tunnel.socket.destroy();
	const end = await engine.expect(200, 'GET', `/containers/${exited.id}/json`);
	assert.deepEqual([end.State.Status, end.State.ExitCode], ['exited', 4]);
	await engine.expect(204, 'POST', `/containers/${created}/start`, '');
	assert.equal(await execute(await engine.port(`${created}-proxy`), 'echo $A'), 'b\n');
	const waited = engine.wait(ending.name);
	await execute(ending.port, '(sleep 1; touch /tmp/go) > /dev/null 2>&1 &').catch(() => {}); // its end cuts this connection, too, perhaps before the answer
	assert.deepEqual((await waited).json, { StatusCode: 9 }, 'its end is noticed');
});

test('who removes a container without knowing that it lived through a restart does not take its files; who knows, or is a person, does', async t => {
	const names = Array.from({ length: 5 }, newName);
	const [unaware, refused, aware, person, restarted] = names;
	for (const name of names) {
		const { port } = await engine.app(t, { name });
		await execute(port, 'echo kept > /workspace/file');
	}
	await killSiltd();
	const again = async name => {
		await engine.create(name);
		await engine.expect(204, 'POST', `/containers/${name}/start`, '');
		return execute(await engine.port(`${name}-proxy`), 'cat /workspace/file 2>/dev/null || echo none');
	};
	const { SiltSandbox } = await engine.expect(200, 'GET', `/containers/${unaware}/json`);
	await engine.expect(204, 'DELETE', `/containers/${unaware}?force=true`); // its object was evicted
	assert.match(daemon.log(), new RegExp(`container\\.spared container=[0-9a-f]{12} sandbox=${SiltSandbox}`));
	assert.equal(await again(unaware), 'kept\n');
	await engine.expect(204, 'DELETE', `/containers/${unaware}?force=true`);
	assert.equal(await again(unaware), 'none\n', 'this one was started by the siltd of now');
	assert.equal((await engine.ask('POST', `/containers/create?name=${refused}`, { Image: 'base' })).status, 409); // workerd's start: the name is taken
	await engine.expect(204, 'DELETE', `/containers/${refused}?force=true`);
	assert.equal((await engine.wait(refused, 'removed')).status, 404);
	assert.equal(await again(refused), 'kept\n');
	const waiting = net.connect(engine.socket);
	t.after(() => waiting.destroy());
	const waited = within(60_000, 'the end', new Promise((resolve, reject) => waiting.on('data', piece => resolve(piece.toString())).on('error', reject)));
	await new Promise(resolve => waiting.write(`POST /containers/${aware}/wait HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, resolve));
	await engine.expect(200, 'GET', `/containers/${aware}/json`); // it is served after the wait
	await engine.expect(204, 'DELETE', `/containers/${aware}?force=true`);
	assert.match(await waited, /"StatusCode":137/);
	assert.equal(await again(aware), 'none\n');
	await engine.expect(204, 'DELETE', `/containers/${person}?force=1`);
	assert.equal(await again(person), 'none\n');
	await engine.expect(204, 'POST', `/containers/${restarted}/kill?signal=SIGTERM`, '');
	await until('its end', async () => (await engine.expect(200, 'GET', `/containers/${restarted}/json`)).State.Status === 'exited');
	await engine.expect(204, 'POST', `/containers/${restarted}/start`, '');
	await engine.expect(204, 'DELETE', `/containers/${restarted}?force=true`);
	assert.equal(await again(restarted), 'none\n', 'it ran again, by this siltd');
});

test('while a container ends a person may still say that its files go, and a siltd that dies meanwhile does not save them', async t => {
	const slow = await startDaemon({ flags: { 'engine.exit_delay_ms': 8_000 } });
	t.after(() => slow.stop());
	const its = new Engine(slow);
	const [spared, removed] = [newName(), newName()];
	const make = async name => {
		await its.create(name);
		await its.expect(204, 'POST', `/containers/${name}/start`, '');
		return execute(await its.port(`${name}-proxy`), 'cat /workspace/file 2>/dev/null || echo none; echo kept > /workspace/file');
	};
	for (const name of [spared, removed])
		await its.sidecar(undefined, `${name}-proxy`);
	assert.equal(await make(spared), 'none\n');
	await killSiltd(slow, its);
	const first = its.ask('DELETE', `/containers/${spared}?force=true`, undefined, { deadline: 60_000 });
	await until('it is being removed', () => slow.log().includes('container.spared'));
	await its.expect(409, 'DELETE', `/containers/${spared}?force=1`);
	assert.equal((await first).status, 204);
	assert.equal(await make(spared), 'none\n');
	assert.equal(await make(removed), 'none\n');
	const broken = its.ask('DELETE', `/containers/${removed}?force=true`);
	broken.catch(() => {});
	await until('it is being removed', async () => (await its.ask('DELETE', `/containers/${removed}`)).json.message.includes('already in progress'));
	await killSiltd(slow, its);
	await assert.rejects(broken);
	await until('its removal', async () => (await its.ask('GET', `/containers/${removed}/json`)).status === 404);
	assert.equal(await make(removed), 'none\n');
});

test('who waits for the end of a container does not notice the death of siltd', async t => {
	const [app, other, left] = [await engine.app(t), await engine.app(t), await engine.app(t)];
	const waits = [app, other].map(({ name }) => engine.wait(name));
	const leaving = await begin(t, 'POST', `/containers/${left.name}/wait`);
	for (const wait of waits)
		wait.catch(() => {});
	await until('silt-super has the connections, too', () => kept() === 3);
	await execute(app.port, 'echo x > /workspace/file');
	await killSiltd();
	leaving.destroy();
	await killSiltd(); // what was kept once is kept again
	await engine.expect(204, 'POST', `/containers/${other.id}/kill?signal=SIGTERM`);
	assert.deepEqual((await waits[1]).json, { StatusCode: 0 });
	await engine.expect(204, 'DELETE', `/containers/${app.id}?force=true`); // of who knows that it runs
	assert.deepEqual((await waits[0]).json, { StatusCode: 137 });
	await engine.create(app.name);
	await engine.expect(204, 'POST', `/containers/${app.id}/start`, '');
	assert.equal(await execute(await engine.port(`${app.name}-proxy`), 'cat /workspace/file 2>/dev/null || echo none'), 'none\n');
	await engine.expect(204, 'DELETE', `/containers/${left.id}?force=true`);
	await until('silt-super keeps no connection', () => kept() === 0);
});

test('a program that ends while there is no siltd has ended when there is one', async t => {
	const { name, port, id } = await engine.app(t, { cmd: ['sh', '-c', 'while [ ! -e /tmp/go ]; do sleep 0.02; done; sleep 1; exit 6'] });
	await execute(port, 'touch /tmp/go').catch(() => {}); // its end cuts this connection, too, perhaps before the answer
	await killSiltd();
	assert.deepEqual((await engine.wait(name)).json, { StatusCode: 6 });
	assert.equal((await engine.expect(200, 'GET', `/containers/${id}/json`)).State.Status, 'exited');
});

test('siltd may die in the middle of anything: what is left can be looked at and removed', async t => {
	const names = Array.from({ length: 6 }, newName);
	t.after(() => Promise.all(names.flatMap(name => [name, `${name}-proxy`]).map(name => engine.ask('DELETE', `/containers/${name}?force=true`))));
	const asked = names.map(name => engine.app(undefined, { name }).catch(() => {}));
	await within(60_000, 'something is under way', until('a container', async () => (await engine.expect(200, 'GET', '/containers/json?all=1')).length > 0));
	await killSiltd();
	await Promise.allSettled(asked);
	for (const { Id, State } of await engine.expect(200, 'GET', '/containers/json?all=1')) {
		assert.ok(['created', 'running', 'exited'].includes(State), State);
		await engine.expect(204, 'DELETE', `/containers/${Id}?force=true`);
	}
	assert.deepEqual(await engine.expect(200, 'GET', '/containers/json?all=1'), []);
});

test('many containers live at once, each with its own API', async t => {
	const all = await Promise.all(Array.from({ length: MANY }, (_, i) => engine.app(t, { env: [`NUMBER=${i}`] })));
	const answers = await Promise.all(all.map(({ port }) => execute(port, 'echo $NUMBER')));
	assert.deepEqual(answers, all.map((_, i) => `${i}\n`));
	assert.equal((await engine.expect(200, 'GET', '/containers/json')).length, 2 * MANY);
	await Promise.all(all.map(({ id }) => engine.expect(204, 'DELETE', `/containers/${id}?force=true`)));
});

test('a sidecar whose workerd is gone is removed, one whose workerd lives is not', async t => {
	const server = net.createServer().listen(0, '127.0.0.1');
	t.after(() => server.close());
	await new Promise(resolve => server.once('listening', resolve));
	const gone = 1; // where nobody listens, and nobody else begins to
	const [dead, alive] = [`${newName()}-proxy`, `${newName()}-proxy`];
	await engine.sidecar(t, dead, { egress: gone });
	await engine.sidecar(t, alive, { egress: server.address().port });
	await until('the dead one is gone', async () => (await engine.ask('GET', `/containers/${dead}/json`)).status === 404, 60_000);
	await engine.port(alive);
});

test('containers that come and go leave nothing', async () => {
	const round = async () => {
		const { id, port, name } = await engine.app(undefined);
		const { socket } = await connect(port);
		await talk(socket, 'POST', '/api/execute', { command: 'echo x' });
		const made = await engine.expect(201, 'POST', `/containers/${id}/exec`, { AttachStdout: true, Cmd: ['true'] });
		assert.equal((await engine.ask('POST', `/exec/${made.Id}/start`, { Detach: true })).status, 200);
		socket.on('error', () => {});
		const waited = engine.wait(name);
		await engine.expect(204, 'DELETE', `/containers/${id}?force=true`);
		await waited;
		await engine.expect(204, 'DELETE', `/containers/${id}-proxy?force=true`);
		socket.destroy();
	};
	await round();
	const before = await daemon.atRest();
	for (let i = 0; i < 5; i++)
		await round();
	await daemon.settles(before);
});
