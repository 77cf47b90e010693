// SPDX-License-Identifier: Apache-2.0
// /v1/sandboxes/{id}/files: bytes up and down, ranges, versions, and the small deeds.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { refused } from '../lib/expect.mjs';
import { until, within } from '../lib/wait.mjs';

let daemon;
let box;
before(async () => {
	daemon = await startDaemon();
	box = await daemon.box();
	await box.run('true');
});
after(() => daemon?.stop());

const url = (path, query = '', id = box.id) => `/v1/sandboxes/${id}/files?path=${encodeURIComponent(path)}${query}`;
const get = (path, headers = {}, query = '') => daemon.api('GET', url(path, query), undefined, { headers });
const put = (path, bytes, headers = {}, query = '') => daemon.api('PUT', url(path, query), bytes, { headers: { 'content-type': 'application/octet-stream', ...headers } });
const deed = (name, body) => daemon.api('POST', `/v1/sandboxes/${box.id}/files/${name}`, body);
const sha256 = bytes => createHash('sha256').update(bytes).digest('hex');

async function good(name, body) {
	const answer = await deed(name, body);
	assert.equal(answer.status, 200, `${name} ${JSON.stringify(body)}: ${answer.raw.toString().slice(0, 500)}`);
	return answer.body;
}

let directories = 0;
async function directory() {
	const name = `/workspace/n${++directories}`;
	await good('mkdir', { path: name });
	return name;
}

test('bytes go up and come down as they are', async () => {
	const dir = await directory();
	for (const size of [0, 1, 1000, 61_264, 61_440, 61_441, 262_144, 262_145, 524_287, 524_288, 1_000_003, 2_097_152, 5_000_003]) {
		const bytes = randomBytes(size);
		const up = await put(`${dir}/a/b.bin`, bytes);
		assert.equal(up.status, 200, up.raw.toString());
		assert.deepEqual(Object.keys(up.body), ['path', 'size', 'sha256', 'mode', 'etag']);
		assert.deepEqual([up.body.path, up.body.size, up.body.sha256, up.body.mode], [`${dir}/a/b.bin`, size, sha256(bytes), '0644']);
		const down = await get(`${dir}/a/b.bin`);
		assert.equal(down.status, 200);
		assert.ok(down.raw.equals(bytes), `${size} bytes`);
		assert.equal(down.headers['content-length'], String(size));
		assert.equal(down.headers.etag, up.body.etag);
		assert.equal(down.headers['accept-ranges'], 'bytes');
		assert.equal(down.headers['x-content-type-options'], 'nosniff');
		assert.equal(down.headers['content-security-policy'], 'sandbox');
		assert.match(down.headers['last-modified'], /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/);
	}
	assert.equal(await box.out(`ls -A ${dir} ${dir}/a`), `${dir}:\na\n\n${dir}/a:\nb.bin\n`);
});

test('the type of a download is the file\'s', async () => {
	const dir = await directory();
	await put(`${dir}/x.html`, '<p>');
	assert.equal((await get(`${dir}/x.html`)).headers['content-type'], 'text/html');
	await put(`${dir}/plain`, 'some text\n');
	assert.equal((await get(`${dir}/plain`)).headers['content-type'], 'text/plain');
});

test('ranges answer a part, the whole or 416', async () => {
	const dir = await directory();
	const bytes = randomBytes(200_000);
	await put(`${dir}/f`, bytes);
	for (const [range, from, to] of [['bytes=0-0', 0, 0], ['bytes=10-19', 10, 19], ['bytes=199990-', 199_990, 199_999], ['bytes=-5', 199_995, 199_999], ['bytes=100000-999999', 100_000, 199_999], ['bytes=-999999', 0, 199_999], ['BYTES=0-99999', 0, 99_999]]) {
		const answer = await get(`${dir}/f`, { range });
		assert.equal(answer.status, 206, range);
		assert.equal(answer.headers['content-range'], `bytes ${from}-${to}/200000`, range);
		assert.ok(answer.raw.equals(bytes.subarray(from, to + 1)), range);
		assert.equal(answer.headers['content-length'], String(to - from + 1));
	}
	for (const range of ['bytes=5-2', 'bytes=a-b', 'bytes=', 'lines=1-2', 'bytes=0-1,5-6', 'bytes=-', 'bytes=0x1-2', 'bytes=99999999999999999999-']) {
		const answer = await get(`${dir}/f`, { range });
		assert.equal(answer.status, 200, range);
		assert.equal(answer.raw.length, 200_000, range);
	}
	for (const range of ['bytes=200000-', 'bytes=200000-200001', 'bytes=-0']) {
		const answer = await get(`${dir}/f`, { range });
		assert.deepEqual(refused(answer, 416, 'RANGE_NOT_SATISFIABLE'), { size: 200_000 });
		assert.equal(answer.headers['content-range'], 'bytes */200000');
	}
	await put(`${dir}/empty`, '');
	refused(await get(`${dir}/empty`, { range: 'bytes=0-' }), 416, 'RANGE_NOT_SATISFIABLE');
});

