// SPDX-License-Identifier: Apache-2.0
// Watching files: streams of events, and "what changed since".
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import * as host from '../lib/host.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { refused, TIME } from '../lib/expect.mjs';
import { Watcher } from '../lib/watcher.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const check = (box, body) => box.api('POST', '/api/watch/check', body);
/** Pids on the machine of the sandbox's processes that have an inotify instance. */
async function inotifiers(box) {
	const { pidNamespace } = host.processInfo(await box.init());
	return host.processesOf(daemon.instance).filter(p => p.pidNamespace === pidNamespace && host.hasOpen(p.pid, 'anon_inode:inotify')).map(p => p.pid);
}

const name = e => `${e.eventType} ${e.path}${e.isDirectory ? '/' : ''}`;

test('a watch begins with `watching` and tells what happens to files', async t => {
	const box = await daemon.box(t);
	await box.out('mkdir -p src');
	const watch = await Watcher.open(t, box, { path: 'src' });
	assert.deepEqual(Object.keys(watch.first), ['type', 'path', 'watchId']);
	assert.equal(watch.first.path, '/workspace/src');
	assert.match(watch.first.watchId, /^watch-\d+-\d+$/);
	await box.out('echo a > src/a.ts');
	await watch.sees('create /workspace/src/a.ts', 'modify /workspace/src/a.ts');
	await box.out('mv src/a.ts src/b.ts');
	await watch.sees('move_from /workspace/src/a.ts', 'move_to /workspace/src/b.ts');
	await box.out('rm src/b.ts; mkdir src/sub');
	await watch.sees('delete /workspace/src/b.ts', 'create /workspace/src/sub/');
	for (const e of watch.seen) {
		assert.deepEqual(Object.keys(e), ['type', 'eventType', 'path', 'isDirectory', 'timestamp']);
		assert.match(e.timestamp, TIME);
	}
});

test('a rename is move_from, then move_to; a written file is create, then modify', async t => {
	const box = await daemon.box(t);
	const watch = await Watcher.open(t, box, { path: '.' });
	await box.out('echo a > a');
	await watch.sees('create /workspace/a', 'modify /workspace/a');
	await box.out('mv a b');
	await watch.sees('move_from /workspace/a', 'move_to /workspace/b');
	assert.deepEqual(watch.seen.map(name).filter((one, i, all) => one !== all[i - 1]), ['create /workspace/a', 'modify /workspace/a', 'move_from /workspace/a', 'move_to /workspace/b']);
});

test('files that are written through the API are told as if a program wrote them', async t => {
	const box = await daemon.box(t);
	const watch = await Watcher.open(t, box, { path: '.' });
	const write = async (path, content) => assert.equal((await box.api('POST', '/api/write', { path, content })).status, 200);
	await write('/workspace/a', 'one');
	await watch.sees('create /workspace/a', 'modify /workspace/a');
	await write('/workspace/a', 'two');
	await write('/workspace/end', '');
	await watch.sees('create /workspace/end');
	assert.deepEqual(watch.seen.map(name).slice(0, 4), ['create /workspace/a', 'modify /workspace/a', 'modify /workspace/a', 'create /workspace/end']);
});

test('a single file that is replaced is watched on', async t => {
	const box = await daemon.box(t);
	await box.out('echo one > f');
	const watch = await Watcher.open(t, box, { path: 'f' });
	assert.equal((await box.api('POST', '/api/write', { path: '/workspace/f', content: 'two' })).status, 200);
	await watch.sees('modify /workspace/f');
	await box.out('echo three > f.new; mv f.new f; echo four >> f; rm f');
	await watch.sees('modify /workspace/f', 'delete /workspace/f');
});

