// SPDX-License-Identifier: Apache-2.0
// The wire routes for files: every row, every error.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SESSIONLESS } from '../lib/box.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { refused, TIME } from '../lib/expect.mjs';
import { events } from '../lib/sse.mjs';
import { until, within } from '../lib/wait.mjs';

let daemon;
let box;
before(async () => {
	daemon = await startDaemon();
	box = await daemon.box();
	await box.run('true');
});
after(() => daemon?.stop());

const post = (route, body) => box.api('POST', `/api/${route}`, body);

async function good(route, body) {
	const answer = await post(route, body);
	assert.equal(answer.status, 200, `${route} ${JSON.stringify(body).slice(0, 200)}: ${answer.raw.toString().slice(0, 1000)}`);
	assert.match(answer.headers['content-type'], /^application\/json/);
	assert.match(answer.body.timestamp, TIME);
	assert.equal(answer.body.success, true);
	return answer.body;
}

async function stream(body) {
	const found = [];
	for await (const { data } of events(await daemon.client.open('POST', `/sandboxes/${box.id}/api/read/stream`, body)))
		found.push(data);
	return found;
}

/** A directory of the test's own. */
let directories = 0;
async function directory() {
	const name = `/workspace/t${++directories}`;
	await good('mkdir', { path: name });
	return name;
}

// ---- read ----

test('read answers the catalogued fields in their order', async () => {
	const dir = await directory();
	await good('write', { path: `${dir}/a.txt`, content: 'héllo\n' });
	const body = await good('read', { path: `${dir}/a.txt` });
	assert.deepEqual(Object.keys(body), ['success', 'path', 'content', 'timestamp', 'encoding', 'isBinary', 'mimeType', 'size']);
	assert.deepEqual([body.path, body.content, body.encoding, body.isBinary, body.mimeType, body.size], [`${dir}/a.txt`, 'héllo\n', 'utf-8', false, 'text/plain', 7]);
});

test('the encoding follows the type, unless it is asked for', async () => {
	const dir = await directory();
	const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');
	await good('write', { path: `${dir}/x.png`, content: png.toString('base64'), encoding: 'base64' });
	const picture = await good('read', { path: `${dir}/x.png` });
	assert.deepEqual([picture.encoding, picture.isBinary, picture.mimeType, picture.content], ['base64', true, 'image/png', png.toString('base64')]);
	await good('write', { path: `${dir}/t.txt`, content: 'ab' });
	for (const [encoding, expected] of [['base64', ['base64', true, 'YWI=']], ['utf-8', ['utf-8', false, 'ab']], ['utf8', ['utf-8', false, 'ab']], ['other', ['utf-8', false, 'ab']]]) {
		const body = await good('read', { path: `${dir}/t.txt`, encoding });
		assert.deepEqual([body.encoding, body.isBinary, body.content], expected, encoding);
	}
	await good('write', { path: `${dir}/q.sql`, content: 'select' });
	assert.equal((await good('read', { path: `${dir}/q.sql` })).isBinary, true, 'a type that is not text by the table');
	assert.equal((await good('read', { path: `${dir}/q.sql`, encoding: 'utf-8' })).content, 'select');
	await good('write', { path: `${dir}/noext`, content: '' });
	const empty = await good('read', { path: `${dir}/noext` });
	assert.deepEqual([empty.content, empty.mimeType, empty.encoding, empty.size], ['', 'inode/x-empty', 'utf-8', 0]);
});

test('ill-formed text becomes U+FFFD and a byte order mark is dropped', async () => {
	const dir = await directory();
	const write = (name, bytes) => good('write', { path: `${dir}/${name}`, content: Buffer.from(bytes).toString('base64'), encoding: 'base64' });
	await write('bad', [0x61, 0xff, 0x62, 0xe2, 0x82, 0x63, 0xc3]);
	assert.equal((await good('read', { path: `${dir}/bad`, encoding: 'utf-8' })).content, 'a\ufffdb\ufffdc\ufffd');
	await write('bom', [0xef, 0xbb, 0xbf, 0x61]);
	const bom = await good('read', { path: `${dir}/bom`, encoding: 'utf-8' });
	assert.deepEqual([bom.content, bom.size], ['a', 4]);
	await write('nul', [0x61, 0, 0x62]);
	assert.equal((await good('read', { path: `${dir}/nul`, encoding: 'utf-8' })).content, 'a\0b');
});

