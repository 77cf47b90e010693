// SPDX-License-Identifier: Apache-2.0
// Previews: what a service in a sandbox and its visitors say to each other through silt-proxy.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { expose, serve } from '../lib/preview.mjs';
import { until, within } from '../lib/wait.mjs';

const WAIT = 120_000;
let daemon, box, preview;

before(async () => {
	daemon = await startDaemon({ flags: { 'preview.wait_ms': WAIT } });
	box = await daemon.box();
	await serve(box, 8000); // on 127.0.0.1 only
	preview = await expose(box, 8000);
});
after(async () => {
	preview?.close();
	await daemon?.stop();
});

const echo = async (method, where, body, options) => (await preview.api(method, where, body, options)).body;

test('a service on 127.0.0.1 only is reached by its URL', async () => {
	const answer = await preview.get('/some/where?a=1&b');
	assert.equal(answer.status, 200, answer.raw.toString());
	assert.equal(answer.body, 'hello from /some/where');
	assert.match(preview.host, new RegExp(`^8000-[a-z0-9-]+-[a-z0-9]+\\.localhost:${daemon.previews.split(':').at(-1)}$`));
});

test('the service hears what the visitor said, and about the visitor from us alone', async () => {
	const told = await echo('PUT', '/echo?x=1', 'hello', {
		headers: {
			'x-forwarded-for': '1.2.3.4', 'x-forwarded-proto': 'https', 'x-forwarded-host': 'evil', 'x-forwarded-user': 'root', forwarded: 'for=1.2.3.4',
			'x-real-ip': '1.2.3.4', 'x-verified-user': 'root', connection: 'close, x-auth', 'x-auth': 'me', te: 'trailers', 'proxy-authorization': 'Basic x',
			'keep-alive': '5', 'x-kept': 'yes', cookie: 'a=1; silt-proof=mine; b=2',
		},
	});
	assert.equal(told.url, '/echo?x=1');
	assert.equal(told.length, 5);
	assert.deepEqual(told.headers, {
		host: preview.host, 'content-length': '5', 'x-kept': 'yes', cookie: 'a=1; b=2',
		'x-forwarded-for': '127.0.0.1', 'x-forwarded-host': preview.host, 'x-forwarded-proto': 'http',
	});
});

test('what the service says to its next hop stays there, the rest comes as it is', async () => {
	const answer = await preview.get('/hop');
	assert.equal(answer.body, 'hop');
	assert.equal(answer.headers['x-kept'], 'for all');
	assert.deepEqual(answer.headers['set-cookie'], ['a=1', 'b=2']);
	for (const name of ['x-secret', 'proxy-authenticate', 'alt-svc'])
		assert.equal(answer.headers[name], undefined, name);
	const trailers = await preview.get('/trailers');
	assert.equal(trailers.body, 'with trailers');
	assert.equal(trailers.headers.trailer, undefined);
});

test('a redirect is passed on, not followed', async () => {
	const answer = await preview.get('/redirect');
	assert.equal(answer.status, 302);
	assert.equal(answer.headers.location, 'http://169.254.169.254/latest/');
});

test('HEAD, 204 and 304 have no body, and the connection goes on', async t => {
	const raw = await preview.raw('HEAD /big?mib=1');
	t.after(() => raw.destroy());
	await raw.received(/Content-Length: 1048576\r\n[^]*\r\n$/, WAIT);
	for (const [what, pattern] of [['204', /204 No Content/], ['304', /304 Not Modified/]]) {
		raw.send(`GET /status?is=${what} HTTP/1.1\r\nHost: ${preview.host}\r\n\r\n`);
		await raw.received(pattern, WAIT);
	}
	raw.send(`GET /last HTTP/1.1\r\nHost: ${preview.host}\r\nConnection: close\r\n\r\n`);
	const answer = await raw.answer(WAIT);
	assert.match(answer.text, /hello from \/last$/);
	assert.equal(answer.answers, 4);
});

