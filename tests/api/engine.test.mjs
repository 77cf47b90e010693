// SPDX-License-Identifier: Apache-2.0
// The engine socket: containers and sidecars, spoken to as workerd does.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { connect, Engine, newName, raw, talk } from '../lib/engine.mjs';
import { until, within } from '../lib/wait.mjs';

let daemon, engine;
before(async () => {
	daemon = await startDaemon();
	engine = new Engine(daemon);
});
after(() => daemon.stop());

const closed = socket => within(60_000, 'end of a connection', new Promise(resolve => {
	socket.on('error', () => {}).on('close', resolve).resume();
}));

test('the socket is for root alone, and goes with the daemon', () => {
	assert.equal(fs.statSync(engine.socket).mode & 0o777, 0o600);
});

test('the engine says who it is, with or without a version in the path', async () => {
	const ping = await engine.ask('GET', '/_ping');
	assert.equal(ping.status, 200);
	assert.equal(ping.raw.toString(), 'OK');
	assert.equal(ping.headers['api-version'], '1.47');
	assert.equal((await engine.ask('HEAD', '/_ping')).status, 200);
	assert.equal((await engine.expect(200, 'GET', '/v1.47/version')).ApiVersion, '1.47');
	const info = await engine.expect(200, 'GET', '/v1.41/info');
	assert.ok(info.SecurityOptions.length > 0);
	assert.ok(!info.SecurityOptions.some(option => option.includes('rootless')));
	const bridge = await engine.expect(200, 'GET', '/networks/bridge');
	assert.equal(bridge.IPAM.Config[0].Gateway, '127.0.0.1');
	assert.ok(!bridge.IPAM.Config.some(config => config.Subnet.includes(':')));
});

test('what is not known is refused with a message', async () => {
	for (const [method, url, status] of [['GET', '/nope', 404], ['GET', '/v1.47/events', 404], ['POST', '/_ping', 405], ['GET', '/v1.99/info', 400], ['GET', '/v1.1/info', 400],
		['GET', '/v2.0/info', 400], ['GET', '/v1.x/info', 400], ['GET', '/networks/other', 404], ['GET', '/containers/nobody/json', 404], ['POST', '/containers/nobody/start', 404],
		['POST', '/containers/nobody/wait', 404], ['DELETE', '/containers/nobody', 404], ['GET', '/containers/json?filters=%7B', 400], ['GET', '/containers/json?filters=1', 400]]) {
		const answer = await engine.ask(method, url);
		assert.equal(answer.status, status, `${method} ${url}`);
		assert.equal(typeof answer.json.message, 'string', `${method} ${url}`);
	}
	assert.match((await engine.expect(400, 'GET', '/v1.99/info')).message, /too new/);
	assert.match((await engine.expect(400, 'GET', '/v1.1/info')).message, /too old/);
});

