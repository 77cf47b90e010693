// SPDX-License-Identifier: Apache-2.0
// Previews: what settings switch on and bound, names that stand for others, and ports that lead back to where they came from.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import * as host from '../lib/host.mjs';
import { expose, serve } from '../lib/preview.mjs';
import { milliseconds, until, within } from '../lib/wait.mjs';

const WAIT = 60_000;
const MIB = 2 ** 20;
let daemon, plain, box, preview;

before(async () => {
	daemon = await startDaemon({ flags: { 'preview.wait_ms': 120_000, 'preview.old_form': 'on', 'preview.short_tokens': 'on', 'preview.bandwidth': '4M', 'preview.connections_all': 16, 'preview.connections': 4 } });
	plain = await startDaemon({ flags: { 'preview.wait_ms': 1_500 } });
	box = await daemon.box(undefined, {});
	await serve(box, 8000);
	preview = await expose(box, 8000, { token: 'abc' });
	assert.equal((await preview.get('/who', { deadline: 120_000 })).body, box.id);
});
after(async () => {
	preview?.close();
	await daemon?.stop();
	await plain?.stop();
});

const domain = name => name.slice(name.indexOf('.') + 1);

test('a short token leads in where that is allowed, and so does the older form of a host', async () => {
	assert.equal(preview.host.split('.')[0], `8000-${box.id}-abc`);
	const old = `${box.id}-8000.${domain(preview.host)}`;
	assert.equal((await preview.get('/who', { headers: { host: old } })).body, box.id);
	for (const wrong of [`${box.id}-8001`, `${box.id}-08000`, `${box.id}-`, `${box.id}x-8000`, `-8000`])
		assert.equal((await preview.get('/who', { headers: { host: `${wrong}.${domain(preview.host)}` } })).status, 404, wrong);
	const locked = await expose(box, 8000, { private: true });
	assert.equal((await locked.get('/who', { headers: { host: old } })).status, 403, 'a private port is private by any name');
	locked.close();
	await expose(box, 8000, { private: false });
	const other = await plain.box(undefined, {});
	const strict = await expose(other, 8000);
	assert.equal((await strict.get('/', { headers: { host: `${other.id}-8000.${domain(strict.host)}` } })).status, 404, 'without the setting');
	strict.close();
});

test('an alias leads in for an id that a host name cannot hold', async t => {
	const odd = await daemon.box(t, { id: `Odd_Id.${box.id}` });
	await serve(odd, 8000);
	const visit = await expose(odd, 8000);
	t.after(() => visit.close());
	assert.match(visit.host, /^8000-s[a-z2-7]{12}-/);
	assert.equal((await visit.get('/who', { deadline: 120_000 })).body, odd.id);
	assert.equal((await visit.get('/who', { headers: { host: visit.host.replace(/-s[a-z2-7]{12}-/, '-saaaaaaaaaaaa-') } })).status, 404);
});

test('a sandbox passes so many bytes a second in each direction, all its visitors together', async () => {
	await until('what others have used is paid back', async () => (await preview.get('/who')).status === 200, WAIT);
	const down = await milliseconds(async () => {
		const all = await Promise.all([1, 2].map(() => preview.get('/big?mib=8', { deadline: 120_000 })));
		assert.deepEqual(all.map(answer => answer.raw.length), [8 * MIB, 8 * MIB]);
	});
	assert.ok(down > 2_000, `16 MiB at 4 MiB/s in ${down} ms`);
	const up = await milliseconds(async () => assert.equal((await preview.api('POST', '/echo', Buffer.alloc(12 * MIB), { deadline: 120_000 })).body.length, 12 * MIB));
	assert.ok(up > 1_000, `12 MiB at 4 MiB/s in ${up} ms`);
});

test('limits are told in words: how many at once, and whom it concerns', async t => {
	preview.close();
	const held = [];
	t.after(() => held.forEach(raw => raw.destroy()));
	for (let i = 0; i < 4; i++) {
		held.push(await preview.raw('GET /ws', 'Connection: Upgrade\r\nUpgrade: x\r\n'));
		await held.at(-1).received(/101 Switching/, WAIT);
	}
	const busy = await preview.get('/', { agent: false });
	assert.equal(busy.status, 503);
	assert.equal(busy.body.code, 'PREVIEW_BUSY');
	assert.equal(busy.body.context.port, 8000);
	assert.match(busy.body.message, /Too many requests at once/);
	assert.match(busy.body.suggestion, /Try again/);
	assert.equal(busy.headers['retry-after'], '1');
	const page = await preview.get('/', { agent: false, headers: { accept: 'text/html' } });
	assert.equal(page.status, 503);
	assert.match(page.body, /<h1>Too many requests at once<\/h1>[^]*PREVIEW_BUSY/);
	let guessed;
	await until('guesses are refused', async () => {
		const many = await Promise.all(Array.from({ length: 8 }, (_, i) => preview.get('/', { agent: false, headers: { host: `8000-nobody-guess${i}.${domain(preview.host)}` } }).catch(() => ({}))));
		guessed = many.find(answer => answer.status === 429);
		return guessed;
	}, WAIT);
	assert.equal(guessed.body.code, 'TOO_MANY_UNKNOWN_PREVIEWS');
	assert.equal(guessed.headers['retry-after'], '1');
});