test('attrib comes only when it is asked for', async t => {
	const box = await daemon.box(t);
	await box.out('touch f');
	const plain = await Watcher.open(t, box, { path: '.' });
	const asked = await Watcher.open(t, box, { path: '.', events: ['attrib', 'no-such-event'] });
	await box.out('chmod 600 f; rm f; touch end');
	await asked.sees('attrib /workspace/f');
	await plain.sees('create /workspace/end');
	assert.ok(plain.seen.every(e => e.eventType !== 'attrib'));
	assert.ok(asked.seen.every(e => e.eventType === 'attrib'));
});

test('what happens again in a window is one event', async t => {
	const box = await daemon.box(t);
	await box.out('touch log');
	const watch = await Watcher.open(t, box, { path: '.' });
	await box.out('for i in $(seq 200); do echo $i >> log; done; touch end');
	await watch.sees('create /workspace/end');
	const modified = watch.seen.filter(e => e.path === '/workspace/log');
	assert.ok(modified.length >= 1 && modified.length < 100, `${modified.length} of 200 appends`);
});

test('new directories are followed, and what is in them already is told', async t => {
	const box = await daemon.box(t);
	const watch = await Watcher.open(t, box, { path: '.' });
	await box.out('mkdir -p a/b/c/d; echo x > a/b/c/d/deep');
	await watch.sees('create /workspace/a/', 'create /workspace/a/b/', 'create /workspace/a/b/c/', 'create /workspace/a/b/c/d/', 'create /workspace/a/b/c/d/deep');
	await box.out('echo y >> a/b/c/d/deep; rm a/b/c/d/deep');
	await watch.sees('modify /workspace/a/b/c/d/deep', 'delete /workspace/a/b/c/d/deep');
});

test('many directories made at once are all followed', async t => {
	const box = await daemon.box(t);
	const watch = await Watcher.open(t, box, { path: '.' });
	await box.out('for i in $(seq 40); do for j in 1 2 3; do mkdir -p d$i/$j; touch d$i/$j/f; done; done');
	const wanted = Array.from({ length: 40 }, (_, i) => [1, 2, 3].map(j => `create /workspace/d${i + 1}/${j}/f`)).flat();
	await watch.sees(...wanted);
});

test('a directory that is moved inside keeps being followed under its new name', async t => {
	const box = await daemon.box(t);
	await box.out('mkdir -p old/inner other');
	const watch = await Watcher.open(t, box, { path: '.' });
	await box.out('mv old other/new && touch other/new/inner/f');
	await watch.sees('move_from /workspace/old/', 'move_to /workspace/other/new/', 'create /workspace/other/new/inner/f');
	await box.out('mv other/new /tmp/away && touch /tmp/away/inner/g && touch end');
	await watch.sees('move_from /workspace/other/new/', 'create /workspace/end');
	await box.out('touch /tmp/away/inner/h; touch end2');
	await watch.sees('create /workspace/end2');
	assert.ok(watch.seen.every(e => !/\/h$/.test(e.path)), 'what left the tree is not followed');
	await box.out('mv /tmp/away back && touch back/inner/i');
	await watch.sees('move_to /workspace/back/');
	await box.out('touch back/inner/j');
	await watch.sees('create /workspace/back/inner/j');
});

/** Makes, moves and removes directories and files at random, as fast as it can. */
const CHURN = String.raw`
const fs = require("fs"), path = require("path"), root = "/workspace/churn";
let seed = Number(process.argv[1]);
const random = n => { seed = (seed * 1103515245 + 12345) % 2147483648; return Math.floor(seed / 65536) % n; };
const directories = dir => [dir, ...fs.readdirSync(dir, { withFileTypes: true }).filter(f => f.isDirectory()).flatMap(f => directories(path.join(dir, f.name)))];
for (let i = 0; i < 600; i++) {
	const all = directories(root), pick = () => all[random(all.length)], name = "n" + random(12);
	try {
		switch (random(6)) {
		case 0: case 1: fs.mkdirSync(path.join(pick(), name)); break;
		case 2: fs.writeFileSync(path.join(pick(), name + "f"), "x"); break;
		case 3: case 4: fs.renameSync(all[1 + random(all.length - 1)], path.join(pick(), name)); break;
		case 5: if (all.length > 12) fs.rmSync(all[1 + random(all.length - 1)], { recursive: true }); break;
		}
	} catch {}
}
`;

