// SPDX-License-Identifier: Apache-2.0
// Previews by https: what passes through it, whose certificate it is, and what happens when that changes.
import assert from 'node:assert/strict';
import { createHash, randomBytes, X509Certificate } from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { openBrowser } from '../lib/browser.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import * as host from '../lib/host.mjs';
import { Client } from '../lib/http.mjs';
import { expose, serve } from '../lib/preview.mjs';
import { silt } from '../lib/silt.mjs';
import { Visitor, curl, makeAuthority, renew } from '../lib/tls.mjs';
import { until, within } from '../lib/wait.mjs';

const SLOW_MS = 120_000;
const MIB = 1 << 20;
const home = fs.mkdtempSync('/tmp/silt-tls-');
const sha256 = bytes => createHash('sha256').update(bytes).digest('hex');

/** A server of WebSockets that says back what it hears. */
const ECHO = `require('node:http').createServer().on('upgrade', (request, socket) => {
	const accept = require('node:crypto').createHash('sha1').update(request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64');
	socket.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: ' + accept + '\\r\\n\\r\\n');
	socket.on('error', () => {}).on('data', bytes => {
		const length = bytes[1] & 127, mask = bytes.subarray(2, 6);
		if ((bytes[0] & 15) === 1)
			socket.write(Buffer.concat([Buffer.from([0x81, length]), bytes.subarray(6, 6 + length).map((byte, i) => byte ^ mask[i % 4])]));
	});
}).listen(8001, '127.0.0.1');`;

let authority, daemon, box, preview, visitor;
before(async () => {
	authority = makeAuthority(home);
	daemon = await startDaemon({ flags: { config: authority.settings, 'preview.wait_ms': 120_000 } });
	box = await daemon.box();
	await serve(box, 8000);
	preview = await expose(box, 8000);
	visitor = new Visitor(preview.body.url, authority.ca);
	assert.equal((await visitor.get('/')).text, 'hello from /');
});
after(async () => {
	visitor?.close();
	preview?.close();
	await daemon?.stop();
	fs.rmSync(home, { recursive: true, force: true });
});

const told = () => fs.readFileSync(path.join(daemon.run, 'preview-certificate'), 'utf8');
const place = name => path.join(authority.directory, name);
const certificateIs = serial => until('the new certificate', async () => {
	const fresh = new Visitor(preview.body.url, authority.ca);
	const answer = await fresh.get('/').finally(() => fresh.close());
	return serial === undefined ? answer.serial : answer.serial !== serial;
}, SLOW_MS);

test('an exposed port has an https URL whose certificate is for it, and the service is told https', async () => {
	assert.match(preview.body.url, /^https:\/\/8000-[a-z0-9-]+\.silt\.localhost:\d+\/$/);
	const { body } = await visitor.get('/echo', { headers: { 'x-forwarded-proto': 'http', 'x-forwarded-for': '6.6.6.6' } });
	assert.equal(body.headers['x-forwarded-proto'], 'https');
	assert.equal(body.headers['x-forwarded-for'], '127.0.0.1', 'nobody is believed who is no front');
	assert.equal(body.headers['x-forwarded-host'], preview.host);
	assert.equal((await visitor.get('/')).headers['strict-transport-security'], undefined);
});

test('what is large passes whole in both directions', async () => {
	const bytes = randomBytes(5 * MIB + 123);
	const up = await visitor.api('POST', '/echo', bytes);
	assert.deepEqual([up.body.length, up.body.sha256], [bytes.length, sha256(bytes)]);
	const down = await curl(new URL('/big?mib=64', preview.body.url).href, place('ca.pem'), '-o', '/dev/null', '-w', '%{size_download} %{http_version}');
	assert.deepEqual([down.code, down.out], [0, `${64 * MIB} 1.1`], down.error);
	const chunked = await curl(new URL('/big?mib=8&chunked', preview.body.url).href, place('ca.pem'), '-o', '/dev/null', '-w', '%{size_download}');
	assert.deepEqual([chunked.code, chunked.out], [0, String(8 * MIB)], chunked.error);
});