test('so many visitors in all; more are closed at once, and room is made when one leaves', async t => {
	preview.close();
	const all = [];
	t.after(() => all.forEach(raw => raw.destroy()));
	let refused;
	await until('one is closed', async () => { // those of the tests before may still be leaving
		const raw = await preview.client.raw();
		all.push(raw);
		raw.send('GET');
		refused = all.find(one => one.socket.destroyed);
		return all.length >= 16 && refused;
	}, WAIT);
	assert.equal(refused.text, '');
	all.forEach(raw => raw.destroy());
	await until('there is room', async () => (await preview.get('/who', { agent: false })).body === box.id, WAIT);
});

test('idle visitors hold no socket into the sandbox, and little memory', async t => {
	const other = await plain.box(t, {});
	await serve(other, 8000);
	const visit = await expose(other, 8000);
	t.after(() => visit.close());
	await until('it listens', async () => (await visit.get('/who')).body === other.id, WAIT);
	const [pid] = plain.programs('silt-preview');
	const before = host.descriptors(pid), memory = host.processInfo(pid).residentKiB;
	const idle = [];
	t.after(() => idle.forEach(raw => raw.destroy()));
	for (let i = 0; i < 1_000; i++) {
		const raw = await visit.raw('GET /who');
		await raw.received(new RegExp(`${other.id}$`), WAIT);
		idle.push(raw);
	}
	const grown = host.descriptors(pid) - before;
	assert.ok(grown >= 1_000 && grown < 1_000 + 32, `${grown} descriptors`);
	const each = (host.processInfo(pid).residentKiB - memory) / 1_000;
	assert.ok(each < (process.env.SILT_SANITIZED ? 200 : 20), `${each} KiB each`);
});

test('a port of the same number as the proxy leads into the sandbox, never to the proxy', async t => {
	const other = await plain.box(t, {});
	const own = Number(plain.previews.split(':').at(-1));
	const visit = await expose(other, own);
	t.after(() => visit.close());
	const answer = await visit.get('/');
	assert.deepEqual([answer.status, answer.body.code, answer.body.context.port], [504, 'PORT_NOT_LISTENING', own]);
	assert.equal((await plain.api('GET', `/v1/sandboxes/${other.id}/ports/${own}/`)).body.code, 'PORT_NOT_LISTENING');
	assert.notEqual((await other.run(`curl -s -m 5 http://127.0.0.1:${own}/`)).exitCode, 0, 'nor does it reach it from inside');
});

test('a socket that would be connected to itself is none: nobody is answered by an echo', async t => {
	const other = await plain.box(t, {});
	const port = 40_123;
	const pid = await other.init();
	// Every connection in there leaves from the port that is asked for.
	execFileSync('nsenter', [`--net=/proc/${pid}/ns/net`, 'sysctl', '-q', '-w', `net.ipv4.ip_local_port_range=${port} ${port}`]);
	const visit = await expose(other, port);
	t.after(() => visit.close());
	const answers = await within(WAIT, 'answers', Promise.all(Array.from({ length: 8 }, () => visit.get('/echo'))));
	for (const answer of answers) // there is one such port: some may find it taken by another attempt
		assert.ok([503, 504].includes(answer.status) && ['PREVIEW_BUSY', 'PORT_NOT_LISTENING'].includes(answer.body.code), answer.raw.toString());
});

/** Asks itself through its own preview, again and again, for each request. */
const LOOP = `const http = require('node:http');
http.createServer((request, response) => {
	const again = http.request({ port: process.argv[2], host: '127.0.0.1', path: request.url, agent: false }, answer => answer.pipe(response));
	again.on('error', () => { response.statusCode = 502; response.end('end of the loop'); });
	again.end();
}).listen(8100, '127.0.0.1');`;

test('a service that asks itself without end ends at a limit, and its neighbours are served', async t => {
	const other = await daemon.box(t, {});
	await other.put('/tmp/loop.cjs', Buffer.from(LOOP));
	await other.run('ulimit -n 256; exec node /tmp/loop.cjs 8100 > /dev/null 2>&1', { background: true, sessionId: 'loop' });
	const visit = await expose(other, 8100);
	t.after(() => visit.close());
	const looping = visit.get('/round', { deadline: 120_000, agent: false });
	for (let i = 0; i < 5; i++)
		assert.equal((await preview.get('/who', { agent: false })).body, box.id);
	const end = await looping;
	assert.ok(end.status >= 500 || end.body === 'end of the loop', end.body);
});