test('whatever happened to directories, each is followed under the name it has now', async t => {
	const box = await daemon.box(t);
	await box.put('/tmp/churn.cjs', Buffer.from(CHURN));
	for (const seed of [1, 2, 3]) {
		await box.out('rm -rf churn; mkdir -p churn/a/b churn/c');
		const watch = await Watcher.open(t, box, { path: 'churn' }, { native: true });
		await box.out(`node -e "$(cat /tmp/churn.cjs)" ${seed}`, {}, { deadline: 180_000 });
		const now = (await box.out('find churn -type d')).trim().split('\n');
		await box.out(`find churn -type d -exec touch {}/marker-${seed} ';'`);
		await watch.sees(...now.map(directory => `create /workspace/${directory}/marker-${seed}`));
		const markers = watch.seen.filter(e => e.path.endsWith(`/marker-${seed}`)).map(e => e.path);
		assert.deepEqual([...new Set(markers)].sort(), now.map(directory => `/workspace/${directory}/marker-${seed}`).sort());
		watch.leave();
	}
});

test('without recursive only the directory itself is watched', async t => {
	const box = await daemon.box(t);
	await box.out('mkdir sub');
	const watch = await Watcher.open(t, box, { path: '.', recursive: false });
	await box.out('touch sub/hidden; touch here');
	await watch.sees('create /workspace/here');
	assert.deepEqual(watch.seen.filter(e => e.path.includes('hidden')), []);
});

test('links are not followed: a loop is no loop', async t => {
	const box = await daemon.box(t);
	await box.out('mkdir -p a/b; ln -s .. a/b/up; ln -s / a/root; ln -s self self');
	const watch = await Watcher.open(t, box, { path: '.' });
	await box.out('touch a/b/f; touch /tmp/outside');
	await watch.sees('create /workspace/a/b/f');
	assert.deepEqual([...new Set(watch.seen.map(e => e.path))], ['/workspace/a/b/f']);
});

test('by default .git, node_modules and .DS_Store are left out; an empty list leaves nothing out', async t => {
	const box = await daemon.box(t);
	await box.out('mkdir -p .git/objects node_modules/x sub');
	const watch = await Watcher.open(t, box, { path: '.' });
	const all = await Watcher.open(t, box, { path: '.', exclude: [] });
	await box.out('touch .git/objects/o node_modules/x/i .DS_Store sub/.DS_Store sub/real');
	await watch.sees('create /workspace/sub/real');
	assert.ok(watch.seen.every(e => e.path === '/workspace/sub/real'), JSON.stringify(watch.seen));
	await all.sees('create /workspace/.git/objects/o', 'create /workspace/node_modules/x/i', 'create /workspace/.DS_Store');
});

const GLOBS = [
	[{ include: ['*.ts'] }, ['a.ts', 'd/b.ts', '.git/c.ts'], ['a.js', 'a.ts.bak', 'a.tsx']],
	[{ include: ['src/**/x'] }, ['src/1/x', 'src/1/2/x'], ['x', 'src/x', 'lib/1/x']],
	[{ include: ['?.c', 'ä?.h'] }, ['a.c', 'äß.h'], ['ab.c', 'ä.h']],
	[{ exclude: ['*.log', 'build'] }, ['a', 'builder', '.git/x'], ['a.log', 'build/x', 'd/build/y/z', 'd/b.log']],
	[{ exclude: ['a.b'] }, ['axb'], ['a.b', 'd/a.b']],
	[{ exclude: ['d/*'] }, ['e'], ['d/1', 'd/2/3']],
];

