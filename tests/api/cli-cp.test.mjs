// SPDX-License-Identifier: Apache-2.0
// silt cp: files and directories in, out and across, against a daemon of the test's own.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { silt } from '../lib/silt.mjs';
import { tar } from '../lib/tar.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const cp = (from, to, options) => silt(daemon, ['cp', from, to], options);

async function copied(from, to, options) {
	const end = await cp(from, to, options);
	assert.deepEqual([end.stderr, end.code], ['', 0], `silt cp ${from} ${to}`);
	return end;
}

/** A directory of this machine that goes with the test. */
function directory(t) {
	const home = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-cp-'));
	t.after(() => fs.rmSync(home, { recursive: true, force: true }));
	return home;
}

/** Everything below a directory: path, type, permissions, contents or target. */
function tree(root) {
	const rows = {};
	const walk = (dir, prefix) => {
		for (const entry of fs.readdirSync(dir, { withFileTypes: true })) {
			const at = path.join(dir, entry.name);
			const mode = (fs.lstatSync(at).mode & 0o777).toString(8);
			rows[prefix + entry.name] = entry.isSymbolicLink() ? `-> ${fs.readlinkSync(at)}`
				: entry.isDirectory() ? `dir ${mode}` : `${mode} ${fs.readFileSync(at).toString('base64')}`;
			if (entry.isDirectory())
				walk(at, `${prefix}${entry.name}/`);
		}
	};
	walk(root, '');
	return rows;
}

/** A small project with everything that is awkward about file names. */
function project(home) {
	const root = path.join(home, 'project');
	fs.mkdirSync(path.join(root, 'src/deep'), { recursive: true });
	fs.mkdirSync(path.join(root, 'empty'));
	fs.writeFileSync(path.join(root, 'README'), 'read me\n');
	fs.writeFileSync(path.join(root, 'src/run.sh'), '#!/bin/sh\necho ran\n', { mode: 0o755 });
	fs.writeFileSync(path.join(root, 'src/deep/-a "b" \'c\' ä\n d'), randomBytes(3000));
	fs.writeFileSync(path.join(root, 'src/secret'), 'x', { mode: 0o600 });
	fs.symlinkSync('src/run.sh', path.join(root, 'link'));
	return root;
}

test('cp brings a file in and out again, byte for byte', async t => {
	const box = await daemon.box(t);
	const home = directory(t);
	const bytes = randomBytes(3_000_001);
	fs.writeFileSync(path.join(home, 'a'), bytes);
	await copied(path.join(home, 'a'), `${box.id}:/tmp/b c`);
	assert.equal((await box.out("stat -c '%s %a' '/tmp/b c'")).trim(), '3000001 644');
	await copied(`${box.id}:/tmp/b c`, path.join(home, 'd'));
	assert.ok(fs.readFileSync(path.join(home, 'd')).equals(bytes));
});

test('cp keeps what is executable executable, and the permissions of a file that is there', async t => {
	const box = await daemon.box(t);
	const home = directory(t);
	const file = path.join(home, 'tool');
	fs.writeFileSync(file, '#!/bin/sh\necho works\n', { mode: 0o755 });
	await copied(file, `${box.id}:/usr/local/bin/tool`);
	assert.equal(await box.out('tool'), 'works\n');
	await box.out('install -m 600 /dev/null /tmp/private');
	await copied(file, `${box.id}:/tmp/private`);
	assert.equal((await box.out('stat -c %a /tmp/private')).trim(), '600');
	await copied(`${box.id}:/usr/local/bin/tool`, path.join(home, 'out'));
	assert.equal(fs.statSync(path.join(home, 'out')).mode & 0o700, 0o700);
	fs.writeFileSync(path.join(home, 'kept'), 'old', { mode: 0o640 });
	await copied(`${box.id}:/usr/local/bin/tool`, path.join(home, 'kept'));
	assert.equal(fs.statSync(path.join(home, 'kept')).mode & 0o777, 0o640);
});

