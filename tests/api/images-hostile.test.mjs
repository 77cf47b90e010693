// SPDX-License-Identifier: Apache-2.0
// Archives of images that no honest program writes: refused with a sentence, or confined; nothing stays behind and nothing outside is touched.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { after, before, test } from 'node:test';
import zlib from 'node:zlib';
import { startDaemon } from '../lib/daemon.mjs';
import { envelope, refused } from '../lib/expect.mjs';
import { namesIn, processesOf } from '../lib/host.mjs';
import { dockerArchive, layout, layoutFiles, sha256, SKELETON } from '../lib/oci.mjs';
import { tar } from '../lib/tar.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon({ images: false, flags: { image: 'plain' } }); });
after(() => daemon?.stop());

const put = (bytes, query = '') => daemon.api('PUT', `/v1/images/hostile?kind=host${query}`, bytes, { headers: { 'content-type': 'application/x-tar' }, deadline: 120_000 });

/** Names that an archive could have made or removed on the host. */
const outside = () => ['/', '/tmp', '/opt', '/etc', daemon.home, daemon.state, path.join(daemon.state, 'images')].map(directory => namesIn(directory).filter(n => /escaped|hard|^passwd$|^silt\.db$/.test(n)));

async function isRefused(bytes, status, message) {
	const before = outside();
	const answer = await put(bytes);
	assert.equal(answer.status, status, answer.raw.toString());
	envelope(answer);
	assert.match(answer.body.message, message);
	assert.deepEqual(outside(), before);
	assert.deepEqual((await daemon.api('GET', '/v1/images')).body.images, []);
	await until('no staging directory is left', () => namesIn(path.join(daemon.state, 'images')).every(name => !name.startsWith('.staging')));
}

async function isConfined(t, bytes, command, out) {
	const before = outside();
	const answer = await put(bytes);
	assert.equal(answer.status, 201, answer.raw.toString());
	assert.deepEqual(outside(), before);
	t.after(() => daemon.api('DELETE', '/v1/images/hostile'));
	const box = await daemon.box(t, { image: 'hostile' });
	try {
		assert.equal(await box.out(command), out);
	} finally {
		await box.destroy();
	}
}

const upon = entries => layout({ layers: [[...SKELETON, { name: 'opt/kept', data: 'kept\n' }], entries] });
const link = (name, target) => ({ name, type: 'symlink', target });
const hard = (name, target) => ({ name, type: 'hardlink', target });