test('versions: If-None-Match, If-Match and If-Range', async () => {
	const dir = await directory();
	const { etag } = (await put(`${dir}/f`, 'first')).body;
	assert.match(etag, /^"[0-9a-f-]+"$/);
	for (const value of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
		const answer = await get(`${dir}/f`, { 'if-none-match': value });
		assert.equal(answer.status, 304, value);
		assert.equal(answer.raw.length, 0);
		assert.equal(answer.headers.etag, etag);
	}
	assert.equal((await get(`${dir}/f`, { 'if-none-match': '"other"' })).raw.toString(), 'first');
	assert.equal((await get(`${dir}/f`, { 'if-match': etag })).status, 200);
	refused(await get(`${dir}/f`, { 'if-match': '"other"' }), 412, 'PRECONDITION_FAILED');
	assert.equal((await get(`${dir}/f`, { range: 'bytes=0-1', 'if-range': etag })).raw.toString(), 'fi');
	assert.equal((await get(`${dir}/f`, { range: 'bytes=0-1', 'if-range': '"other"' })).raw.toString(), 'first');
	refused(await put(`${dir}/f`, 'x', { 'if-match': '"other"' }), 412, 'PRECONDITION_FAILED');
	refused(await put(`${dir}/none`, 'x', { 'if-match': '*' }), 412, 'PRECONDITION_FAILED');
	refused(await put(`${dir}/f`, 'x', { 'if-none-match': '*' }), 409, 'FILE_EXISTS');
	assert.equal((await get(`${dir}/f`)).raw.toString(), 'first');
	const second = await put(`${dir}/f`, 'second', { 'if-match': etag });
	assert.equal(second.status, 200);
	assert.notEqual(second.body.etag, etag);
	assert.equal((await put(`${dir}/new`, 'x', { 'if-none-match': '*' })).status, 201);
});

test('HEAD tells what GET would, without the bytes', async () => {
	const dir = await directory();
	const { etag } = (await put(`${dir}/f.txt`, 'four')).body;
	const answer = await daemon.api('HEAD', url(`${dir}/f.txt`));
	assert.deepEqual([answer.status, answer.raw.length, answer.headers['content-length'], answer.headers.etag, answer.headers['content-type']], [200, 0, '4', etag, 'text/plain']);
	assert.equal((await daemon.api('HEAD', url(`${dir}/none`))).status, 404);
	assert.equal((await daemon.api('HEAD', url(dir))).status, 400);
	await box.out(`truncate -s 100G ${dir}/endless`); // whoever packed it all would be busy for minutes
	const tar = await daemon.api('HEAD', url(dir, '&format=tar'));
	assert.deepEqual([tar.status, tar.headers['content-type'], tar.raw.length], [200, 'application/x-tar', 0]);
	await until('tar has ended', async () => (await box.run('pgrep -x tar')).exitCode === 1);
});

test('an upload keeps the mode and the owner, or sets the mode that is asked for', async () => {
	const dir = await directory();
	await put(`${dir}/f`, '1', {}, '&mode=0750');
	assert.equal(await box.out(`stat -c %a ${dir}/f; chown 5:6 ${dir}/f; chmod 4640 ${dir}/f`), '750\n');
	assert.equal((await put(`${dir}/f`, '2')).body.mode, '4640');
	assert.equal(await box.out(`stat -c '%a %u %g' ${dir}/f`), '4640 5 6\n');
	const answer = await put(`${dir}/f`, '3', {}, '&mode=666');
	assert.equal(answer.body.mode, '0666');
	assert.equal((await get(`${dir}/f`)).headers.etag, answer.body.etag);
	for (const mode of ['', '8', '99999', 'rw', '17777'])
		refused(await put(`${dir}/f`, 'x', {}, `&mode=${mode}`), 400, 'VALIDATION_FAILED');
	assert.equal((await get(`${dir}/f`)).raw.toString(), '3');
});

