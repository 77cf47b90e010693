// SPDX-License-Identifier: Apache-2.0
// Real programs behind previews: a Vite dev server with hot reload in a real browser, and a WebSocket server that others wrote.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { openBrowser, picture } from '../lib/browser.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { expose } from '../lib/preview.mjs';
import { launch, putPackages, write } from '../lib/servers.mjs';
import { until } from '../lib/wait.mjs';
import { frame, Socket } from '../lib/ws.mjs';

const WAIT = 120_000;
const APP = '/workspace/app';
const ECHO = `const { WebSocketServer } = require('ws');
const server = new WebSocketServer({ host: '127.0.0.1', port: 8090, perMessageDeflate: true, maxPayload: 16 << 20 });
server.on('connection', (socket, request) => {
	socket.send(JSON.stringify({ host: request.headers.host, origin: request.headers.origin, deflate: socket.extensions }));
	socket.on('message', (bytes, binary) => String(bytes) === 'leave' ? socket.close(4001, 'as you wish') : socket.send(bytes, { binary }));
});`;

let daemon, strict, box, echo;
before(async () => {
	daemon = await startDaemon({ flags: { 'preview.wait_ms': 120_000 } });
	box = await daemon.box();
	await putPackages(box, APP);
	await write(box, `${APP}/echo.cjs`, ECHO);
	await launch(box, `cd ${APP} && node echo.cjs`, 'echo');
	echo = await expose(box, 8090);
});
after(async () => {
	echo?.close();
	await daemon?.stop();
	await strict?.stop();
});

/** A page whose text comes from a module that can be replaced while it is open. */
async function startVite(sandbox) {
	await write(sandbox, `${APP}/index.html`, '<!doctype html><title>Vite</title><p id="text"></p><script type="module" src="/main.js"></script>\n');
	await write(sandbox, `${APP}/main.js`, `import { text } from './text.js';
const show = value => { document.getElementById('text').textContent = value; };
show(text);
import.meta.hot.accept('./text.js', fresh => show(fresh.text));
`);
	await write(sandbox, `${APP}/text.js`, "export const text = 'first';\n");
	await launch(sandbox, `cd ${APP} && node node_modules/vite/bin/vite.js --host 127.0.0.1 --port 5173 --strictPort`, 'vite');
	return expose(sandbox, 5173);
}

test('a page of a Vite dev server changes in the browser when its file does, without being loaded again', async t => {
	const site = await startVite(box);
	t.after(() => site.close());
	const browser = await openBrowser(t);
	const page = await browser.newPage();
	page.setDefaultTimeout(WAIT);
	const said = [], wrong = [];
	page.on('console', message => said.push(message.text()));
	page.on('pageerror', error => wrong.push(String(error)));
	await page.goto(site.url.href);
	const shows = text => page.waitForFunction(wanted => document.getElementById('text').textContent === wanted, text);
	await shows('first');
	await until('the socket of hot reload', () => said.some(line => line.includes('[vite] connected')), WAIT);
	await page.evaluate(() => { window.sameDocument = true; });
	await write(box, `${APP}/text.js`, "export const text = 'second';\n");
	await shows('second');
	assert.equal(await page.evaluate(() => window.sameDocument), true, 'it is the same document');
	await picture(page, 'vite');
	const heard = await page.evaluate(url => new Promise((resolve, reject) => {
		const socket = new WebSocket(url);
		const lines = [];
		socket.onmessage = event => {
			lines.push(event.data);
			socket.send(lines.length < 3 ? `line ${lines.length}` : 'leave');
		};
		socket.onclose = event => resolve({ lines, code: event.code, reason: event.reason });
		socket.onerror = () => reject(new Error('the socket failed'));
	}), echo.url.href.replace('http', 'ws'));
	const [hello, ...rest] = heard.lines;
	assert.deepEqual(rest, ['line 1', 'line 2']);
	assert.deepEqual([heard.code, heard.reason], [4001, 'as you wish']);
	assert.deepEqual(JSON.parse(hello), { host: echo.host, origin: site.url.origin, deflate: 'permessage-deflate' });
	assert.deepEqual(wrong, []);
});

test('a server of the package ws echoes any message, answers pings and ends with its own code', async t => {
	const socket = await Socket.open({ address: echo.host, client: echo.client }, '/', { token: false });
	t.after(() => socket.destroy());
	assert.equal((await socket.json(WAIT)).host, echo.host);
	for (const size of [0, 125, 126, 65_535, 65_536, 3_000_000]) {
		const bytes = randomBytes(size);
		socket.send(bytes);
		const answer = await socket.next(WAIT);
		assert.equal(answer.op, 'binary');
		assert.ok(answer.payload.equals(bytes), `${size} bytes`);
	}
	socket.say(frame('text', 'in ', { fin: false }), frame('ping', 'are you there'), frame('continue', 'pieces'));
	const answers = [await socket.next(WAIT), await socket.next(WAIT)].map(one => `${one.op} ${one.payload}`);
	assert.deepEqual(answers.sort(), ['pong are you there', 'text in pieces']);
	socket.send('leave');
	assert.deepEqual(await socket.closed(WAIT), { code: 4001, reason: 'as you wish' });
	const rude = await Socket.open({ address: echo.host, client: echo.client }, '/', { token: false });
	await rude.json(WAIT);
	rude.say(frame('text', 'not masked', { mask: false }));
	assert.equal((await rude.closed(WAIT)).code, 1002, 'what is wrong is for the service to say');
});

test('a strict dev server is told that it is on localhost, where that is wished', async t => {
	strict = await startDaemon({ flags: { 'preview.wait_ms': 120_000, 'preview.localhost_host': 'on', 'preview.domain': 'previews.example.test' } });
	const other = await strict.box(t, {});
	await putPackages(other, APP);
	const site = await startVite(other);
	t.after(() => site.close());
	const answer = await site.get('/text.js', { deadline: WAIT });
	assert.equal(answer.status, 200, answer.raw.toString());
	assert.match(answer.body, /first/);
	assert.equal((await other.out(`curl -s -o /dev/null -w '%{http_code}' -H 'Host: ${site.host}' http://127.0.0.1:5173/text.js`)).trim(), '403', 'it refuses other names');
});