test('one connection serves several requests, and an empty chunked body in a second packet', async () => {
	const answer = await raw({ path: engine.socket }, 'DELETE /containers/nobody?force=true HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /_ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
	assert.match(answer.toString(), /^HTTP\/1\.1 404 [^]*HTTP\/1\.1 200 [^]*OK$/);
});

test('a container that is not well described is refused', async () => {
	const good = { Image: 'base', HostConfig: {} };
	const bad = [
		['{', 400], ['[]', 400], ['"x"', 400], ['', 400], ['{"Image":1}', 400], ['{}', 400], [{ Image: 'no-such-image' }, 404],
		[{ ...good, Cmd: { a: 1 } }, 400], [{ ...good, Cmd: [1] }, 400], [{ ...good, Env: ['novalue'] }, 400], [{ ...good, Env: 'A' }, 400], [{ ...good, Env: ['A=\0'] }, 400],
		[{ ...good, Labels: { a: 1 } }, 400], [{ ...good, HostConfig: 3 }, 400],
		[{ ...good, HostConfig: { Binds: ['/etc:/mnt'] } }, 400], [{ ...good, HostConfig: { Binds: ['../x:/mnt'] } }, 400], [{ ...good, HostConfig: { Binds: ['a/b:/mnt'] } }, 400],
		[{ ...good, HostConfig: { Mounts: [{ Type: 'bind', Source: '/etc', Target: '/x' }] } }, 400], [{ ...good, HostConfig: { Mounts: [{ Type: 'volume', Source: '/etc', Target: '/x' }] } }, 400],
		[{ ...good, HostConfig: { Mounts: [{ Type: 'volume', Source: 'v', Target: '/a/b' }, { Type: 'volume', Source: 'w', Target: '/a//./b/' }] } }, 400],
		[{ ...good, HostConfig: { Privileged: true } }, 400], [{ ...good, HostConfig: { CapAdd: ['SYS_ADMIN'] } }, 400], [{ ...good, HostConfig: { CapAdd: ['NET_ADMIN'] } }, 400],
		[{ ...good, HostConfig: { Devices: [{ PathOnHost: '/dev/fuse', PathInContainer: '/dev/fuse' }] } }, 400], [{ ...good, HostConfig: { SecurityOpt: ['apparmor:unconfined'] } }, 400],
		[{ ...good, HostConfig: { NetworkMode: 'host' } }, 400], [{ ...good, HostConfig: { IpcMode: 'host' } }, 400], [{ ...good, HostConfig: { UTSMode: 'host' } }, 400],
		[{ ...good, HostConfig: { UsernsMode: 'host' } }, 400], [{ ...good, HostConfig: { PidMode: 'container:x' } }, 400], [{ ...good, HostConfig: { NetworkMode: 'container:nobody' } }, 404],
		[`{"Image":"base","Cmd":["${'x'.repeat(2 << 20)}"]}`, 400],
	];
	for (const [body, status] of bad) {
		const answer = await engine.ask('POST', '/containers/create', body);
		assert.equal(answer.status, status, JSON.stringify(body).slice(0, 200));
		assert.equal(typeof answer.json.message, 'string');
	}
	assert.equal((await engine.ask('POST', '/containers/create?name=-x', good)).status, 400);
	for (const name of ['a%2Fb', 'a%1B%5B31m', 'a%C2%9B31m', 'a%7F'])
		assert.equal((await engine.ask('POST', `/containers/create?name=${name}`, good)).status, 400, name);
	assert.equal((await engine.ask('POST', `/containers/create?name=${'a'.repeat(300)}`, good)).status, 400);
	assert.deepEqual(await engine.expect(200, 'GET', '/containers/json?all=1'), []);
});

test('port 3000 of a built-in image is the API of its sandbox, without a token, at the root', async t => {
	const { name, port } = await engine.app(t, { env: ['FOO=bar'], image: 'docker.io/cloudflare/sandbox:0.12.1' });
	const { status, socket } = await connect(port);
	assert.equal(status, 200);
	t.after(() => socket.destroy());
	assert.equal((await talk(socket, 'GET', '/')).status, 200);
	const done = await talk(socket, 'POST', '/api/execute', { command: 'echo $FOO; cat /proc/1/status | head -1' });
	assert.match(done.json.stdout, /^bar\n/);
	assert.equal((await talk(socket, 'GET', '/v1/sandboxes')).status, 404, 'nothing but its own API');
	const id = `w-${createHash('sha256').update(name).digest('hex').slice(0, 40)}`;
	const listed = (await daemon.api('GET', '/v1/sandboxes')).body.sandboxes.find(sandbox => sandbox.id === id);
	assert.ok(listed, 'its sandbox is listed');
	assert.equal(listed.labels['silt.container'], name);
	assert.equal(listed.labels['silt.class'], 'app-Sandbox');
	assert.equal(listed.labels['silt.object'], name.slice(-64));
});

test('other ports are tunnelled, half-closes and all, and wait a moment for the port to open', async t => {
	const begin = () => engine.app(t, { cmd: ['python3', '-c', `
import socket, time
s = socket.create_server(('127.0.0.1', 8080))
while True:
    c, _ = s.accept()
    got = b''
    while True:
        piece = c.recv(65536)
        if not piece: break
        got += piece
    c.sendall(b'%d bytes' % len(got))
    c.close()
`] });
	let status, socket;
	for (let tries = 0; tries < 8 && status !== 200; tries++) // a moment is short: on a busy machine a program needs longer to begin
		({ status, socket } = await connect((await begin()).port, 8080));
	assert.equal(status, 200);
	const answer = new Promise((resolve, reject) => {
		const got = [];
		socket.on('data', piece => got.push(piece)).on('error', reject).on('end', () => resolve(Buffer.concat(got).toString())).resume();
	});
	socket.end(Buffer.alloc(3 << 20, 'x'));
	assert.equal(await within(60_000, 'answer', answer), `${3 << 20} bytes`);
});

test('a CONNECT that two readers could read in two ways is 400, and reaches nobody', async t => {
	const { port } = await engine.app(t);
	const there = 'X-Dst-Addr: 127.0.0.1:3000';
	for (const head of [
		`CONNECT 127.0.0.1:3000 HTTP/1.1\n${there}\r\n\r\n`,
		`CONNECT 127.0.0.1:3000 HTTP/1.1\r\nA: b\n${there}\r\n\r\n`,
		`CONNECT 127.0.0.1:3000 HTTP/1.1\r\nX-Dst-Addr: 127.0.0.1:9\r\n${there}\r\n\r\n`,
		`CONNECT 127.0.0.1:3000 HTTP/1.1\r\nX-Dst-Addr:\r\n 127.0.0.1:3000\r\n${there}\r\n\r\n`,
		`CONNECT 127.0.0.1:3000 HTTP/1.1\r\nA: b\r\n c\r\n${there}\r\n\r\n`,
		`CONNECT 127.0.0.1:3000 HTTP/1.1\r\n${there.replace(':', ' :')}\r\n\r\n`,
		`CONNECT 127.0.0.1:3000 HTTP/1.1\r\nHost: a\r\nHost: a\r\n${there}\r\n\r\n`,
		`CONNECT 127.0.0.1:3000 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n${there}\r\n\r\n`,
		`CONNECT 127.0.0.1:3000 HTTP/1.1\r\n${there}\0\r\n\r\n`,
		`CONNECT 127.0.0.1:3000 HTTP/2.0\r\n${there}\r\n\r\n`,
		`CONNECT  HTTP/1.1\r\n${there}\r\n\r\n`,
	])
		assert.match((await raw({ port, host: '127.0.0.1' }, head)).toString(), /^HTTP\/1\.1 400 /, JSON.stringify(head));
});

test('a port that nobody listens on, and a head without an address, are 400', async t => {
	const { port } = await engine.app(t);
	const refused = await connect(port, 9);
	assert.equal(refused.status, 400);
	assert.equal((await connect(port, 3000, { headers: '' })).status, 400);
	assert.equal((await connect(port, 3000, { headers: 'X-Dst-Addr: 10.0.0.1:80\r\n' })).status, 400);
	assert.equal((await connect(port, 3000, { headers: 'X-Dst-Addr: nonsense\r\n' })).status, 400);
	assert.match((await raw({ port, host: '127.0.0.1' }, 'GET /other HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toString(), /^HTTP\/1\.1 404 /);
	assert.match((await raw({ port, host: '127.0.0.1' }, `CONNECT x HTTP/1.1\r\nA: ${'x'.repeat(10000)}\r\n\r\n`)).toString(), /^HTTP\/1\.1 400 /);
});

test('half a head of one who says no more is no work for anybody', async t => {
	const port = await engine.sidecar(t, `${newName()}-proxy`);
	const said = await within(60_000, 'its end', raw({ port, host: '127.0.0.1' }, 'CONNECT x', { end: true }).catch(error => error.code));
	assert.ok(said === 'ECONNRESET' || said.length === 0, `${said}`);
});

test('a container can be removed while the files of an earlier one, of another image, still go', async t => {
	const { name, id } = await engine.app(t, { image: 'host', cmd: ['true'] });
	for (const image of ['base', 'host', 'base']) {
		await engine.ask('POST', `/containers/${id}/kill?signal=SIGTERM`);
		await engine.wait(name);
		await engine.expect(204, 'DELETE', `/containers/${id}`);
		const body = { Image: image, HostConfig: { NetworkMode: `container:${id}-proxy` } };
		const both = await Promise.all([engine.ask('POST', `/containers/create?name=${id}`, body), engine.ask('DELETE', `/containers/${id}?force=true`)]);
		assert.ok(both.every(answer => answer.status < 500 || answer.json.message === 'the container was removed'), both.map(answer => answer.raw).join());
		await engine.ask('DELETE', `/containers/${id}?force=true`);
		await engine.create(name, { image });
		await engine.expect(204, 'POST', `/containers/${id}/start`, '');
	}
	assert.equal((await engine.ask('GET', '/_ping')).status, 200);
});

test('where traffic goes can be set, and only sense is taken', async t => {
	const port = await engine.sidecar(t, `${newName()}-proxy`);
	const put = body => raw({ port, host: '127.0.0.1' }, `PUT /egress HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
	assert.match((await put('{"port":44227,"dns":{"allowHostnames":[]},"internet":{"enabled":true}}')).toString(), /^HTTP\/1\.1 204 /);
	for (const body of ['', '{', '[]', '{"port":"1"}', '{"port":0}', '{"port":70000}'])
		assert.match((await put(body)).toString(), /^HTTP\/1\.1 400 /, body);
});

test('another user is turned away from a sidecar', async t => {
	const { port } = await engine.app(t);
	const script = `import socket
s = socket.create_connection(('127.0.0.1', ${port}), 20)
s.sendall(b'CONNECT 127.0.0.1:3000 HTTP/1.1\\r\\nX-Dst-Addr: 127.0.0.1:3000\\r\\n\\r\\n')
s.settimeout(20)
print(s.recv(4096).decode().split('\\r\\n')[0])`;
	const asNobody = spawnSync('python3', ['-c', script], { uid: 65534, gid: 65534, encoding: 'utf8', timeout: 60_000 });
	assert.match(asNobody.stdout, /^HTTP\/1\.1 403 /, asNobody.stderr);
	const asRoot = spawnSync('python3', ['-c', script], { encoding: 'utf8', timeout: 60_000 });
	assert.match(asRoot.stdout, /^HTTP\/1\.1 200 /, asRoot.stderr);
	const other = spawnSync('python3', ['-c', script.replace('CONNECT 127.0.0.1:3000 ', 'PUT /egress ')], { uid: 65534, gid: 65534, encoding: 'utf8', timeout: 60_000 });
	assert.match(other.stdout, /^HTTP\/1\.1 403 /, other.stderr);
});

test('SIGTERM ends a built-in container with 0: connections first, then who waits, then the state', async t => {
	const { name, port, id } = await engine.app(t);
	const { socket } = await connect(port);
	await talk(socket, 'POST', '/api/process/start', { command: 'python3 -m http.server 8080' });
	const tunnel = await until('tunnel', async () => {
		const made = await connect(port, 8080);
		return made.status === 200 && made;
	});
	const order = [];
	const ends = [closed(socket).then(() => order.push('wire')), closed(tunnel.socket).then(() => order.push('tunnel'))];
	const waited = engine.wait(name).then(answer => (order.push('wait'), answer));
	await engine.expect(204, 'POST', `/containers/${id}/kill?signal=SIGTERM`);
	assert.deepEqual((await waited).json, { StatusCode: 0 });
	await Promise.all(ends);
	assert.equal(order.length, 3);
	const found = await engine.expect(200, 'GET', `/containers/${id}/json`);
	assert.equal(found.State.Status, 'exited');
	assert.equal(found.State.ExitCode, 0);
	assert.equal((await engine.ask('POST', `/containers/${id}/kill?signal=SIGTERM`)).status, 409);
	assert.equal((await connect(port)).status, 400, 'nothing is behind it any more');
	assert.deepEqual((await engine.wait(name)).json, { StatusCode: 0 }, 'asked again');
});

test('the exit of a program, of a control server only a failure, is the end of its container', async t => {
	for (const [cmd, code] of [[['sh', '-c', 'exit 7'], 7], [['sh', '-c', 'kill -9 $$'], 137]]) {
		const { name } = await engine.app(t, { cmd });
		assert.deepEqual((await engine.wait(name)).json, { StatusCode: code });
	}
	const { name, port, id } = await engine.app(t, { cmd: ['sh', '-c', 'echo $SANDBOX_STARTED > /tmp/started'] });
	const { socket } = await connect(port);
	t.after(() => socket.destroy());
	await until('its child', async () => (await talk((await connect(port)).socket, 'POST', '/api/execute', { command: 'cat /tmp/started' })).json.stdout === 'true\n');
	assert.equal((await engine.expect(200, 'GET', `/containers/${id}/json`)).State.Status, 'running');
	await engine.expect(204, 'POST', `/containers/${id}/kill`);
	assert.deepEqual((await engine.wait(name)).json, { StatusCode: 137 });
});

test('process 1 shows the arguments of the program, its child, with and without PidMode', async t => {
	for (const more of [{}, { PidMode: undefined }]) {
		const { port } = await engine.app(t, { cmd: ['sh', '-c', 'cp /proc/1/cmdline /tmp/first; exec sleep 1000', 'a word', ''], ...more });
		const { socket } = await connect(port);
		const shown = await until('what it saw', async () => (await talk(socket, 'POST', '/api/execute', { command: `tr '\\0' '|' < /tmp/first` })).json.stdout);
		assert.equal(shown, 'sh|-c|cp /proc/1/cmdline /tmp/first; exec sleep 1000|a word||');
		const listed = await talk(socket, 'POST', '/api/execute', { command: 'ps -o args= -p 1' });
		socket.destroy();
		assert.match(listed.json.stdout, /^sh -c cp /);
	}
});

test('a forced removal ends everything with 137, frees the name and takes the files', async t => {
	const { name, port, id } = await engine.app(t);
	const { socket } = await connect(port);
	await talk(socket, 'POST', '/api/write', { path: '/workspace/x', content: 'old' });
	const waits = [engine.wait(name), engine.wait(name, 'not-running'), engine.wait(name, 'removed')];
	await until('three waiters', async () => (await engine.ask('POST', `/containers/${id}/start`, '')).status === 304);
	assert.equal((await engine.ask('DELETE', `/containers/${id}`)).status, 409, 'not without force');
	await engine.expect(204, 'DELETE', `/containers/${id}?force=true`);
	for (const wait of waits)
		assert.deepEqual((await wait).json, { StatusCode: 137 });
	assert.equal((await engine.ask('GET', `/containers/${id}/json`)).status, 404);
	assert.equal((await engine.ask('POST', `/containers/${id}/wait?condition=removed`)).status, 404);
	await engine.create(name);
	await engine.expect(204, 'POST', `/containers/${id}/start`, '');
	const fresh = await connect(port);
	t.after(() => fresh.socket.destroy());
	assert.equal((await talk(fresh.socket, 'POST', '/api/execute', { command: 'cat /workspace/x' })).json.exitCode, 1);
});

test('files of a container that had ended wait for the next of its name and image', async t => {
	const { name, port, id } = await engine.app(t, { env: ['A=1'] });
	await talk((await connect(port)).socket, 'POST', '/api/write', { path: '/workspace/x', content: 'kept' });
	const waited = engine.wait(name);
	await engine.expect(204, 'POST', `/containers/${id}/kill?signal=SIGTERM`);
	await waited;
	assert.equal((await engine.ask('POST', `/containers/create?name=${id}`, { Image: 'base' })).status, 409);
	await engine.expect(204, 'DELETE', `/containers/${id}?force=true`);
	await engine.create(name, { env: ['A=2'] });
	await engine.expect(204, 'POST', `/containers/${id}/start`, '');
	const { socket } = await connect(port);
	t.after(() => socket.destroy());
	assert.equal((await talk(socket, 'POST', '/api/execute', { command: 'cat /workspace/x; echo $A' })).json.stdout, 'kept2\n');
});

test('containers are found by name, id and the beginning of an id, and listed with filters', async t => {
	const { name, id } = await engine.app(t);
	const full = (await engine.expect(200, 'GET', `/containers/${id}/json`)).Id;
	for (const way of [full, full.slice(0, 12), `%2F${id}`])
		assert.equal((await engine.expect(200, 'GET', `/containers/${way}/json`)).Id, full);
	const list = filters => engine.expect(200, 'GET', `/containers/json?all=1&filters=${encodeURIComponent(JSON.stringify(filters))}`);
	assert.deepEqual((await list({ ancestor: ['base'], name: [name] })).map(c => c.Id).filter(found => found === full), [full]);
	assert.ok((await list({ ancestor: { 'docker.io/library/base:latest': true } })).some(c => c.Id === full));
	assert.ok(!(await list({ ancestor: { host: true } })).some(c => c.Id === full));
	assert.deepEqual((await list({ status: ['exited'], name: [name] })), []);
});

test('names arrive percent-encoded, in paths and in the body alike', async t => {
	const name = `workerd-my app:X-${'a'.repeat(64)}`;
	const { port } = await engine.app(t, { name });
	assert.equal((await connect(port)).status, 200);
});

test('a waiter that leaves is forgotten', async t => {
	const { name, id } = await engine.app(t);
	const leaving = new AbortController();
	const gone = engine.ask('POST', `/containers/${id}/wait`, undefined, { signal: leaving.signal }).catch(error => error.name);
	const stays = engine.wait(name);
	await engine.expect(200, 'GET', `/containers/${id}/json`);
	leaving.abort();
	assert.equal(await gone, 'AbortError');
	await engine.expect(204, 'POST', `/containers/${id}/kill`);
	assert.deepEqual((await stays).json, { StatusCode: 137 });
});

test('a stop is a SIGTERM and, for who does not listen, a SIGKILL', async t => {
	const { id } = await engine.app(t);
	await engine.expect(204, 'POST', `/containers/${id}/stop`);
	assert.equal((await engine.ask('POST', `/containers/${id}/stop`)).status, 304);
	assert.equal((await engine.expect(200, 'GET', `/containers/${id}/json`)).State.ExitCode, 0);
});
