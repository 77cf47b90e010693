// SPDX-License-Identifier: Apache-2.0
// Ports, previews, WebSockets and terminals.

import assert from 'node:assert/strict';
import { switchPort } from '@cloudflare/containers';
import { proxyTerminal, proxyToSandbox } from '@cloudflare/sandbox';
import { rejects, stopped, until, within } from './lib.mjs';

/** Says back what it is sent, by HTTP and by WebSocket. */
const ECHO = `const http = require('http'), { createHash } = require('crypto');
const slow = r => { r.write('first\\n'); const look = setInterval(() => { if (!require('fs').existsSync('/tmp/go')) return; clearInterval(look); r.end('last\\n'); }, 50); };
const server = http.createServer((q, r) => {
	if (q.url === '/slow') return slow(r);
	if (q.url === '/moved') return r.writeHead(302, { location: '/elsewhere' }).end();
	const all = []; q.on('data', d => all.push(d)).on('end', () => r.setHeader('set-cookie', ['a=1', 'b=2']).end(JSON.stringify({ method: q.method, url: q.url, headers: q.headers, body: Buffer.concat(all).toString() }))); });
server.on('upgrade', (q, s) => {
	const accept = createHash('sha1').update(q.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64');
	s.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: ' + accept + '\\r\\n\\r\\n');
	s.on('error', () => {}).on('data', d => {
		const kind = d[0] & 15, size = d[1] & 127, mask = d.subarray(2, 6), text = Buffer.from(d.subarray(6, 6 + size).map((b, i) => b ^ mask[i & 3]));
		s.write(Buffer.concat([Buffer.from([d[0], size]), text]));
		if (kind === 8) s.end();
	});
});
server.listen(8080, '127.0.0.1', () => console.log('listening'));`;

async function serve(sandbox) {
	await sandbox.writeFile('/workspace/echo.cjs', ECHO);
	const process = await sandbox.startProcess('node /workspace/echo.cjs');
	await process.waitForLog('listening', 30_000);
}

export async function exposePort(sandbox, { host }) {
	const exposed = await sandbox.exposePort(8080, { hostname: host, name: 'web' });
	assert.equal(exposed.port, 8080);
	assert.match(exposed.url, /^http:\/\/8080-[a-z0-9_-]+\./);
	assert.equal(await sandbox.isPortExposed(8080), true);
	assert.deepEqual((await sandbox.getExposedPorts(host)).map(p => [p.port, p.url]), [[8080, exposed.url]]);
	const token = /-([a-z0-9_]+)$/.exec(new URL(exposed.url).hostname.split('.')[0])[1];
	assert.equal(await sandbox.validatePortToken(8080, token), true);
	assert.equal(await sandbox.validatePortToken(8080, 'wrong'), false);
	await sandbox.unexposePort(8080);
	assert.equal(await sandbox.isPortExposed(8080), false);
	await sandbox.unexposePort(8080);
	await rejects(sandbox.exposePort(80, { hostname: host }), 'SandboxSecurityError');
	await rejects(sandbox.exposePort(3000, { hostname: host }), 'SandboxSecurityError');
	await rejects(sandbox.exposePort(8080, { hostname: 'app.workers.dev' }), 'CUSTOM_DOMAIN_REQUIRED');
	assert.equal(await sandbox.isPortExposed(3000), false);
}

export async function portTokens(sandbox, { host }) {
	const first = await sandbox.exposePort(8080, { hostname: host, token: 'chosen_1' });
	assert.match(first.url, /-chosen_1\./);
	assert.equal((await sandbox.exposePort(8080, { hostname: host })).url, first.url);
	await assert.rejects(sandbox.exposePort(8081, { hostname: host, token: 'chosen_1' }));
	await assert.rejects(sandbox.exposePort(8081, { hostname: host, token: 'Not good' }));
	await sandbox.exposePort(8081, { hostname: host, token: 'second' });
	assert.deepEqual((await sandbox.getExposedPorts(host)).map(({ port, status }) => [port, status]), [[8080, 'active'], [8081, 'active']]);
	await sandbox.exposePort(8080, { hostname: host, token: 'changed' });
	assert.deepEqual([await sandbox.validatePortToken(8080, 'chosen_1'), await sandbox.validatePortToken(8080, 'changed')], [false, true]);
}