test('a body that is cut off leaves the old file and nothing beside it', async () => {
	const dir = await directory();
	await put(`${dir}/f`, 'old');
	for (let i = 0; i < 5; i++) {
		const request = http.request({ host: daemon.client.host, port: daemon.client.port, method: 'PUT', path: url(`${dir}/f`), headers: { authorization: `Bearer ${daemon.token}`, 'content-length': 10_000_000 } });
		request.on('error', () => {});
		await new Promise(resolve => request.write(Buffer.alloc(3_000_000 * (i % 2) + 10), resolve));
		request.destroy();
	}
	assert.equal((await get(`${dir}/f`)).raw.toString(), 'old');
	await until('nothing beside it', async () => await box.out(`ls -A ${dir}`) === 'f\n');
});

test('chunked uploads of unknown length arrive whole', async () => {
	const dir = await directory();
	const piece = randomBytes(100_000);
	const answer = await within(60_000, 'upload', new Promise((resolve, reject) => {
		const request = http.request({ host: daemon.client.host, port: daemon.client.port, method: 'PUT', path: url(`${dir}/f`), headers: { authorization: `Bearer ${daemon.token}`, expect: '100-continue' } }, response => {
			let text = '';
			response.on('data', chunk => { text += chunk; }).on('end', () => resolve(JSON.parse(text)));
		});
		request.on('error', reject).on('continue', () => {
			for (let i = 0; i < 30; i++)
				request.write(piece);
			request.end();
		});
		request.flushHeaders();
	}));
	assert.deepEqual([answer.size, answer.sha256], [3_000_000, sha256(Buffer.concat(Array(30).fill(piece)))]);
});

test('uploads and downloads tell their errors', async () => {
	const dir = await directory();
	await put(`${dir}/file`, 'x');
	assert.deepEqual(refused(await get('/nope'), 404, 'FILE_NOT_FOUND'), { path: '/nope', operation: 'file.read' });
	refused(await get(dir), 400, 'IS_DIRECTORY');
	refused(await get('/dev/zero'), 403, 'PERMISSION_DENIED');
	refused(await get(`${dir}/file/x`), 400, 'NOT_DIRECTORY');
	refused(await put(dir, 'x'), 400, 'IS_DIRECTORY');
	refused(await put('/dev/null', 'x'), 403, 'PERMISSION_DENIED');
	refused(await put(`${dir}/file/x`, 'x'), 400, 'NOT_DIRECTORY');
	refused(await put('/sys/x', 'x'), 403, ['PERMISSION_DENIED', 'READ_ONLY']);
	refused(await put(`${dir}/${'x'.repeat(256)}`, 'x'), 400, 'NAME_TOO_LONG');
	for (const query of ['', '?path=', '?path=%zz', '?path=%00', `?path=${'x'.repeat(4097)}`])
		for (const method of ['GET', 'PUT', 'DELETE'])
			refused(await daemon.api(method, `/v1/sandboxes/${box.id}/files${query}`, method === 'PUT' ? 'x' : undefined), 400, 'VALIDATION_FAILED');
	refused(await get(dir, {}, '&format=zip'), 400, 'VALIDATION_FAILED');
	refused(await daemon.api('GET', '/v1/sandboxes/../files?path=/'), 400, 'VALIDATION_FAILED');
	for (const [method, route, body] of [['GET', 'files?path=/etc/passwd'], ['PUT', 'files?path=/tmp/x', 'x'], ['DELETE', 'files?path=/tmp/x'], ['POST', 'files/stat', { path: '/' }]])
		refused(await daemon.api(method, `/v1/sandboxes/never-made/${route}`, body), 404, 'SANDBOX_NOT_FOUND');
});