test('a visitor that reads slowly holds up nobody, and gets all of it', async () => {
	const slow = await visitor.open('GET', '/big?mib=24', undefined, { agent: false });
	let size = 0;
	assert.equal((await visitor.get('/')).text, 'hello from /');
	for await (const piece of slow) {
		size += piece.length;
		if (size % (4 * MIB) < piece.length)
			await new Promise(setImmediate);
	}
	assert.equal(size, 24 * MIB);
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

test('an upgraded connection passes both ways, and each side ends by itself', async () => {
	const { socket, text } = await visitor.connect();
	socket.write(`GET / HTTP/1.1\r\nHost: ${preview.host}\r\nUpgrade: loud\r\nConnection: Upgrade\r\n\r\n`);
	await until('the switch', () => text().includes('101 Switching'), SLOW_MS);
	for (const word of ['one', 'two', 'x'.repeat(100_000)]) {
		socket.write(word);
		await until('the echo', () => text().endsWith(word.toUpperCase()), SLOW_MS);
	}
	socket.end();
	await within(SLOW_MS, 'the end', socket.gone);
	assert.match(text(), /END\n$/);
});

test('requests one after another share a connection, and a last one ends it', async () => {
	const { socket, text } = await visitor.connect({ ALPNProtocols: ['h2', 'http/1.1'] });
	assert.equal(socket.alpnProtocol, 'http/1.1');
	const line = `GET /count HTTP/1.1\r\nHost: ${preview.host}\r\n`;
	socket.write(`${line}\r\n${line}\r\n${line}Connection: close\r\n\r\n`);
	await within(SLOW_MS, 'the end', socket.gone);
	assert.equal(text().match(/HTTP\/1\.1 200/g).length, 3);
});

test('a session is resumed by its ticket', async () => {
	const first = await visitor.connect({ minVersion: 'TLSv1.3' });
	const session = await within(SLOW_MS, 'a ticket', new Promise(resolve => first.socket.once('session', resolve)));
	first.socket.end();
	const second = await visitor.connect({ session });
	assert.equal(second.socket.isSessionReused(), true);
	second.socket.end();
});

test('plain requests at the same place are sent to https, wherever they would lead', async () => {
	for (const [method, target] of [['GET', '/a?b=c'], ['POST', '/echo']]) {
		const answer = await preview.api(method, target);
		assert.equal(answer.status, 308);
		assert.equal(answer.headers.location, `https://${preview.host}${target}`);
	}
	const unknown = await preview.get('/', { headers: { host: preview.host.replace(/^8000/, '8001') } });
	assert.equal(unknown.status, 308);
	assert.equal((await preview.get('/', { headers: { host: 'elsewhere.test' } })).status, 400);
});

test('the cookie of a private preview is for https only', async t => {
	const own = await daemon.box(t);
	await serve(own, 8000);
	const { body } = await expose(own, 8000, { private: true });
	const signed = await daemon.api('POST', `/v1/sandboxes/${own.id}/ports/8000/sign`, { expiresIn: 600 });
	assert.equal(signed.status, 200, signed.raw.toString());
	assert.match(signed.body.url, /^https:/);
	const url = new URL(signed.body.url);
	const guest = new Visitor(body.url, authority.ca);
	t.after(() => guest.close());
	const answer = await guest.get(url.pathname + url.search, { headers: { accept: 'text/html' } });
	assert.equal(answer.status, 302, answer.text);
	assert.match(answer.headers['set-cookie'][0], /; Secure$/);
	const cookie = answer.headers['set-cookie'][0].split(';')[0];
	assert.equal((await guest.get('/', { headers: { cookie } })).text, 'hello from /');
});

test('curl and chromium trust it by its authority, and nothing else does', async t => {
	const trusted = await curl(preview.body.url, place('ca.pem'));
	assert.deepEqual([trusted.code, trusted.out], [0, 'hello from /'], trusted.error);
	const stranger = await curl(preview.body.url, '/etc/ssl/certs/ca-certificates.crt');
	assert.equal(stranger.code, 60, stranger.error);
	const browser = await openBrowser(t, { authority: place('ca.pem'), home: path.join(home, 'trusting') });
	const page = await browser.newPage();
	page.setDefaultTimeout(SLOW_MS);
	await page.goto(preview.body.url, { timeout: SLOW_MS });
	assert.equal(await page.textContent('body'), 'hello from /');
	assert.equal(await page.evaluate('isSecureContext'), true);
	await box.put('/tmp/echo.cjs', Buffer.from(ECHO));
	await box.run('node /tmp/echo.cjs', { background: true, sessionId: 'echo' });
	const { body } = await expose(box, 8001);
	const talk = `new Promise((resolve, reject) => { const socket = new WebSocket(${JSON.stringify(body.url.replace('https', 'wss'))});
		socket.onopen = () => socket.send('hello'); socket.onmessage = event => resolve(event.data); socket.onerror = () => reject(new Error('broken')); })`;
	assert.equal(await page.evaluate(talk), 'hello');
	const naive = await openBrowser(t, { home: path.join(home, 'naive') });
	await assert.rejects((await naive.newPage()).goto(preview.body.url, { timeout: SLOW_MS }), /ERR_CERT_AUTHORITY_INVALID/);
});

test('only TLS 1.2 and newer is spoken', async () => {
	for (const [flags, code] of [[['--tls-max', '1.1', '--ciphers', 'DEFAULT@SECLEVEL=0'], 35], [['--tls-max', '1.2'], 0], [['--tlsv1.3'], 0]])
		assert.equal((await curl(preview.body.url, place('ca.pem'), ...flags)).code, code, flags.join(' '));
});

test('who does not finish a handshake, or says something else, is let go', async () => {
	const { host: address, port } = preview.client;
	const closed = async bytes => {
		const socket = net.connect(port, address);
		const over = new Promise(resolve => socket.once('close', resolve));
		socket.on('error', () => {}).on('data', () => {});
		socket.write(bytes);
		await within(SLOW_MS, 'its end', over);
	};
	await Promise.all([
		closed(Buffer.from('1603010200010001fc0303', 'hex')), // the beginning of a hello
		closed(Buffer.from([0x16])),
		closed(Buffer.concat([Buffer.from('1603010100', 'hex'), randomBytes(256)])),
		closed(Buffer.concat([Buffer.from([0x16]), randomBytes(100_000)])),
		closed(Buffer.concat([Buffer.from([0x80]), randomBytes(1000)])),
	]);
	assert.equal((await visitor.get('/')).text, 'hello from /');
});

test('bytes that somebody on the way puts in are never taken for the visitor\'s', async t => {
	const { host: address, port } = preview.client;
	const count = async () => (await visitor.get('/count')).body.requests;
	let inject = false;
	const relay = net.createServer(near => {
		const far = net.connect(port, address);
		far.on('data', bytes => near.write(bytes)).on('close', () => near.destroy()).on('error', () => {});
		near.on('error', () => {}).on('close', () => far.destroy()).on('data', bytes => {
			if (!inject)
				return far.write(bytes);
			far.write(Buffer.concat([bytes, Buffer.from('1703030020', 'hex'), randomBytes(32)])); // a record that nobody encrypted, in the same packet
			far.write('injected\r\n\r\n');
			setTimeout(() => far.write('injected\r\n\r\n'), 200).unref();
		});
	});
	t.after(() => relay.close());
	await new Promise(resolve => relay.listen(0, '127.0.0.1', resolve));
	const before = await count();
	const { socket, text } = await visitor.connect({ port: relay.address().port });
	socket.write(`GET /count HTTP/1.1\r\nHost: ${preview.host}\r\n\r\n`);
	await until('an answer', () => /requests/.test(text()), SLOW_MS);
	inject = true;
	socket.write(`GET /count HTTP/1.1\r\nHost: ${preview.host}\r\nX-Field: `);
	await within(SLOW_MS, 'its end', socket.gone);
	assert.equal(text().match(/HTTP\/1\.1/g).length, 1);
	assert.equal(await count(), before + 2, 'its own request and this one');
});

test('a renewed certificate is used by new connections, while old ones go on', async () => {
	const old = await visitor.connect();
	const { serialNumber } = old.socket.getPeerCertificate();
	renew(authority.settings);
	await certificateIs(serialNumber);
	old.socket.write(`GET / HTTP/1.1\r\nHost: ${preview.host}\r\nConnection: close\r\n\r\n`);
	await within(SLOW_MS, 'the end', old.socket.gone);
	assert.match(old.text(), /hello from \/$/);
});

test('a certificate that is no good is told of, and the one before is used', async () => {
	const doctor = async () => (await silt(daemon, ['doctor'], { env: { SILT_CONFIG: authority.settings, SILT_RUN: daemon.run } })).stdout.split('\n').find(line => / certificate /.test(line));
	const serial = await certificateIs();
	const good = fs.readFileSync(place('preview.pem'));
	assert.match(await doctor(), /^ok .*\*\.silt\.localhost/);
	for (const [name, change, why] of [
		['garbage', () => fs.writeFileSync(place('preview.pem'), 'no certificate'), /refused certificate:/],
		['a key that does not fit', () => fs.writeFileSync(place('preview.pem'), authority.ca), /refused key:/],
		['no file', () => fs.rmSync(place('preview.pem')), /refused .*No such file/],
	]) {
		change();
		await until(`${name} is told of`, () => why.test(told()), SLOW_MS);
		assert.match(daemon.log(), /certificate\.refused/, name);
		assert.match(await doctor(), /^FAIL .*refused.*the one before is used/, name);
		assert.equal(await certificateIs(), serial, name);
	}
	fs.writeFileSync(place('preview.pem'), good);
	await until('the good one is used again', () => !told().includes('refused'), SLOW_MS);
	assert.match(await doctor(), /^ok /);
});

test('a key that everybody can read is not used', async () => {
	fs.chmodSync(place('preview.key'), 0o644);
	await until('it is told of', () => /refused .*everybody can read it/.test(told()), SLOW_MS);
	fs.chmodSync(place('preview.key'), 0o600);
	await until('it is used again', () => !told().includes('refused'), SLOW_MS);
});

test('a new silt-preview and a new siltd speak TLS as the ones before', async () => {
	const [pid] = daemon.programs('silt-preview');
	process.kill(pid, 'SIGKILL');
	await until('another one', () => daemon.programs('silt-preview').some(other => other !== pid), SLOW_MS);
	await certificateIs();
	process.kill(daemon.siltd(), 'SIGKILL');
	await daemon.healthy();
	await certificateIs();
});

test('many handshakes, whole, half and none, leave no descriptors and no memory', async () => {
	const [pid] = daemon.programs('silt-preview');
	const { host: address, port } = preview.client;
	const memory = () => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
	const round = async () => {
		const whole = Array.from({ length: 20 }, async () => {
			const { socket } = await visitor.connect();
			socket.end();
			await within(SLOW_MS, 'its end', socket.gone);
		});
		const broken = Array.from({ length: 10 }, (_, i) => new Promise((resolve, reject) => {
			const socket = net.connect(port, address, () => {
				socket.write(i % 2 ? Buffer.concat([Buffer.from('16030100ff', 'hex'), randomBytes(100)]) : Buffer.concat([Buffer.from('1603010020', 'hex'), randomBytes(64)]), () => socket.destroy());
			});
			socket.once('close', resolve).once('error', reject);
		}));
		await Promise.all([...whole, ...broken]);
	};
	for (let i = 0; i < 10; i++)
		await round();
	visitor.agent.destroy();
	const before = { descriptors: await until('rest', () => host.descriptors(pid), SLOW_MS), memory: memory() };
	for (let i = 0; i < 50; i++)
		await round();
	await until('descriptors as before', () => host.descriptors(pid) <= before.descriptors, SLOW_MS);
	const slack = process.env.SILT_SANITIZED ? 64 << 10 : 8192; // a sanitizer keeps what was freed for a while
	assert.ok(memory() - before.memory < slack, `${memory() - before.memory} KiB more after 1,000 handshakes`);
	assert.equal((await visitor.get('/')).text, 'hello from /');
});

test('the daemon does not start without its certificate, and says why', async t => {
	const directory = path.join(home, 'lost');
	const lost = makeAuthority(directory);
	fs.rmSync(path.join(lost.directory, 'preview.key'));
	await assert.rejects(async () => {
		const other = await startDaemon({ flags: { config: lost.settings } });
		t.after(() => other.stop());
	}, /setting preview\.key: open .*No such file/);
});

test('the authority is made once, its key is secret, and it can vouch for nothing but its names', async () => {
	assert.equal(fs.statSync(place('ca.key')).mode & 0o777, 0o600);
	assert.equal(fs.statSync(place('preview.key')).mode & 0o777, 0o600);
	assert.equal(renew(authority.settings, '--print-ca'), authority.ca.toString());
	assert.match(authority.said, /Trust its authority/);
	assert.deepEqual(new X509Certificate(authority.ca).keyUsage, ['1.3.6.1.5.5.7.3.1'], 'servers, no mail and no programs');
	const other = path.join(home, 'other.conf');
	fs.writeFileSync(other, '[preview]\ndomain = example.com\n');
	assert.throws(() => renew(other, '--directory', authority.directory), /vouch|made for another domain/);
	fs.writeFileSync(other, '[preview]\ndomain = localhost:7459\n');
	assert.throws(() => renew(other), /no browser takes a certificate for all of localhost/);
	fs.writeFileSync(other, 'preview.certificate = /a\npreview.key = /b\n');
	assert.throws(() => renew(other, '--directory', path.join(home, 'third')), /preview\.certificate is \/a already/);
});

test('a domain of the settings gets a certificate of its own', async t => {
	const named = makeAuthority(path.join(home, 'named'), { domain: 'previews.example.com:7000' });
	const other = await startDaemon({ flags: { config: named.settings, 'preview.wait_ms': 120_000, 'preview.bandwidth': '4M', fronts: '127.0.0.1' } });
	t.after(() => other.stop());
	const own = await other.box();
	await serve(own, 8000);
	const there = await expose(own, 8000);
	const { body } = there;
	t.after(() => there.close());
	assert.match(body.url, /^https:\/\/8000-[a-z0-9-]+\.previews\.example\.com:7000\/$/);
	const guest = new Visitor(body.url, named.ca, { port: new Client(other.previews).port });
	t.after(() => guest.close());
	assert.equal((await guest.get('/')).text, 'hello from /');
	const bytes = randomBytes(6 * MIB); // passes in pieces as the bandwidth allows, which are not those of the records
	const up = await guest.api('POST', '/echo', bytes);
	assert.equal(up.body.sha256, sha256(bytes));
	assert.equal((await guest.get('/big?mib=6')).text.length, 6 * MIB);
	const headers = { 'x-forwarded-for': '203.0.113.7', 'x-forwarded-proto': 'https' };
	const plain = await there.get('/echo', { headers }); // a front may use either
	assert.equal(plain.status, 200);
	assert.deepEqual([plain.body.headers['x-forwarded-for'], plain.body.headers['x-forwarded-proto']], ['203.0.113.7', 'https']);
	const veiled = await guest.get('/echo', { headers: { 'x-forwarded-for': '203.0.113.8' } });
	assert.deepEqual([veiled.body.headers['x-forwarded-for'], veiled.body.headers['x-forwarded-proto']], ['203.0.113.8', 'https']);
});

test('handshakes that do not end give way to those that do', async t => {
	const MOST = 2048; // at once
	const patient = await startDaemon({ flags: { config: authority.settings, 'http.head_timeout_ms': 3_600_000 } });
	t.after(() => patient.stop());
	const [address, port] = patient.previews.split(':');
	const half = Buffer.concat([Buffer.from('1603014000', 'hex'), randomBytes(1000)]);
	let open = 0;
	const sockets = [];
	t.after(() => sockets.forEach(socket => socket.destroy()));
	for (let i = 0; i < MOST + 50; i++) {
		await new Promise((resolve, reject) => {
			const socket = net.connect(port, address, () => socket.write(half, resolve));
			socket.once('error', reject).once('close', () => open--);
			sockets.push(socket);
			open++;
		});
		sockets.at(-1).on('error', () => {});
	}
	await until('the oldest are let go', () => open <= MOST, SLOW_MS);
	assert.ok(sockets.slice(-1000).every(socket => !socket.destroyed), 'not the youngest');
	const host = `8000-a-b.silt.localhost:${port}`;
	const quick = new Visitor(`https://${host}/`, authority.ca);
	t.after(() => quick.close());
	assert.equal((await quick.get('/')).status, 404);
});
