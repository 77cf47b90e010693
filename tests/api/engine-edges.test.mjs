// SPDX-License-Identifier: Apache-2.0
// The engine at its edges: deaths at bad moments, strangers at the doors, answers that do not come.

import assert from 'node:assert/strict';
import { execFile, execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { startDaemon } from '../lib/daemon.mjs';
import { connect, Engine, execute, newName, raw } from '../lib/engine.mjs';
import * as host from '../lib/host.mjs';
import { tar } from '../lib/tar.mjs';
import { until, within } from '../lib/wait.mjs';

const MANY = 400; // sidecars: more notes than the channel between silt-super and siltd holds at once
const CROWD = 4200; // connections: more than there are places
const GROUP = 43_210;

let daemon, engine, own;
const workerd = net.createServer(socket => socket.destroy()); // stands for one that lives: a sidecar that nobody listens for is removed after a while
before(async () => {
	daemon = await startDaemon({ flags: { 'engine.mode': '0660', 'engine.group': GROUP } });
	engine = new Engine(daemon);
	await new Promise(resolve => workerd.listen(0, '127.0.0.1', resolve));
	own = kept();
});
after(async () => {
	workerd.close();
	await daemon.stop();
});

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

const describeSidecar = () => ({ Cmd: ['--http-egress-port', String(workerd.address().port), '--http-ingress-address', '0.0.0.0:39001'], Image: 'sidecar', HostConfig: { NetworkMode: 'bridge' } });

/** Waits until a process waits. */
async function idle(pid) {
	let last = '';
	let same = 0;
	await until(`${pid} does nothing`, () => {
		const [, state, time] = /\) (\w) (?:\S+ ){10}(\S+ \S+)/.exec(fs.readFileSync(`/proc/${pid}/stat`, 'utf8'));
		same = state !== 'R' && time === last ? same + 1 : 0;
		last = time;
		return same > 20;
	}, 60_000);
}

/** How many listening sockets silt-super has. */
const kept = () => fs.readFileSync(`/proc/${daemon.pid}/net/tcp`, 'utf8').split('\n').map(line => line.trim().split(/\s+/))
	.filter(([, , , state, , , , , , inode]) => state === '0A' && host.hasOpen(daemon.pid, `socket:[${inode}]`)).length;

/** Whether who listens on a port of this machine has accepted a connection from another, and read all that was sent there. */
function hasRead(port, from) {
	const hex = number => `0100007F:${number.toString(16).toUpperCase().padStart(4, '0')}`;
	return fs.readFileSync('/proc/self/net/tcp', 'utf8').split('\n').map(line => line.trim().split(/\s+/))
		.some(([, here, there, , queues, , , , , inode]) => here === hex(port) && there === hex(from) && queues.endsWith(':00000000') && inode !== '0');
}

/** Sends a request and does not wait for its answer, but until siltd has taken it. */
async function begin(t, method, url, body = '') {
	const socket = net.connect(engine.socket).on('error', () => {});
	t.after(() => socket.destroy());
	await new Promise(resolve => socket.write(`${method} ${url} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`, resolve));
	await engine.expect(200, 'GET', '/_ping'); // served after it
	return socket;
}

/** What somebody who is not let in hears. */
async function stranger(port) {
	const script = `import socket
s = socket.create_connection(('127.0.0.1', ${port}), 60)
try:
    s.sendall(b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')
    print(s.recv(100).decode(), end='')
except OSError:
    pass`;
	return (await promisify(execFile)('python3', ['-c', script], { uid: 65534, gid: 65534 })).stdout;
}

/** Nothing can be moved into the directory, or it can again. */
function seal(directory, sealed) {
	const script = `import fcntl, os, struct, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
flags = struct.unpack('l', fcntl.ioctl(fd, 0x80086601, bytes(8)))[0]
fcntl.ioctl(fd, 0x40086602, struct.pack('l', flags | 16 if sys.argv[2] == 'true' else flags & ~16))`; // FS_IOC_GETFLAGS, SETFLAGS; immutable
	execFileSync('python3', ['-c', script, directory, String(sealed)]);
}

/** What the next container of the name finds. */
async function again(name, command) {
	await engine.create(name);
	await engine.expect(204, 'POST', `/containers/${name}/start`, '');
	return execute(await engine.port(`${name}-proxy`), command);
}

test('the socket has the mode and the group that the settings say, from its birth', () => {
	const { mode, uid, gid } = fs.statSync(engine.socket);
	assert.deepEqual([mode & 0o777, uid, gid], [0o660, 0, GROUP]);
});

test('a sidecar that was being started when siltd died can be started again, and nothing of it stays', async t => {
	const name = `${newName()}-proxy`;
	await engine.expect(201, 'POST', `/containers/create?name=${name}`, describeSidecar());
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
	await until('silt-super keeps no socket of it', () => kept() === own);
	await assert.rejects(connect(port), { code: 'ECONNREFUSED' });
});