test('files around the size of a frame come back as they were, as text and as base64', async () => {
	const dir = await directory();
	for (const size of [1, 2, 3, 61_000, 61_264, 61_265, 61_440, 61_441, 122_880, 200_001]) {
		const bytes = Buffer.alloc(size, 'aé0123456789\n"\\\u0001', 'utf8');
		await good('write', { path: `${dir}/f`, content: bytes.toString('base64'), encoding: 'base64' });
		const coded = await good('read', { path: `${dir}/f`, encoding: 'base64' });
		assert.ok(Buffer.from(coded.content, 'base64').equals(bytes), `${size} bytes`);
		assert.equal(coded.content, bytes.toString('base64'));
		assert.equal((await good('read', { path: `${dir}/f`, encoding: 'utf-8' })).content, bytes.toString('utf8'), `${size} bytes as text`);
	}
});

test('read refuses what is missing, what is no file and what is too large', async () => {
	const dir = await directory();
	await box.out(`cd ${dir}; mkfifo pipe; truncate -s 33554433 large; truncate -s 33554432 fits; ln -s loop loop; echo x > file`, { sessionId: 'make' });
	for (const path of ['/nope', `${dir}/none/none`, dir, `${dir}/pipe`, '/dev/null', '/dev/zero', `${dir}/file/below`]) {
		const answer = await post('read', { path });
		assert.deepEqual(refused(answer, 404, 'FILE_NOT_FOUND'), { path, operation: 'file.read' });
		assert.equal(answer.body.message, `File not found: ${path}`);
		assert.equal(answer.body.operation, 'file.read');
		assert.equal(typeof answer.body.suggestion, 'string');
	}
	assert.deepEqual(refused(await post('read', { path: `${dir}/large` }), 413, 'FILE_TOO_LARGE'), { path: `${dir}/large`, operation: 'file.read', actualSize: 33_554_433, maxSize: 33_554_432 });
	assert.equal((await good('read', { path: `${dir}/fits`, encoding: 'base64' })).content.length, Math.ceil(33_554_432 / 3) * 4);
	refused(await post('read', { path: `${dir}/loop` }), 500, 'TOO_MANY_LINKS');
	refused(await post('read', { path: `/${'x'.repeat(300)}` }), 400, 'NAME_TOO_LONG');
});

test('files of /proc are read, endless and dangerous ones do no harm', async () => {
	assert.match((await good('read', { path: '/proc/self/status', encoding: 'utf-8' })).content, /^Name:/);
	assert.match((await good('read', { path: '/proc/mounts', encoding: 'utf-8' })).content, /proc/);
	for (const path of ['/proc/self/mem', '/proc/1/mem', '/proc/kmsg', '/proc/self/fd/0', '/proc/1/root/etc/shadow', '/proc/self/exe']) {
		const answer = await within(60_000, path, post('read', { path }));
		assert.ok([200, 403, 404, 413, 500].includes(answer.status), `${path}: ${answer.status}`);
	}
	await good('exists', { path: '/etc/passwd' });
});

// ---- read/stream ----

test('a read stream is metadata, chunks and complete', async () => {
	const dir = await directory();
	const text = 'é0123456789'.repeat(20_000);
	await good('write', { path: `${dir}/a.txt`, content: text });
	const found = await stream({ path: `${dir}/a.txt` });
	assert.deepEqual(found[0], { type: 'metadata', mimeType: 'text/plain', size: Buffer.byteLength(text), isBinary: false, encoding: 'utf-8' });
	assert.deepEqual(found.at(-1), { type: 'complete', bytesRead: Buffer.byteLength(text) });
	assert.equal(found.slice(1, -1).map(e => (assert.equal(e.type, 'chunk'), e.data)).join(''), text);
	const bytes = Buffer.alloc(200_000, 7);
	await good('write', { path: `${dir}/a.png`, content: bytes.toString('base64'), encoding: 'base64' });
	const binary = await stream({ path: `${dir}/a.png` });
	assert.deepEqual([binary[0].isBinary, binary[0].encoding], [true, 'base64']);
	assert.ok(Buffer.concat(binary.slice(1, -1).map(e => Buffer.from(e.data, 'base64'))).equals(bytes));
	await good('write', { path: `${dir}/empty.txt`, content: '' });
	assert.deepEqual((await stream({ path: `${dir}/empty.txt` })).map(e => e.type), ['metadata', 'complete']);
});

