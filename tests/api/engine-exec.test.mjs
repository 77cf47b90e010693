// SPDX-License-Identifier: Apache-2.0
// Commands in containers through the engine socket: hijacked connections, frames, terminals, pids.

import assert from 'node:assert/strict';
import net from 'node:net';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { Engine, newName } from '../lib/engine.mjs';
import { until, within } from '../lib/wait.mjs';

let daemon, engine, app;
before(async () => {
	daemon = await startDaemon();
	engine = new Engine(daemon);
	app = await engine.app(undefined, { env: ['A=1', 'B=2'] });
});
after(() => daemon.stop());

const create = (cmd, more = {}) => engine.expect(201, 'POST', `/containers/${app.id}/exec`, { AttachStdin: true, AttachStdout: true, AttachStderr: true, Tty: false, Cmd: cmd, ...more }).then(made => made.Id);
const look = id => engine.expect(200, 'GET', `/exec/${id}/json`);

/** Starts it as workerd does: head and body in one segment. {socket, head, output: promise of {streams, raw}} */
async function attach(id, { tty = false, size } = {}) {
	const body = JSON.stringify({ Detach: false, Tty: tty, ...(size && { ConsoleSize: size }) });
	const socket = net.connect({ path: engine.socket, allowHalfOpen: true });
	socket.write(`POST /exec/${id}/start HTTP/1.1\r\nContent-Length: ${body.length}\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n${body}`);
	const pieces = [];
	let head;
	const ready = new Promise((resolve, reject) => {
		socket.on('error', reject).on('data', piece => {
			pieces.push(piece);
			if (head !== undefined)
				return;
			const all = Buffer.concat(pieces);
			const end = all.indexOf('\r\n\r\n');
			if (end < 0)
				return;
			head = all.subarray(0, end).toString();
			pieces.splice(0, pieces.length, all.subarray(end + 4));
			resolve();
		});
	});
	const over = new Promise(resolve => socket.on('end', () => (socket.end(), resolve())).on('close', resolve));
	await within(60_000, 'head', ready);
	const so_far = () => Buffer.concat(pieces);
	return { socket, head, so_far, output: within(60_000, 'end of the stream', over).then(() => frames(so_far(), tty)) };
}

function frames(bytes, tty) {
	if (tty)
		return { raw: bytes.toString() };
	const streams = { 1: [], 2: [] };
	for (let at = 0; at < bytes.length;) {
		const length = bytes.readUInt32BE(at + 4);
		assert.deepEqual([...bytes.subarray(at + 1, at + 4)], [0, 0, 0]);
		streams[bytes[at]].push(bytes.subarray(at + 8, at + 8 + length));
		at += 8 + length;
	}
	return { stdout: Buffer.concat(streams[1]), stderr: Buffer.concat(streams[2]) };
}

const wrapper = uuid => ['/bin/sh', '-c', `echo $$ > /tmp/.workerd-exec-${uuid}.pid; exec "$@"`, 'sh'];

test('who expects a 100 and does not wait for it gets none in the stream', async () => {
	const id = await create(['sh', '-c', 'sleep 0.2; echo out']);
	const body = JSON.stringify({ Detach: false, Tty: false });
	const socket = net.connect({ path: engine.socket, allowHalfOpen: true });
	socket.write(`POST /exec/${id}/start HTTP/1.1\r\nContent-Length: ${body.length}\r\nHost: localhost\r\nExpect: 100-continue\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n${body}`);
	const pieces = [];
	await within(60_000, 'its end', new Promise((resolve, reject) => socket.on('data', piece => pieces.push(piece)).on('error', reject).on('end', resolve)));
	socket.destroy();
	const all = Buffer.concat(pieces);
	const end = all.indexOf('\r\n\r\n');
	assert.match(all.subarray(0, end).toString(), /^HTTP\/1\.1 101 /);
	assert.equal(frames(all.subarray(end + 4)).stdout.toString(), 'out\n');
});

test('a command has its streams on the connection, in frames, and an end', async () => {
	const id = await create(['sh', '-c', 'echo out; echo err >&2; echo $A$B$C; pwd; exit 3'], { Env: ['B=x', 'C=y'], WorkingDir: '/tmp' });
	const { head, output } = await attach(id);
	assert.match(head, /^HTTP\/1\.1 101 /);
	assert.match(head, /application\/vnd\.docker\.multiplexed-stream/);
	const { stdout, stderr } = await output;
	assert.equal(stdout.toString(), 'out\n1xy\n/tmp\n');
	assert.equal(stderr.toString(), 'err\n');
	const end = await look(id);
	assert.equal(end.Running, false);
	assert.equal(end.ExitCode, 3);
	assert.notEqual(end.Pid, 0);
	assert.equal((await engine.ask('POST', `/exec/${id}/start`, { Detach: false })).status, 409);
});

test('what the client says is standard input, and its half-close is the end of it', async () => {
	const { socket, output } = await attach(await create(['sh', '-c', 'cat; echo over']));
	socket.write('one ');
	socket.end('two\n');
	assert.equal((await output).stdout.toString(), 'one two\nover\n');
});