test('DELETE removes files, and directories when it is asked to', async () => {
	const dir = await directory();
	await box.out(`cd ${dir}; mkdir -p d/e; touch d/f d/e/g f; ln -s /etc d/out`, { sessionId: 'make' });
	const remove = (path, query = '') => daemon.api('DELETE', url(path, query));
	assert.equal((await remove(`${dir}/f`)).status, 200);
	refused(await remove(`${dir}/f`), 404, 'FILE_NOT_FOUND');
	refused(await remove(`${dir}/d`), 400, 'IS_DIRECTORY');
	refused(await remove(`${dir}/d`, '&recursive=maybe'), 400, 'VALIDATION_FAILED');
	assert.equal((await remove(`${dir}/d`, '&recursive=true')).status, 200);
	assert.equal(await box.out(`ls -A ${dir}; ls -d /etc/passwd`), '/etc/passwd\n', 'links are not followed');
});

test('stat tells what a file is', async () => {
	const dir = await directory();
	await box.out(`cd ${dir}; printf abc > f.txt; chmod 640 f.txt; chown 7:8 f.txt; touch -d '2024-05-06T07:08:09.123456789Z' f.txt; ln -s f.txt l; ln f.txt h`, { sessionId: 'make' });
	const file = await good('stat', { path: `${dir}/f.txt` });
	assert.deepEqual([file.type, file.size, file.mode, file.uid, file.gid, file.links, file.modifiedAt, file.mimeType], ['file', 3, '0640', 7, 8, 2, '2024-05-06T07:08:09.123456789Z', 'text/plain']);
	assert.equal((await good('stat', { path: `${dir}/l` })).type, 'file');
	assert.equal((await good('stat', { path: `${dir}/l`, followLinks: false })).type, 'symlink');
	assert.equal((await good('stat', { path: dir })).type, 'directory');
	assert.equal((await good('stat', { path: '/dev/null' })).type, 'other');
	assert.equal((await good('stat', { path: '.' })).inode, (await good('stat', { path: '/workspace' })).inode, 'relative paths begin at /workspace');
	refused(await deed('stat', { path: '/nope' }), 404, 'FILE_NOT_FOUND');
	refused(await deed('stat', {}), 400, 'VALIDATION_FAILED');
	refused(await deed('stat', { path: '/', followLinks: 1 }), 400, 'VALIDATION_FAILED');
});

test('list, mkdir and move with finer errors than the wire routes', async () => {
	const dir = await directory();
	await good('mkdir', { path: `${dir}/a`, mode: '0700' });
	refused(await deed('mkdir', { path: `${dir}/a` }), 409, 'FILE_EXISTS');
	refused(await deed('mkdir', { path: `${dir}/x/y` }), 404, 'FILE_NOT_FOUND');
	await good('mkdir', { path: `${dir}/x/y`, recursive: true });
	await put(`${dir}/x/.f`, 'x');
	const listed = await good('list', { path: dir, recursive: true });
	assert.deepEqual(listed.entries.map(e => [e.path, e.type]).sort(), [['a', 'directory'], ['x', 'directory'], ['x/.f', 'file'], ['x/y', 'directory']]);
	assert.deepEqual([listed.count, listed.truncated, listed.entries.find(e => e.path === 'a').mode], [4, false, '0700']);
	assert.equal((await good('list', { path: `${dir}/x`, includeHidden: false })).count, 1);
	assert.deepEqual((await good('list', { path: `${dir}/a` })).entries, []);
	assert.deepEqual((await good('move', { path: `${dir}/x/.f`, to: `${dir}/a` })).to, `${dir}/a`);
	assert.equal((await get(`${dir}/a/.f`)).status, 200);
	refused(await deed('move', { path: `${dir}/none`, to: `${dir}/a` }), 404, 'FILE_NOT_FOUND');
	refused(await deed('list', { path: `${dir}/a/.f` }), 400, 'NOT_DIRECTORY');
});