/** One entry whose header is changed by hand. */
function forged(entry, change) {
	const block = tar([entry]);
	change(block);
	block.write('        ', 148, 'latin1');
	block.write(`${block.subarray(0, 512).reduce((sum, byte) => sum + byte, 0).toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
	return block.subarray(0, block.length - 1024);
}
const pax = (key, value) => {
	const rest = ` ${key}=${value}\n`;
	let length = rest.length + 1;
	while (`${length}${rest}`.length !== length)
		length = `${length}${rest}`.length;
	return forged({ name: 'pax', data: `${length}${rest}` }, block => block.write('x', 156, 'latin1'));
};
const end = Buffer.alloc(1024);

const REFUSED = {
	'a name that climbs': [[{ name: 'opt/../../escaped', data: 'x' }], /climbs/],
	'a name of only dots': [[{ name: '..', type: 'dir' }], /climbs/],
	'an absolute name': [[{ name: '/escaped', data: 'x' }], /absolute/],
	'a hard link to the host': [[hard('opt/hard', '/etc/passwd')], /hard link to a place outside/],
	'a hard link that climbs': [[hard('opt/hard', '../../../etc/passwd')], /hard link to a place outside/],
	'a hard link to itself': [[hard('opt/hard', 'opt/hard')], /hard link to itself/],
	'links that lead to each other': [[link('opt/x', 'y'), link('opt/y', 'x'), { name: 'opt/x/z', data: 'x' }], /too many symbolic links/],
	'a whiteout that climbs': [[{ name: '../.wh.passwd', data: '' }], /climbs/],
	'an opaque mark outside': [[{ name: '../../.wh..wh..opq', data: '' }], /climbs/],
	'an absolute opaque mark': [[{ name: '/tmp/.wh..wh..opq', data: '' }], /absolute/],
	'a whiteout of ..': [[{ name: 'opt/.wh...', data: '' }], /removes nothing/],
	'a whiteout of .': [[{ name: 'opt/.wh..', data: '' }], /removes nothing/],
	'a whiteout without a name': [[{ name: 'opt/.wh.', data: '' }], /removes nothing/],
	'a file in a whiteout': [[{ name: 'opt/.wh.x/y', data: 'x' }], /lies in a whiteout/],
	'a name of many bytes': [Buffer.concat([pax('path', 'n/'.repeat(3000)), tar([{ name: 'short', data: 'x' }])]), /too long/],
	'a part of a name of many bytes': [Buffer.concat([pax('path', `opt/${'n'.repeat(300)}`), tar([{ name: 'short', data: 'x' }])]), /too long/],
	'an owner that no image has': [[{ name: 'opt/x', data: 'x', uid: 70_000 }], /owner/],
	'a size below zero': [Buffer.concat([forged({ name: 'opt/neg' }, block => block.fill(0xff, 124, 136)), end]), /layer|archive/],
	'a size below zero in a pax header': [Buffer.concat([pax('size', '-4096'), tar([{ name: 'opt/neg', data: 'x' }])]), /layer|archive/],
	'a file over a directory on the way': [[{ name: 'etc/passwd/under', data: 'x' }], /etc\/passwd/],
};
for (const [name, [entries, message]] of Object.entries(REFUSED))
	test(`a layer with ${name} is refused`, () => isRefused(upon(entries), 400, message));

const CONFINED = {
	'a file through a symlink out of the image': [[link('opt/out', '../../../../tmp'), { name: 'opt/out/escaped', data: 'in' }], 'cat /tmp/escaped', 'in'],
	'a file through an absolute symlink': [[link('opt/out', '/tmp'), { name: 'opt/out/escaped', data: 'in' }], 'cat /tmp/escaped', 'in'],
	'a hard link through a symlink': [[link('opt/out', '/etc'), hard('opt/hard', 'opt/out/passwd')], 'head -c 4 /opt/hard', 'root'],
	'a whiteout through a symlink': [[link('opt/out', '/etc'), { name: 'opt/out/.wh.group', data: '' }], 'ls /etc/group', '/etc/group\n'],
	'an opaque mark on the root': [[{ name: '.wh..wh..opq', data: '' }, ...SKELETON], 'ls /opt', ''],
	'a symlink replaced by a directory': [[link('opt/out', '/tmp'), { name: 'opt/out', type: 'dir' }, { name: 'opt/out/escaped', data: 'x' }], 'ls /tmp; cat /opt/out/escaped', 'x'],
	'two files of one name': [[{ name: 'opt/x', data: 'first' }, { name: 'opt/x', data: 'second' }], 'cat /opt/x', 'second'],
	'a file over a hard link to another': [[hard('opt/x', 'opt/kept'), { name: 'opt/x', data: 'second' }], 'cat /opt/x /opt/kept', 'secondkept\n'],
	'names that differ in case': [[{ name: 'opt/Kept', data: 'other\n' }], 'cat /opt/kept /opt/Kept', 'kept\nother\n'],
	'device nodes': [[{ name: 'opt/disk', type: 'block', major: 8, minor: 0 }, { name: 'opt/mem', type: 'char', major: 1, minor: 1 }], 'ls /opt', 'kept\n'],
	'marks of aufs': [[{ name: 'opt/.wh..wh.plnk', type: 'dir' }, { name: 'opt/.wh..wh.aufs', data: '' }], 'ls -A /opt', 'kept\n'],
	'files in notes of aufs': [[{ name: 'opt/.wh..wh.plnk', type: 'dir' }, { name: 'opt/.wh..wh.plnk/1.2', data: 'x' }], 'ls -A /opt', 'kept\n'],
	'a device node over a file': [[{ name: 'opt/kept', type: 'char', major: 1, minor: 3 }], 'ls /opt', ''],
	'a whiteout of what is not there': [[{ name: 'opt/.wh.never', data: '' }, { name: 'never/.wh.there', data: '' }], 'ls /opt', 'kept\n'],
	'a whiteout beside a file of that name': [[{ name: 'opt/kept', data: 'new\n' }, { name: 'opt/.wh.kept', data: '' }], 'cat /opt/kept', 'new\n'],
};
for (const [name, [entries, command, out]] of Object.entries(CONFINED))
	test(`a layer with ${name} stays inside`, t => isConfined(t, upon(entries), command, out));

test('setuid bits and owners of a layer mean ids of nobody on the host', async t => {
	const answer = await put(upon([{ name: 'opt/su', data: 'x', mode: 0o6755 }, { name: 'opt/ann', data: 'x', uid: 1000, gid: 65_535 }]));
	t.after(() => daemon.api('DELETE', '/v1/images/hostile'));
	const directory = path.join(daemon.state, 'images', answer.body.digest.replace('sha256:', ''));
	const su = fs.statSync(path.join(directory, 'opt/su')), ann = fs.statSync(path.join(directory, 'opt/ann')), top = fs.statSync(directory);
	assert.equal(su.mode & 0o7777, 0o6755);
	assert.ok(su.uid >= 65_536 && su.uid === top.uid);
	assert.equal(ann.uid, su.uid + 1000);
	assert.equal(ann.gid, su.uid + 65_535);
});

test('a program in an image is none that other users of the machine can run, setuid or not', async t => {
	const answer = await put(upon([{ name: 'opt/su', data: '#!/bin/sh\necho ran\n', mode: 0o6755 }]));
	t.after(() => daemon.api('DELETE', '/v1/images/hostile'));
	const file = path.join(daemon.state, 'images', answer.body.digest.replace('sha256:', ''), 'opt/su');
	assert.ok(fs.existsSync(file));
	const tried = spawnSync('/bin/sh', ['-c', '"$0"; test -e "$0" && echo seen; ls "$1"', file, path.join(daemon.state, 'images')], { uid: 12_345, gid: 12_345, encoding: 'utf8' });
	assert.equal(tried.stdout, '', tried.stderr);
});

test('a sparse file of petabytes is refused before it is written', async () => {
	const map = '1\n1125899906842624\n0\n'.padEnd(512, '\0');
	const records = [['GNU.sparse.major', '1'], ['GNU.sparse.minor', '0'], ['GNU.sparse.name', 'opt/bomb'], ['GNU.sparse.realsize', '1125899906842624']].map(([k, v]) => {
		const rest = ` ${k}=${v}\n`;
		return `${`${rest.length + 2}${rest}`.length}${rest}`;
	}).join('');
	const header = forged({ name: 'pax', data: records }, block => block.write('x', 156, 'latin1'));
	await isRefused(upon(Buffer.concat([header, tar([{ name: 'GNUSparseFile.0/bomb', data: map }])])), 429, /more than \d+ bytes/);
});

/** A tar whose one file is 320 MiB of zeros, in a third of a megabyte. */
function bomb() {
	const piece = 16 << 20;
	const count = 20;
	const head = forged({ name: 'opt/zeros' }, block => block.write(`${(piece * count).toString(8).padStart(11, '0')}\0`, 124, 'latin1'));
	return Buffer.concat([zlib.gzipSync(head), ...Array(count).fill(zlib.gzipSync(Buffer.alloc(piece), { level: 9 })), zlib.gzipSync(end)]);
}

test('a decompression bomb is refused before anything of it is written', async () => {
	const packed = bomb();
	assert.ok(packed.length < 500_000);
	await isRefused(layout({ layers: [SKELETON, [{ name: 'opt/bomb', data: '' }]], pack: bytes => (bytes.includes('opt/bomb') ? packed : bytes) }), 429, /unpacks to far more/);
});

const change = (what, message, status = 400) => [what, message, status];
const DIGEST = `sha256:${'ab'.repeat(32)}`;
const LIES = {
	'a blob that is not what its name says': change({ files: f => f.map(x => (x.name.startsWith('blobs/sha256/') && x.data[0] === 0x1f ? { ...x, data: Buffer.concat([x.data, Buffer.from('x')]) } : x)) }, /another sha256/),
	'a blob whose name is no digest': change({ files: f => [...f, { name: 'blobs/sha256/../../index', data: 'x' }] }, /climbs/),
	'a layer that is missing': change({ manifest: m => ({ ...m, layers: [{ ...m.layers[0], digest: DIGEST }] }) }, /missing/),
	'a configuration that is missing': change({ manifest: m => ({ ...m, config: { ...m.config, digest: DIGEST } }) }, /missing/),
	'a size that is another': change({ manifest: m => ({ ...m, layers: [{ ...m.layers[0], size: m.layers[0].size - 1 }] }) }, /bytes instead of/),
	'a size below zero': change({ manifest: m => ({ ...m, layers: [{ ...m.layers[0], size: -1 }] }) }, /no size/),
	'a digest of another kind': change({ manifest: m => ({ ...m, layers: [{ ...m.layers[0], digest: `md5:${'0'.repeat(32)}` }] }) }, /no sha256/),
	'a digest with a path': change({ manifest: m => ({ ...m, layers: [{ ...m.layers[0], digest: 'sha256:../../../etc/passwd' }] }) }, /no sha256/),
	'another content than diff_ids says': change({ config: c => ({ ...c, rootfs: { ...c.rootfs, diff_ids: [DIGEST] } }) }, /another sha256 than diff_ids/),
	'fewer diff_ids than layers': change({ config: c => ({ ...c, rootfs: { ...c.rootfs, diff_ids: [] } }) }, /layers/),
	'a configuration without diff_ids': change({ config: c => ({ ...c, rootfs: null }) }, /diff_ids/),
	'more than 128 layers': change({ manifest: m => ({ ...m, layers: Array(129).fill(m.layers[0]) }) }, /more than 128 layers/, 429),
	'a manifest of more bytes than are read': change({ manifest: m => ({ ...m, layers: Array(40_000).fill(m.layers[0]) }) }, /more than \d+ bytes/, 429),
	'an index without manifests': change({ index: i => ({ ...i, manifests: [] }) }, /no manifests/),
	'an index of another shape': change({ index: () => [1, 2, 3] }, /no JSON object/),
	'an index for other machines only': change({ index: i => ({ ...i, manifests: i.manifests.map(m => ({ ...m, platform: { os: 'linux', architecture: 'arm64' } })) }) }, /linux\/amd64/, 404),
	'a configuration for another machine': change({ config: c => ({ ...c, architecture: 'arm64' }) }, /for linux\/arm64/),
	'a configuration that is none': change({ config: c => ({ ...c, config: { Env: ['no equals sign'] } }) }, /Env/),
	'a configuration with a path that is none': change({ config: c => ({ ...c, config: { WorkingDir: 'relative' } }) }, /WorkingDir/),
	'a configuration of more bytes than are read': change({ config: c => ({ ...c, history: Array(30_000).fill({ created_by: 'x'.repeat(40) }) }) }, /more than \d+ bytes/, 429),
	'more variables than an image may have': change({ config: c => ({ ...c, config: { Env: Array(20_000).fill(0).map((_, i) => `NAME_${i}=${i}`) } }) }, /bytes/, 429),
	'a manifest of version 1': change({ manifest: () => ({ schemaVersion: 1, fsLayers: [{ blobSum: DIGEST }], history: [] }) }, /version 1/),
	'one file twice': change({ files: f => [...f, f.at(-1)] }, /twice/),
	'no index': change({ files: f => f.filter(x => x.name !== 'index.json') }, /index\.json is missing/),
	'a link to the host as its index': change({ files: f => f.map(x => (x.name === 'index.json' ? link('index.json', '/etc/passwd') : x)) }, /index\.json|outside/),
	'more files than are read': change({ files: f => [...f, ...Array(4200).fill(0).map((_, i) => ({ name: `more/${i}`, data: '' }))] }, /more than 4096 files/, 429),
};
for (const [name, [what, message, status]] of Object.entries(LIES))
	test(`a layout with ${name} is refused`, () => isRefused(layout({ change: what }), status, message));

test('indexes inside of each other are followed only so deep', async () => {
	await isRefused(layout({ nested: 6 }), 429, /inside of each other/);
});

test('an index that leads to itself has no sha256, and one that leads nowhere is refused', async () => {
	await isRefused(layout({ change: { index: i => ({ ...i, manifests: [{ ...i.manifests[0], digest: DIGEST }] }) } }), 400, /missing/);
});

const DOCKER_LIES = {
	'a layer of the host': [{ manifest: l => [{ ...l[0], Layers: ['/etc/passwd'] }] }, /missing/],
	'a layer that climbs': [{ manifest: l => [{ ...l[0], Layers: ['../../etc/passwd'] }] }, /missing/],
	'a layer that is a link to the host': [{ files: f => f.map(x => (x.name.endsWith('/layer.tar') ? link(x.name, '../../../etc/passwd') : x)) }, /outside|missing/],
	'layers that are links to each other': [{ files: f => f.map(x => (x.name.endsWith('/layer.tar') ? link(x.name, 'layer.tar') : x)) }, /missing/],
	'a list that is none': [{ manifest: () => ({ Config: 'x' }) }, /no list/],
	'no list': [{ files: f => f.filter(x => x.name !== 'manifest.json') }, /missing/],
	'names that are numbers': [{ manifest: l => [{ ...l[0], Layers: [1, 2] }] }, /name of a file/],
};
for (const [name, [what, message]] of Object.entries(DOCKER_LIES))
	test(`a docker-save archive with ${name} is refused`, () => isRefused(dockerArchive({ change: what }), 400, message));

test('an archive that is cut off anywhere is refused', async () => {
	const whole = layout({ layers: [[...SKELETON, { name: 'opt/big', data: Buffer.from(sha256('seed').repeat(5000)) }]], pack: x => x });
	for (const length of [600, 5000, 100_000, whole.length - 3000])
		await isRefused(whole.subarray(0, length), 400, /archive|missing/);
});

test('names with control characters are quoted in messages, also in those of libraries', async () => {
	for (const name of ['/\u001b[31mred\nline', 'etc/passwd/\u001b[31mred\nline']) {
		const answer = await put(upon([{ name, data: 'x' }]));
		assert.equal(answer.status, 400);
		assert.doesNotMatch(answer.body.message, /[\u0000-\u001f]/);
	}
});

test('marks in a directory that replaces a link do not reach what the link led to', async t => {
	const below = [...SKELETON, { name: 'srv/keep', data: 'keep\n' }, link('var/link', '../srv'), link('var/other', '/srv')];
	const above = [{ name: 'var/link', type: 'dir' }, { name: 'var/link/.wh..wh..opq', data: '' }, { name: 'var/link/new', data: 'new\n' }, { name: 'var/other', type: 'dir' }, { name: 'var/other/.wh.keep', data: '' }];
	await isConfined(t, layout({ layers: [below, above] }), 'cat /srv/keep /var/link/new; ls /var/link /var/other', 'keep\nnew\n/var/link:\nnew\n\n/var/other:\n');
});

test('what is packed more than once is refused', async () => {
	const twice = bytes => zlib.gzipSync(zlib.gzipSync(bytes));
	await isRefused(twice(layout({})), 400, /packed more than once/);
	await isRefused(layout({ pack: twice }), 400, /packed more than once/);
});

/** Keeps silt-fetch busy for long with a small archive that writes nothing: one layer, many times. */
function slow(number) {
	const piece = Buffer.alloc(8 << 20);
	const count = 16;
	const head = forged({ name: 'opt/.wh..wh.plnk/zeros' }, block => block.write(`${(piece.length * count).toString(8).padStart(11, '0')}\0`, 124, 'latin1'));
	const plain = Buffer.concat([head, ...Array(count).fill(piece), end]);
	const packed = Buffer.concat([zlib.gzipSync(head), ...Array(count).fill(zlib.gzipSync(piece)), zlib.gzipSync(end)]);
	const many = list => [list[0], ...Array(127).fill(list[1])];
	return layout({
		layers: [[...SKELETON, { name: 'opt/first', data: `${number}` }], plain], pack: bytes => (bytes === plain ? packed : bytes),
		change: { config: c => ({ ...c, rootfs: { ...c.rootfs, diff_ids: many(c.rootfs.diff_ids) } }), manifest: m => ({ ...m, layers: many(m.layers) }) },
	});
}

const stagings = () => namesIn(path.join(daemon.state, 'images')).filter(name => name.startsWith('.staging'));
const fetches = () => processesOf(daemon.instance).filter(p => p.name === 'silt-fetch' && p.state !== 'Z').length;

/** Uploads, waits until layers are being unpacked, gives the connection. */
async function uploaded(body) {
	const socket = net.connect(daemon.client.port, daemon.client.host);
	socket.on('error', () => {});
	socket.write(`PUT /v1/images/left?kind=host HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${daemon.token}\r\nContent-Type: application/x-tar\r\nContent-Length: ${body.length}\r\n\r\n`);
	socket.write(body);
	await until('the first layer is there', () => stagings().some(name => fs.existsSync(path.join(daemon.state, 'images', name, 'opt/first'))), 60_000);
	assert.equal(fetches(), 1);
	return socket;
}

test('silt-fetch ends when the sender leaves after the upload, and nothing stays', async () => {
	(await uploaded(slow(1))).resetAndDestroy();
	await until('silt-fetch has ended', () => fetches() === 0);
	await until('no staging directory is left', () => stagings().length === 0);
	assert.deepEqual((await daemon.api('GET', '/v1/images')).body.images, []);
});

test('silt-fetch ends with siltd', async () => {
	const socket = await uploaded(slow(2));
	process.kill(daemon.siltd(), 'SIGKILL');
	await until('silt-fetch has ended', () => fetches() === 0);
	socket.destroy();
	await daemon.healthy();
	await until('no staging directory is left', () => stagings().length === 0);
});

const PIN = DIGEST;
test('a digest that is asked for is not what an archive calls itself', async () => {
	for (const bytes of [layout({ ref: PIN }), dockerArchive({ tags: [PIN] })]) {
		const answer = await put(bytes, `&image=${PIN}`);
		assert.equal(answer.status, 404, answer.raw.toString());
	}
	refused(await daemon.api('POST', '/v1/images/import?kind=host', layout({ ref: PIN }), { headers: { 'content-type': 'application/x-tar' } }), 400, 'VALIDATION_FAILED');
});

test('a digest that is asked for is not a link to something else', async () => {
	const files = layoutFiles({});
	const top = JSON.parse(files.at(-1).data).manifests[0];
	const real = `blobs/sha256/${top.digest.slice(7)}`;
	for (const type of ['symlink', 'hardlink']) {
		const target = type === 'symlink' ? '../../manifest' : 'manifest';
		const forgedFiles = [...files.filter(f => f.name !== 'index.json').map(f => (f.name === real ? { ...f, name: 'manifest' } : f)), { name: `blobs/sha256/${PIN.slice(7)}`, type, target }, { name: 'index.json', data: JSON.stringify({ schemaVersion: 2, manifests: [{ ...top, digest: PIN }] }) }];
		const answer = await put(tar(forgedFiles), `&image=${PIN}`);
		assert.equal(answer.status, 400, answer.raw.toString());
		assert.match(answer.body.message, /another sha256/);
	}
});
