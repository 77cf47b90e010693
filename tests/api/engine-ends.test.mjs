// SPDX-License-Identifier: Apache-2.0
// How containers end, who serves their port 3000, who is let in, and how long their files wait.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import net from 'node:net';
import { after, before, test } from 'node:test';
import { built } from '../lib/build.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { connect, Engine, execute, newName, talk } from '../lib/engine.mjs';
import { until, within } from '../lib/wait.mjs';

const GROUP = 43_211;
const MAKER = 12_345; // a user of that group
const DELAY_MS = 8_000; // enough to look in between

let daemon, engine;
before(async () => {
	daemon = await startDaemon({ flags: { 'engine.mode': '0660', 'engine.group': GROUP, 'engine.stop_after_ms': 0 } });
	engine = new Engine(daemon);
});
after(() => daemon.stop());

/** Signals it: how it ended, and after how many ms. */
async function end({ name, id }, signal, its = engine) {
	const waited = its.wait(name);
	await its.expect(200, 'GET', `/containers/${id}/json`); // served after the wait
	const begin = performance.now();
	await its.expect(204, 'POST', `/containers/${id}/kill?signal=${signal}`);
	return { code: (await waited).json.StatusCode, ms: performance.now() - begin };
}

const ready = port => until('its program', async () => await execute(port, 'cat /tmp/ready 2>/dev/null') === 'ready\n');

/** Whether a program that writes a note when it gets the signal has written it. */
async function isHeard(t, signal) {
	const app = await engine.app(t, { cmd: ['bash', '-c', `trap 'echo heard > /workspace/heard; exit 3' ${signal}; echo ready > /tmp/ready; while :; do read -t 0.005 < <(:); done`] });
	await ready(app.port);
	assert.equal((await end(app, signal)).code, 0, 'however it ends itself');
	await engine.expect(204, 'DELETE', `/containers/${app.id}`);
	await engine.create(app.name);
	await engine.expect(204, 'POST', `/containers/${app.id}/start`, '');
	const found = await execute(app.port, 'cat /workspace/heard 2>/dev/null');
	await engine.expect(204, 'DELETE', `/containers/${app.id}?force=true`);
	return found === 'heard\n';
}

test('a program beside our server hears SIGTERM and SIGINT, and has a moment', async t => {
	for (const signal of ['SIGTERM', 'SIGINT']) {
		let heard = false;
		for (let tries = 0; tries < 20 && !heard; tries++) // a moment is short: it may have been asleep
			heard = await isHeard(t, signal);
		assert.ok(heard, signal);
	}
});

test('nobody who does not listen holds up the end: neither the program nor what was started later', async t => {
	const took = [];
	let app;
	while (took.length < 5 && !(took.at(-1) < 2_000)) { // a tenth of a second on a machine with time; graces of others are five seconds and ten
		app = await engine.app(t, { cmd: ['sh', '-c', "trap '' TERM INT; echo ready > /tmp/ready; while :; do sleep 1; done"] });
		await ready(app.port);
		const { socket } = await connect(app.port);
		t.after(() => socket.destroy());
		await talk(socket, 'POST', '/api/process/start', { command: "trap '' TERM; echo deaf > /tmp/deaf; while :; do sleep 1; done" });
		await until('the process', async () => await execute(app.port, 'cat /tmp/deaf 2>/dev/null') === 'deaf\n');
		const { code, ms } = await end(app, 'SIGTERM');
		assert.equal(code, 0);
		took.push(ms);
	}
	assert.ok(took.at(-1) < 2_000, `${took} ms`);
	await engine.expect(204, 'POST', `/containers/${app.id}/start`, '');
	await ready(app.port);
	await engine.expect(204, 'POST', `/containers/${app.id}/stop`);
	assert.equal((await engine.expect(200, 'GET', `/containers/${app.id}/json`)).State.ExitCode, 0);
});

