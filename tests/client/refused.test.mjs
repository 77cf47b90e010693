// SPDX-License-Identifier: Apache-2.0
// Containers that do not start: the unmodified client is told why, soon, by each of its transports.
import './lib/fetched.mjs';
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { built } from '../lib/build.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { Engine } from '../lib/engine.mjs';
import { Internet, NETWORK } from '../lib/internet.mjs';
import { until } from '../lib/wait.mjs';
import { startWorkerd } from './lib/workerd.mjs';

const TRANSPORTS = ['http', 'websocket', 'rpc'];
const SOON_MS = 5_000; // the client itself tries again for 120 s, and says "Container is starting"

let internet, daemon, engine;
before(async () => {
	internet = await Internet.start();
	daemon = await startDaemon({ ...NETWORK, flags: { ...NETWORK.flags, 'engine.max_instances': 'on' } });
	engine = new Engine(daemon);
});
after(async () => {
	await daemon?.stop();
	internet?.stop();
});

/** A Worker whose containers are of this image. */
async function serve(t, name, dockerfile) {
	await built(daemon, { Dockerfile: dockerfile }, { names: [name] });
	const workerd = await startWorkerd(t, daemon, { entry: path.join(import.meta.dirname, 'lasting/index.mjs'), image: name });
	return async (transport, method, id) => {
		const answer = await fetch(`${workerd.url}/${transport}/${method}/${name}${id}`, { method: 'POST', body: 'true' });
		return { status: answer.status, said: await answer.text() };
	};
}

/** What the first call says that fails: one may be done before the program has failed. */
const failure = call => until('a failure', async () => {
	const { status, said } = await call();
	return status === 500 && said;
}, 120_000);

async function isToldSoon(t, call, words) {
	await Promise.all(TRANSPORTS.map(transport => call(transport, 'exec', 1))); // the Worker is warm
	for (const transport of TRANSPORTS) {
		const began = performance.now();
		const said = await failure(() => call(transport, 'exec', 2));
		const ms = performance.now() - began;
		t.diagnostic(`${transport}: ${Math.round(ms)} ms: ${said}`);
		assert.match(said, words, transport);
		assert.ok(ms < SOON_MS, `${transport}: ${ms} ms`);
	}
}

test('a program that is not there is named to the Worker', async t => {
	await isToldSoon(t, await serve(t, 'nothing', 'FROM base\nCMD ["/no/such/program"]\n'), /Container failed to start: program '\/no\/such\/program' not found/);
});

test('a program that fails at once: the Worker is told its code and its last words', async t => {
	await isToldSoon(t, await serve(t, 'fails', 'FROM base\nCMD ["sh", "-c", "echo no configuration >&2; exit 3"]\n'),
		/Container failed to start: its program ended at once with code 3; its last words: no configuration/);
});

/** Of containers that were refused: their names. */
async function refused(names) {
	for (const { Id, Names: [name] } of await engine.expect(200, 'GET', '/containers/json?all=1')) {
		const { status, json } = await engine.ask('GET', `/containers/${Id}/json`);
		if (status === 200 && /^Maximum number of running container instances exceeded/.test(json.State.Error))
			names.add(name);
	}
	return names.size;
}

test('as many as the image says run, as large as it says: the next ones begin when others are destroyed', async t => {
	const call = await serve(t, 'few', `FROM base\nLABEL silt.type=basic silt.max_instances=${TRANSPORTS.length}\n`);
	for (const transport of TRANSPORTS)
		assert.equal((await call(transport, 'exec', 1)).status, 200, transport);
	const { sandboxes } = (await daemon.api('GET', '/v1/sandboxes')).body;
	const sizes = sandboxes.filter(({ labels }) => labels?.['silt.class']).map(({ type }) => type);
	assert.deepEqual(sizes, TRANSPORTS.map(() => 'basic'));
	const next = TRANSPORTS.map(transport => call(transport, 'exec', 2));
	const names = new Set();
	await until('all are refused', async () => await refused(names) === TRANSPORTS.length, 60_000);
	for (const transport of TRANSPORTS)
		assert.equal((await call(transport, 'destroy', 1)).status, 200, transport);
	for (const { status, said } of await Promise.all(next))
		assert.equal(status, 200, said);
});