export async function previews(sandbox, { env, host }) {
	await serve(sandbox);
	const { url } = await sandbox.exposePort(8080, { hostname: host });
	const answer = await proxyToSandbox(new Request(`${url}a/b?c=d`, { method: 'POST', body: 'text' }), env);
	assert.equal(answer.status, 200);
	const { method, url: path, body } = await answer.json();
	assert.deepEqual([method, path, body], ['POST', '/a/b?c=d', 'text']);
	assert.equal(answer.headers.getSetCookie().length, 2);
	const wrong = url.replace(/-[a-z0-9_]+\./, '-aaaaaaaaaaaaaaaa.');
	const refused = await proxyToSandbox(new Request(wrong), env);
	assert.deepEqual([refused.status, (await refused.json()).code], [404, 'INVALID_TOKEN']);
	assert.equal(await proxyToSandbox(new Request('http://localhost/'), env), null);
	assert.equal(await proxyToSandbox(new Request(url.replace('8080-', '3000-')), env), null);
	const moved = await proxyToSandbox(new Request(`${url}moved`, { redirect: 'manual' }), env);
	assert.deepEqual([moved.status, moved.headers.get('location')], [302, '/elsewhere']);
}

export async function previewHeaders(sandbox, { env, host, id }) {
	await serve(sandbox);
	const { url } = await sandbox.exposePort(8080, { hostname: host });
	const { headers } = await (await proxyToSandbox(new Request(`${url}x`, { headers: { 'x-own': 'kept' } }), env)).json();
	assert.deepEqual(['x-own', 'x-original-url', 'x-forwarded-host', 'x-forwarded-proto', 'x-sandbox-name'].map(name => headers[name]), ['kept', `${url}x`, new URL(url).hostname, 'http', id]);
}

export async function previewStreams(sandbox, { env, host }) {
	await serve(sandbox);
	const { url } = await sandbox.exposePort(8080, { hostname: host });
	const answer = await proxyToSandbox(new Request(`${url}slow`), env);
	const reader = answer.body.getReader();
	assert.equal(new TextDecoder().decode((await within('the first piece', reader.read())).value), 'first\n');
	await sandbox.writeFile('/tmp/go', ''); // the rest comes only now
	assert.equal(new TextDecoder().decode((await within('the rest', reader.read())).value), 'last\n');
}

export async function previewsOfAnEarlierRun(sandbox, { env, host }) {
	await serve(sandbox);
	const { url } = await sandbox.exposePort(8080, { hostname: host });
	await sandbox.stop();
	await stopped(sandbox);
	const stale = await proxyToSandbox(new Request(url), env);
	assert.deepEqual([stale.status, (await stale.json()).code], [410, 'STALE_PREVIEW_URL']);
	assert.ok((await sandbox.getState()).status.startsWith('stopped')); // it was not woken
	assert.equal(await sandbox.isPortExposed(8080), false);
	await serve(sandbox);
	assert.equal((await sandbox.exposePort(8080, { hostname: host })).url, url);
	assert.equal((await proxyToSandbox(new Request(url), env)).status, 200);
}

const upgrade = url => new Request(url, { headers: { upgrade: 'websocket', connection: 'Upgrade', 'sec-websocket-version': '13', 'sec-websocket-key': btoa('0123456789abcdef') } });

async function talk(answer) {
	assert.equal(answer.status, 101);
	const socket = answer.webSocket;
	socket.accept();
	const said = new Promise(resolve => socket.addEventListener('message', event => resolve(event.data)));
	const closed = new Promise(resolve => socket.addEventListener('close', event => resolve([event.code, event.reason])));
	socket.send('over there');
	assert.equal(await within('the echo', said), 'over there');
	socket.close(4321, 'done');
	assert.deepEqual(await within('the end', closed), [4321, 'done']);
}

export async function wsConnect(sandbox) {
	await serve(sandbox);
	await talk(await sandbox.wsConnect(upgrade('http://localhost/ws'), 8080));
	await rejects(sandbox.wsConnect(upgrade('http://localhost/ws'), 3000), 'SandboxSecurityError');
}