test('cp puts a file into a directory under its name', async t => {
	const box = await daemon.box(t);
	const home = directory(t);
	fs.writeFileSync(path.join(home, 'a.txt'), 'hello');
	await copied(path.join(home, 'a.txt'), `${box.id}:/tmp`);
	assert.equal(await box.out('cat /tmp/a.txt'), 'hello');
	await copied(path.join(home, 'a.txt'), `${box.id}:`);
	assert.equal(await box.out('cat /workspace/a.txt'), 'hello');
	await copied(path.join(home, 'a.txt'), `${box.id}:new/directory/`);
	assert.equal(await box.out('cat /workspace/new/directory/a.txt'), 'hello');
	fs.mkdirSync(path.join(home, 'sub'));
	await copied(`${box.id}:a.txt`, path.join(home, 'sub'));
	assert.equal(fs.readFileSync(path.join(home, 'sub/a.txt'), 'utf8'), 'hello');
	await copied(`${box.id}:/etc/hostname`, '.', { cwd: home });
	assert.equal(fs.readFileSync(path.join(home, 'hostname'), 'utf8'), await box.out('cat /etc/hostname'));
});

test('cp of a directory becomes a new directory or goes into one that is there', async t => {
	const box = await daemon.box(t);
	const home = directory(t);
	const root = project(home);
	await copied(root, `${box.id}:/workspace/app`);
	assert.equal(await box.out('cd /workspace/app && ./link && find . -printf x'), 'ran\nxxxxxxxxx');
	assert.equal((await box.out('stat -c %u:%g /workspace/app/README')).trim(), '0:0');
	await copied(root, `${box.id}:/workspace/app`);
	assert.equal(await box.out('cat /workspace/app/project/README'), 'read me\n');
	await copied(`${box.id}:/workspace/app/project`, path.join(home, 'back'));
	assert.deepEqual(tree(path.join(home, 'back')), tree(root));
	fs.mkdirSync(path.join(home, 'into'));
	await copied(`${box.id}:/workspace/app/project`, path.join(home, 'into'));
	assert.deepEqual(tree(path.join(home, 'into/project')), tree(root));
});

test('cp reads standard input and writes standard output', async t => {
	const box = await daemon.box(t);
	const bytes = randomBytes(500_000);
	await copied('-', `${box.id}:/tmp/in`, { input: bytes });
	assert.ok((await copied(`${box.id}:/tmp/in`, '-')).raw.equals(bytes));
	await box.out('mkdir /tmp/d && echo 1 > /tmp/d/one');
	const archive = (await copied(`${box.id}:/tmp/d`, '-')).raw;
	assert.match(execFileSync('tar', ['-t'], { input: archive }).toString(), /one$/m);
	const end = await cp('-', `${box.id}:/tmp`, { input: 'x' });
	assert.equal(end.code, 125);
	assert.match(end.stderr, /silt cp - \S+:\/tmp\/NAME/);
});

test('cp goes from sandbox to sandbox', async t => {
	const [a, b] = [await daemon.box(t), await daemon.box(t)];
	await a.out('mkdir -p /tmp/d/e && head -c 2000000 /dev/urandom > /tmp/d/e/f && chmod 750 /tmp/d/e/f');
	const sum = async (box, file) => (await box.out(`sha256sum < ${file}; stat -c %a ${file}`));
	await copied(`${a.id}:/tmp/d/e/f`, `${b.id}:/tmp/g`);
	assert.equal(await sum(b, '/tmp/g'), await sum(a, '/tmp/d/e/f'));
	await copied(`${a.id}:/tmp/d`, `${b.id}:/opt/new`);
	assert.equal(await sum(b, '/opt/new/e/f'), await sum(a, '/tmp/d/e/f'));
});

test('cp says what is wrong and with what', async t => {
	const box = await daemon.box(t);
	const home = directory(t);
	const fails = async (from, to, pattern) => {
		const end = await cp(from, to);
		assert.equal(end.code, 125, `${from} ${to}`);
		assert.match(end.stderr, pattern);
	};
	await fails(`${box.id}:/no/such`, home, /\/no\/such/);
	await fails(path.join(home, 'nothing'), `${box.id}:/tmp`, /nothing: no such file/);
	await fails(home, path.join(home, 'x'), /ID:PATH/);
	await fails(home, `${box.id}:/etc/passwd`, /is a file/);
	await fails(`${box.id}:/etc/passwd`, path.join(home, 'no/such/place'), /no\/such\/place/);
	await fails('bad..id:/x', home, /bad\.\.id/);
	assert.deepEqual(fs.readdirSync(home), []);
	const usage = await silt(daemon, ['cp', 'one']);
	assert.equal(usage.code, 125);
	assert.match(usage.stderr, /usage: silt cp/);
});