test('every failure of a read stream is an event', async () => {
	assert.deepEqual(await stream({ path: '/nope' }), [{ type: 'error', error: 'File not found: /nope' }]);
	for (const body of [{ path: '' }, { path: 5 }, {}, { path: 'a\0b' }, { path: 'x'.repeat(4097) }, { path: '/etc' }, { path: '/dev/zero' }]) {
		const [event, ...rest] = await stream(body);
		assert.deepEqual([event.type, typeof event.error, rest], ['error', 'string', []], JSON.stringify(body).slice(0, 80));
	}
});

test('a stream of a file that grows all the time ends', async t => {
	const own = await daemon.box(t);
	const size = 40 << 20; // more than is on its way at once, so that it grows before all of it is read
	await own.out(`mkfifo /tmp/gate; yes | head -c ${size} > /tmp/grows; { read go < /tmp/gate; exec yes; } >> /tmp/grows &`, { sessionId: 'w' });
	const response = await daemon.client.open('POST', `/sandboxes/${own.id}/api/read/stream`, { path: '/tmp/grows', sessionId: SESSIONLESS });
	response.pause();
	await own.out(`echo go > /tmp/gate; until [ $(stat -c %s /tmp/grows) -gt $((2 * ${size})) ]; do sleep 0.01; done`);
	let last;
	await within(120_000, 'end of the stream', (async () => {
		for await (const { data } of events(response))
			last = data;
	})());
	assert.equal(last.type, 'complete');
});

// ---- write ----

test('write creates parents, keeps the mode and follows links', async () => {
	const dir = await directory();
	assert.deepEqual(Object.keys(await good('write', { path: `${dir}/a/b/c.txt`, content: 'one' })), ['success', 'path', 'timestamp']);
	assert.equal(await box.out(`stat -c %a ${dir}/a/b/c.txt; chmod 4751 ${dir}/a/b/c.txt; ln -s a/b/c.txt ${dir}/link`), '644\n');
	await good('write', { path: `${dir}/link`, content: 'two' });
	assert.equal(await box.out(`stat -c '%a %F' ${dir}/a/b/c.txt; cat ${dir}/a/b/c.txt; stat -c %F ${dir}/link; ls -A ${dir} ${dir}/a/b`), `4751 regular file\ntwosymbolic link\n${dir}:\na\nlink\n\n${dir}/a/b:\nc.txt\n`);
	await good('write', { path: `${dir}/odd`, content: 'line\r\n\u0000\u{1f600}' });
	assert.equal(await box.out(`base64 -w0 ${dir}/odd`), Buffer.from('line\r\n\0\u{1f600}').toString('base64'));
});

test('write refuses bad base64 and bad content before it touches anything', async () => {
	const dir = await directory();
	for (const content of ['!!', 'YQ=', 'YQ==YQ==', 'Y', 'YWI\n', 'Y W I=', 'YWI-', 'é'])
		assert.equal(refused(await post('write', { path: `${dir}/f`, content, encoding: 'base64' }), 400, 'VALIDATION_FAILED').validationErrors[0].code, 'INVALID_BASE64', content);
	for (const content of [undefined, null, 5, {}, ['a']])
		refused(await post('write', { path: `${dir}/f`, content }), 400, 'VALIDATION_FAILED');
	assert.equal((await good('exists', { path: `${dir}/f` })).exists, false);
});

test('write tells of a directory, a device and a read-only place', async () => {
	const dir = await directory();
	const context = refused(await post('write', { path: dir, content: 'x' }), 500, 'FILESYSTEM_ERROR');
	assert.deepEqual([context.path, context.operation, typeof context.stderr], [dir, 'file.write', 'string']);
	for (const path of ['/dev/null', '/proc/version', '/proc/nope/x', `${dir}/`])
		refused(await post('write', { path, content: 'x' }), 500, 'FILESYSTEM_ERROR');
});

test('a body of more than a hundred megabytes is written', async () => {
	const dir = await directory();
	const content = 'x'.repeat(100 << 20);
	const answer = await box.api('POST', '/api/write', { path: `${dir}/large`, content }, { deadline: 120_000 });
	assert.equal(answer.status, 200, answer.raw.toString().slice(0, 300));
	assert.equal(await box.out(`stat -c %s ${dir}/large; rm ${dir}/large`), `${100 << 20}\n`);
});

// ---- delete, rename, move, mkdir ----

