// SPDX-License-Identifier: Apache-2.0
// Containers of the real workerd, without any client library: programs, exec, terminals, what leaves them, snapshots, and a workerd that dies.
import './lib/fetched.mjs';
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { Internet, NETWORK } from '../lib/internet.mjs';
import { silt } from '../lib/silt.mjs';
import { startWorkerd } from './lib/workerd.mjs';

const ends = [];
const GUEST = 'FROM base\nLABEL silt.control=guest\n';
const scope = { after: fn => ends.push(fn) };
const worker = { entry: path.join(import.meta.dirname, 'container/index.mjs'), classes: ['Box'], world: true, image: 'guest', flags: ['nodejs_compat', 'experimental'] };

async function build(daemon) {
	const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-guest-'));
	fs.writeFileSync(path.join(directory, 'Dockerfile'), GUEST);
	const built = await silt(daemon, ['image', 'build', '-t', 'guest', directory]);
	fs.rmSync(directory, { recursive: true });
	assert.equal(built.code, 0, built.stderr);
}

let internet, daemon, workerd;
before(async () => {
	internet = await Internet.start();
	daemon = await startDaemon(NETWORK);
	await build(daemon);
	workerd = await startWorkerd(scope, daemon, worker);
});
after(async () => {
	for (const end of ends.reverse())
		await end();
	await daemon?.stop();
	internet?.stop();
});

async function call(server, where) {
	const answer = await fetch(`${server.url}${where}`, { method: 'POST' });
	const said = await answer.text();
	assert.equal(answer.status, 200, said.replaceAll('\\n', '\n'));
	return JSON.parse(said);
}

test('what a container does', async t => {
	for (const name of await (await fetch(`${workerd.url}/scenarios`)).json())
		await t.test(name, () => call(workerd, `/run/${name}`));
});

test('a workerd that is killed finds its container again', async () => {
	assert.equal(await call(workerd, '/object/lasting/leave'), 0);
	await workerd.stop('SIGKILL');
	workerd = await startWorkerd(scope, daemon, { ...worker, home: workerd.home, port: workerd.port });
	assert.deepEqual(await call(workerd, '/object/lasting/find'), { mark: 'here\n', served: '/in', caught: 'caught GET http://11.22.33.44/out\n', refused: true });
	await call(workerd, '/object/lasting/destroy');
});

test('without a network containers run, and what would leave them fails at once', async t => {
	const alone = await startDaemon({ flags: { network: 'off' } });
	t.after(() => alone.stop());
	await build(alone);
	const server = await startWorkerd(t, alone, worker);
	for (const name of ['serviceAndVariables', 'exec'])
		await call(server, `/run/${name}`);
	const said = await call(server, '/object/alone/reach');
	assert.match(said.intercepted, /unreachable|connect to server/i); // no timeout
	assert.match(said.secret, /Could not resolve/i);
});
