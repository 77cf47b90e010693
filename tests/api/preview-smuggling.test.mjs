// SPDX-License-Identifier: Apache-2.0
// Requests that two servers could read in two ways, sent through a preview to a real node server and to a real nginx: neither ever sees
// a request that nobody sent, and no visitor gets an answer that is another's. What the proxy writes is all that a service hears, so
// there is no single protection to take away here: what services make of these bytes without it is shown by the last test.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { requests } from '../lib/malformed.mjs';
import { expose, serve } from '../lib/preview.mjs';
import { startNginx, write } from '../lib/servers.mjs';
import { until } from '../lib/wait.mjs';

const WAIT = 120_000;
let daemon, box, node, nginx, upstreams;

before(async () => {
	daemon = await startDaemon({ flags: { 'preview.wait_ms': 120_000 } });
	box = await daemon.box(undefined, { image: 'host' });
	await serve(box, 8000);
	await startNginx(box, 8001);
	node = await expose(box, 8000);
	nginx = await expose(box, 8001);
	const read = async () => (await box.out('cat /tmp/nginx/requests; : > /tmp/nginx/requests')).split('\n').filter(Boolean);
	upstreams = {
		node: { preview: node, seen: collect(async () => (await node.get('/seen')).body) },
		nginx: { preview: nginx, seen: collect(read) },
	};
	for (const { preview, seen } of Object.values(upstreams)) {
		assert.equal((await preview.get('/here', { deadline: WAIT })).body, 'hello from /here');
		await seen(['GET /here']);
	}
});
after(async () => {
	node?.close();
	nginx?.close();
	await daemon?.stop();
});

/** What a service has seen since the last time, once these are among it: nginx writes its lines when a request is over. */
function collect(read) {
	return async wanted => {
		const lines = [];
		await until('all requests are seen', async () => {
			lines.push(...await read());
			return lines.length >= wanted.length && wanted.every(line => lines.includes(line));
		}, WAIT);
		return lines;
	};
}