test('globs name whole components anywhere in the path', async t => {
	const box = await daemon.box(t);
	for (const [patterns, told, untold] of GLOBS) {
		await box.out('rm -rf /workspace/* /workspace/.[a-z]*');
		const directories = [...told, ...untold].filter(p => p.includes('/')).map(p => p.replace(/\/[^/]*$/, ''));
		await box.out(`mkdir -p ./. ${directories.map(f => `'${f}'`).join(' ')}`);
		const watch = await Watcher.open(t, box, { path: '/workspace', ...patterns, events: ['create'] });
		const control = await Watcher.open(t, box, { path: '/workspace', exclude: [], events: ['create'] });
		await box.out(`touch ${[...told, ...untold].map(f => `'${f}'`).join(' ')}; touch z-end`);
		await control.sees('create /workspace/z-end');
		await watch.sees(...told.map(f => `create /workspace/${f}`));
		assert.deepEqual([...new Set(watch.seen.map(e => e.path))].filter(p => p !== '/workspace/z-end').sort(), told.map(f => `/workspace/${f}`).sort(), JSON.stringify(patterns));
		watch.leave();
		control.leave();
	}
});

test('names of any kind arrive as they are', async t => {
	const box = await daemon.box(t);
	const watch = await Watcher.open(t, box, { path: '.' });
	for (const file of ['sp ace', "q'uote", 'q"uote', 'new\nline', '$(touch pwned)', '-rf', 'ünï😀', '\\x', 'a'.repeat(255)]) {
		const quoted = `'${file.replaceAll("'", "'\\''")}'`;
		await box.out(`touch -- ${quoted}`);
		await watch.sees(`create /workspace/${file}`);
	}
});

test('a single file can be watched until it is gone', async t => {
	const box = await daemon.box(t);
	await box.out('touch f');
	const watch = await Watcher.open(t, box, { path: 'f' });
	await box.out('echo x >> f');
	await watch.sees('modify /workspace/f');
	await box.out('rm f');
	await watch.sees('delete /workspace/f');
	assert.equal((await watch.end()).type, 'stopped');
});

test('the stream ends with `stopped` when the watched directory goes, or the sandbox does', async t => {
	const box = await daemon.box(t);
	await box.out('mkdir a b');
	const removed = await Watcher.open(t, box, { path: 'a' });
	await box.out('rmdir a');
	const end = await removed.end();
	assert.deepEqual([end.type, typeof end.reason], ['stopped', 'string']);
	const moved = await Watcher.open(t, box, { path: 'b' });
	await box.out('mv b c');
	assert.equal((await moved.end()).type, 'stopped');
	const destroyed = await Watcher.open(t, box, { path: '.' });
	await box.destroy();
	assert.equal((await destroyed.end()).type, 'stopped');
});

test('identical requests share one watcher, others do not', async t => {
	const box = await daemon.box(t);
	const one = await Watcher.open(t, box, { path: '.', exclude: ['x', 'y'] });
	const two = await Watcher.open(t, box, { path: './sub/..', exclude: ['y', 'x'], recursive: true, sessionId: 'any' });
	const other = await Watcher.open(t, box, { path: '.', exclude: ['x'] });
	assert.equal(one.first.watchId, two.first.watchId);
	assert.notEqual(one.first.watchId, other.first.watchId);
	one.leave();
	await box.out('touch f');
	await two.sees('create /workspace/f');
});

test('the worker goes with the last listener', async t => {
	const box = await daemon.box(t);
	const one = await Watcher.open(t, box, { path: '.' });
	const two = await Watcher.open(t, box, { path: '.' });
	assert.equal((await inotifiers(box)).length, 1);
	one.leave();
	two.leave();
	await until('no inotify is left', async () => (await inotifiers(box)).length === 0);
});

test('paths outside of /workspace are refused, also by way of ..', async t => {
	const box = await daemon.box(t);
	for (const [path, resolvedPath] of [['/etc', '/etc'], ['..', '/'], ['../workspace2', '/workspace2'], ['/workspace/../tmp', '/tmp'], ['/workspacex', '/workspacex'], ['/', '/']])
		for (const route of ['/api/watch', '/api/watch/check'])
			assert.deepEqual(refused(await box.api('POST', route, { path }), 403, 'PERMISSION_DENIED'), { path, resolvedPath, workspaceRoot: '/workspace' });
});