test('cp makes a sandbox of a new id that it copies to, not of one that it copies from', async t => {
	const home = directory(t);
	const box = await daemon.box(t);
	const end = await cp(`${box.id}:/etc/passwd`, home);
	assert.equal(end.code, 125);
	assert.match(end.stderr, new RegExp(`${box.id}.* does not exist`));
	await copied('-', `${box.id}:hello`, { input: 'world' });
	assert.equal(await box.out('cat /workspace/hello'), 'world');
});

test('cp into a full sandbox says so and leaves nothing half done', async t => {
	const box = await daemon.box(t, { limits: { diskMiB: 64 } });
	const home = directory(t);
	fs.mkdirSync(path.join(home, 'd'));
	fs.writeFileSync(path.join(home, 'd/big'), randomBytes(100 << 20));
	for (const from of ['d/big', 'd']) {
		const end = await cp(path.join(home, from), `${box.id}:/workspace/new`);
		assert.equal(end.code, 125);
		assert.match(end.stderr, /workspace\/new: .*(full|space|quota)/i);
		await until('nothing is left', async () => await box.out('ls -A /workspace') === '');
	}
});

/** A daemon that lies: what it says is at a path, and the bytes of it. */
async function liar(t, stat, answer) {
	const server = http.createServer((request, response) => {
		if (request.method === 'POST')
			response.end(JSON.stringify(stat));
		else
			answer(response);
	});
	t.after(() => server.close());
	await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
	return { SILT_SERVER: `127.0.0.1:${server.address().port}` };
}

test('cp of an answer that breaks off keeps the file that was there', async t => {
	const home = directory(t);
	fs.writeFileSync(path.join(home, 'big'), 'old');
	const env = await liar(t, { type: 'file', size: 100, mode: '0644' }, response => {
		response.writeHead(200, { 'Content-Length': 100 });
		response.write('only this', () => response.destroy());
	});
	const end = await cp('box:/tmp/big', path.join(home, 'big'), { env });
	assert.equal(end.code, 125);
	assert.match(end.stderr, /broke the answer off|receive from/);
	assert.equal(fs.readFileSync(path.join(home, 'big'), 'utf8'), 'old');
	assert.deepEqual(fs.readdirSync(home), ['big']);
});

test('a tar from a sandbox that lies writes nothing outside of its directory and makes no devices', async t => {
	const home = directory(t);
	const outside = path.join(home, 'outside');
	fs.mkdirSync(outside);
	const evil = [
		{ name: '../up', data: 'x' },
		{ name: path.join(outside, 'absolute'), data: 'x' },
		{ name: 'link', type: 'symlink', target: outside },
		{ name: 'hard', type: 'hardlink', target: path.join(outside, 'secret') },
		{ name: 'disk', type: 'block', mode: 0o666, major: 7, minor: 0 },
		{ name: 'mem', type: 'char', mode: 0o666, major: 1, minor: 1 },
		{ name: 'good', data: 'x', uid: 1234, mode: 0o6777 },
	];
	fs.writeFileSync(path.join(outside, 'secret'), 'secret');
	const through = [{ name: 'through', type: 'symlink', target: outside }, { name: 'through/file', data: 'x' }];
	for (const entries of [evil, through, ...evil.map(entry => [entry])]) {
		const env = await liar(t, { type: 'directory', size: 0, mode: '0755' }, response => response.end(tar(entries)));
		const target = fs.mkdtempSync(path.join(home, 'to-'));
		const end = await cp('box:/d', path.join(target, 'd'), { env });
		assert.equal(end.code, ['link', 'good'].includes(entries[0].name) || entries[0].name.endsWith('absolute') ? 0 : 125, entries[0].name);
		assert.deepEqual(fs.readdirSync(outside), ['secret'], entries[0].name);
		assert.equal(fs.statSync(path.join(outside, 'secret')).nlink, 1, entries[0].name);
		assert.deepEqual(fs.readdirSync(target), end.code === 0 ? ['d'] : [], entries[0].name);
		const kinds = fs.readdirSync(target, { recursive: true }).map(name => fs.lstatSync(path.join(target, name)));
		assert.ok(kinds.every(st => !st.isBlockDevice() && !st.isCharacterDevice() && (st.isSymbolicLink() || (st.mode & 0o7000) === 0) && st.uid === process.getuid()), entries[0].name);
	}
});