test('chmod, chown and truncate change what they say', async () => {
	const dir = await directory();
	await box.out(`cd ${dir}; mkdir -p d/e; printf abcdef > d/e/f; ln -s d/e/f l`, { sessionId: 'make' });
	await good('chmod', { path: `${dir}/d/e/f`, mode: '4751' });
	await good('chmod', { path: `${dir}/d`, mode: 0o700 });
	assert.equal(await box.out(`stat -c %a ${dir}/d/e/f ${dir}/d`), '4751\n700\n');
	await good('chmod', { path: `${dir}/d`, mode: '0755', recursive: true });
	assert.equal(await box.out(`stat -c %a ${dir}/d/e/f ${dir}/d ${dir}/d/e`), '755\n755\n755\n');
	await good('chown', { path: `${dir}/d`, uid: 12, gid: 13, recursive: true });
	await good('chown', { path: `${dir}/d/e`, gid: 14 });
	await good('chown', { path: `${dir}/l`, uid: 15, followLinks: false });
	assert.equal(await box.out(`stat -c '%u %g' ${dir}/d ${dir}/d/e ${dir}/d/e/f ${dir}/l`), '12 13\n12 14\n12 13\n15 0\n');
	await good('truncate', { path: `${dir}/d/e/f`, size: 3 });
	assert.equal((await get(`${dir}/d/e/f`)).raw.toString(), 'abc');
	await good('truncate', { path: `${dir}/d/e/f`, size: 5 });
	assert.equal((await get(`${dir}/d/e/f`)).raw.toString(), 'abc\0\0');
	await good('truncate', { path: `${dir}/d/e/f` });
	assert.equal((await get(`${dir}/d/e/f`)).raw.length, 0);
	for (const [name, body] of [['chmod', { mode: 'x' }], ['chmod', {}], ['chmod', { mode: 4096 }], ['chown', { uid: -1 }], ['chown', { uid: 65536 }], ['chown', { gid: 'root' }], ['truncate', { size: -1 }], ['truncate', { size: 1.5 }], ['chmod', { mode: '0644', recursive: 'x' }]])
		refused(await deed(name, { path: `${dir}/d/e/f`, ...body }), 400, 'VALIDATION_FAILED');
	for (const [name, body] of [['chmod', { mode: '0644' }], ['chown', { uid: 1 }], ['truncate', { size: 1 }], ['readlink', {}]])
		refused(await deed(name, { path: `${dir}/none`, ...body }), 404, 'FILE_NOT_FOUND');
	refused(await deed('truncate', { path: dir, size: 1 }), 400, 'IS_DIRECTORY');
});

test('links are made and read', async () => {
	const dir = await directory();
	assert.deepEqual(await good('symlink', { path: `${dir}/l`, target: '../somewhere/"odd"' }), { path: `${dir}/l`, target: '../somewhere/"odd"' });
	assert.deepEqual(await good('readlink', { path: `${dir}/l` }), { path: `${dir}/l`, target: '../somewhere/"odd"' });
	assert.equal(await box.out(`readlink ${dir}/l`), '../somewhere/"odd"\n');
	const context = refused(await deed('symlink', { path: `${dir}/l`, target: 'x' }), 409, 'FILE_EXISTS');
	assert.equal(context.path, `${dir}/l`);
	await put(`${dir}/f`, 'x');
	refused(await deed('readlink', { path: `${dir}/f` }), 400, 'NOT_A_LINK');
	for (const body of [{ path: `${dir}/n` }, { target: 'x' }, { path: '', target: 'x' }, { path: `${dir}/n`, target: '' }])
		refused(await deed('symlink', body), 400, 'VALIDATION_FAILED');
});

test('search finds text with glob, case and limit', async () => {
	const dir = await directory();
	await box.out(`cd ${dir}; mkdir -p src/deep; printf 'one\\nthe needle here\\nNeedle again\\n' > src/a.c; printf 'needle needle\\n' > src/deep/b.py; head -c 100000 /dev/zero > zeros; printf 'no newline needle' > last.c; mkfifo pipe; ln -s / root`, { sessionId: 'make' });
	const found = await good('search', { path: dir, text: 'needle' });
	assert.deepEqual(found.matches.map(m => [m.path, m.line, m.column]).sort(), [['last.c', 1, 12], ['src/a.c', 2, 5], ['src/deep/b.py', 1, 1]]);
	assert.equal(found.matches.find(m => m.path === 'src/a.c').text, 'the needle here');
	assert.deepEqual([found.count, found.truncated], [3, false]);
	assert.equal((await good('search', { path: dir, text: 'needle', ignoreCase: true })).count, 4);
	assert.deepEqual((await good('search', { path: dir, text: 'needle', glob: '*.py' })).matches.map(m => m.path), ['src/deep/b.py']);
	const limited = await good('search', { path: dir, text: 'needle', limit: 1 });
	assert.deepEqual([limited.count, limited.truncated], [1, true]);
	await box.out(`truncate -s 33M ${dir}/large.txt`);
	assert.equal((await good('search', { path: dir, text: 'needle' })).truncated, true, 'a file that is too large may have more');
	assert.equal((await good('search', { path: dir, text: 'needle', glob: '*.c' })).truncated, false);
	assert.equal((await good('search', { path: `${dir}/large.txt`, text: 'needle' })).truncated, true);
	assert.deepEqual((await good('search', { path: dir, text: '$(reboot) .*' })).matches, [], 'text is text');
	for (const body of [{}, { text: '' }, { text: 5 }, { text: 'x'.repeat(1025) }, { text: 'x', limit: 0 }, { text: 'x', limit: 'all' }, { text: 'a\0' }])
		refused(await deed('search', { path: dir, ...body }), 400, 'VALIDATION_FAILED');
	refused(await deed('search', { path: `${dir}/none`, text: 'x' }), 404, 'FILE_NOT_FOUND');
});

