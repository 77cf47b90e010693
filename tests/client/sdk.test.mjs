// SPDX-License-Identifier: Apache-2.0
// The unmodified npm client in the real workerd: every method, by each of its three transports.
import './lib/fetched.mjs';
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { Internet, NETWORK } from '../lib/internet.mjs';
import { startWorkerd } from './lib/workerd.mjs';

let internet, daemon, workerd;
before(async t => {
	internet = await Internet.start();
	daemon = await startDaemon(NETWORK);
	workerd = await startWorkerd({ after: fn => ends.push(fn) }, daemon, { entry: path.join(import.meta.dirname, 'worker/index.mjs') });
});
const ends = [];
after(async () => {
	for (const end of ends.reverse())
		await end();
	await daemon?.stop();
	internet?.stop();
});

for (const transport of ['http', 'websocket', 'rpc'])
	test(`by ${transport}`, async t => {
		const names = await (await fetch(`${workerd.url}/scenarios`)).json();
		assert.ok(names.length > 50);
		for (const name of names)
			await t.test(name, async () => {
				const answer = await fetch(`${workerd.url}/run/${transport}/${name}`, { method: 'POST' });
				const said = await answer.text();
				assert.equal(answer.status, 200, said.replaceAll('\\n', '\n'));
			});
	});