test('requests that are sent in a row are answered in order', async () => {
	const raw = await preview.raw();
	const one = i => `${i % 3 === 2 ? 'POST' : 'GET'} /n${i} HTTP/1.1\r\nHost: ${preview.host}\r\n${i % 3 === 2 ? 'Content-Length: 4\r\n\r\nbody' : '\r\n'}`;
	raw.send(Array.from({ length: 50 }, (_, i) => one(i)).join(''));
	raw.send(`GET /end HTTP/1.1\r\nHost: ${preview.host}\r\nConnection: close\r\n\r\n`);
	const answer = await raw.answer(WAIT);
	assert.deepEqual(answer.text.match(/hello from \/(n\d+|end)/g), [...Array.from({ length: 50 }, (_, i) => `hello from /n${i}`), 'hello from /end']);
});

test('bodies pass with a length and in chunks, both ways', async () => {
	const bytes = Buffer.alloc(3_000_000, 'abcdefg');
	const sha256 = createHash('sha256').update(bytes).digest('hex');
	assert.equal((await echo('POST', '/echo', bytes)).sha256, sha256);
	const raw = await preview.raw('POST /echo', 'Transfer-Encoding: chunked\r\nConnection: close\r\n');
	for (let at = 0; at < bytes.length; at += 70_001) {
		const piece = bytes.subarray(at, at + 70_001);
		raw.send(Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]));
	}
	raw.send('0\r\nX-Trailer: dropped\r\n\r\n');
	const text = (await raw.answer(WAIT)).text;
	assert.ok(text.includes(sha256), text.slice(0, 500));
	assert.ok(text.includes('"trailers":{}'), 'trailers are dropped');
	for (const kind of ['', '&chunked'])
		assert.equal((await preview.get(`/big?mib=2${kind}`)).raw.length, 2 * 2 ** 20, kind);
});

test('HTTP/1.0 visitors are served, and told the end by the end', async () => {
	const raw = await preview.raw();
	raw.send(`GET /big?mib=1&chunked HTTP/1.0\r\nHost: ${preview.host}\r\n\r\n`);
	const { text, closed } = await raw.answer(WAIT);
	assert.ok(closed);
	assert.equal(text.length - text.indexOf('\r\n\r\n') - 4, 2 ** 20);
	assert.ok(!/transfer-encoding/i.test(text.slice(0, 500)));
});

test('server-sent events pass at once, and the service is told when the reader leaves', async () => {
	const before = (await preview.get('/count')).body.gone;
	const response = await preview.open('GET', '/clock');
	assert.equal(response.headers['content-type'], 'text/event-stream');
	const pieces = response[Symbol.asyncIterator]();
	const next = async () => (await within(WAIT, 'an event', pieces.next())).value.toString();
	assert.equal(await next(), 'data: 0\n\n');
	for (let i = 0; i < 3; i++) {
		await preview.get('/tick');
		assert.match(await next(), /^data: \d+\n\n$/);
	}
	response.destroy();
	await until('the service notices', async () => {
		await preview.get('/tick'); // what is written shows that nobody reads
		return (await preview.get('/count')).body.gone > before;
	}, WAIT);
});

test('Expect: 100-continue asks the service, whichever way it decides', async () => {
	const yes = await preview.raw('POST /echo', 'Content-Length: 2\r\nExpect: 100-continue\r\nConnection: close\r\n');
	await yes.received(/^HTTP\/1\.1 100 Continue\r\n\r\n/, WAIT);
	yes.send('ok');
	assert.match((await yes.answer(WAIT)).text, /"length":2/);
	const no = await preview.raw('POST /no', 'Content-Length: 2\r\nExpect: 100-continue\r\n');
	const answer = await no.answer(WAIT);
	assert.equal(answer.status, 417);
	assert.ok(answer.closed, 'nobody knows what would come next');
});

