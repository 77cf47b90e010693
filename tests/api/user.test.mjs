// SPDX-License-Identifier: Apache-2.0
// Images that name a user: sessions, their commands in the background, files and interpreters are that user's.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { built } from '../lib/build.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { Terminal } from '../lib/pty.mjs';
import { ended, logs, start } from '../lib/process.mjs';
import { tar } from '../lib/tar.mjs';
import { until } from '../lib/wait.mjs';

const DOCKERFILE = `FROM base
RUN echo worker:x:1234:1235::/home/worker:/bin/bash >> /etc/passwd && echo crew:x:1300:worker >> /etc/group && mkdir -p /home/worker /app && chown 1234:1235 /home/worker /app && mkdir -m 700 /secret
WORKDIR /app
`;

let daemon;
before(async () => {
	daemon = await startDaemon();
	await built(daemon, { Dockerfile: `${DOCKERFILE}USER worker\n` }, { names: ['worker'] });
	await built(daemon, { Dockerfile: `${DOCKERFILE}USER 4321:77\n` }, { names: ['stranger'] });
	await built(daemon, { Dockerfile: `${DOCKERFILE}USER nobody-knows\n` }, { names: ['missing'] });
	await built(daemon, { Dockerfile: `${DOCKERFILE}USER worker:crew\n` }, { names: ['grouped'] });
	await built(daemon, { Dockerfile: `${DOCKERFILE}USER 70000\n` }, { names: ['distant'] });
});
after(() => daemon?.stop());

const WHO = 'id -u; id -g; id -G; echo $HOME $USER $LOGNAME; pwd';
const WORKER = '1234\n1235\n1235 1300\n/home/worker worker worker\n/app\n';

test('the shell of a session is the user\'s', async t => {
	const box = await daemon.box(t, { image: 'worker' });
	assert.equal(await box.out(WHO), WORKER);
	assert.equal(await box.out('touch made && stat -c %u:%g made'), '1234:1235\n');
	const denied = await box.run('cat /etc/shadow; ls /secret; echo > /etc/passwd; ls /dev/silt');
	assert.notEqual(denied.exitCode, 0);
	assert.equal(denied.stdout, '');
	await box.api('POST', '/api/session/create', { id: 'other', env: { HOME: '/elsewhere' }, cwd: '/' });
	assert.equal(await box.out('id -u; echo $HOME $USER; pwd', { sessionId: 'other' }), '1234\n/elsewhere worker\n/\n');
	assert.equal(await box.out('id -u', { sessionId: '__DISABLE_SESSION__' }), '1234\n');
	await box.api('POST', '/api/session/create', { id: 'lost', cwd: '/no/such/place' });
	assert.equal(await box.out('pwd', { sessionId: 'lost' }), '/home/worker\n');
});

test('it keeps what a session keeps', async t => {
	const box = await daemon.box(t, { image: 'worker' });
	await box.out('export A=1; f() { echo f; }; cd /tmp; umask 027');
	assert.equal(await box.out('echo $A; f; pwd; umask'), '1\nf\n/tmp\n0027\n');
	for (let i = 0; i < 5; i++)
		assert.equal(await box.out(`echo ${i}`), `${i}\n`);
	assert.equal((await box.exec('exit 3')).status, 410);
	assert.equal(await box.out('id -u; head -c 300000 /dev/zero | wc -c'), '1234\n300000\n');
	assert.equal(await box.out(`: ${'x'.repeat(300_000)}; id -u`), '1234\n');
});

