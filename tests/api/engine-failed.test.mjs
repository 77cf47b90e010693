// SPDX-License-Identifier: Apache-2.0
// Containers of workerd that cannot start: who is told why, and when.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { built } from '../lib/build.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { connect, Engine, talk } from '../lib/engine.mjs';
import { until, within } from '../lib/wait.mjs';

let daemon, engine;
before(async () => {
	daemon = await startDaemon();
	engine = new Engine(daemon);
});
after(() => daemon.stop());

/** All that is answered to these bytes, until the end of the connection. */
function whole(socket, bytes) {
	const pieces = [];
	socket.end(bytes);
	return within(60_000, 'the answer', new Promise((resolve, reject) => {
		socket.on('data', piece => pieces.push(piece)).on('error', reject).on('close', () => resolve(Buffer.concat(pieces).toString())).resume();
	}));
}

test('a program that is not there: who comes to a control server of ours is told, of others who waits for the end, and who is no workerd at once', async t => {
	const cmd = ['/no/such/program'], why = /program '\/no\/such\/program' not found/;
	const { name, port, id } = await engine.app(t, { cmd });
	const { socket } = await connect(port);
	const said = await talk(socket, 'POST', '/api/execute', { command: 'true' });
	assert.deepEqual([said.status, said.json.code], [599, 'CONTAINER_UNAVAILABLE']);
	assert.match(said.json.message, why);
	socket.destroy();
	await engine.expect(204, 'POST', `/containers/${id}/kill?signal=SIGKILL`);
	assert.deepEqual((await engine.wait(name)).json, { StatusCode: 137 });
	const image = `plain-${name.slice(-8)}`;
	t.after(() => engine.ask('DELETE', `/images/${image}`));
	await built(daemon, { Dockerfile: 'FROM base\nLABEL silt.control=guest\n' }, { names: [image] });
	const plain = await engine.app(t, { image, cmd });
	assert.match((await engine.expect(500, 'POST', `/containers/${plain.id}/wait`)).message, why);
	const { Id } = await engine.expect(201, 'POST', '/containers/create', { Image: 'base', Cmd: cmd });
	t.after(() => engine.ask('DELETE', `/containers/${Id}?force=true`));
	assert.match((await engine.expect(400, 'POST', `/containers/${Id}/start`, '')).message, why);
});

test('a program that fails at once: its control server tells the last words to all who come in the next seconds, and then ends with its code', async t => {
	const { name, port, id } = await engine.app(t, { cmd: ['sh', '-c', 'echo "no configuration: \u00fc" >&2; exit 3'] });
	const ended = engine.wait(name).then(({ json }) => ({ ...json, at: performance.now() }));
	const began = performance.now();
	const told = await until('the words', async () => {
		const { socket, status } = await connect(port);
		const said = status === 200 && await whole(socket, 'GET /api/version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
		return /^HTTP\/1.1 599/.test(said) && said;
	});
	const words = 'Container failed to start: its program ended at once with code 3; its last words: no configuration: ';
	assert.ok(told.startsWith(`HTTP/1.1 599 ${words}??\r\n`), told);
	assert.ok(told.includes(`${words}\u00fc`), told);
	const upgrade = await whole((await connect(port)).socket, 'GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n');
	assert.ok(upgrade.startsWith(`HTTP/1.1 599 ${words}`), upgrade);
	const { StatusCode, at } = await ended;
	assert.equal(StatusCode, 3);
	assert.ok(at - began > 3_000, `${at - began} ms`);
	assert.match((await engine.expect(200, 'GET', `/containers/${id}/json`)).State.Error, /no configuration/);
});