test('64 MiB flow both ways', async () => {
	const { socket, output } = await attach(await create(['sh', '-c', 'head -c 67108864 /dev/zero; wc -c >&2']));
	const piece = Buffer.alloc(1 << 20, 'x');
	for (let i = 0; i < 64; i++)
		if (!socket.write(piece))
			await within(60_000, 'drain', new Promise(resolve => socket.once('drain', resolve)));
	socket.end();
	const { stdout, stderr } = await output;
	assert.equal(stdout.length, 67108864);
	assert.equal(stderr.toString().trim(), '67108864');
});

test('a client that does not read holds the command back, not the daemon', async () => {
	const id = await create(['sh', '-c', 'head -c 50000000 /dev/zero; echo done > /tmp/all-written']);
	const { socket, output } = await attach(id);
	socket.pause();
	for (let i = 0; i < 20; i++)
		await look(id);
	assert.equal((await look(id)).Running, true);
	socket.resume();
	assert.equal((await output).stdout.length, 50000000);
});

test('a terminal is raw, has a size and can be resized', async () => {
	const id = await create(['sh', '-c', 'stty size; read x; stty size; echo got:$x'], { Tty: true });
	const { socket, so_far, output } = await attach(id, { tty: true, size: [40, 100] });
	await until('first size', () => so_far().toString().includes('40 100'));
	assert.ok([200, 201].includes((await engine.ask('POST', `/exec/${id}/resize?h=50&w=120`)).status));
	socket.write('hello\n');
	const { raw } = await output;
	assert.match(raw, /50 120\r\ngot:hello\r\n/);
	assert.equal((await engine.ask('POST', `/exec/${id}/resize?h=x&w=1`)).status, 400);
});

test('a process that is held open by an orphan does not hold the stream', async () => {
	const id = await create(['sh', '-c', 'sleep 600 & echo started']);
	const { output } = await attach(id);
	assert.equal((await output).stdout.toString(), 'started\n');
	assert.equal((await look(id)).ExitCode, 0);
});

test('kill as workerd does it: a pid is told when its file is there, and a detached helper kills by it', async () => {
	const uuid = newName().slice(-36);
	const id = await create([...wrapper(uuid), 'sleep', '600']);
	const { output } = await attach(id);
	await until('its pid', async () => (await look(id)).Pid !== 0);
	const helper = await engine.expect(201, 'POST', `/containers/${app.id}/exec`, { AttachStdin: false, AttachStdout: false, AttachStderr: false, Cmd: ['/bin/sh', '-c', `kill -15 "$(cat /tmp/.workerd-exec-${uuid}.pid)"`] });
	assert.equal((await engine.ask('POST', `/exec/${helper.Id}/start`, { Detach: true, Tty: false })).status, 200);
	await until('the helper', async () => !(await look(helper.Id)).Running);
	assert.equal((await look(helper.Id)).ExitCode, 0);
	await output;
	assert.equal((await look(id)).ExitCode, 143);
});

test('a program that is not there ends with 127, a user with its name', async () => {
	const id = await create(['/no/such/thing']);
	const { stderr } = await (await attach(id)).output;
	assert.match(stderr.toString(), /no\/such\/thing/);
	assert.equal((await look(id)).ExitCode, 127);
	assert.equal((await (await attach(await create(['id', '-un'], { User: 'nobody' }))).output).stdout.toString(), 'nobody\n');
});

test('what makes no sense is refused', async () => {
	for (const body of ['', '{', '[]', '{}', '{"Cmd":[]}', '{"Cmd":"x","Tty":1}', '{"Cmd":[1]}', '{"Cmd":["x"],"Env":["x"]}', '{"Cmd":["x"],"Privileged":true}', '{"Cmd":["x"],"ConsoleSize":[1]}']) {
		const answer = await engine.ask('POST', `/containers/${app.id}/exec`, body);
		assert.equal(answer.status, 400, body);
		assert.equal(typeof answer.json.message, 'string');
	}
	assert.equal((await engine.ask('GET', '/exec/nothing/json')).status, 404);
	assert.equal((await engine.ask('POST', '/exec/nothing/start', {})).status, 404);
	assert.equal((await engine.ask('POST', `/containers/${app.id}-proxy/exec`, { Cmd: ['x'] })).status, 409);
	const id = await create(['true']);
	assert.equal((await engine.ask('POST', `/exec/${id}/start`, '{"Detach":3}')).status, 400);
});

test('the end of the container is the end of its commands', async t => {
	const other = await engine.app(t);
	const made = await engine.expect(201, 'POST', `/containers/${other.id}/exec`, { AttachStdout: true, Cmd: ['sleep', '600'] });
	const { output } = await attach(made.Id);
	await until('it runs', async () => (await look(made.Id)).Pid !== 0);
	await engine.expect(204, 'POST', `/containers/${other.id}/kill`);
	await output;
	assert.deepEqual([(await look(made.Id)).Running, (await look(made.Id)).ExitCode], [false, 137]);
});
