// SPDX-License-Identifier: Apache-2.0
// The engine at its edges: deaths at bad moments, strangers at the doors, answers that do not come.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { connect, Engine, newName, raw, talk } from '../lib/engine.mjs';
import * as host from '../lib/host.mjs';
import { until, within } from '../lib/wait.mjs';

const MANY = 400; // sidecars: more notes than the channel between silt-super and siltd holds at once
const CROWD = 4200; // connections: more than there are places
const GROUP = 43_210;

let daemon, engine;
before(async () => {
	daemon = await startDaemon({ flags: { 'engine.mode': '0660', 'engine.group': GROUP } });
	engine = new Engine(daemon);
});
after(() => daemon.stop());

/** While work() runs, the process does not. */
async function stopped(pid, work) {
	process.kill(pid, 'SIGSTOP');
	try {
		return await work();
	} finally {
		process.kill(pid, 'SIGCONT');
	}
}

const newSiltd = pid => until('a new siltd', () => daemon.programs('siltd').find(other => other !== pid), 60_000);

async function serves() {
	await daemon.healthy();
	await until('the engine socket', async () => (await engine.ask('GET', '/_ping', undefined, { deadline: 2_000 })).status === 200, 60_000);
}

async function killSiltd() {
	const pid = daemon.siltd();
	process.kill(pid, 'SIGKILL');
	await newSiltd(pid);
	await serves();
}

const execute = async (port, command) => {
	const { status, socket } = await connect(port);
	assert.equal(status, 200);
	try {
		return (await talk(socket, 'POST', '/api/execute', { command })).json.stdout;
	} finally {
		socket.destroy();
	}
};

const describeSidecar = { Cmd: ['--http-egress-port', '1', '--http-ingress-address', '0.0.0.0:39001'], Image: 'sidecar', HostConfig: { NetworkMode: 'bridge' } };

/** How many listening sockets silt-super has. */
const kept = () => fs.readFileSync(`/proc/${daemon.pid}/net/tcp`, 'utf8').split('\n').map(line => line.trim().split(/\s+/))
	.filter(([, , , state, , , , , , inode]) => state === '0A' && host.hasOpen(daemon.pid, `socket:[${inode}]`)).length;

/** Sends a request and does not wait for its answer, but until siltd has taken it. */
async function begin(t, method, url, body = '') {
	const socket = net.connect(engine.socket).on('error', () => {});
	t.after(() => socket.destroy());
	await new Promise(resolve => socket.write(`${method} ${url} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`, resolve));
	await engine.expect(200, 'GET', '/_ping'); // served after it
	return socket;
}

test('the socket has the mode and the group that the settings say, from its birth', () => {
	const { mode, uid, gid } = fs.statSync(engine.socket);
	assert.deepEqual([mode & 0o777, uid, gid], [0o660, 0, GROUP]);
});

