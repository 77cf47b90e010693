// SPDX-License-Identifier: Apache-2.0
// Previews and the API behind Caddy and nginx, as docs/https.md tells people to do it.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { openBrowser } from '../lib/browser.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { documented, startFront } from '../lib/fronts.mjs';
import { freePort } from '../lib/port.mjs';
import { Client } from '../lib/http.mjs';
import { expose, serve } from '../lib/preview.mjs';
import { Visitor, curl, makeAuthority } from '../lib/tls.mjs';
import { until, within } from '../lib/wait.mjs';

const SLOW_MS = 120_000;
const MIB = 1 << 20;

for (const name of ['caddy', 'nginx']) {
	describe(name, () => {
		const home = fs.mkdtempSync('/tmp/silt-front-');
		fs.chmodSync(home, 0o755);
		let authority, daemon, front, box, preview, visitor, api;

		before(async () => {
			const port = await freePort();
			authority = makeAuthority(path.join(home, 'certificates'));
			const settings = path.join(home, 'silt.conf');
			fs.writeFileSync(settings, `${documented('ini', 'fronts').replace('previews.example.com', `silt.localhost:${port}`)}scheme = https\n`); // which is `auto` for a domain that is not this machine's
			daemon = await startDaemon({ flags: { config: settings, 'preview.wait_ms': 120_000 } });
			fs.mkdirSync(path.join(home, 'front'));
			front = await startFront(name, { port, daemon, certificates: authority.directory, home: path.join(home, 'front') });
			box = await daemon.box();
			await serve(box, 8000);
			preview = await expose(box, 8000);
			visitor = new Visitor(preview.body.url, authority.ca);
			api = new Visitor(`https://localhost:${port}/`, authority.ca);
			assert.equal((await visitor.get('/')).text, 'hello from /');
		});
		after(async () => {
			visitor?.close();
			api?.close();
			preview?.close();
			await front?.stop();
			await daemon?.stop();
			fs.rmSync(home, { recursive: true, force: true });
		});

		test('the URL leads through the front, which tells who visits and how', async () => {
			assert.match(preview.body.url, /^https:\/\/8000-[a-z0-9-]+\.silt\.localhost:\d+\/$/);
			const { body } = await visitor.get('/echo', { headers: { 'x-forwarded-for': '6.6.6.6', 'x-forwarded-proto': 'http' } });
			assert.equal(body.headers['x-forwarded-proto'], 'https');
			assert.equal(body.headers['x-forwarded-for'], '127.0.0.1', 'the front does not pass on what visitors claim');
			assert.equal(body.headers['x-forwarded-host'], preview.host);
			assert.equal(body.headers.host, preview.host);
		});

		test('only the front is believed', async () => {
			const headers = { host: preview.host, 'x-forwarded-for': '203.0.113.9', 'x-forwarded-proto': 'http' };
			const near = await preview.get('/echo', { headers }); // from 127.0.0.1, as the front does
			assert.equal(near.body.headers['x-forwarded-for'], '203.0.113.9');
			assert.equal(near.body.headers['x-forwarded-proto'], 'http');
			const far = await new Promise((resolve, reject) => {
				http.get({ host: preview.client.host, port: preview.client.port, localAddress: '127.0.0.2', path: '/echo', headers }, response => {
					let text = '';
					response.on('data', piece => { text += piece; }).on('end', () => resolve(JSON.parse(text)));
				}).on('error', reject);
			});
			assert.equal(far.headers['x-forwarded-for'], '127.0.0.2');
			assert.equal(far.headers['x-forwarded-proto'], 'https', 'as the settings say');
		});

		test('large bodies pass whole both ways, uploads while they come', async () => {
			const bytes = randomBytes(20 * MIB);
			const up = await visitor.api('POST', '/echo', bytes);
			assert.equal(up.body.sha256, createHash('sha256').update(bytes).digest('hex'));
			const down = await curl(new URL('/big?mib=64', preview.body.url).href, path.join(authority.directory, 'ca.pem'), '-o', '/dev/null', '-w', '%{size_download}');
			assert.deepEqual([down.code, down.out], [0, String(64 * MIB)], down.error);
			const swallowed = async () => (await visitor.get('/count')).body.swallowed;
			const before = await swallowed();
			const slow = https.request({ ...visitor.options, method: 'POST', path: '/swallow', headers: { host: preview.host, 'content-length': 2 * MIB } });
			const answered = new Promise((resolve, reject) => slow.on('response', resolve).on('error', reject));
			slow.write(Buffer.alloc(MIB));
			await until('the first half is there before the second is sent', async () => await swallowed() === before + MIB, SLOW_MS);
			slow.end(Buffer.alloc(MIB));
			const response = await within(SLOW_MS, 'the answer', answered);
			assert.equal(response.statusCode, 200);
			response.resume();
			assert.equal(await swallowed(), before + 2 * MIB);
		});

		test('events come one by one', async t => {
			const clock = await visitor.open('GET', '/clock', undefined, { agent: false });
			t.after(() => clock.destroy());
			let heard = '';
			clock.on('error', () => {}).on('data', piece => { heard += piece; });
			await until('the first event', () => heard === 'data: 0\n\n', SLOW_MS);
			await visitor.get('/tick');
			await until('the second event', () => heard.split('data:').length === 3, SLOW_MS);
		});

		test('upgraded connections pass both ways', async () => {
			const { socket, text } = await visitor.connect();
			socket.write(`GET / HTTP/1.1\r\nHost: ${preview.host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`);
			await until('the switch', () => text().includes('101 Switching'), SLOW_MS);
			for (const word of ['one', 'two']) {
				socket.write(word);
				await until('the echo', () => text().endsWith(word.toUpperCase()), SLOW_MS);
			}
			socket.destroy();
		});

		test('the cookies of private previews and of our own pages are for https only', async t => {
			const own = await daemon.box(t);
			await serve(own, 8000);
			const { body } = await expose(own, 8000, { private: true });
			const signed = await daemon.api('POST', `/v1/sandboxes/${own.id}/ports/8000/sign`, { expiresIn: 600 });
			const url = new URL(signed.body.url);
			const guest = new Visitor(body.url, authority.ca);
			t.after(() => guest.close());
			const answer = await guest.get(url.pathname + url.search, { headers: { accept: 'text/html' } });
			assert.equal(answer.status, 302, answer.text);
			assert.match(answer.headers['set-cookie'][0], /; Secure$/);
			const login = await api.api('POST', `/sandboxes/${own.id}/terminal`, `token=${daemon.token}`, { headers: { origin: api.url.origin, 'content-type': 'application/x-www-form-urlencoded' } });
			assert.equal(login.status, 303, login.text);
			assert.match(login.headers['set-cookie'][0], /^silt-login=.*; Secure$/);
			const plain = await daemon.api('POST', `/sandboxes/${own.id}/terminal`, `token=${daemon.token}`, { token: false, headers: { origin: `http://${daemon.address}`, 'content-type': 'application/x-www-form-urlencoded' } });
			assert.doesNotMatch(plain.headers['set-cookie'][0], /Secure/);
		});

		test('the API and the terminal page work through it', async t => {
			const headers = { authorization: `Bearer ${daemon.token}`, 'content-type': 'application/json' };
			const answer = await api.api('POST', `/sandboxes/${box.id}/api/execute`, '{"command":"echo through"}', { headers });
			assert.equal(answer.body.stdout, 'through\n');
			assert.equal((await api.get('/v1/sandboxes')).status, 401);
			const direct = await api.get(`/v1/sandboxes/${box.id}/ports/8000/echo`, { headers: { authorization: headers.authorization } });
			assert.equal(direct.body.headers['x-forwarded-proto'], 'https');
			const browser = await openBrowser(t, { home: path.join(home, 'browser'), authority: path.join(authority.directory, 'ca.pem') });
			const page = await browser.newPage();
			page.setDefaultTimeout(SLOW_MS);
			await page.goto(`${api.url.origin}/sandboxes/${box.id}/terminal`, { timeout: SLOW_MS });
			await page.fill('input[type=password]', daemon.token);
			await page.press('input[type=password]', 'Enter');
			await page.waitForSelector('.xterm-rows', { timeout: SLOW_MS });
			await page.waitForFunction(() => /[#$] *$/m.test(document.querySelector('.xterm-rows').textContent.replaceAll('\u00a0', ' ').trimEnd() + ' '), undefined, { timeout: SLOW_MS });
		});

		test('who guesses behind the front is slowed down, and the others are not', async () => {
			const fresh = new Client(daemon.previews, false);
			const ask = (token, from) => fresh.api('GET', '/', undefined, { headers: { host: preview.host.replace(/-[a-z0-9]+\./, `-${token}.`), 'x-forwarded-for': from } });
			let round = 0;
			await until('the guesser is told so', async () => {
				round++;
				const many = await Promise.all(Array.from({ length: 50 }, (_, i) => ask(`guess${round}x${i}`, '203.0.113.5')));
				assert.ok(many.every(answer => [404, 429].includes(answer.status)), many.map(answer => answer.status).join());
				return many.some(answer => answer.status === 429);
			}, SLOW_MS);
			assert.equal((await ask('anotherguess', '203.0.113.6')).status, 404, 'somebody else behind the same front is heard');
			assert.equal((await visitor.get('/')).status, 200);
			fresh.close();
		});
	});
}