test('port 3000 of an image that does not say builtin is the program\'s, whose end is the container\'s', async t => {
	const [plain, again] = [newName(), newName()].map(name => `guest-${name.slice(-12)}`);
	await built(daemon, { Dockerfile: 'FROM base\nLABEL silt.control=guest\nENV WHO=image\n' }, { names: [plain] });
	await built(daemon, { Dockerfile: `FROM ${plain}\nLABEL silt.control=builtin\n` }, { names: [again] });
	t.after(() => Promise.all([plain, again].map(name => engine.ask('DELETE', `/images/${name}`))));
	const server = `import http.server, os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: os._exit(5))
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = ('mine ' + os.environ['WHO']).encode()
        self.send_response(200); self.send_header('Content-Length', str(len(body))); self.end_headers(); self.wfile.write(body)
http.server.HTTPServer(('127.0.0.1', 3000), H).serve_forever()`;
	const app = await engine.app(t, { image: plain, cmd: ['python3', '-c', server] });
	const { socket } = await until('its server', async () => {
		const made = await connect(app.port);
		return made.status === 200 && made;
	});
	assert.equal((await talk(socket, 'GET', '/api/ping')).raw, 'mine image');
	socket.destroy();
	assert.equal((await end(app, 'SIGTERM')).code, 5, 'what it makes of the signal');
	const silent = await engine.app(t, { image: plain, cmd: ['sleep', '1000'] });
	assert.equal((await connect(silent.port)).status, 400, 'nobody answers in its place');
	assert.equal((await end(silent, 'SIGTERM')).code, 143);
	const over = await engine.app(t, { image: plain, cmd: ['true'] });
	assert.deepEqual((await engine.wait(over.name)).json, { StatusCode: 0 });
	const builtin = await engine.app(t, { image: again, cmd: ['true'] });
	assert.equal(await execute(builtin.port, 'echo $WHO'), 'image\n');
});

test('an image of one\'s own into which the official server is copied is served by us, and its command runs beside', async t => {
	const names = ['direct', 'stage'].map(name => `${name}-${newName().slice(-12)}`);
	t.after(() => Promise.all(names.map(name => engine.ask('DELETE', `/images/${name}`))));
	const plain = 'FROM base\nLABEL silt.control=guest\n';
	const tail = ' /container-server/sandbox /sandbox\nENTRYPOINT ["/sandbox"]\nCMD ["sh", "-c", "echo $SANDBOX_STARTED > /tmp/ready; exec sleep 1000"]\n';
	const { notices } = await built(daemon, { Dockerfile: `${plain}COPY --from=docker.io/cloudflare/sandbox:0.12.10${tail}` }, { names: [names[0]] });
	assert.ok(notices.some(n => n.includes('server')), notices.join());
	await built(daemon, { Dockerfile: `FROM cloudflare/sandbox:0.12.10 AS official\n${plain}COPY --from=official${tail}` }, { names: [names[1]] });
	for (const image of names) {
		const app = await engine.app(t, { image });
		await until('its command', async () => await execute(app.port, 'cat /tmp/ready 2>/dev/null') === 'true\n');
		assert.equal((await end(app, 'SIGTERM')).code, 0);
	}
	const bare = await engine.app(t, { image: names[0], cmd: [] });
	assert.equal(await execute(bare.port, 'echo $SANDBOX_VERSION'), '0.12.10\n');
});

test('who made a sidecar is let in, others of the socket\'s group are not', async t => {
	const name = newName();
	t.after(() => Promise.all([name, `${name}-proxy`].map(one => engine.ask('DELETE', `/containers/${one}?force=true`))));
	const make = `import http.client, json, socket
class Local(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(${JSON.stringify(engine.socket)})
for path, body in (('/containers/create?name=${name}-proxy', {'Cmd': ['--http-egress-port', '${await listening(t)}', '--http-ingress-address', '0.0.0.0:39001'], 'Image': 'sidecar', 'HostConfig': {'NetworkMode': 'bridge'}}),
                   ('/containers/${name}-proxy/start', None), ('/containers/create?name=${name}', {'Image': 'base', 'HostConfig': {'NetworkMode': 'container:${name}-proxy'}}), ('/containers/${name}/start', None)):
    c = Local('localhost')
    c.request('POST', path, json.dumps(body) if body else '', {'Content-Type': 'application/json'})
    print(c.getresponse().status)`;
	const made = spawnSync('python3', ['-c', make], { uid: MAKER, gid: GROUP, encoding: 'utf8', timeout: 60_000 });
	assert.equal(made.stdout, '201\n204\n201\n204\n', made.stderr);
	const port = await engine.port(`${name}-proxy`);
	const visit = `import socket
s = socket.create_connection(('127.0.0.1', ${port}), 20)
s.sendall(b'CONNECT 127.0.0.1:3000 HTTP/1.1\\r\\nX-Dst-Addr: 127.0.0.1:3000\\r\\n\\r\\n')
print(s.recv(4096).decode().split(' ')[1])`;
	const as = (uid, gid) => spawnSync('python3', ['-c', visit], { uid, gid, encoding: 'utf8', timeout: 60_000 }).stdout;
	assert.deepEqual([as(MAKER, GROUP), as(0, 0), as(MAKER + 1, GROUP)], ['200\n', '200\n', '403\n']);
});