test('a sidecar that was being started when siltd died can be started again, and nothing of it stays', async t => {
	const name = `${newName()}-proxy`;
	const before = kept();
	await engine.expect(201, 'POST', `/containers/create?name=${name}`, describeSidecar);
	t.after(() => engine.ask('DELETE', `/containers/${name}?force=true`));
	const pid = daemon.siltd();
	await stopped(daemon.pid, async () => {
		await begin(t, 'POST', `/containers/${name}/start`); // silt-super is asked for a socket
		process.kill(pid, 'SIGKILL');
	});
	await newSiltd(pid);
	await serves();
	assert.equal((await engine.expect(200, 'GET', `/containers/${name}/json`)).State.Status, 'created');
	await engine.expect(204, 'POST', `/containers/${name}/start`, '');
	const port = await engine.port(name);
	assert.match((await raw({ port, host: '127.0.0.1' }, 'GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toString(), /^HTTP\/1\.1 404 /);
	await engine.expect(204, 'DELETE', `/containers/${name}?force=true`);
	await until('silt-super keeps no socket of it', () => kept() === before, 30_000);
	await assert.rejects(connect(port), { code: 'ECONNREFUSED' });
});

test('who comes to a sidecar before siltd serves is served as soon as it does', async t => {
	const names = Array.from({ length: MANY }, () => `${newName()}-proxy`);
	t.after(async () => {
		for (const name of names)
			await engine.ask('DELETE', `/containers/${name}?force=true`);
	});
	const server = net.createServer(socket => socket.destroy()).listen(0, '127.0.0.1'); // else nobody needs them
	t.after(() => server.close());
	await new Promise(resolve => server.once('listening', resolve));
	for (let i = 0; i < MANY; i += 20)
		await Promise.all(names.slice(i, i + 20).map(name => engine.sidecar(undefined, name, { egress: server.address().port })));
	const port = await engine.port(names[0]);
	const pid = daemon.siltd();
	process.kill(pid, 'SIGKILL');
	const next = await newSiltd(pid);
	let asked;
	await stopped(daemon.pid, async () => { // it has told siltd of some, not of all
		asked = raw({ port, host: '127.0.0.1' }, 'GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
		asked.catch(() => {});
		let last = '';
		let same = 0;
		await until('siltd does nothing', () => {
			const [, state, time] = /\) (\w) (?:\S+ ){10}(\S+ \S+)/.exec(fs.readFileSync(`/proc/${next}/stat`, 'utf8'));
			same = state !== 'R' && time === last ? same + 1 : 0;
			last = time;
			return same > 20;
		}, 60_000);
	});
	assert.match((await asked).toString(), /^HTTP\/1\.1 404 /);
	await serves();
	assert.equal(daemon.siltd(), next, 'it did not die of it');
});

test('a sidecar for which no socket is made refuses its start, and can be started later', async t => {
	const name = `${newName()}-proxy`;
	await engine.expect(201, 'POST', `/containers/create?name=${name}`, describeSidecar);
	t.after(() => engine.ask('DELETE', `/containers/${name}?force=true`));
	await stopped(daemon.pid, () => engine.expect(500, 'POST', `/containers/${name}/start`, '', { deadline: 120_000 }));
	assert.equal((await engine.expect(200, 'GET', `/containers/${name}/json`)).State.Status, 'exited');
	await engine.expect(204, 'POST', `/containers/${name}/start`, '');
	const port = await engine.port(name);
	assert.match((await raw({ port, host: '127.0.0.1' }, 'GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toString(), /^HTTP\/1\.1 404 /);
});

test('a crowd of strangers takes no place of who is let in', async t => {
	const { port } = await engine.app(t);
	const script = `import resource, socket
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
crowd = []
for i in range(${CROWD}):
    s = socket.socket()
    s.settimeout(60)
    s.connect(('127.0.0.1', ${port}))
    crowd.append(s)
print('here', flush=True)
input()`;
	const crowd = spawn('python3', ['-c', script], { uid: 65534, gid: 65534, stdio: ['pipe', 'pipe', 'inherit'] });
	t.after(() => crowd.kill('SIGKILL'));
	await within(120_000, 'the crowd', new Promise((resolve, reject) => crowd.stdout.once('data', resolve).once('end', reject)));
	assert.equal(await execute(port, 'echo in'), 'in\n');
});

test('a page of a browser is turned away from a sidecar, whoever its user is', async t => {
	const port = await engine.sidecar(t, `${newName()}-proxy`);
	const body = '{"port":44227}';
	const put = fields => raw({ port, host: '127.0.0.1' }, `PUT /egress HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${body.length}\r\n${fields}\r\n${body}`);
	assert.match((await put('Origin: http://evil.example\r\n')).toString(), /^HTTP\/1\.1 403 /);
	assert.match((await put('')).toString(), /^HTTP\/1\.1 204 /);
});

test('files of another image that siltd died removing are gone before the container can start', async t => {
	const { name, id, port } = await engine.app(t, { image: 'host' });
	assert.equal(await execute(port, 'echo old > /root/old; cat /root/old'), 'old\n');
	await engine.ask('POST', `/containers/${id}/kill?signal=SIGTERM`);
	await engine.wait(name);
	await engine.expect(204, 'DELETE', `/containers/${id}`);
	const [pid, priv] = [daemon.siltd(), daemon.programs('silt-priv')[0]];
	await stopped(priv, async () => {
		await begin(t, 'POST', `/containers/create?name=${id}`, JSON.stringify({ Image: 'base', HostConfig: { NetworkMode: `container:${id}-proxy` } }));
		process.kill(pid, 'SIGKILL');
		process.kill(priv, 'SIGKILL');
	}).catch(error => { if (error.code !== 'ESRCH') throw error; });
	await newSiltd(pid);
	await serves();
	assert.equal((await engine.expect(200, 'GET', `/containers/${id}/json`)).Config.Image, 'base');
	await until('its start', async () => (await engine.ask('POST', `/containers/${id}/start`, '')).status === 204, 30_000);
	assert.equal(await execute(await engine.port(`${name}-proxy`), 'cat /root/old || echo none'), 'none\n');
});

test('a connection to a container whose agent has not answered a new siltd yet waits for it', async t => {
	const { port } = await engine.app(t, { cmd: ['python3', '-m', 'http.server', '8080'] });
	const open = await until('the service', async () => {
		const made = await connect(port, 8080);
		return made.status === 200 && made;
	}, 30_000);
	open.socket.destroy();
	const inits = host.processesOf(daemon.instance).filter(p => p.nsPids.length > 1 && p.nsPids.at(-1) === 1).map(p => p.pid);
	assert.ok(inits.length > 0);
	const freeze = signal => inits.forEach(pid => { try { process.kill(pid, signal); } catch (error) { if (error.code !== 'ESRCH') throw error; } });
	freeze('SIGSTOP');
	let asked;
	try {
		await killSiltd();
		asked = connect(port, 8080);
		asked.catch(() => {});
		await engine.expect(200, 'GET', '/_ping'); // siltd has looked at it
	} finally {
		freeze('SIGCONT');
	}
	const { status, socket } = await asked;
	socket.destroy();
	assert.equal(status, 200);
});

test('a command that was made for a container does not run in the next one of its name', async t => {
	const { name, id } = await engine.app(t);
	const made = await engine.expect(201, 'POST', `/containers/${id}/exec`, { AttachStdout: true, Cmd: ['touch', '/tmp/ran'] });
	await engine.expect(204, 'DELETE', `/containers/${id}?force=true`);
	await engine.create(name);
	await engine.expect(204, 'POST', `/containers/${id}/start`, '');
	assert.equal((await engine.ask('POST', `/exec/${made.Id}/start`, { Detach: true })).status, 409);
	assert.equal(await execute(await engine.port(`${name}-proxy`), 'ls /tmp/ran 2>/dev/null || echo no'), 'no\n');
});