test('delete removes files, links and pipes, not directories', async () => {
	const dir = await directory();
	await box.out(`cd ${dir}; echo > f; ln -s f l; mkfifo p; mkdir d; ln -s none dangling`, { sessionId: 'make' });
	for (const name of ['l', 'p', 'f'])
		assert.deepEqual(Object.keys(await good('delete', { path: `${dir}/${name}` })), ['success', 'path', 'timestamp']);
	const answer = await post('delete', { path: `${dir}/d` });
	assert.deepEqual(refused(answer, 400, 'IS_DIRECTORY'), { path: `${dir}/d`, operation: 'file.delete' });
	assert.equal(answer.body.message, `Cannot delete directory with deleteFile() at '${dir}/d'. Use exec('rm -rf <path>') instead.`);
	assert.deepEqual(refused(await post('delete', { path: `${dir}/f` }), 404, 'FILE_NOT_FOUND'), { path: `${dir}/f`, operation: 'file.delete' });
	refused(await post('delete', { path: `${dir}/dangling` }), 404, 'FILE_NOT_FOUND');
});

for (const [route, from, to, operation] of [['rename', 'oldPath', 'newPath', 'file.rename'], ['move', 'sourcePath', 'destinationPath', 'file.move']])
	test(`${route} is mv: over files, into directories, across file systems`, async () => {
		const dir = await directory();
		await box.out(`cd ${dir}; echo one > a; echo two > b; mkdir d; mkdir -p tree/x; echo deep > tree/x/f`, { sessionId: 'make' });
		const body = await good(route, { [from]: `${dir}/a`, [to]: `${dir}/b` });
		assert.deepEqual(Object.keys(body), ['success', 'path', 'newPath', 'timestamp']);
		assert.deepEqual([body.path, body.newPath], [`${dir}/a`, `${dir}/b`]);
		await good(route, { [from]: `${dir}/b`, [to]: `${dir}/d` });
		assert.equal(await box.out(`cat ${dir}/d/b`), 'one\n');
		await good(route, { [from]: `${dir}/tree`, [to]: `/dev/shm/${route}` });
		assert.equal(await box.out(`cat /dev/shm/${route}/x/f; rm -r /dev/shm/${route}; ls -A ${dir}`), 'deep\nd\n');
		assert.deepEqual(refused(await post(route, { [from]: `${dir}/none`, [to]: `${dir}/x` }), 404, 'FILE_NOT_FOUND'), { path: `${dir}/none`, operation });
		await good('mkdir', { path: `${dir}/d/sub` });
		const context = refused(await post(route, { [from]: `${dir}/d`, [to]: `${dir}/d/sub` }), 500, 'FILESYSTEM_ERROR');
		assert.deepEqual([context[from], context[to], context.exitCode, typeof context.stderr], [`${dir}/d`, `${dir}/d/sub`, 1, 'string']);
		for (const bad of [{ [from]: '', [to]: 'x' }, { [from]: 'x', [to]: '' }, { [from]: 'x' }, { [from]: 'a\0', [to]: 'x' }, { [from]: 'x', [to]: 'y'.repeat(4097) }])
			refused(await post(route, bad), 400, 'VALIDATION_FAILED');
	});

test('mkdir makes one directory, or all that are missing', async () => {
	const dir = await directory();
	assert.deepEqual(Object.keys(await good('mkdir', { path: `${dir}/a` })), ['success', 'path', 'recursive', 'timestamp']);
	const context = refused(await post('mkdir', { path: `${dir}/a` }), 500, 'FILESYSTEM_ERROR');
	assert.deepEqual([context.path, context.options, context.exitCode, typeof context.stderr], [`${dir}/a`, {}, 1, 'string']);
	assert.match(context.stderr, /File exists/);
	assert.deepEqual(refused(await post('mkdir', { path: `${dir}/x/y`, recursive: false }), 500, 'FILESYSTEM_ERROR').options, { recursive: false });
	assert.equal((await good('mkdir', { path: `${dir}/x/y/z`, recursive: true })).recursive, true);
	await good('mkdir', { path: `${dir}/x/y/z`, recursive: true });
	await good('write', { path: `${dir}/file`, content: '' });
	refused(await post('mkdir', { path: `${dir}/file/y`, recursive: true }), 500, 'FILESYSTEM_ERROR');
	refused(await post('mkdir', { path: `${dir}/q`, recursive: 'yes' }), 400, 'VALIDATION_FAILED');
});

// ---- list-files ----

