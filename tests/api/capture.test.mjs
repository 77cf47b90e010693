// SPDX-License-Identifier: Apache-2.0
// The way out of containers: everything is offered to the program of their sidecar, which decides.

import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { connect, Engine, newName, raw, talk } from '../lib/engine.mjs';
import { processInfo } from '../lib/host.mjs';
import { Internet, NETWORK, PUBLIC } from '../lib/internet.mjs';
import { until, within } from '../lib/wait.mjs';
import { answer, pass, web, Worker } from '../lib/worker.mjs';

const STRANGER = { uid: 12_345, gid: 12_345 };
const BROKEN = [7, 35, 52, 55, 56]; // of curl: the connection was reset, at one moment or another
let internet, daemon, engine;
before(async () => {
	internet = await Internet.start();
	daemon = await startDaemon({ flags: { ...NETWORK.flags, 'engine.mode': '0660', 'engine.group': STRANGER.gid } });
	engine = new Engine(daemon);
});
after(async () => {
	await daemon?.stop();
	internet?.stop();
});

const echo = (_, socket) => socket.on('end', () => socket.end()).pipe(socket, { end: false });

/** A container, its sidecar, and a worker that decides. */
async function start(t, on = { '*': web() }) {
	const worker = await Worker.start(on);
	t.after(() => worker.stop().catch(() => {}));
	const app = await engine.app(t);
	const box = { ...app, worker };
	await put(box, { port: worker.port, dns: { allowHostnames: ['*'] }, internet: { enabled: true } });
	return box;
}

const ask = (box, head, body = '') => raw({ port: box.port, host: '127.0.0.1' }, `${head} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);

async function put(box, settings) {
	assert.match((await ask(box, 'PUT /egress', JSON.stringify(settings))).toString(), /^HTTP\/1\.1 204 /);
}

async function certificate(box) {
	const said = (await ask(box, 'GET /ca')).toString();
	assert.match(said, /^HTTP\/1\.1 200 /);
	return said.slice(said.indexOf('\r\n\r\n') + 4);
}

/** A command in the container: {exitCode, stdout, stderr}. */
async function run(box, command) {
	const { status, socket } = await connect(box.port);
	assert.equal(status, 200);
	try {
		const { json } = await talk(socket, 'POST', '/api/execute', { command });
		return json;
	} finally {
		socket.destroy();
	}
}

async function out(box, command) {
	const done = await run(box, command);
	assert.equal(done.exitCode, 0, `${command}: ${done.stdout}${done.stderr}`);
	return done.stdout;
}

const curl = (url, more = '') => `curl -sS -m 20 ${more} ${url}`;

/** At once: not by curl's own deadline. */
async function breaks(box, url) {
	const { exitCode, stderr } = await run(box, curl(url));
	assert.ok(BROKEN.includes(exitCode), `${url}: ${exitCode} ${stderr}`);
}

async function trust(box) {
	const pem = await certificate(box);
	await out(box, `cat > /tmp/ca.pem <<'END'\n${pem}END`);
	return '--cacert /tmp/ca.pem';
}

async function kill(name) {
	const old = daemon.programs(name);
	for (const pid of old)
		process.kill(pid, 'SIGKILL');
	await until(`another ${name}`, () => daemon.programs(name).filter(pid => !old.includes(pid)).length === old.length);
	await daemon.healthy();
}

test('HTTP is offered with its host, by address and by a name that exists nowhere', async t => {
	const box = await start(t);
	assert.deepEqual(JSON.parse(await out(box, curl(`http://${PUBLIC[4]}/a`, '-H "Host: some.example"'))), { target: `${PUBLIC[4]}:80`, port: 80, hostname: 'some.example', request: 'GET /a HTTP/1.1' });
	assert.deepEqual(JSON.parse(await out(box, curl('http://no-such-name.nowhere/b', '-4'))), { target: '11.0.0.1:80', port: 80, hostname: 'no-such-name.nowhere', request: 'GET /b HTTP/1.1' });
	assert.equal(JSON.parse(await out(box, curl(`http://[${PUBLIC[6]}]:8080/`))).target, `[${PUBLIC[6]}]:8080`);
});

