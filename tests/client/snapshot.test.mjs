// SPDX-License-Identifier: Apache-2.0
// Snapshots that the real workerd takes of a sandbox, and sandboxes that begin with them, by each of the client's transports.
import './lib/fetched.mjs';
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { built } from '../lib/build.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { Internet, NETWORK } from '../lib/internet.mjs';
import { startWorkerd } from './lib/workerd.mjs';

const image = layer => ({ Dockerfile: `FROM base\nRUN echo ${layer} > /layer && ln -s /opt /linked\nENV LAST=step\nEXPOSE 8080\nENTRYPOINT ["env"]\nCMD ["true"]\n` });
const ends = [];
let internet, daemon, workerd;
before(async () => {
	internet = await Internet.start();
	daemon = await startDaemon(NETWORK);
	await built(daemon, image('of the image'), { names: ['ending'] });
	await built(daemon, image('of the other'), { names: ['other'] });
	workerd = await startWorkerd({ after: fn => ends.push(fn) }, daemon, { entry: path.join(import.meta.dirname, 'snapshot/index.mjs'), image: 'ending', flags: ['nodejs_compat', 'experimental'] });
});
after(async () => {
	for (const end of ends.reverse())
		await end();
	await daemon?.stop();
	internet?.stop();
});

for (const transport of ['http', 'websocket', 'rpc'])
	for (const name of ['ofTheImage', 'ofAnotherImage', 'withoutDirectories'])
		test(`${name} by ${transport}`, async () => {
			const answer = await fetch(`${workerd.url}/${transport}/${name}`, { method: 'POST' });
			assert.equal(answer.status, 200, await answer.text());
		});