test('early hints pass, an answer before the end of the request too', async () => {
	const hints = await preview.raw('GET /hints', 'Connection: close\r\n');
	assert.match((await hints.answer(WAIT)).text, /^HTTP\/1\.1 103 [^]*HTTP\/1\.1 200 [^]*hinted$/);
	const raw = await preview.raw('POST /early', 'Content-Length: 50000000\r\n');
	raw.send(Buffer.alloc(500_000));
	const answer = await raw.answer(WAIT);
	assert.equal(answer.status, 413);
	assert.match(answer.text, /too much/);
});

test('a WebSocket, or whatever a visitor upgrades to, is passed both ways until both have ended', async () => {
	for (const protocol of ['websocket', 'something-else']) {
		const raw = await preview.raw('GET /ws', `Connection: keep-alive, Upgrade\r\nUpgrade: ${protocol}\r\n`);
		await raw.received(new RegExp(`101 Switching Protocols\\r\\n[^]*Upgrade: ${protocol}\\r\\n`), WAIT);
		assert.match(raw.text, new RegExp(`X-Host: ${preview.host.replaceAll('.', '\\.')}`), 'the same Host as any other request');
		for (let i = 0; i < 20; i++) {
			raw.send(`hello ${i}\n`);
			await raw.received(new RegExp(`HELLO ${i}\n`), WAIT);
		}
		raw.socket.end('last words\n');
		const { text, closed } = await raw.answer(WAIT);
		assert.ok(closed);
		assert.match(text, /LAST WORDS\nEND\n$/, 'what is said after our end still comes');
	}
});

test('a service that ends its side of an upgraded connection is still heard by', async () => {
	const raw = await preview.raw('GET /ws', 'Connection: Upgrade\r\nUpgrade: websocket\r\n');
	await raw.received(/101 Switching/, WAIT);
	raw.send('bye\n');
	const { text, closed } = await raw.answer(WAIT);
	assert.ok(closed && text.endsWith('BYE\n'), text);
});

test('an upgrade that the service refuses is an answer like any other', async () => {
	const raw = await preview.raw('GET /refuse', 'Connection: Upgrade, close\r\nUpgrade: websocket\r\n');
	assert.match((await raw.answer(WAIT)).text, /^HTTP\/1\.1 403 Forbidden\r\n[^]*no$/);
	assert.equal((await (await preview.raw('GET /', 'Connection: Upgrade\r\nUpgrade: h2c\r\n')).answer(WAIT)).status, 400);
});

test('a service that breaks off is told of, never half an answer as a whole', async () => {
	const broken = await preview.get('/break');
	assert.equal(broken.status, 502);
	assert.equal(broken.body.code, 'SERVICE_BROKE_OFF');
	assert.equal(broken.body.context.port, 8000);
	await assert.rejects(preview.get('/half'), /aborted|ECONNRESET|socket hang up/);
	assert.equal((await preview.get('/after')).body, 'hello from /after');
});

test('what a service says must be HTTP/1.1, and be read in one way only', async () => {
	const bad = [
		'SSH-2.0-OpenSSH\r\n', 'HTTP/1.1 200 OK\nContent-Length: 2\n\nhi', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi',
		'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nhi', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n',
		'HTTP/1.1 200 OK\r\nX : y\r\n\r\n', 'HTTP/1.1 200 OK\r\nX: y\r\n folded\r\n\r\n', 'HTTP/1.1 101 Unasked\r\nUpgrade: x\r\n\r\n',
	];
	const raw = text => preview.get(`/raw?bytes=${encodeURIComponent(Buffer.from(text).toString('base64'))}`);
	for (const text of bad) {
		const answer = await raw(text);
		assert.equal(answer.status, 502, text.slice(0, 100));
		assert.equal(answer.body.code, 'SERVICE_NOT_HTTP');
	}
	assert.equal((await preview.get('/huge')).status, 502);
	const twice = await raw('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil');
	assert.equal(twice.body, 'hi');
	assert.equal((await preview.get('/next')).body, 'hello from /next', 'what it said too much reaches nobody');
	assert.equal((await raw('HTTP/1.0 200 OK\r\n\r\nuntil the end')).body, 'until the end');
});