const count = async name => Number((await daemon.api('GET', '/metrics')).raw.toString().match(new RegExp(`^${name} (\\d+)$`, 'm'))[1]);

test('a container of an image that had one is ready before it is asked for', async t => {
	await start(t);
	const claims = await count('silt_sandbox_claims_total');
	await until('one is taken that was ready', async () => {
		const box = await start(t);
		assert.equal(JSON.parse(await out(box, curl('http://another.nowhere/', '-4'))).hostname, 'another.nowhere', 'its own worker is asked');
		return await count('silt_sandbox_claims_total') > claims;
	});
});

test('HTTPS is spoken in the server\'s place, with the authority of the sidecar', async t => {
	const box = await start(t);
	const ca = await trust(box);
	const parsed = new X509Certificate(await certificate(box));
	assert.ok(parsed.ca);
	assert.equal(parsed.publicKey.asymmetricKeyDetails.namedCurve, 'prime256v1');
	const said = JSON.parse(await out(box, curl('https://secret.nowhere/x', `-4 ${ca}`)));
	assert.deepEqual(said, { target: '11.0.0.1:443', port: 443, sni: 'secret.nowhere', request: 'GET /x HTTP/1.1' });
	assert.equal((await run(box, curl('https://secret.nowhere/x', '-4'))).exitCode, 60, 'nobody trusts it without being told');
	const other = await start(t);
	assert.notEqual(await certificate(other), await certificate(box), 'each sidecar has its own');
});

test('TLS that the worker does not want to read passes as it is', async t => {
	const box = await start(t, { '*': (offer, socket) => pass(443, PUBLIC[4])(offer, socket) });
	const ca = await trust(box);
	const { exitCode } = await run(box, curl('https://www.example.test/', `${ca} --resolve www.example.test:443:${PUBLIC[4]}`));
	assert.notEqual(exitCode, 0, 'that is not our certificate');
	assert.equal(box.worker.offers.at(-1).sni, 'www.example.test');
});

test('a server may speak first', async t => {
	const box = await start(t, { 25: answer(200, (_, socket) => {
		socket.write('220 mail ready\r\n');
		socket.once('data', line => socket.end(`250 ${line}`)).resume();
	}) });
	assert.equal(await out(box, `exec 3<>/dev/tcp/${PUBLIC[4]}/25; read -r -t 20 line <&3; echo "$line"; printf 'EHLO me\\r\\n' >&3; timeout 20 cat <&3`), '220 mail ready\r\n250 EHLO me\r\n');
	assert.equal(box.worker.offers[0].sni ?? box.worker.offers[0].hostname, undefined);
});

test('what the worker refuses is reset, and so is everything when there is none', async t => {
	const box = await start(t, { 80: web(), 81: answer(400), 82: answer(500) });
	for (const port of [81, 82])
		await breaks(box, `http://${PUBLIC[4]}:${port}/`);
	await box.worker.stop();
	await breaks(box, `http://${PUBLIC[4]}/`);
	const again = await Worker.start({ '*': web() });
	t.after(() => again.stop());
	await put(box, { port: again.port });
	assert.equal(JSON.parse(await out(box, curl(`http://${PUBLIC[4]}/`))).port, 80, 'a new worker is used from the answer on');
});

/** A program of another user than root, where the one of the sidecar was; what it is told comes back at its end. */
async function intrude(t, port) {
	const text = `
import socket
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(('127.0.0.1', ${port}))
s.listen(8)
print('listening', flush=True)
c, _ = s.accept()
got = b''
while b'\\r\\n\\r\\n' not in got:
    got += c.recv(65536)
c.sendall(b'HTTP/1.1 200 OK\\r\\n\\r\\n')
try:
    got = c.recv(65536)
except ConnectionResetError:
    got = b''
print('told:' + repr(got), flush=True)
`;
	const child = spawn('python3', ['-c', text], { ...STRANGER, stdio: ['ignore', 'pipe', 'inherit'] });
	let said = '';
	child.stdout.on('data', piece => { said += piece; });
	t.after(() => child.kill('SIGKILL'));
	const over = new Promise(resolve => child.once('close', resolve)); // and its place is free for the next
	await until('the intruder listens', () => said.includes('listening'));
	return async () => {
		await within(60_000, 'the end of the intruder', over);
		assert.match(said, /told:/);
		return said;
	};
}

