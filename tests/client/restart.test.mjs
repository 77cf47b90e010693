// SPDX-License-Identifier: Apache-2.0
// siltd dies under the real workerd, which waits for the end of its container; all of Silt ends and comes back.
import './lib/fetched.mjs';
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { Engine } from '../lib/engine.mjs';
import { Internet, NETWORK } from '../lib/internet.mjs';
import { until } from '../lib/wait.mjs';
import { startWorkerd } from './lib/workerd.mjs';

const ends = [];
let internet, daemon, engine, workerd;
before(async () => {
	internet = await Internet.start();
	daemon = await startDaemon(NETWORK);
	engine = new Engine(daemon);
	workerd = await startWorkerd({ after: fn => ends.push(fn) }, daemon, { entry: path.join(import.meta.dirname, 'lasting/index.mjs') });
});
after(async () => {
	for (const end of ends.reverse())
		await end();
	await daemon?.stop();
	internet?.stop();
});

async function killSiltd() {
	const pid = daemon.siltd();
	process.kill(pid, 'SIGKILL');
	await until('a new siltd', () => daemon.programs('siltd').some(other => other !== pid), 30_000);
	await daemon.healthy();
	await until('the engine socket', async () => (await engine.ask('GET', '/_ping', undefined, { deadline: 2_000 })).status === 200, 30_000);
}

async function call(where, body) {
	const answer = await fetch(`${workerd.url}${where}`, { method: 'POST', body });
	return { status: answer.status, said: await answer.json() };
}

/** The client itself fails calls of the moment in which it notices that a connection is gone; later ones have to succeed. */
const execute = (transport, command) => until(`${command} by ${transport}`, async () => {
	const { status, said } = await call(`/${transport}/exec`, command);
	return status === 200 && said;
}, 60_000);

for (const transport of ['http', 'websocket', 'rpc'])
	test(`files and processes are still there after the death of siltd, and gone after a destroy(): by ${transport}`, async () => {
		const { stdout: pid } = await execute(transport, 'echo kept > /workspace/file; sleep 100000 > /dev/null 2>&1 & echo $!');
		for (let i = 0; i < 2; i++) {
			await killSiltd();
			assert.equal((await execute(transport, 'cat /workspace/file')).stdout, 'kept\n');
			assert.equal((await execute(transport, `kill -0 ${pid.trim()} && echo alive`)).stdout, 'alive\n', 'workerd has not noticed');
		}
		assert.equal((await call(`/${transport}/destroy`)).status, 200);
		assert.notEqual((await execute(transport, 'cat /workspace/file')).exitCode, 0);
		assert.equal((await call(`/${transport}/destroy`)).status, 200);
	});

/** The sidecars that run, with what they answer to GET /ca. */
async function sidecars() {
	const found = (await engine.expect(200, 'GET', '/containers/json')).map(({ Names: [name] }) => name.slice(1)).filter(name => name.endsWith('-proxy')).sort();
	return Promise.all(found.map(async name => {
		const port = await engine.port(name);
		return { name, port, ca: await (await fetch(`http://127.0.0.1:${port}/ca`)).text() };
	}));
}

test('all of Silt ends and comes back under a workerd that lives on: sandboxes start again, with their files', async () => {
	const transports = ['http', 'websocket', 'rpc'];
	for (const transport of transports)
		await execute(transport, 'echo kept > /workspace/file');
	const before = await sidecars();
	assert.equal(before.length, 3);
	await daemon.stop({ keep: true });
	daemon = await startDaemon({ ...NETWORK, home: daemon.home });
	engine = new Engine(daemon);
	for (const transport of transports)
		assert.equal((await execute(transport, 'cat /workspace/file')).stdout, 'kept\n', transport);
	assert.deepEqual(await sidecars(), before, 'and the same certificates');
	for (const transport of transports)
		assert.equal((await call(`/${transport}/destroy`)).status, 200);
});
