// SPDX-License-Identifier: Apache-2.0
// Malformed and oversized requests, one table: a strict server takes the few honest ones and refuses every
// other, answers at most once, and closes. Each line is followed by a second request on the same connection: an answer to it would be smuggling.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { requests } from '../lib/malformed.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const line = what => `GET /healthz HTTP/1.1\r\nHost: x\r\n${what}\r\n`;
const { accepted, refused } = requests({ host: 'x', get: '/healthz', path: '/sandboxes/hygiene/api/session/create', fields: 'AUTH' });

const bytes = text => Buffer.from(text.replace('AUTH', `Authorization: Bearer ${daemon.token}\r\n`), 'latin1');

for (const [name, text] of Object.entries(accepted)) {
	test(`${name} is accepted`, async t => {
		t.after(() => daemon.api('DELETE', '/v1/sandboxes/hygiene'));
		const raw = await daemon.client.raw();
		raw.send(bytes(text));
		await raw.received(/^HTTP\/1\.1 200 /);
		raw.send(line('Connection: close\r\n'));
		const answer = await raw.answer();
		assert.deepEqual([answer.answers, answer.closed], [2, true], answer.text.slice(0, 300));
	});
}

for (const [name, text] of Object.entries(refused)) {
	test(`${name} is refused and the connection closed`, async t => {
		t.after(() => daemon.api('DELETE', '/v1/sandboxes/hygiene'));
		const raw = await daemon.client.raw();
		raw.send(bytes(text));
		raw.send(line(''));
		const answer = await raw.answer();
		assert.ok(answer.closed, `the server closes: ${answer.text.slice(0, 300)}`);
		assert.ok(answer.status === null || (answer.status >= 400 && answer.status !== 503), `answered ${answer.status}`);
		assert.ok(answer.answers <= 1, `one answer at most: ${answer.text.slice(0, 600)}`);
		if (answer.status !== null)
			assert.match(answer.text, /\r\n\r\n\{"code":"[A-Z_]+"/, 'an answer has the envelope');
	});
}

test('after all of them the daemon is as it was', async t => {
	const box = await daemon.box(t);
	assert.equal(await box.out('echo fine'), 'fine\n');
});