test('a mount of a client is watched wherever it is: recursive by name, without a choice of files', async t => {
	const box = await daemon.box(t);
	await box.out('mkdir -p /mnt/data/deep');
	const watcher = await Watcher.open(t, box, { path: '/mnt/data', recursive: true, sessionId: 'default' });
	await box.out('echo x > /mnt/data/deep/file');
	await watcher.sees('create /mnt/data/deep/file');
	for (const other of [{ recursive: false }, { recursive: true, include: ['*'] }, { recursive: true, exclude: [] }])
		refused(await box.api('POST', '/api/watch', { path: '/mnt/data', ...other }), 403, 'PERMISSION_DENIED');
	refused(await box.api('POST', '/api/watch/check', { path: '/mnt/data', recursive: true }), 403, 'PERMISSION_DENIED');
	refused(await box.api('POST', '/api/watch', { path: '/nowhere', recursive: true }), 404, 'FILE_NOT_FOUND');
});

test('a missing path is 404 with the resolved path', async t => {
	const box = await daemon.box(t);
	for (const route of ['/api/watch', '/api/watch/check'])
		assert.deepEqual(refused(await box.api('POST', route, { path: ' nowhere/x ' }), 404, 'FILE_NOT_FOUND'), { path: '/workspace/nowhere/x' });
});

const BAD = [
	[{}, {}],
	[{ path: '' }, { path: '' }],
	[{ path: ' \t' }, { path: ' \t' }],
	[{ path: 5 }, { path: 5 }],
	[{ path: 'a\0b' }, { path: 'a\0b' }],
	[{ path: 'x'.repeat(5000) }, { path: 'x'.repeat(5000) }],
	[{ path: '.', recursive: 'yes' }, { recursive: 'yes' }],
	[{ path: '.', recursive: null }, { recursive: null }],
	[{ path: '.', include: ['a'], exclude: ['b'] }, { include: ['a'], exclude: ['b'] }],
	[{ path: '.', include: 'a' }, { include: 'a' }],
	[{ path: '.', exclude: { a: 1 } }, { exclude: { a: 1 } }],
	[{ path: '.', include: [''] }, { pattern: '', include: [''] }],
	[{ path: '.', include: ['  '] }, { pattern: '  ', include: ['  '] }],
	[{ path: '.', exclude: ['a', 5] }, { pattern: 5, exclude: ['a', 5] }],
	[{ path: '.', exclude: ['a\0'] }, { pattern: 'a\0', exclude: ['a\0'] }],
	...['[ab]', 'a]', '{a,b}', 'x}'].map(pattern => [{ path: '.', include: [pattern] }, { pattern, include: [pattern] }]),
];

test('wrong fields are 400 with the offending value', async t => {
	const box = await daemon.box(t);
	for (const [body, context] of BAD)
		for (const route of ['/api/watch', '/api/watch/check'])
			assert.deepEqual(refused(await box.api('POST', route, body), 400, 'VALIDATION_FAILED'), context);
	for (const body of ['', 'no json', '[]'])
		for (const route of ['/api/watch', '/api/watch/check'])
			refused(await box.api('POST', route, body), 400, 'VALIDATION_FAILED');
});

test('empty include and exclude lists go together', async t => {
	const box = await daemon.box(t);
	const watch = await Watcher.open(t, box, { path: '.', include: [], exclude: ['x'] });
	await box.out('touch y');
	await watch.sees('create /workspace/y');
});