/** The machine's zstd, with its own libraries, for an image that has none. */
async function installZstd() {
	const program = execFileSync('sh', ['-c', 'command -v zstd'], { encoding: 'utf8' }).trim();
	const libraries = execFileSync('ldd', [program], { encoding: 'utf8' }).match(/\/\S+/g);
	for (const file of [program, ...libraries])
		assert.equal((await put(`/opt/zstd/${path.basename(file)}`, fs.readFileSync(file), {}, '&mode=0755')).status, 200);
	const loader = path.basename(libraries.find(file => /\/ld-/.test(file)));
	await put('/usr/local/bin/zstd', `#!/bin/sh\nexec /opt/zstd/${loader} --library-path /opt/zstd /opt/zstd/zstd "$@"\n`, {}, '&mode=0755');
}

test('a compressed tar needs zstd in the image', async t => {
	const lean = await daemon.box(t);
	await lean.out('rm -f $(command -v zstd)');
	refused(await daemon.api('GET', url('/etc', '&format=tar.zst', lean.id)), 501, 'NOT_AVAILABLE');
	refused(await daemon.api('PUT', url('/tmp/x', '&format=tar.zst', lean.id), 'x'), 501, 'NOT_AVAILABLE');
});

for (const [name, type, query] of [['tar', 'application/x-tar', '&format=tar'], ['tar with zstd', 'application/zstd', '&format=tar.zst']])
	test(`a directory goes down and up as ${name}`, async () => {
		if (name !== 'tar')
			await installZstd();
		const dir = await directory();
		await box.out(`cd ${dir}; mkdir -p from/a/b; head -c 3000000 /dev/urandom > from/a/big; echo x > from/a/b/f; chmod 4711 from/a/b/f; ln -s b/f from/a/l; touch 'from/odd "name"'`, { sessionId: 'make' });
		for (const down of [await get(`${dir}/from`, { accept: type }), await get(`${dir}/from`, {}, query)]) {
			assert.equal(down.status, 200, down.raw.toString().slice(0, 300));
			assert.equal(down.headers['content-type'], type);
			await box.out(`rm -rf ${dir}/to`);
			const up = await put(`${dir}/to`, down.raw, { 'content-type': type });
			assert.equal(up.status, 200, up.raw.toString());
			assert.deepEqual(Object.keys(up.body), ['path', 'entries', 'bytes', 'sha256']);
			assert.equal(up.body.sha256, sha256(down.raw));
			assert.equal(await box.out(`cd ${dir}; diff -r from to && stat -c '%a' to/a/b/f; readlink to/a/l; ls -A`, { sessionId: 'make' }), '4711\nb/f\nfrom\nto\n');
		}
		await put(`${dir}/raw.tar`, 'just bytes', { 'content-type': type }, '&format=raw');
		assert.equal((await get(`${dir}/raw.tar`)).raw.toString(), 'just bytes');
		const broken = await put(`${dir}/broken`, Buffer.from('this is no tar at all'.repeat(100)), { 'content-type': type });
		assert.ok(broken.status >= 400 && broken.status < 600 && typeof broken.body.code === 'string', broken.raw.toString());
		await until('nothing half made remains', async () => !(await box.out(`ls -A ${dir}`)).includes('silt'));
		refused(await get(`${dir}/none`, {}, query), 404, 'FILE_NOT_FOUND');
		refused(await get(`${dir}/raw.tar`, {}, query), 400, 'NOT_DIRECTORY');
	});