test('list-files tells each entry as find does', async () => {
	const dir = await directory();
	await box.out(`cd ${dir}; printf ab > f; chmod 640 f; touch -d '2024-05-06T07:08:09.123456789Z' f; mkdir d .hidden; echo > .hidden/inner; ln -s f l; mkfifo p; echo > d/deep; chmod 4700 d/deep`, { sessionId: 'make' });
	const body = await good('list-files', { path: dir });
	assert.deepEqual(Object.keys(body), ['success', 'path', 'files', 'count', 'timestamp']);
	const by = Object.fromEntries(body.files.map(f => [f.name, f]));
	assert.deepEqual(Object.keys(by).sort(), ['d', 'f', 'l', 'p']);
	assert.equal(body.count, 4);
	assert.deepEqual(by.f, { name: 'f', absolutePath: `${dir}/f`, relativePath: 'f', type: 'file', size: 2, modifiedAt: '2024-05-06T07:08:09.1234567890', mode: 'rw-r-----', permissions: { readable: true, writable: true, executable: false } });
	assert.deepEqual([by.d.type, by.l.type, by.p.type], ['directory', 'symlink', 'other']);
	const all = await good('list-files', { path: dir, options: { recursive: true, includeHidden: true } });
	assert.deepEqual(all.files.map(f => f.relativePath).sort(), ['.hidden', '.hidden/inner', 'd', 'd/deep', 'f', 'l', 'p']);
	const deep = all.files.find(f => f.relativePath === 'd/deep');
	assert.deepEqual([deep.name, deep.absolutePath, deep.mode, deep.permissions.executable], ['deep', `${dir}/d/deep`, 'rwx------', true]);
	const shown = await good('list-files', { path: `${dir}/`, options: { recursive: true } });
	assert.deepEqual(shown.files.map(f => f.absolutePath).sort(), [`${dir}/.hidden/inner`, `${dir}/d`, `${dir}/d/deep`, `${dir}/f`, `${dir}/l`, `${dir}/p`]);
});

test('list-files skips names with tabs and newlines, and makes UTF-8 of the rest', async () => {
	const dir = await directory();
	await box.out(`cd ${dir}; touch $'a\\tb' $'a\\nb' $'bad\\xff' 'quo"te' 'é' 'sp ace'`, { sessionId: 'make' });
	const body = await good('list-files', { path: dir });
	assert.deepEqual(body.files.map(f => f.name).sort(), ['bad\ufffd', 'quo"te', 'sp ace', 'é'].sort());
	assert.equal(body.count, 4);
});

test('list-files refuses what is missing or no directory', async () => {
	assert.deepEqual(refused(await post('list-files', { path: '/nope' }), 404, 'FILE_NOT_FOUND'), { path: '/nope', operation: 'directory.list' });
	assert.deepEqual(refused(await post('list-files', { path: '/etc/passwd' }), 400, 'NOT_DIRECTORY'), { path: '/etc/passwd', operation: 'directory.list' });
	refused(await post('list-files', { path: '/dev/null' }), 400, 'NOT_DIRECTORY');
	const empty = await directory();
	assert.deepEqual((await good('list-files', { path: empty })).files, []);
});

// ---- exists ----

test('exists follows links and never fails for a path that leads nowhere', async () => {
	const dir = await directory();
	await box.out(`cd ${dir}; echo > f; ln -s f l; ln -s none dangling; ln -s loop loop`, { sessionId: 'make' });
	for (const [path, exists] of [['f', true], ['l', true], ['.', true], ['dangling', false], ['loop', false], ['none', false], ['f/x', false], ['x'.repeat(300), false]]) {
		const body = await good('exists', { path: `${dir}/${path}` });
		assert.equal(body.exists, exists, path);
		assert.deepEqual(Object.keys(body), ['success', 'path', 'exists', 'timestamp']);
	}
});

// ---- what all have in common ----

const ALL = [['read', {}], ['write', { content: 'x' }], ['delete', {}], ['mkdir', {}], ['list-files', {}], ['exists', {}]];

test('paths that cannot be any are refused by every route', async () => {
	for (const [route, fields] of ALL)
		for (const path of ['', 'a\0b', 'x'.repeat(4097), 5, null, undefined, ['a']]) {
			const [wrong] = refused(await post(route, { path, ...fields }), 400, 'VALIDATION_FAILED').validationErrors;
			assert.deepEqual([wrong.field, wrong.code], ['path', 'INVALID_PATH'], route);
		}
	for (const [route] of ALL) {
		refused(await box.api('POST', `/api/${route}`, 'no json'), 400, 'VALIDATION_FAILED');
		refused(await box.api('POST', `/api/${route}`, '[]'), 400, 'VALIDATION_FAILED');
	}
});

