// SPDX-License-Identifier: Apache-2.0
// Ports, previews, WebSockets and terminals.

import assert from 'node:assert/strict';
import { proxyTerminal, proxyToSandbox } from '@cloudflare/sandbox';
import { until, within } from './lib.mjs';

/** Says back what it is sent, by HTTP and by WebSocket. */
const ECHO = `const http = require('http'), { createHash } = require('crypto');
const server = http.createServer((q, r) => { const all = []; q.on('data', d => all.push(d)).on('end', () => r.setHeader('set-cookie', ['a=1', 'b=2']).end(JSON.stringify({ method: q.method, url: q.url, host: q.headers['x-forwarded-host'], body: Buffer.concat(all).toString() }))); });
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
	await assert.rejects(sandbox.exposePort(80, { hostname: host }));
	await assert.rejects(sandbox.exposePort(3000, { hostname: host }));
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
	assert.equal((await proxyToSandbox(new Request(wrong), env)).status, 404);
	return { url }; // the test asks for it from outside, too
}

const upgrade = url => new Request(url, { headers: { upgrade: 'websocket', connection: 'Upgrade', 'sec-websocket-version': '13', 'sec-websocket-key': btoa('0123456789abcdef') } });

async function talk(answer) {
	assert.equal(answer.status, 101);
	const socket = answer.webSocket;
	socket.accept();
	const said = new Promise(resolve => socket.addEventListener('message', event => resolve(event.data)));
	socket.send('over there');
	assert.equal(await within('the echo', said), 'over there');
	socket.close(1000, 'done');
}

export async function wsConnect(sandbox) {
	await serve(sandbox);
	await talk(await sandbox.wsConnect(upgrade('http://localhost/ws'), 8080));
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
}

async function type(answer, line, wanted) {
	assert.equal(answer.status, 101);
	const socket = answer.webSocket;
	socket.accept();
	socket.binaryType = 'arraybuffer';
	let shown = '', ready = false;
	socket.addEventListener('message', ({ data }) => {
		if (typeof data === 'string')
			ready ||= JSON.parse(data).type === 'ready';
		else
			shown += new TextDecoder().decode(data);
	});
	await until('ready', () => ready);
	socket.send(new TextEncoder().encode(line));
	await until(`${wanted} on the screen`, () => shown.includes(wanted));
	socket.send(JSON.stringify({ type: 'resize', cols: 101, rows: 33 }));
	socket.send(new TextEncoder().encode('stty size\r'));
	await until('the new size', () => shown.includes('33 101'));
	socket.close(1000);
}

export async function terminal(sandbox) {
	await type(await sandbox.terminal(upgrade('http://localhost/'), { cols: 80, rows: 24 }), 'echo $((40 + 2))\r', '42');
}

export async function terminalOfSession(sandbox) {
	const session = await sandbox.createSession({ id: 'term', cwd: '/usr/lib' });
	await type(await session.terminal(upgrade('http://localhost/')), 'pwd\r', '/usr/lib');
}

export async function terminalByProxy(sandbox, { env, id }) {
	await sandbox.exec('true');
	const stub = env.Sandbox.get(env.Sandbox.idFromName(id));
	await type(await proxyTerminal(stub, 'elsewhere', upgrade('http://localhost/')), 'echo $((50 + 2))\r', '52');
}