test('a program of another user that takes the place of the worker is told nothing', async t => {
	const box = await start(t);
	await box.worker.stop();
	for (const url of [`http://${PUBLIC[4]}/secret`, 'https://some.example/secret']) {
		const told = await intrude(t, box.worker.port);
		await breaks(box, `-k ${url}`);
		assert.doesNotMatch(await told(), /secret|\\x16/, url);
	}
});

test('whoever made the sidecar may be its worker, without being root', async t => {
	const name = newName(), sidecar = `${name}-proxy`;
	const order = JSON.stringify({ Cmd: ['--http-ingress-address', '0.0.0.0:39001'], Image: 'sidecar', HostConfig: { PublishAllPorts: true, CapAdd: ['NET_ADMIN'], NetworkMode: 'bridge' } });
	const made = spawnSync('curl', ['-sS', '--fail', '--unix-socket', engine.socket, '-H', 'Content-Type: application/json', '-d', order, `http://localhost/containers/create?name=${sidecar}`], { ...STRANGER, encoding: 'utf8' });
	assert.equal(made.status, 0, made.stderr);
	t.after(() => Promise.all([name, sidecar].map(one => engine.ask('DELETE', `/containers/${one}?force=true`))));
	await engine.expect(204, 'POST', `/containers/${sidecar}/start`, '');
	await engine.create(name);
	await engine.expect(204, 'POST', `/containers/${name}/start`, '');
	const free = await Worker.start();
	await free.stop();
	const box = { port: await engine.port(sidecar) };
	const told = await intrude(t, free.port);
	await put(box, { port: free.port });
	await run(box, curl(`http://${PUBLIC[4]}/secret`));
	assert.match(await told(), /GET \/secret/);
});

test('private networks are refused before the worker is asked, and nothing but TCP and names leaves', async t => {
	const box = await start(t);
	for (const address of ['10.1.2.3', '192.168.7.7', '169.254.169.254', '[fd00:ec2::254]', '[64:ff9b::a9fe:a9fe]', '[2002:a01:203::1]'])
		await breaks(box, `http://${address}/`);
	assert.deepEqual(box.worker.offers, []);
	assert.notEqual((await run(box, `ping -c 1 -W 1 ${PUBLIC[4]}`)).exitCode, 0);
	assert.notEqual((await run(box, `python3 -c "import socket; s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.settimeout(1); s.sendto(b'x',('${PUBLIC[4]}',7)); s.recv(10)"`)).exitCode, 0);
	const id = (await daemon.api('GET', '/v1/sandboxes')).body.sandboxes.find(one => one.labels?.['silt.container'] === box.name).id;
	const network = await until('what was refused', async () => {
		const { body } = await daemon.api('GET', `/v1/sandboxes/${id}/network`);
		return body.refused.length >= 6 && body;
	});
	assert.equal(network.mode, 'captive');
	assert.ok(network.refused.every(one => one.reason === 'closed_network'), JSON.stringify(network.refused));
	assert.equal((await daemon.api('PUT', `/v1/sandboxes/${id}/network`, { mode: 'public' })).status, 409);
});

test('every other address is offered to the worker, also one that nobody has', async t => {
	const box = await start(t);
	const wanted = ['192.0.2.7', '[111::]', '[4000::1]', '[64:ff9b::808:808]', '[2002:808:808::1]'];
	for (const address of wanted)
		await out(box, curl(`http://${address}/`));
	assert.deepEqual(box.worker.offers.map(offer => offer.target), wanted.map(address => `${address}:80`));
});