test('a blank session id is refused, an unknown one is not created', async () => {
	for (const sessionId of ['', ' ', '\t\n'])
		for (const [route, fields] of ALL)
			refused(await post(route, { path: '/etc/passwd', sessionId, ...fields }), 500, 'FILESYSTEM_ERROR');
	await good('read', { path: '/etc/passwd', sessionId: 'never-made' });
	assert.ok(!(await box.api('GET', '/api/session/list')).body.data.includes('never-made'));
});

test('relative paths begin where the session is', async () => {
	const dir = await directory();
	await box.out(`mkdir ${dir}/in; cd ${dir}/in`, { sessionId: 'rel' });
	await good('write', { path: 'f', content: 'here', sessionId: 'rel' });
	assert.equal((await good('read', { path: `${dir}/in/f` })).content, 'here');
	assert.equal((await good('read', { path: '../in/f', sessionId: 'rel' })).content, 'here');
	const list = await good('list-files', { path: '.', sessionId: 'rel' });
	assert.deepEqual(list.files.map(f => [f.absolutePath, f.relativePath]), [['./f', 'f']]);
	await box.out(`mv ${dir}/in ${dir}/moved`, { sessionId: 'other' });
	assert.equal((await good('read', { path: 'f', sessionId: 'rel' })).content, 'here', 'the directory was renamed under the shell');
	assert.equal((await good('exists', { path: 'f', sessionId: SESSIONLESS })).exists, false, 'without a session: /workspace');
	await box.out(`cd ${dir}/moved`, { sessionId: 'late' });
	await box.exec('cd /; sleep 10', { sessionId: 'late', timeoutMs: 100 });
	assert.equal((await good('exists', { path: 'f', sessionId: 'late' })).exists, true, 'the shell was replaced, and is where it was before');
});

test('a session that is busy keeps its files waiting, others go on', async () => {
	await box.out('mkfifo /tmp/gate /tmp/begun', { sessionId: 'other' });
	const busy = box.out('echo > /tmp/begun; cat /tmp/gate', { sessionId: 'busy' });
	await box.out('cat /tmp/begun', { sessionId: 'other' });
	const waiting = good('exists', { path: '/etc', sessionId: 'busy' });
	const first = await Promise.race([waiting.then(() => 'waiting'), good('exists', { path: '/etc', sessionId: 'other' }).then(() => 'other')]);
	assert.equal(first, 'other');
	await box.out('echo go > /tmp/gate', { sessionId: 'other' });
	assert.equal(await busy, 'go\n');
	await waiting;
});

test('a client that does not read what it asked for keeps no command waiting', async t => {
	await box.out('mkdir /tmp/many && cd /tmp/many && seq 50000 | xargs touch; head -c 30000000 /dev/zero > /tmp/large');
	for (const [route, body] of [['read', { path: '/tmp/large' }], ['list-files', { path: '/tmp/many' }], ['read/stream', { path: '/tmp/large' }]]) {
		const response = await daemon.client.open('POST', `/sandboxes/${box.id}/api/${route}`, body);
		t.after(() => response.destroy());
		response.pause();
		await box.run('true', {}, { deadline: 60_000 });
		response.destroy();
	}
});

test('a session whose shell has exited is told once', async () => {
	for (const [route, fields] of ALL.filter(([name]) => name !== 'exists')) {
		await box.out('rm -f /tmp/die; mkfifo /tmp/die; { read x < /tmp/die; kill -9 $$; } & true', { sessionId: 'dying' });
		await box.out('echo > /tmp/die', { sessionId: 'other' });
		const answer = await until('the end of the shell', async () => {
			const told = await post(route, { path: '/etc/hostname', sessionId: 'dying', ...(route === 'write' ? { path: '/tmp/x' } : route === 'delete' ? { path: '/tmp/none' } : {}), ...fields });
			return told.status === 410 && told;
		});
		const context = refused(answer, 410, 'SESSION_TERMINATED');
		assert.deepEqual([context.sessionId, context.exitCode], ['dying', 137]);
	}
	await box.exec('exit 3', { sessionId: 'gone' });
	assert.equal((await good('exists', { path: '/etc', sessionId: 'gone' })).exists, true, 'the execute was told already: the session is gone');
});