test('after a timeout its new shell is the user\'s, with the state from before', async t => {
	const box = await daemon.box(t, { image: 'worker' });
	await box.out('export A=1; cd /tmp');
	const late = await box.exec('A=2; cd /; while :; do :; done', { timeoutMs: 500 });
	assert.match(late.raw.toString(), /shellRestarted":true/);
	assert.equal(await box.out('echo $A; id -u; pwd'), '1\n1234\n/tmp\n');
});

test('its commands in the background have its user, variables, functions and directory', async t => {
	const box = await daemon.box(t, { image: 'worker' });
	await box.out('export A=1 HOME=/tmp; f() { echo f$1; }; cd /home/worker');
	for (const round of [1, 2]) {
		const { processId } = await start(box, `f ${round}; echo $A $HOME; id -u; id -G; pwd; touch made${round}`);
		assert.equal((await ended(box, processId)).exitCode, 0);
		assert.equal((await logs(box, processId)).stdout, `f${round}\n1 /tmp\n1234\n1235 1300\n/home/worker\n`);
	}
	assert.equal(await box.out('for p in /proc/[0-9]*; do read -r name < $p/comm; [ "$name" != bash ] || stat -c %u $p; done | sort -u'), '1234\n', 'no shell of root\'s waits for the next one');
	const chunks = [];
	for await (const event of box.stream('id -u; echo $A'))
		chunks.push(event);
	assert.match(JSON.stringify(chunks), /1234/);
	const body = { command: 'id -u; echo $A $HOME; stat -c %u /home/worker/made1', user: 'root', sessionId: 'default', processId: 'r' };
	assert.ok((await daemon.api('POST', `/v1/sandboxes/${box.id}/processes`, body)).status < 300);
	await ended(box, 'r');
	assert.match((await logs(box, 'r')).stdout, /^0\n.*\/root\n1234\n$/);
});

test('a terminal is the user\'s, also by its name', async t => {
	const box = await daemon.box(t, { image: 'worker' });
	await box.out('export A=1; cd /tmp');
	const terminal = await Terminal.open(t, box);
	await terminal.ready();
	terminal.type('echo "<$(id -u) $A $PWD $HOME $(stat -c %u $(tty))>"; echo "by na""me" > /dev/stdout\n');
	await terminal.sees(/<1234 1 \/tmp \/home\/worker 1234>/);
	await terminal.sees(/\r\nby name\r\n/);
});

test('an interpreter is the user\'s, and its streams can be opened by their names', async t => {
	const codes = {
		python: 'import os\nwith open("/dev/stdout", "w") as out: out.write("by name\\n")\nprint(os.getuid(), os.getgroups(), os.environ["HOME"], os.getcwd())\nopen("made", "w").close()',
		javascript: 'const fs = require("fs"); fs.writeFileSync("/dev/stdout", "by name\\n"); console.log(process.getuid(), process.getgroups().join(), process.env.HOME, process.cwd()); fs.writeFileSync("made2", "")',
	};
	for (const image of ['worker', 'base']) {
		const box = await daemon.box(t, { image });
		for (const [language, code] of Object.entries(codes)) {
			const { body } = await daemon.api('POST', `/v1/sandboxes/${box.id}/contexts/${language}/run`, { code }, { deadline: 120_000 });
			assert.equal(body.error, null, JSON.stringify(body));
			assert.match(body.logs.stdout.join(''), image === 'worker' ? /^by name\n1234 \[?1235,\s?1300\]? \/home\/worker \/app\n$/ : /^by name\n0 /);
		}
	}
});

test('files that are written, directories that are made are the user\'s; every file can be read', async t => {
	const box = await daemon.box(t, { image: 'worker' });
	const write = async (path, content) => assert.equal((await box.api('POST', '/api/write', { path, content })).status, 200);
	await write('/app/new.txt', 'new');
	await write('/etc/hostname-of-mine', 'anywhere');
	assert.equal((await box.api('POST', '/api/mkdir', { path: '/app/a/b', recursive: true })).status, 200);
	assert.equal((await daemon.api('PUT', `/v1/sandboxes/${box.id}/files?path=/app/native.txt`, Buffer.from('native'))).status < 300, true);
	assert.equal(await box.out('stat -c "%u:%g %a" new.txt a a/b native.txt /etc/hostname-of-mine'), '1234:1235 644\n1234:1235 755\n1234:1235 755\n1234:1235 644\n1234:1235 644\n');
	assert.equal(await box.out('echo more >> new.txt; cat new.txt'), 'newmore\n');
	await write('/etc/passwd', `${await box.out('cat /etc/passwd')}x:x:9:9::/:\n`);
	assert.equal(await box.out('stat -c %u:%g /etc/passwd'), '0:0\n', 'an old file keeps its owner');
	assert.equal((await box.api('POST', '/api/read', { path: '/etc/shadow' })).status, 200);
	assert.equal((await box.api('POST', '/api/write', { path: '/secret/in', content: '1' })).status, 200);
	assert.equal((await box.api('POST', '/api/delete', { path: '/secret/in' })).status, 200);
});

test('a user that the image does not know by name has its numbers', async t => {
	const box = await daemon.box(t, { image: 'stranger' });
	assert.equal(await box.out('id -u; id -g; echo $HOME ${USER-none}'), '4321\n77\n/ none\n');
	assert.equal((await box.api('POST', '/api/write', { path: '/tmp/x', content: '1' })).status, 200);
	assert.equal(await box.out('stat -c %u:%g /tmp/x'), '4321:77\n');
});

test('a user may come with a group', async t => {
	const box = await daemon.box(t, { image: 'grouped' });
	assert.equal(await box.out('id -u; id -G; echo $HOME $USER; touch made; stat -c %u:%g made'), '1234\n1300\n/home/worker worker\n1234:1300\n');
	assert.equal((await box.api('POST', '/api/write', { path: '/tmp/x', content: '1' })).status, 200);
	assert.equal(await box.out('stat -c %u:%g /tmp/x'), '1234:1300\n');
});

test('a user with a number that no sandbox has is told, and files can be got at all the same', async t => {
	const box = await daemon.box(t, { image: 'distant' });
	const answer = await box.exec('true');
	assert.equal(answer.status, 500);
	assert.match(answer.body.message, /user '70000' is 70000:0, but a sandbox has numbers below 65536/);
	assert.equal((await box.api('POST', '/api/write', { path: '/app/x', content: '1' })).status, 200);
	assert.equal((await box.api('POST', '/api/read', { path: '/app/x' })).body.content, '1');
});

const putTar = (box, path, body, query = '') => daemon.api('PUT', `/v1/sandboxes/${box.id}/files?path=${path}${query}`, body, { headers: { 'content-type': 'application/x-tar' } });

test('what is unpacked is the user\'s, unless the owners of the archive are wanted', async t => {
	const box = await daemon.box(t, { image: 'worker' });
	const archive = tar([{ name: './', type: 'dir' }, { name: 'a/', type: 'dir' }, { name: 'a/file', data: 'x', mode: 0o600, uid: 1000, gid: 1000 }, { name: 'a/link', type: 'symlink', target: '/etc/shadow' }]);
	const look = async directory => await box.out(`cd ${directory} && stat -c %u:%g . a a/file a/link`);
	for (const directory of ['/app/new', '/app']) {
		assert.equal((await putTar(box, directory, archive)).status, 200);
		assert.equal(await look(directory), '1234:1235\n'.repeat(4));
	}
	assert.equal(await box.out('cat a/file; echo y >> a/file; ls -A /app; stat -Lc %u /etc/shadow'), 'xa\nnew\n0\n');
	assert.equal((await putTar(box, '/tmp/kept', archive, '&owners=true')).status, 200);
	assert.equal(await look('/tmp/kept'), '0:0\n0:0\n1000:1000\n0:0\n');
	assert.equal((await putTar(box, '/tmp/kept', archive, '&owners=some')).status, 400);
});

test('nobody gets into a directory that is being unpacked', async t => {
	const box = await daemon.box(t, { image: 'worker' });
	const archive = tar([{ name: 'first', data: 'x' }, { name: './', type: 'dir', uid: 1234, gid: 1235 }, { name: 'last', data: Buffer.alloc(100_000) }]);
	const raw = await daemon.client.raw();
	t.after(() => raw.socket.destroy());
	const intruder = box.out('until [ -e /etc/.silt-t* ]; do :; done; cd /etc/.silt-t* && echo 0 > passwd && ln -s /etc first2; [ -e passwd ] && pwd || echo outside');
	raw.send(`PUT /v1/sandboxes/${box.id}/files?path=/etc HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${daemon.token}\r\nContent-Type: application/x-tar\r\nContent-Length: ${archive.length}\r\n\r\n`);
	raw.send(archive.subarray(0, 10_240));
	assert.equal(await intruder.catch(error => error.message), 'outside\n');
	raw.send(archive.subarray(10_240));
	await until('it is unpacked', () => box.out('[ -e /etc/last ] && ls -A /etc | grep -c silt-t || :').then(out => out === '0\n'), 30_000);
	assert.equal(await box.out('id -un; stat -c %u /etc'), 'worker\n0\n');
});

test('what is moved to another file system is not the user\'s on its way', async t => {
	const box = await daemon.box(t, { image: 'worker' });
	await daemon.api('POST', `/v1/sandboxes/${box.id}/processes`, { command: 'mkdir -m 700 /secret/many && cd /secret/many && for i in {1..3000}; do echo $i > $i; done', user: 'root', processId: 'r' });
	assert.equal((await ended(box, 'r')).exitCode, 0);
	const intruder = box.out('touch ready; until cd /dev/shm/.silt-t* 2>/dev/null; do [ ! -e /dev/shm/moved ] || break; done; [ "$PWD" = /app ] || echo inside');
	await until('somebody looks', async () => (await daemon.api('POST', `/v1/sandboxes/${box.id}/files/stat`, { path: '/app/ready' })).status === 200, 30_000);
	assert.equal((await daemon.api('POST', `/v1/sandboxes/${box.id}/files/move`, { path: '/secret/many', to: '/dev/shm/moved' })).status, 200);
	assert.equal(await intruder.catch(error => error.message), '');
	await daemon.api('POST', `/v1/sandboxes/${box.id}/processes`, { argv: ['stat', '-c', '%u:%g %a', '/dev/shm/moved', '/dev/shm/moved/7'], user: 'root', processId: 's' });
	assert.equal((await ended(box, 's')).exitCode, 0);
	assert.equal((await logs(box, 's')).stdout, '0:0 700\n0:0 644\n');
});

test('a user that is not there is told, and files can be got at all the same', async t => {
	const box = await daemon.box(t, { image: 'missing' });
	const answer = await box.exec('true');
	assert.notEqual(answer.status, 200);
	assert.match(answer.body.message, /no user 'nobody-knows' in this image/);
	const created = await box.api('POST', '/api/session/create', { id: 'other' });
	assert.equal(created.status, 500);
	assert.equal(created.body.code, 'INTERNAL_ERROR');
	assert.match(created.body.message, /no user 'nobody-knows' in this image/);
	assert.equal((await box.api('POST', '/api/git/checkout', { repoUrl: 'https://x.invalid/a.git' })).status, 500);
	assert.equal((await box.api('POST', '/api/write', { path: '/app/x', content: '1' })).status, 200);
	assert.equal((await box.api('POST', '/api/read', { path: '/app/x' })).body.content, '1');
});

test('sessions of the user survive siltd, and leave nothing where they met silt-init', async t => {
	const box = await daemon.box(t, { image: 'worker' });
	const files = async () => {
		await daemon.api('POST', `/v1/sandboxes/${box.id}/processes`, { argv: ['ls', '/dev/silt'], user: 'root', processId: 'ls' });
		await ended(box, 'ls');
		return (await logs(box, 'ls')).stdout.split('\n').length;
	};
	await box.out('export A=1; cd /tmp');
	const before = await files();
	process.kill(daemon.siltd(), 'SIGKILL');
	assert.equal(await until('siltd is back', () => box.out('echo $A; id -u; pwd').catch(() => null)), '1\n1234\n/tmp\n');
	for (let i = 0; i < 5; i++) {
		assert.equal(await box.out('id -u', { sessionId: `s${i}` }), '1234\n');
		assert.equal((await box.api('POST', '/api/session/delete', { sessionId: `s${i}` })).status, 200);
	}
	assert.equal(await until('files are gone', async () => await files() === before), true);
});