test('check tells whether anything changed since a version', async t => {
	const box = await daemon.box(t);
	const first = (await check(box, { path: '.' })).body;
	assert.deepEqual(Object.keys(first), ['success', 'status', 'version', 'timestamp']);
	assert.equal(first.status, 'unchanged');
	assert.match(first.version, /^watch-\d+-\d+:0$/);
	assert.equal((await check(box, { path: '.', since: first.version })).body.status, 'unchanged');
	await box.out('touch f');
	const changed = await until('changed', async () => {
		const { body } = await check(box, { path: '.', since: first.version });
		return body.status === 'changed' && body;
	});
	assert.equal(changed.version.split(':')[0], first.version.split(':')[0]);
	assert.equal((await check(box, { path: '.' })).body.status, 'unchanged');
});

test('a version of another watch means resync', async t => {
	const box = await daemon.box(t);
	const stale = 'watch-999-1767323045678:4';
	const expired = (await check(box, { path: '.', since: stale })).body;
	assert.deepEqual([expired.status, expired.reason], ['resync', 'expired']);
	const restarted = (await check(box, { path: '.', since: stale })).body;
	assert.deepEqual([restarted.status, restarted.reason, restarted.version], ['resync', 'restarted', expired.version]);
});

test('malformed versions and versions of the future are 400', async t => {
	const box = await daemon.box(t);
	for (const since of ['', 'x', 5, null, 'watch-1-2', 'watch-1-2:', 'watch-1:3', 'watch-1-2:-1', 'watch-1-2:3:4', 'watch-a-2:3', 'a\0b', `watch-1-2:${'9'.repeat(40)}`])
		assert.deepEqual(refused(await check(box, { path: '.', since }), 400, 'VALIDATION_FAILED'), { since });
	const { version } = (await check(box, { path: '.' })).body;
	const since = version.replace(/:\d+$/, ':99');
	assert.deepEqual(refused(await check(box, { path: '.', since }), 400, 'VALIDATION_FAILED'), { since, currentVersion: version });
});

test('a check survives its listeners, and a sandbox that restarts means resync', async t => {
	const box = await daemon.box(t);
	const { version } = (await check(box, { path: '.' })).body;
	const watch = await Watcher.open(t, box, { path: '.' });
	assert.equal(watch.first.watchId, version.split(':')[0]);
	watch.leave();
	await box.out('touch f');
	await until('changed', async () => (await check(box, { path: '.', since: version })).body.status === 'changed');
});

test('more watches than a sandbox may have are refused; those that nobody listens to make room', async t => {
	const box = await daemon.box(t);
	for (let i = 0; i < 40; i++) {
		await box.out(`mkdir c${i}`);
		assert.equal((await check(box, { path: `c${i}` })).status, 200);
	}
	for (let i = 0; i < 32; i++)
		await Watcher.open(t, box, { path: `c${i}` });
	refused(await box.api('POST', '/api/watch', { path: 'c33' }), 429, 'LIMIT_REACHED');
	assert.equal(await box.out('echo fine'), 'fine\n');
});

test('the native watch sees any path of the sandbox, and every event at once', async t => {
	const box = await daemon.box(t);
	await box.out('mkdir -p /opt/x');
	const watch = await Watcher.open(t, box, { path: '/opt/x', exclude: [] }, { native: true });
	assert.equal(watch.first.path, '/opt/x');
	await box.out('echo a > /opt/x/f; rm /opt/x/f');
	await watch.sees('create /opt/x/f', 'modify /opt/x/f', 'delete /opt/x/f');
	refused(await daemon.api('POST', `/v1/sandboxes/${box.id}/watch`, { path: '/nowhere' }), 404, 'FILE_NOT_FOUND');
	refused(await daemon.api('POST', '/v1/sandboxes/nobody-made-it/watch', { path: '/' }), 404, 'SANDBOX_NOT_FOUND');
	refused(await daemon.api('GET', '/v1/sandboxes/nobody-made-it'), 404, 'SANDBOX_NOT_FOUND');
});

