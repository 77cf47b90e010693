// SPDX-License-Identifier: Apache-2.0
// The unmodified npm client in the real workerd: every method, by each of its three transports.
import './lib/fetched.mjs';
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { Internet, NETWORK } from '../lib/internet.mjs';
import { until } from '../lib/wait.mjs';
import { packages, startWorkerd } from './lib/workerd.mjs';

let internet, daemon, workerd;
before(async t => {
	internet = await Internet.start();
	daemon = await startDaemon(NETWORK);
	workerd = await startWorkerd({ after: fn => ends.push(fn) }, daemon, { entry: path.join(import.meta.dirname, 'worker/index.mjs'), classes: ['Sandbox', 'Guarded', 'Stored'] });
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
		const all = await (await fetch(`${workerd.url}/scenarios`)).json();
		assert.ok(all.length > 50);
		const names = process.env.SILT_TEST_SCENARIOS /* a pattern, for whoever works on some */ ? all.filter(name => new RegExp(process.env.SILT_TEST_SCENARIOS).test(name)) : all;
		for (const name of names)
			await t.test(name, async () => {
				const answer = await fetch(`${workerd.url}/run/${transport}/${name}`, { method: 'POST' });
				const said = await answer.text();
				assert.equal(answer.status, 200, said.replaceAll('\\n', '\n'));
			});
	});

/** As much of a page's terminal as the client's addon uses. */
class Screen {
	cols = 97;
	rows = 27;
	shown = '';
	type;
	onData(listener) { this.type = listener; return { dispose() {} }; }
	onResize(listener) { this.resize = listener; return { dispose() {} }; }
	write(bytes) { this.shown += new TextDecoder().decode(bytes); }
	clear() {}
	focus() {}
}

test('the client\'s addon for terminals in pages', async () => {
	const { SandboxAddon } = await import(path.join(packages(), 'node_modules/@cloudflare/sandbox/dist/xterm/index.js'));
	globalThis.location = new URL(workerd.url);
	const screen = new Screen();
	const states = [];
	const addon = new SandboxAddon({ getWebSocketUrl: ({ sandboxId, sessionId, origin }) => `${origin}/terminal/${sandboxId}/${sessionId}`, onStateChange: state => states.push(state) });
	try {
		addon.activate(screen);
		addon.connect({ sandboxId: 'page', sessionId: 'one' });
		await until('connected', () => addon.state === 'connected', 30_000);
		assert.deepEqual([addon.sandboxId, addon.sessionId], ['page', 'one']);
		screen.type('stty size; echo $((40 + 2))\r');
		await until('the size and the sum', () => screen.shown.includes('27 97') && screen.shown.includes('\n42'), 30_000);
		screen.resize({ cols: 61, rows: 11 });
		screen.type('stty size\r');
		await until('the new size', () => screen.shown.includes('11 61'), 30_000);
		addon.disconnect();
		assert.deepEqual(states, ['connecting', 'connected', 'disconnected']);
	} finally {
		addon.dispose();
		delete globalThis.location;
	}
});