/** Stands for a workerd that lives. */
async function listening(t) {
	const server = net.createServer(socket => socket.destroy()).listen(0, '127.0.0.1');
	t.after(() => server.close());
	await new Promise(resolve => server.once('listening', resolve));
	return server.address().port;
}

test('connections are cut first, then who waits is told, and then the state is seen; files wait as long as the settings say', async t => {
	const other = await startDaemon({ flags: { 'engine.exit_delay_ms': DELAY_MS, 'engine.keep_s': 1 } });
	t.after(() => other.stop());
	const its = new Engine(other);
	const app = await its.app(undefined, { cmd: ['python3', '-m', 'http.server', '8080'] });
	const tunnels = [await until('the service', async () => {
		const made = await connect(app.port, 8080);
		return made.status === 200 && made;
	}), await connect(app.port)];
	const cut = Promise.all(tunnels.map(({ socket }) => new Promise(resolve => socket.on('error', () => {}).on('close', resolve).resume())));
	let told = false;
	const ended = end(app, 'SIGTERM', its).then(how => (told = true, how));
	await within(60_000, 'the end of its connections', cut);
	const seen = (await its.expect(200, 'GET', `/containers/${app.id}/json`)).State.Status;
	assert.deepEqual([told, seen], [false, 'running']);
	const { code, ms } = await ended;
	assert.equal(code, 0);
	assert.ok(ms >= DELAY_MS - 50, `${ms} ms`);
	assert.equal((await its.expect(200, 'GET', `/containers/${app.id}/json`)).State.Status, 'exited');
	const files = async () => (await other.api('GET', '/v1/sandboxes')).body.sandboxes.filter(({ labels }) => labels?.['silt.container'] === app.name).length;
	assert.equal(await files(), 1);
	await its.expect(204, 'DELETE', `/containers/${app.id}`);
	await until('its files are gone', async () => await files() === 0, 60_000);
});

test('a container whose end somebody waits for serves for a while after a signal, whatever its program does', async t => {
	const AFTER_MS = 3_000;
	const other = await startDaemon({ flags: { 'engine.stop_after_ms': AFTER_MS } });
	t.after(() => other.stop());
	const its = new Engine(other);
	for (const [signal, expected, cmd] of [['SIGTERM', 0], ['SIGKILL', 137], ['SIGTERM', 0, ['sleep', '1000']]]) {
		const app = await its.app(undefined, { cmd });
		const { socket } = await connect(app.port);
		const begin = performance.now();
		const ended = its.wait(app.name);
		await its.expect(200, 'GET', `/containers/${app.id}/json`); // served after the wait
		await its.expect(204, 'POST', `/containers/${app.id}/kill?signal=${signal}`);
		assert.equal((await talk(socket, 'POST', '/api/execute', { command: 'echo still' })).json.stdout, 'still\n', 'on a connection that was open');
		assert.equal(await execute(app.port, 'echo there'), 'there\n', 'on a new one');
		assert.equal((await its.expect(200, 'GET', `/containers/${app.id}/json`)).State.Status, 'running');
		assert.equal((await ended).json.StatusCode, expected);
		assert.ok(performance.now() - begin >= AFTER_MS - 50);
		const begun = performance.now();
		await its.expect(204, 'POST', `/containers/${app.id}/start`, '');
		await its.expect(204, 'DELETE', `/containers/${app.id}?force=true`);
		assert.ok(performance.now() - begun < AFTER_MS, 'a removal waits for nothing');
	}
});

test('without a time to keep them, files go with their container', async t => {
	const other = await startDaemon({ flags: { 'engine.keep_s': 0 } });
	t.after(() => other.stop());
	const its = new Engine(other);
	const app = await its.app(undefined);
	await execute(app.port, 'echo old > /workspace/file');
	await end(app, 'SIGTERM', its);
	await its.expect(204, 'DELETE', `/containers/${app.id}`);
	assert.deepEqual((await other.api('GET', '/v1/sandboxes')).body.sandboxes.map(({ id }) => id).filter(id => id.startsWith('w-')), []);
	await its.create(app.name);
	await its.expect(204, 'POST', `/containers/${app.id}/start`, '');
	assert.equal(await execute(app.port, 'cat /workspace/file 2>/dev/null || echo none'), 'none\n');
});