test('events that the kernel cannot queue are told as an overflow, and the watch goes on', async t => {
	const box = await daemon.box(t);
	for (const native of [true, false]) {
		await box.out('rm -rf d late; mkdir d');
		const watch = await Watcher.open(t, box, { path: '.' }, { native });
		const [worker] = await inotifiers(box);
		process.kill(worker, 'SIGSTOP');
		await box.out('cd d && seq 20000 | xargs touch; cd ..; mkdir late', {}, { deadline: 180_000 });
		process.kill(worker, 'SIGCONT');
		const overflow = await until('the overflow', () => watch.all.find(e => e.type === 'overflow' && e.reason === 'kernel'));
		assert.deepEqual(Object.keys(overflow), ['type', 'reason', 'timestamp']);
		await until('the watch goes on, in new directories too', async () => {
			await box.out('rm -f late/f; touch late/f');
			return watch.seen.some(e => e.path === '/workspace/late/f');
		});
		watch.leave();
	}
});

test('a reader that does not read is told how much it missed, and holds nobody back', async t => {
	const box = await daemon.box(t);
	await box.out('mkdir d');
	const slow = await Watcher.open(t, box, { path: '.', events: ['create'] }, { paused: true });
	await box.out('cd d; seq -f %0200g 40000 | xargs touch; cd ..', {}, { deadline: 180_000 });
	const quick = await Watcher.open(t, box, { path: '.', events: ['create'] });
	await box.out('touch last');
	await quick.sees('create /workspace/last');
	slow.resume();
	await until('the overflow', () => slow.all.some(e => e.type === 'overflow'));
	assert.equal(slow.first.watchId, quick.first.watchId);
});

test('a sandbox without watches left tells which directories are not followed', async t => {
	const box = await daemon.box(t);
	await box.out(`node -e 'const fs=require("fs"); for (let i=0;i<66500;i++) fs.mkdirSync("/workspace/many/"+(i%300)+"/"+i,{recursive:true})'`, {}, { deadline: 300_000 });
	const watch = await Watcher.open(t, box, { path: 'many' }, { native: true, deadline: 180_000 });
	const limit = await until('limit event', () => watch.all.find(e => e.type === 'limit'));
	assert.equal(limit.path, '/workspace/many');
	await box.out('mkdir many/new');
	await until('the new directory is not followed', () => watch.all.find(e => e.type === 'limit' && e.path === '/workspace/many/new'));
	const partial = (await check(box, { path: 'many' })).body;
	assert.equal(partial.partial ?? true, true);
	const neighbour = await daemon.box(t);
	const other = await Watcher.open(t, neighbour, { path: '.' });
	await neighbour.out('touch f');
	await other.sees('create /workspace/f');
});

test('the memory of a watch follows the directories, not the files', async t => {
	const box = await daemon.box(t);
	await box.out(`node -e 'const fs=require("fs"); for (let d=0;d<50;d++) { fs.mkdirSync("/workspace/many/"+d,{recursive:true}); for (let i=0;i<2000;i++) fs.closeSync(fs.openSync("/workspace/many/"+d+"/"+i,"w")); }'`, {}, { deadline: 300_000 });
	const watch = await Watcher.open(t, box, { path: 'many' });
	const [worker] = await inotifiers(box);
	assert.ok(host.processInfo(worker).residentKiB < 4096, `${host.processInfo(worker).residentKiB} KiB for 100,000 files`);
	await box.out('touch many/7/new');
	await watch.sees('create /workspace/many/7/new');
	await box.out('rm -rf many', {}, { deadline: 300_000 });
	assert.equal((await watch.end()).type, 'stopped');
});

test('a daemon that stops ends every watch with `stopped`', async () => {
	const own = await startDaemon();
	try {
		const box = await own.box();
		const watch = await Watcher.open(undefined, box, { path: '.' });
		process.kill(own.siltd(), 'SIGTERM');
		assert.equal((await watch.end())?.type, 'stopped');
		await own.healthy();
	} finally {
		await own.stop();
	}
});