test('idle connections to the service are used again, and replaced when it has closed them', async () => {
	for (let i = 0; i < 3; i++) {
		assert.equal((await preview.get(`/a${i}`)).status, 200);
		await box.out(`node -e 'fetch("http://127.0.0.1:8000/count")'`); // the service is still busy elsewhere
	}
	const raw = await preview.get(`/raw?bytes=${Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n').toString('base64')}`); // and closes: it did not say so
	assert.equal(raw.status, 200);
	assert.equal((await preview.get('/again')).body, 'hello from /again');
});

test('a request waits until the service listens', async t => {
	const other = await daemon.box(t, {});
	const late = await expose(other, 8001);
	t.after(() => late.close());
	const answer = late.get('/early-bird', { deadline: WAIT });
	await serve(other, 8001, { delay: 3_000, address: '0.0.0.0' });
	assert.equal((await within(WAIT, 'the answer', answer)).body, 'hello from /early-bird');
});

test("python's http.server shows its files, and nothing else answers on another port", async t => {
	await box.out('mkdir -p /tmp/files && seq 100000 > /tmp/files/numbers.txt');
	await box.run('cd /tmp/files && python3 -m http.server 8010 --bind 127.0.0.1 > /dev/null 2>&1', { background: true, sessionId: 'python' });
	const files = await expose(box, 8010);
	t.after(() => files.close());
	const answer = await files.get('/numbers.txt');
	assert.equal(answer.status, 200);
	assert.equal(answer.body, Array.from({ length: 100_000 }, (_, i) => `${i + 1}\n`).join(''));
	assert.match((await files.get('/')).body, /numbers\.txt/);
	assert.equal((await files.get('/none')).status, 404);
	const crossed = files.host.replace('8010', '8000');
	assert.equal((await files.get('/', { headers: { host: crossed } })).body.code, 'PREVIEW_NOT_FOUND', 'a token is for its own port');
});

test('unknown names are all answered alike, and wake nobody', async t => {
	const sleeper = await daemon.box(t, {});
	const exposed = await expose(sleeper, 8002);
	t.after(() => exposed.close());
	const [label, domain] = [exposed.host.slice(0, exposed.host.indexOf('.')), exposed.host.slice(exposed.host.indexOf('.') + 1)];
	const incarnation = (await sleeper.info()).status;
	const wrong = [label.slice(0, -1), `${label}x`, label.replace('8002', '08002'), label.replace('8002', '8003'), label.replace('8002', '65536'), 'x', 'xn--bcher-kva', '8000', '8002-nobody-0123456789abcdef'];
	const texts = new Set();
	for (const name of wrong) {
		const answer = await exposed.get('/', { headers: { host: `${name}.${domain}` } });
		assert.equal(answer.status, 404, name);
		assert.equal(answer.body.code, 'PREVIEW_NOT_FOUND');
		delete answer.body.timestamp;
		texts.add(JSON.stringify(answer.body));
	}
	assert.equal(texts.size, 1, 'one answer for all');
	assert.equal((await sleeper.info()).status, incarnation);
});

test('there is one rule for hosts', async () => {
	const [label, domain] = [preview.host.slice(0, preview.host.indexOf('.')), preview.host.slice(preview.host.indexOf('.') + 1)];
	const port = domain.split(':')[1];
	const wrong = [preview.host.toUpperCase(), `${label}.localhost.:${port}`, `${label}.localhost`, `${label}.localhost:80`, `${label}.evil.tld:${port}`, `x.${preview.host}`,
		`${label.replaceAll('-', '_')}.${domain}`, `${'a'.repeat(64)}.${domain}`, `${'a'.repeat(300)}.${domain}`, `127.0.0.1:${port}`, `.${domain}`, `${label}%00.${domain}`];
	for (const host of wrong)
		assert.equal((await preview.get('/', { headers: { host } })).status, 400, host);
	for (const line of [`GET http://${preview.host}/ HTTP/1.1\r\nHost: ${preview.host}\r\n\r\n`, `GET / HTTP/1.1\r\nHost: ${preview.host}\r\nHost: ${preview.host}\r\n\r\n`, 'GET / HTTP/1.1\r\n\r\n', `GET / HTTP/1.1\r\nHost: b\xfccher.${domain}\r\n\r\n`]) {
		const raw = await preview.raw();
		raw.send(Buffer.from(line, 'latin1'));
		raw.socket.end();
		assert.equal((await raw.answer(WAIT)).status, 400, line);
	}
});