/** A whole request inside a body. */
const inner = host => `GET /smuggled HTTP/1.1\r\nHost: ${host}\r\nX: y\r\n\r\n`;
const chunk = text => `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;

/** Honest requests whose body looks like another request, and odd ways to say how long it is: [text, what the service sees]. */
function hiding(host) {
	const body = inner(host);
	const post = (fields, rest) => `POST /post HTTP/1.1\r\nHost: ${host}\r\n${fields}\r\n${rest}`;
	const length = `Content-Length: ${body.length}\r\n`;
	return {
		'a request in a body with a length': [post(length, body), 'POST /post'],
		'a request in a chunk': [post('Transfer-Encoding: chunked\r\n', chunk(body)), 'POST /post'],
		'a request in the body of a GET': [`GET /get HTTP/1.1\r\nHost: ${host}\r\n${length}\r\n${body}`, 'GET /get'],
		'a request in the body of a HEAD': [`HEAD /head HTTP/1.1\r\nHost: ${host}\r\n${length}\r\n${body}`, 'HEAD /head'],
		'a request in the body of an OPTIONS': [`OPTIONS /options HTTP/1.1\r\nHost: ${host}\r\n${length}\r\n${body}`, 'OPTIONS /options'],
		'Connection names Content-Length': [post(`Connection: content-length\r\n${length}`, body), 'POST /post'],
		'Connection names Transfer-Encoding': [post('Connection: keep-alive, Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n', chunk(body)), 'POST /post'],
		'Connection names Host': [post(`Connection: host\r\n${length}`, body), 'POST /post'],
		'a body that was to be asked for first': [post(`Expect: 100-continue\r\n${length}`, body), 'POST /post'],
		'an upgrade that nobody takes up': [`GET /get HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: nothing\r\n${length}\r\n${body}`, 'GET /get'],
		'a length with zeros before it': [post(`Content-Length: 000${body.length}\r\n`, body), 'POST /post'],
		'trailers that look like a request': [post('Transfer-Encoding: chunked\r\n', `1\r\nx\r\n0\r\nGET: /smuggled\r\n\r\n`), 'POST /post'],
	};
}

/** In one piece, or the head first and the rest when that has had time to arrive. */
async function say(raw, text, pieces) {
	const end = text.indexOf('\r\n\r\n') + 4;
	raw.socket.setNoDelay(true);
	if (pieces === 1 || end < 4)
		return raw.send(Buffer.from(text, 'latin1'));
	raw.send(Buffer.from(text.slice(0, end), 'latin1'));
	await new Promise(resolve => setTimeout(resolve, 2));
	raw.send(Buffer.from(text.slice(end), 'latin1'));
}

for (const name of ['node', 'nginx'])
	for (const pieces of [1, 2])
		test(`${name} sees what was sent and nothing else, in ${pieces === 1 ? 'one piece' : 'pieces'}`, async () => {
			const { preview, seen } = upstreams[name];
			const { host } = preview;
			const { refused } = requests({ host, get: '/fine', path: '/post' });
			const last = where => `GET ${where} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
			const expected = [];
			await seen([]);
			let count = 0;
			const visit = async () => { // somebody else, whose connection to the service may be one that was used before
				const where = `/visitor-${++count}`;
				expected.push(`GET ${where}`);
				assert.equal((await preview.get(where, { deadline: WAIT })).body, `hello from ${where}`);
			};
			for (const [what, [text, line]] of Object.entries(hiding(host))) {
				const raw = await preview.client.raw();
				await say(raw, text + last('/then'), pieces);
				const { text: got, closed } = await raw.answer(WAIT);
				const statuses = got.match(/HTTP\/1\.1 \d\d\d /g).filter(status => !status.includes(' 100 '));
				assert.ok(closed, what);
				const early = pieces === 2 && statuses.length === 1; // answered before the body came: then the connection is at its end
				assert.deepEqual(statuses, Array(early ? 1 : 2).fill('HTTP/1.1 200 '), `${what}: ${got}`);
				assert.equal(got.endsWith('hello from /then'), !early, what);
				expected.push(line, ...early ? [] : ['GET /then']);
				await visit();
			}
			assert.deepEqual((await seen(expected)).sort(), expected.sort(), 'each request once, and no other');
			expected.length = 0;
			const heads = new Set(['POST /post']); // of a request whose body is found wrong later
			for (const [what, text] of Object.entries(refused)) {
				const raw = await preview.client.raw();
				await say(raw, text + last('/smuggled'), pieces);
				const answer = await raw.answer(WAIT);
				assert.ok(answer.closed, what);
				assert.ok(answer.answers <= 1 && !answer.text.includes('smuggled'), `${what}: ${answer.text.slice(0, 600)}`);
				await visit();
			}
			expected.push('GET /end');
			assert.equal((await preview.get('/end')).status, 200);
			const lines = await seen(expected);
			assert.deepEqual(lines.filter(line => !heads.has(line)), expected, 'visitors, each once');
			assert.ok(lines.filter(line => heads.has(line)).length <= Object.keys(refused).length);
		});

/** Sends each text straight to a service, inside: how many requests it took for good. */
const STRAIGHT = `const net = require('node:net');
const texts = JSON.parse(require('node:fs').readFileSync('/tmp/texts.json', 'utf8'));
const ask = (port, text) => new Promise(resolve => {
	const socket = net.connect(port, '127.0.0.1');
	let got = '';
	socket.on('data', bytes => { got += bytes.toString('latin1'); });
	socket.on('error', () => {});
	socket.on('close', () => resolve((got.match(/HTTP\\/1\\.1 200 /g) ?? []).length));
	socket.setTimeout(20000, () => socket.destroy());
	socket.end(Buffer.from(text, 'latin1'));
});
(async () => console.log(JSON.stringify(await Promise.all(texts.map(text => Promise.all([8000, 8001].map(port => ask(port, text))))))))();
`;

test('without a proxy between, the two services take several of these differently', async () => {
	const last = 'GET /smuggled HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
	const table = Object.entries(requests({ host: 'x', get: '/fine', path: '/post' }).refused).filter(([, text]) => text.length < 1000);
	await write(box, '/tmp/texts.json', JSON.stringify(table.map(([, text]) => text + last)));
	await write(box, '/tmp/straight.cjs', STRAIGHT);
	const counts = JSON.parse(await box.out('node /tmp/straight.cjs', {}, { deadline: WAIT }));
	const differ = table.filter((_, i) => counts[i][0] !== counts[i][1]).map(([what]) => what);
	assert.ok(differ.length >= 3, JSON.stringify(table.map(([what], i) => [what, ...counts[i]])));
});