export async function previewWebSocket(sandbox, { env, host }) {
	await serve(sandbox);
	const { url } = await sandbox.exposePort(8080, { hostname: host });
	await talk(await proxyToSandbox(upgrade(url), env));
}

export async function containerFetch(sandbox) {
	await serve(sandbox);
	const answer = await sandbox.containerFetch('http://localhost/deep?x=1', { method: 'PUT', body: 'b' }, 8080);
	const { method, url, body } = await answer.json();
	assert.deepEqual([method, url, body], ['PUT', '/deep?x=1', 'b']);
	assert.equal((await sandbox.containerFetch('http://localhost/api/ping')).status, 200); // port 3000
}

export async function fetchThrough(sandbox) {
	await serve(sandbox);
	const answer = await sandbox.fetch(new Request('http://localhost/proxy/8080/a?b'));
	assert.equal((await answer.json()).url, '/proxy/8080/a?b');
	assert.equal((await sandbox.fetch(new Request('http://localhost/api/ping'))).status, 200);
	await talk(await sandbox.fetch(switchPort(upgrade('http://localhost/ws'), 8080)));
}

/** A terminal at the other end of a WebSocket. */
async function screen(answer) {
	assert.equal(answer.status, 101);
	const socket = answer.webSocket;
	socket.accept();
	socket.binaryType = 'arraybuffer';
	const told = { shown: '', messages: [] };
	socket.addEventListener('message', ({ data }) => {
		if (typeof data === 'string')
			told.messages.push(JSON.parse(data));
		else
			told.shown += new TextDecoder().decode(data);
	});
	const message = type => until(type, () => told.messages.find(m => m.type === type));
	await message('ready');
	return {
		message,
		type: text => socket.send(new TextEncoder().encode(text)),
		resize: (cols, rows) => socket.send(JSON.stringify({ type: 'resize', cols, rows })),
		shows: text => until(`${text} on the screen`, () => told.shown.includes(text)),
		close: () => socket.close(1000),
	};
}

async function type(answer, line, wanted) {
	const terminal = await screen(answer);
	terminal.type(line);
	await terminal.shows(wanted);
	terminal.resize(101, 33);
	terminal.type('stty size\r');
	await terminal.shows('33 101');
	terminal.close();
}

export async function terminal(sandbox) {
	await type(await sandbox.terminal(upgrade('http://localhost/'), { cols: 80, rows: 24 }), 'echo $((40 + 2))\r', '42');
}

export async function terminalLives(sandbox) {
	const open = () => sandbox.terminal(upgrade('http://localhost/'), { cols: 91, rows: 21 });
	const first = await screen(await open());
	first.type('stty size; echo $TERM; MARK=$((1000 + 7))\r');
	await first.shows('21 91');
	await first.shows('xterm-256color');
	first.resize(0, 5);
	await first.message('error');
	first.close();
	const second = await screen(await open());
	await second.shows('21 91'); // what was shown before
	second.type('echo mark $MARK\r');
	await second.shows('mark 1007');
	second.type('exit 6\r');
	assert.equal((await second.message('exit')).code, 6);
	await assert.rejects(async () => sandbox.terminal(new Request('http://localhost/')), /websocket/i);
}

export async function terminalOfSession(sandbox) {
	const session = await sandbox.createSession({ id: 'term', cwd: '/usr/lib' });
	await type(await session.terminal(upgrade('http://localhost/')), 'pwd\r', '/usr/lib');
}

export async function terminalByProxy(sandbox, { env, id }) {
	await sandbox.exec('true');
	const stub = env.Sandbox.get(env.Sandbox.idFromName(id));
	await type(await proxyTerminal(stub, 'elsewhere', upgrade('http://localhost/')), 'echo $((50 + 2))\r', '52');
	await assert.rejects(async () => proxyTerminal(stub, '', upgrade('http://localhost/')), /session/i);
	await assert.rejects(async () => proxyTerminal(stub, 'elsewhere', new Request('http://localhost/')), /websocket/i);
}