test('who comes to a sidecar before siltd serves is served as soon as it does', async t => {
	const names = Array.from({ length: MANY }, () => `${newName()}-proxy`);
	t.after(async () => {
		for (const name of names)
			await engine.ask('DELETE', `/containers/${name}?force=true`);
	});
	for (let i = 0; i < MANY; i += 20)
		await Promise.all(names.slice(i, i + 20).map(name => engine.sidecar(undefined, name, { egress: workerd.address().port })));
	const port = await engine.port(names[0]);
	let asked, next;
	const early = async () => {
		const pid = daemon.siltd();
		process.kill(pid, 'SIGKILL');
		next = await newSiltd(pid);
		return stopped(daemon.pid, async () => { // it has told siltd of some, not of all
			asked = raw({ port, host: '127.0.0.1' }, 'GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
			asked.catch(() => {});
			await idle(next);
			return engine.ask('GET', '/_ping', undefined, { deadline: 500 }).then(() => false, () => true);
		});
	};
	await until('a siltd that does not serve yet', async () => (await early()) || (await serves(), false), 300_000);
	assert.match((await asked).toString(), /^HTTP\/1\.1 404 /);
	await serves();
	assert.equal(daemon.siltd(), next, 'it did not die of it');
});

test('a sidecar for which no socket is made refuses its start, and an answer that comes too late is not taken for that to the next', async t => {
	const names = [`${newName()}-proxy`, `${newName()}-proxy`];
	await until('silt-super keeps no socket of the tests before', () => kept() === own);
	t.after(() => Promise.all(names.map(name => engine.ask('DELETE', `/containers/${name}?force=true`))));
	for (const name of names)
		await engine.expect(201, 'POST', `/containers/create?name=${name}`, describeSidecar());
	const [name, later] = names;
	await stopped(daemon.pid, async () => {
		await engine.expect(500, 'POST', `/containers/${name}/start`, '', { deadline: 120_000 });
		assert.equal((await engine.expect(200, 'GET', `/containers/${name}/json`)).State.Status, 'exited');
		await begin(t, 'POST', `/containers/${name}/start`); // silt-super now has two questions to answer
	});
	const port = await until('it runs', () => engine.port(name));
	await engine.expect(204, 'POST', `/containers/${later}/start`, ''); // answered after both
	assert.equal(await engine.port(name), port);
	assert.match((await raw({ port, host: '127.0.0.1' }, 'GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toString(), /^HTTP\/1\.1 404 /);
	assert.equal(kept(), own + 2);
	await killSiltd();
	assert.equal(await engine.port(name), port, 'it is what silt-super keeps');
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
	crowd.kill('SIGKILL');
	await until('a place for a stranger', async () => /^HTTP\/1\.1 403 /.test(await stranger(port)), 60_000);
});

test('a door whose siltd has no descriptor left opens when it has, and costs nothing meanwhile', async t => {
	const port = await engine.sidecar(t, `${newName()}-proxy`);
	const pid = daemon.siltd();
	const [uid, gid] = ['Uid', 'Gid'].map(name => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]));
	const limit = most => execFileSync('prlimit', ['--pid', String(pid), `--nofile=${most}:`], { uid, gid });
	const ticks = () => fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ').slice(11, 13).reduce((sum, n) => sum + Number(n), 0);
	const [, most] = /Max open files\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/limits`, 'utf8'));
	await idle(pid); // it makes sandboxes in advance, which needs some
	limit(3); // those that it has stay
	const client = net.connect(port, '127.0.0.1').on('error', () => {});
	try {
		await new Promise(resolve => client.write('GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', resolve));
		const before = ticks();
		await assert.rejects(within(1_500, 'an answer', new Promise(resolve => client.once('data', resolve))), /not within/);
		assert.ok(ticks() - before < 75, `${ticks() - before} ticks in 1.5 s`);
	} finally {
		limit(most);
	}
	assert.match(String(await within(60_000, 'an answer', new Promise(resolve => client.once('data', resolve)))), /^HTTP\/1\.1 404 /);
	client.destroy();
	assert.equal(daemon.siltd(), pid);
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
	await until('its start', async () => (await engine.ask('POST', `/containers/${id}/start`, '')).status === 204);
	assert.equal(await execute(await engine.port(`${name}-proxy`), 'cat /root/old || echo none'), 'none\n');
});

test('a container that siltd died removing is removed by the next one, with its files', async t => {
	const { name, id, port } = await engine.app(t);
	assert.equal(await execute(port, 'echo old > /root/old; cat /root/old'), 'old\n');
	const [pid, priv] = [daemon.siltd(), daemon.programs('silt-priv')[0]];
	await stopped(priv, async () => {
		await begin(t, 'DELETE', `/containers/${id}?force=true`);
		process.kill(pid, 'SIGKILL');
		process.kill(priv, 'SIGKILL');
	}).catch(error => { if (error.code !== 'ESRCH') throw error; });
	await newSiltd(pid);
	await serves();
	await until('its removal', async () => (await engine.ask('GET', `/containers/${id}/json`)).status === 404, 60_000);
	assert.equal(await again(name, 'cat /root/old || echo none'), 'none\n');
});

test('a container whose files could not be removed stays, cannot be started, and goes with its files when it is removed again', async t => {
	const { name, id, port } = await engine.app(t);
	assert.equal(await execute(port, 'echo old > /root/old; cat /root/old'), 'old\n');
	const trash = path.join(`/proc/${daemon.pid}/root`, daemon.state, 'pool/trash');
	seal(trash, true);
	try {
		const refused = await engine.ask('DELETE', `/containers/${id}?force=true`);
		assert.equal(refused.status, 500);
		assert.match(refused.json.message, /its files could not be removed/);
		assert.equal((await engine.expect(200, 'GET', `/containers/${id}/json`)).State.Status, 'exited');
		assert.equal((await engine.ask('POST', `/containers/${id}/start`, '')).status, 409);
		assert.equal((await engine.ask('POST', `/containers/create?name=${id}`, { Image: 'base' })).status, 409);
		assert.equal((await engine.ask('DELETE', `/containers/${id}`)).status, 500, 'as often as it is tried');
	} finally {
		seal(trash, false);
	}
	await engine.expect(204, 'DELETE', `/containers/${id}`);
	assert.equal(await again(name, 'cat /root/old || echo none'), 'none\n');
});

test('a volume whose files could not be removed stays, can only be removed again, and goes with its files', async t => {
	const volume = `v-${randomUUID()}`;
	const see = async (path, status) => {
		const helper = await engine.expect(201, 'POST', '/containers/create', { Image: 'base', HostConfig: { Binds: [`${volume}:/mnt`] } });
		t.after(() => engine.ask('DELETE', `/containers/${helper.Id}?force=true`));
		if (status === undefined)
			assert.equal((await engine.ask('PUT', `/containers/${helper.Id}/archive?path=/mnt`, tar([{ name: 'old', type: 'dir' }]), { headers: { 'content-type': 'application/x-tar' } })).status, 200);
		else
			assert.equal((await engine.ask('GET', `/containers/${helper.Id}/archive?path=${path}`)).status, status);
		await engine.expect(204, 'DELETE', `/containers/${helper.Id}?force=true`);
	};
	await engine.expect(201, 'POST', '/volumes/create', { Name: volume });
	await see('/mnt');
	await see('/mnt/old', 200);
	const trash = path.join(`/proc/${daemon.pid}/root`, daemon.state, 'pool/trash');
	seal(trash, true);
	try {
		assert.equal((await engine.ask('DELETE', `/volumes/${volume}`)).status, 500);
		assert.equal((await engine.ask('DELETE', `/volumes/${volume}`)).status, 500, 'as often as it is tried');
		const refused = await engine.ask('POST', '/volumes/create', { Name: volume });
		assert.equal(refused.status, 409);
		assert.match(refused.json.message, /could not be removed; remove it again/);
		assert.ok((await engine.expect(200, 'GET', '/volumes')).Volumes.some(v => v.Name === volume), 'it can be seen');
	} finally {
		seal(trash, false);
	}
	await engine.expect(204, 'DELETE', `/volumes/${volume}`);
	await engine.expect(201, 'POST', '/volumes/create', { Name: volume });
	await see('/mnt/old', 404);
	await engine.expect(204, 'DELETE', `/volumes/${volume}`);
});

test('a connection to a container whose agent has not answered a new siltd yet waits for it', async t => {
	const { port } = await engine.app(t, { cmd: ['python3', '-m', 'http.server', '8080'] });
	const open = await until('the service', async () => {
		const made = await connect(port, 8080);
		return made.status === 200 && made;
	});
	open.socket.destroy();
	const inits = host.processesOf(daemon.instance).filter(p => p.nsPids.length > 1 && p.nsPids.at(-1) === 1).map(p => p.pid);
	assert.ok(inits.length > 0);
	const freeze = signal => inits.forEach(pid => { try { process.kill(pid, signal); } catch (error) { if (error.code !== 'ESRCH') throw error; } });
	freeze('SIGSTOP');
	let answer;
	try {
		process.kill(daemon.siltd(), 'SIGKILL');
		const client = net.connect(port, '127.0.0.1').on('error', () => {}); // silt-super keeps the door
		t.after(() => client.destroy());
		answer = within(60_000, 'an answer', new Promise(resolve => client.once('data', resolve).once('close', () => resolve('it was closed'))));
		answer.catch(() => {});
		await new Promise(resolve => client.write('CONNECT 127.0.0.1:8080 HTTP/1.1\r\nX-Dst-Addr: 127.0.0.1:8080\r\n\r\n', resolve));
		await until('the new siltd has read it', () => hasRead(port, client.localPort), 60_000);
	} finally {
		freeze('SIGCONT');
	}
	assert.match(String(await answer), /^HTTP\/1\.1 200 /);
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