test('names resolve as the sidecar is told', async t => {
	const box = await start(t);
	const lookup = async name => (await run(box, `getent ahostsv4 ${name}`)).stdout.split(' ')[0];
	assert.equal(await lookup('www.example.test'), PUBLIC[4]);
	assert.equal(await lookup('made.up.nowhere'), '11.0.0.1');
	await put(box, { dns: { allowHostnames: ['*.up.nowhere'] } });
	assert.equal(await lookup('made.up.nowhere'), '11.0.0.1');
	assert.equal(await lookup('else.nowhere'), '');
	await put(box, { internet: { enabled: false } });
	assert.equal(await lookup('made.UP.nowhere'), '11.0.0.1');
	assert.equal(await lookup('www.example.test'), '');
	await put(box, { dns: { allowHostnames: [] } });
	assert.equal(await lookup('made.up.nowhere'), '');
	assert.match(await out(box, 'cat /etc/resolv.conf'), /1\.1\.1\.1[^]*8\.8\.8\.8/);
});

test('100 MiB pass both ways while silt-proxy\'s memory stays flat, and half a connection may end', async t => {
	const box = await start(t, { '*': answer(202, echo) });
	const [pid] = daemon.programs('silt-proxy');
	const before = processInfo(pid).rss ?? Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) * 1024;
	const count = await out(box, `python3 -c "
import socket, threading
s = socket.create_connection(('${PUBLIC[4]}', 9000))
def send():
    for _ in range(1600): s.sendall(b'x' * 65536)
    s.shutdown(socket.SHUT_WR)
threading.Thread(target=send).start()
n = 0
while True:
    piece = s.recv(1 << 20)
    if not piece: break
    n += len(piece)
print(n)"`);
	assert.equal(Number(count), 1600 * 65536);
	const now = Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) * 1024;
	assert.ok(now < before + (32 << 20), `${before} -> ${now}`);
});

test('settings and authority outlive silt-proxy, siltd and silt-priv', async t => {
	const box = await start(t, { '*': web() });
	const ca = await trust(box);
	const pem = await certificate(box);
	await put(box, { dns: { allowHostnames: ['*.here.nowhere'] } });
	for (const name of ['silt-proxy', 'siltd', 'silt-priv']) {
		await kill(name);
		const said = await until(`a request after the end of ${name}`, async () => JSON.parse(await out(box, curl('https://a.here.nowhere/', `-4 ${ca}`))), 60_000);
		assert.equal(said.sni, 'a.here.nowhere', name);
		assert.equal(await certificate(box), pem, name);
		assert.equal((await run(box, 'getent ahostsv4 else.nowhere')).stdout, '', name);
	}
});

test('the authority is the sidecar\'s, before and after its containers, and goes with it', async t => {
	const name = newName();
	const port = await engine.sidecar(t, `${name}-proxy`);
	const pem = await certificate({ port });
	for (let i = 0; i < 2; i++) {
		await engine.create(name);
		await engine.expect(204, 'POST', `/containers/${name}/start`, '');
		assert.equal(await certificate({ port }), pem);
		await engine.expect(204, 'DELETE', `/containers/${name}?force=true`);
	}
	await engine.expect(204, 'DELETE', `/containers/${name}-proxy?force=true`);
	assert.notEqual(await certificate({ port: await engine.sidecar(t, `${name}-proxy`) }), pem);
});

test('a certificate is there also where there is no network', async t => {
	const other = await startDaemon();
	t.after(() => other.stop());
	const port = await new Engine(other).sidecar(null, `${newName()}-proxy`);
	assert.ok(new X509Certificate(await certificate({ port })).ca);
});

test('a flood of connections of one container leaves the others theirs', async t => {
	const flooded = await start(t, { '*': () => {} });
	const other = await start(t);
	await out(flooded, `python3 -c "
import socket
held = []
for i in range(3000):
    s = socket.socket()
    s.setblocking(False)
    try: s.connect(('${PUBLIC[4]}', 80))
    except BlockingIOError: pass
    except OSError: break
    held.append(s)
" || true`);
	assert.equal(JSON.parse(await out(other, curl(`http://${PUBLIC[4]}/`))).port, 80);
});
