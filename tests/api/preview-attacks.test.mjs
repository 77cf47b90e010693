// SPDX-License-Identifier: Apache-2.0
// Who guesses, borrows or bends a preview URL gets nowhere, and wakes nobody.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { expose, serve } from '../lib/preview.mjs';
import { median, milliseconds, until } from '../lib/wait.mjs';

const METHODS = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'PROPFIND'];
let daemon, box, preview;

before(async () => {
	daemon = await startDaemon({ flags: { 'preview.wait_ms': 120_000 } });
	box = await daemon.box();
	await serve(box, 8000);
	await serve(box, 8001);
	preview = await expose(box, 8000, { token: 'thisisport8000' });
	await expose(box, 8001, { token: 'thisisport8001' });
	assert.equal((await preview.get('/', { deadline: 120_000 })).status, 200);
});
after(async () => {
	preview?.close();
	await daemon?.stop();
});

const label = (port, id, token) => `${port}-${id}-${token}.${preview.host.split('.').slice(1).join('.')}`;
const visit = (host, headers) => preview.get('/', { headers: { host, ...headers } });

test('a port is written in one way only', async () => {
	for (const port of ['08000', '+8000', '8000%00', '0x1f40', '8e3', '73536', '0', '', '-8000', '８０００']) {
		const raw = await preview.client.raw();
		raw.send(`GET / HTTP/1.1\r\nHost: ${label(port, box.id, 'thisisport8000')}\r\nConnection: close\r\n\r\n`);
		const answer = await raw.answer(30_000);
		assert.ok([400, 404].includes(answer.status), `${port}: ${answer.status}`);
	}
});

test('a token opens its own port of its own sandbox, as long as that is exposed', async t => {
	const other = await daemon.box(t, {});
	await serve(other, 8000);
	const others = await expose(other, 8000, { token: 'thisisanother1' });
	t.after(() => others.close());
	assert.equal((await others.get('/', { deadline: 120_000 })).status, 200);
	for (const [port, id, token] of [[8001, box.id, 'thisisport8000'], [8000, box.id, 'thisisport8001'], [8000, box.id, 'thisisanother1'], [8000, other.id, 'thisisport8000']])
		assert.equal((await visit(label(port, id, token))).status, 404, `${port} ${token}`);
	await daemon.api('DELETE', `/v1/sandboxes/${other.id}/ports/8000`);
	assert.equal((await others.get('/')).status, 404, 'unexposed');
	await expose(other, 8000, { token: 'thisisanother2' });
	assert.equal((await others.get('/')).status, 404, 'exposed anew');
	await other.destroy();
	await other.out('true');
	await serve(other, 8000);
	await expose(other, 8000);
	assert.equal((await others.get('/')).status, 404, 'the next sandbox of that id');
	assert.equal((await visit(label(8000, other.id, 'thisisanother2'))).status, 404);
});

test('guesses wake nobody, and are answered alike whether the sandbox exists or not', async t => {
	const asleep = await daemon.box(t, {});
	await expose(asleep, 8000, { token: 'rightsecret' });
	await asleep.out('true');
	await asleep.stop();
	const answers = [];
	for (const [id, token] of [[asleep.id, 'wrongsecret'], [asleep.id, 'rightsecre'], [asleep.id, 'rightsecrets'], ['never-made', 'rightsecret'], [box.id, 'wrongsecret']]) {
		const { status, headers, raw } = await visit(label(8000, id, token));
		delete headers.date;
		answers.push(JSON.stringify([status, headers, raw.toString()]).replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/, 'NOW'));
	}
	assert.equal(new Set(answers).size, 1, answers.join('\n'));
	assert.match(answers[0], /^\[404,/);
	assert.equal((await asleep.info()).state, 'stopped');
});

test('a wrong token of a sandbox that sleeps, of one that runs and of none takes the same time', async t => {
	const asleep = await daemon.box(t, {});
	await expose(asleep, 8000, { token: 'rightsecret' }); // it was never started
	const times = { asleep: [], running: [], none: [] };
	const ids = { asleep: asleep.id, running: box.id, none: 'never-made' };
	let i = 0;
	await until('they take the same time', async () => {
		for (const end = i + 12; i < end; i++)
			for (const [what, id] of Object.entries(ids))
				times[what].push(await milliseconds(async () => assert.equal((await visit(label(8000, id, `wrong${i}secret`))).status, 404)));
		const middles = Object.values(times).map(median);
		// Between them lies no wait, no wake and no look at the disk: far less than what any of these costs.
		return Math.max(...middles) - Math.min(...middles) < 5 + Math.min(...middles);
	});
});

test('a preview leads to one port of one sandbox, whatever the visitor asks for', async () => {
	const api = daemon.address.split(':').at(-1);
	for (const target of ['/http://169.254.169.254/', '//169.254.169.254/', '/@evil.test/', '/..%2f..%2fetc/passwd', `/:${api}/`, '/proxy/8001/']) {
		const answer = await preview.get(target);
		assert.ok(answer.status !== 200 || answer.body.startsWith('hello from /'), target);
	}
	for (const line of ['GET http://169.254.169.254/ HTTP/1.1', 'CONNECT 169.254.169.254:80 HTTP/1.1', 'GET unix:/run/silt/x HTTP/1.1']) {
		const raw = await preview.client.raw();
		raw.send(`${line}\r\nHost: ${preview.host}\r\nConnection: close\r\n\r\n`);
		const { status } = await raw.answer(30_000);
		assert.ok([400, 404, 405, 501].includes(status), `${line}: ${status}`);
	}
});

test('nothing of ours answers through a preview: neither the API nor an agent', async () => {
	for (const where of ['/init', '/v1/sandboxes', '/healthz', '/metrics', `/sandboxes/${box.id}/api/ping`, '/api/execute', '/rpc'])
		for (const method of METHODS) {
			const answer = await preview.api(method, where);
			assert.equal(answer.body, `hello from ${where}`, `${method} ${where}: it is the service's own`);
		}
	const { host } = preview;
	for (const [port, id] of [[3000, box.id], [7458, box.id], [22, box.id]])
		assert.equal((await visit(host.replace(/^\d+/, port))).status, 404, `${port} ${id}`);
});

test('who guesses without end is slowed down, and those who know the way are not', async () => {
	let last;
	await until('it is slowed down', async () => {
		const many = await Promise.all(Array.from({ length: 100 }, (_, i) => visit(label(8000, box.id, `guess${i}`))));
		last = new Set(many.map(answer => answer.status));
		assert.ok([...last].every(status => [404, 429, 503].includes(status)), [...last].join());
		return last.has(429) || last.has(503);
	}, 120_000);
	assert.equal((await preview.get('/')).status, 200);
});

test('other words about who it is, other ports and other sandboxes make nobody who guesses another visitor', async () => {
	const ways = {
		fields: i => visit(label(8000, box.id, `field${i}`), { 'x-forwarded-for': `198.51.100.${i}`, forwarded: `for=198.51.100.${i}`, 'x-real-ip': `198.51.100.${i}` }),
		ports: i => visit(label(8001 + i, box.id, `port${i}x`)),
		sandboxes: i => visit(label(8000, `nobody-${i}`, `other${i}`)),
	};
	for (const [name, guess] of Object.entries(ways))
		await until(`${name}: it is slowed down`, async () => {
			const many = await Promise.all(Array.from({ length: 60 }, (_, i) => guess(i)));
			return many.filter(answer => answer.status === 429).length > 30;
		});
	assert.equal((await preview.get('/')).status, 200);
});