test('a link that came with one copy is no way out for the next', async t => {
	const home = directory(t);
	const outside = path.join(home, 'outside');
	fs.mkdirSync(outside);
	let entries;
	const env = await liar(t, { type: 'directory', size: 0, mode: '0755' }, response => response.end(tar(entries)));
	const copy = next => {
		entries = next;
		return cp('box:/d', home, { env });
	};
	assert.equal((await copy([{ name: 'x', type: 'symlink', target: outside }, { name: 'kept', data: '1' }])).code, 0);
	for (const next of [[{ name: 'x/file', data: 'evil' }], [{ name: 'x', type: 'dir' }, { name: 'x/file', data: 'evil' }]]) {
		const end = await copy(next);
		assert.equal(end.code, 125);
		assert.match(end.stderr, /x is a directory on one side and none on the other/);
	}
	assert.equal((await copy([{ name: 'x', data: 'a file now' }, { name: 'sub', type: 'dir' }, { name: 'sub/new', data: '2' }])).code, 0);
	assert.deepEqual(fs.readdirSync(outside), []);
	assert.deepEqual(fs.readdirSync(path.join(home, 'd')).sort(), ['kept', 'sub', 'x']);
	assert.equal(fs.readFileSync(path.join(home, 'd/x'), 'utf8'), 'a file now');
});

test('half a directory changes nothing', async t => {
	const home = directory(t);
	const whole = tar([{ name: 'a', data: 'new' }, { name: 'b', data: Buffer.alloc(100_000) }]);
	const env = await liar(t, { type: 'directory', size: 0, mode: '0755' }, response => response.write(whole.subarray(0, 50_000), () => response.destroy()));
	fs.mkdirSync(path.join(home, 'd'));
	fs.writeFileSync(path.join(home, 'd/a'), 'old');
	for (const to of [home, path.join(home, 'fresh')])
		assert.equal((await cp('box:/d', to, { env })).code, 125);
	assert.deepEqual(tree(home), { d: 'dir 755', 'd/a': `644 ${Buffer.from('old').toString('base64')}` });
});

test('cp gives a directory no rights that a sandbox has chosen', async t => {
	const box = await daemon.box(t);
	const home = directory(t);
	await box.out('mkdir /tmp/d && cp /bin/true /tmp/d/shell && chmod 6777 /tmp/d/shell && ln -s /etc/passwd /tmp/d/link && chown 1234:1234 /tmp/d/shell');
	await copied(`${box.id}:/tmp/d`, path.join(home, 'd'));
	const st = fs.statSync(path.join(home, 'd/shell'));
	assert.equal(st.mode & 0o7000, 0);
	assert.equal(st.uid, process.getuid());
	assert.equal(fs.readlinkSync(path.join(home, 'd/link')), '/etc/passwd');
});

test('Ctrl-C in the middle leaves what was there and nothing else', async t => {
	const box = await daemon.box(t);
	const home = directory(t);
	const fifo = path.join(home, 'fifo');
	execFileSync('mkfifo', [fifo]);
	await box.out('echo old > /tmp/target');
	let child;
	const copying = cp(fifo, `${box.id}:/tmp/target`, { onStart: c => { child = c; } });
	const writer = await fs.promises.open(fifo, 'w'); // when silt has opened the other end
	await writer.write(randomBytes(50_000));
	child.kill('SIGINT');
	const end = await copying;
	await writer.close();
	assert.equal(end.code, 130);
	await until('what was there, and nothing else', async () => await box.out('cat /tmp/target; ls -A /tmp') === 'old\ntarget\n');
	assert.deepEqual(fs.readdirSync(home), ['fifo']);
});

test('a bar is shown on a terminal when it takes longer than a second', async t => {
	const box = await daemon.box(t);
	const home = directory(t);
	const fifo = path.join(home, 'movie.mp4');
	execFileSync('mkfifo', [fifo]);
	let seen = '';
	const copying = cp(fifo, `${box.id}:/tmp/movie`, { terminal: true, onOutput: text => { seen = text; } });
	const writer = await fs.promises.open(fifo, 'w');
	await until('the bar', async () => {
		await writer.write(Buffer.alloc(10_000));
		return /movie\.mp4 .*MiB\/s/.test(seen);
	});
	await writer.close();
	const end = await copying;
	assert.equal(end.code, 0);
	assert.match(end.stdout, /MiB\/s {2}0:\d\d in all/);
	const quick = path.join(home, 'quick');
	fs.writeFileSync(quick, 'x');
	const begun = performance.now();
	const { stdout } = await cp(quick, `${box.id}:/tmp`, { terminal: true });
	assert.ok(stdout === '' || performance.now() - begun >= 1_000, stdout); // on a busy machine it takes longer than a second
});