test('what ends with its port or its sandbox is cut, and another one is never answered for it', async t => {
	const other = await daemon.box(t);
	await serve(other, 8000);
	const first = await expose(other, 8000);
	t.after(() => first.close());
	const held = await first.raw('GET /hold');
	const tunnel = await first.raw('GET /ws', 'Connection: Upgrade\r\nUpgrade: x\r\n');
	await tunnel.received(/101/, WAIT);
	assert.equal((await daemon.api('DELETE', `/v1/sandboxes/${other.id}/ports/8000`)).status, 200);
	await within(WAIT, 'the tunnel ends', tunnel.closed);
	assert.equal((await held.received(/HTTP\/1\.1 \d+/, WAIT)).slice(9, 12), '404');
	assert.equal((await first.get('/')).status, 404);
	const second = await expose(other, 8000);
	t.after(() => second.close());
	assert.notEqual(second.host, first.host);
	const clock = await second.raw('GET /clock');
	await clock.received(/data: 0/, WAIT);
	await other.destroy();
	await within(WAIT, 'the clock ends', clock.closed);
	assert.equal((await second.get('/')).status, 404);
	await other.out('true'); // the same id again
	await serve(other, 8000);
	assert.equal((await second.get('/')).status, 404);
});

/** Exposes a port while its sandbox is being destroyed; whether it still was. */
async function exposedLate(t) {
	const other = await daemon.box();
	await serve(other, 8000);
	const made = await expose(other, 8000);
	t.after(() => made.close());
	assert.equal((await made.get('/', { deadline: 120_000 })).status, 200);
	const [pid] = daemon.programs('silt-preview');
	const where = `/v1/sandboxes/${other.id}/ports`;
	let ended = false;
	process.kill(pid, 'SIGSTOP'); // it is asked to cut the visitors, and destroy waits for it, two seconds at most
	try {
		const gone = other.destroy().then(() => { ended = true; });
		await until('it is being destroyed', async () => (await daemon.api('GET', where)).body.count !== 1, WAIT);
		const late = await daemon.api('POST', where, { port: 8001 });
		const inTime = !ended;
		assert.equal(late.status, 404, late.raw.toString());
		await gone;
		return inTime;
	} finally {
		process.kill(pid, 'SIGCONT');
	}
}

test('nothing of a sandbox that is being destroyed is exposed', async t => {
	let inTime = false;
	for (let tries = 0; tries < 5 && !inTime; tries++) // a busy machine may be too late
		inTime = await exposedLate(t);
	assert.ok(inTime);
});

test('siltd may die: what passes goes on, and new requests wait for the next', async () => {
	const raw = await preview.raw('GET /ws', 'Connection: Upgrade\r\nUpgrade: x\r\n');
	await raw.received(/101/, WAIT);
	const old = daemon.siltd();
	process.kill(old, 'SIGKILL');
	raw.send('still here\n');
	await raw.received(/STILL HERE/, WAIT);
	const other = await within(WAIT, 'an answer', preview.get('/meanwhile'));
	assert.equal(other.body, 'hello from /meanwhile');
	await until('another siltd', () => daemon.programs('siltd').some(pid => pid !== old), WAIT);
	await daemon.healthy();
	raw.send('and on\n');
	await raw.received(/AND ON/, WAIT);
	raw.destroy();
	assert.equal((await preview.get('/then')).status, 200);
});

test('silt-preview may die: the next one serves', async () => {
	const [old] = daemon.programs('silt-preview');
	process.kill(old, 'SIGKILL');
	preview.close();
	await until('an answer', async () => (await preview.get('/back')).body === 'hello from /back', WAIT);
});
