// SPDX-License-Identifier: Apache-2.0
// Images that leave as archives: whole or cut, the same bytes each time, readable by others and by ourselves.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { refused } from '../lib/expect.mjs';
import { dockerArchive, layout, sha256, SKELETON } from '../lib/oci.mjs';
import { silt } from '../lib/silt.mjs';
import { skeletonTar, tar } from '../lib/tar.mjs';
import { untar } from '../lib/untar.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
let directory;
before(async () => {
	directory = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-export-'));
	daemon = await startDaemon({ images: false, flags: { image: 'plain' } });
});
after(async () => {
	await daemon?.stop();
	fs.rmSync(directory, { recursive: true, force: true });
});

const FILES = [...SKELETON,
	{ name: 'opt/su', data: 'x', mode: 0o4755 }, { name: 'opt/ann', data: 'hers\n', uid: 1000, gid: 1001, mode: 0o640 }, { name: 'opt/two', type: 'hardlink', target: 'opt/ann' },
	{ name: 'opt/link', type: 'symlink', target: '/no/where' }, { name: 'opt/queue', type: 'fifo' }, { name: 'opt/empty', data: '' }, { name: 'opt/a\nb', data: 'odd name' }, { name: 'opt/sticky', type: 'dir', mode: 0o1777 },
	{ name: 'opt/big', data: Buffer.alloc(3_000_001, 'abc') }];
const CONFIG = { Cmd: ['sleep', '1'], Env: ['A=1'], Labels: { maker: 'me' }, User: 'ann', WorkingDir: '/srv' };

/** Imports as a tree; it goes after the test. */
async function put(t, name, bytes) {
	const answer = await daemon.api('PUT', `/v1/images/${encodeURIComponent(name)}`, bytes, { headers: { 'content-type': 'application/x-tar' }, deadline: 60_000 });
	assert.equal(answer.status, 201, answer.raw.toString());
	t.after(() => daemon.api('DELETE', `/v1/images/${encodeURIComponent(name)}`));
	return answer.body;
}

async function take(name, format = 'oci') {
	const answer = await daemon.api('GET', `/v1/images/${encodeURIComponent(name)}/export?format=${format}`, undefined, { deadline: 60_000 });
	assert.equal(answer.status, 200, answer.raw.toString());
	assert.equal(answer.headers['content-type'], 'application/x-tar');
	return answer.raw;
}

/** The parts of a layout, each compared with its digest and its size. */
function open(bytes) {
	const files = untar(bytes);
	const blob = d => {
		const { data } = files.get(`blobs/${d.digest.replace(':', '/')}`);
		assert.equal(`sha256:${sha256(data)}`, d.digest);
		assert.equal(data.length, d.size);
		return data;
	};
	const index = JSON.parse(files.get('index.json').data);
	const manifest = JSON.parse(blob(index.manifests[0]));
	const config = JSON.parse(blob(manifest.config));
	const layers = manifest.layers.map(blob);
	assert.deepEqual(config.rootfs.diff_ids, layers.map(l => `sha256:${sha256(l)}`));
	return { files, index, manifest, config, tree: untar(layers[0]), layers };
}

const shape = ({ name, type, mode, uid, gid, target, data, mtime }) => ({ name, type, mode, uid, gid, target, mtime, text: data.length < 100 ? data.toString() : sha256(data) });

test('an OCI archive holds every file with its owner, mode, time and content', async t => {
	await put(t, 'out:1', layout({ layers: [FILES], config: CONFIG }));
	const { tree, config, index, manifest } = open(await take('out:1'));
	assert.deepEqual([...tree.keys()].sort(), FILES.map(f => f.name).sort());
	for (const [name, want] of [['opt/su', { mode: 0o4755, uid: 0 }], ['opt/ann', { mode: 0o640, uid: 1000, gid: 1001 }], ['opt/sticky', { mode: 0o1777, type: 'dir' }], ['opt/link', { type: 'symlink', target: '/no/where' }], ['opt/queue', { type: 'fifo' }], ['opt/two', { type: 'hardlink', target: 'opt/ann' }], ['opt/su', { mtime: 1_700_000_000 }]])
		for (const [key, value] of Object.entries(want))
			assert.equal(tree.get(name)[key], value, `${key} of ${name}`);
	assert.equal(sha256(tree.get('opt/big').data), sha256(FILES.at(-1).data));
	assert.deepEqual(config.config, CONFIG);
	assert.deepEqual([config.os, config.architecture], ['linux', 'amd64']);
	assert.equal(index.manifests[0].annotations['org.opencontainers.image.ref.name'], 'out:1');
	assert.equal(manifest.layers.length, 1);
});

test('the same image gives the same bytes each time', async t => {
	await put(t, 'same', layout({ layers: [FILES] }));
	for (const format of ['oci', 'docker', 'tar'])
		assert.equal(sha256(await take('same', format)), sha256(await take('same', format)), format);
});

for (const format of ['oci', 'docker', 'tar'])
	test(`what is exported as ${format} can be imported again, with the same files`, async t => {
		await put(t, 'first', layout({ layers: [FILES], config: CONFIG }));
		await put(t, 'second', await take('first', format));
		const trees = [];
		for (const name of ['first', 'second'])
			trees.push([...untar(await take(name, 'tar')).values()].map(shape));
		assert.deepEqual(trees[1], trees[0]);
		const { config } = (await daemon.api('GET', '/v1/images/second')).body;
		assert.deepEqual(config, format === 'tar' ? {} : CONFIG);
	});

test('the name goes with it, and comes back without being told', async t => {
	await put(t, 'example.com/team/app', layout());
	for (const format of ['oci', 'docker']) {
		const bytes = await take('example.com/team/app', format);
		await daemon.api('DELETE', `/v1/images/${encodeURIComponent('example.com/team/app')}`);
		const answer = await daemon.api('POST', '/v1/images/import', bytes, { headers: { 'content-type': 'application/x-tar' } });
		assert.equal(answer.status, 201, answer.raw.toString());
		assert.equal(answer.body.name, 'example.com/team/app');
	}
});

test('an image with layers leaves as one: what a sandbox removed is not in it', async t => {
	await put(t, 'below', layout({ layers: [FILES] }));
	const made = await daemon.api('POST', '/v1/sandboxes', { id: 'writer', image: 'below' });
	assert.ok(made.status < 300, made.raw.toString());
	t.after(() => daemon.api('DELETE', '/v1/images/above'));
	const file = (method, name, bytes) => daemon.api(method, `/v1/sandboxes/writer/files?path=${encodeURIComponent(name)}`, bytes, { headers: { 'content-type': 'application/octet-stream' } });
	for (const [method, name, bytes] of [['PUT', '/opt/new', 'written\n'], ['PUT', '/opt/ann', 'changed\n'], ['DELETE', '/opt/big'], ['DELETE', '/opt/empty']]) {
		const answer = await file(method, name, bytes);
		assert.ok(answer.status < 300, `${method} ${name}: ${answer.raw}`);
	}
	const sealed = await daemon.api('POST', '/v1/sandboxes/writer/image', { name: 'above' });
	assert.equal(sealed.status, 201, sealed.raw.toString());
	await daemon.api('DELETE', '/v1/sandboxes/writer');
	const { tree } = open(await take('above'));
	assert.equal(tree.get('opt/new').data.toString(), 'written\n');
	assert.equal(tree.get('opt/ann').data.toString(), 'changed\n');
	assert.equal(tree.get('opt/two').data.toString(), 'hers\n', 'the other name keeps what it had');
	assert.ok(!tree.has('opt/big') && !tree.has('opt/empty') && tree.has('opt/su'));
	assert.deepEqual([tree.get('opt/new').uid, tree.get('opt/su').uid], [0, 0], 'ids are those of the inside');
	assert.ok([...tree.keys()].every(name => !name.includes('.wh.')));
	await put(t, 'again', await take('above'));
});

test('links of two layers are not mistaken for each other, although their numbers are the same', async t => {
	const libraries = execFileSync('ldd', ['/usr/bin/tar'], { encoding: 'utf8' }).match(/\/\S+/g);
	const programs = ['/usr/bin/tar', ...libraries].map(name => ({ name: name.slice(1), data: fs.readFileSync(name), mode: 0o755 }));
	await put(t, 'bottom', layout({ layers: [[...SKELETON, ...programs]] }));
	const pairs = text => tar(Array.from({ length: 40 }, (_, i) => [
		{ name: `a-${text}-${i}`, data: `${text} ${i}\n` }, { name: `z-${text}-${i}`, type: 'hardlink', target: `a-${text}-${i}` }]).flat());
	for (const [below, name, text] of [['bottom', 'middle', 'first'], ['middle', 'top', 'second']]) {
		assert.ok((await daemon.api('POST', '/v1/sandboxes', { id: `on-${below}`, image: below })).status < 300);
		const unpacked = await daemon.api('PUT', `/v1/sandboxes/on-${below}/files?path=/opt`, pairs(text), { headers: { 'content-type': 'application/x-tar' } });
		assert.ok(unpacked.status < 300, unpacked.raw.toString());
		t.after(() => daemon.api('DELETE', `/v1/images/${name}`));
		const sealed = await daemon.api('POST', `/v1/sandboxes/on-${below}/image`, { name });
		assert.equal(sealed.status, 201, sealed.raw.toString());
		await daemon.api('DELETE', `/v1/sandboxes/on-${below}`);
	}
	const { tree } = open(await take('top'));
	for (const text of ['first', 'second'])
		for (let i = 0; i < 40; i++) {
			const names = [`opt/a-${text}-${i}`, `opt/z-${text}-${i}`], entries = names.map(name => tree.get(name));
			const link = entries.findIndex(entry => entry.type === 'hardlink');
			assert.ok(link >= 0, names[0]);
			assert.equal(entries[link].target.replace(/^\.\//, ''), names[1 - link]);
			assert.equal(entries[1 - link].data.toString(), `${text} ${i}\n`);
		}
});

test('skopeo reads what is exported, and what skopeo makes of it is imported', async t => {
	await put(t, 'tool:3', layout({ layers: [FILES], config: CONFIG }));
	const file = name => path.join(directory, name);
	const skopeo = (...words) => execFileSync('skopeo', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
	fs.writeFileSync(file('oci.tar'), await take('tool:3'));
	fs.writeFileSync(file('docker.tar'), await take('tool:3', 'docker'));
	for (const source of [`oci-archive:${file('oci.tar')}`, `docker-archive:${file('docker.tar')}`]) {
		assert.deepEqual(JSON.parse(skopeo('inspect', '--config', source)).config.Env, CONFIG.Env);
		skopeo('--insecure-policy', 'copy', source, `oci-archive:${file('packed.tar')}`);
		await put(t, 'back', fs.readFileSync(file('packed.tar')));
		assert.deepEqual([...untar(await take('back', 'tar')).values()].map(shape), [...untar(await take('tool:3', 'tar')).values()].map(shape));
		fs.rmSync(file('packed.tar'));
	}
});

/** A file whose name is longer than a header holds. */
const paxed = name => [{ name: '././@LongLink', type: 'L', data: `${name}\0` }, { name: name.slice(0, 99), data: 'at the end' }];

test('long names and names of any bytes survive', async t => {
	await put(t, 'names', dockerArchive({ layers: [[...SKELETON, { name: 'opt/ä ~"\\', data: 'odd' }]] }));
	const deep = ['opt/one', ...Array(60).fill('deep')].join('/');
	await put(t, 'deep', layout({ layers: [[...SKELETON, { name: 'opt/one', type: 'dir' }, ...paxed(`${deep}/leaf`)]] }));
	assert.equal(untar(await take('names', 'tar')).get(Buffer.from('opt/ä ~"\\').toString('latin1')).data.toString(), 'odd');
	const tree = untar(await take('deep', 'tar'));
	assert.equal(tree.get(`${deep}/leaf`).data.toString(), 'at the end');
	await put(t, 'deeper', await take('deep'));
	assert.deepEqual([...untar(await take('deeper', 'tar')).keys()], [...tree.keys()]);
});

test('what cannot be exported is refused with a sentence', async t => {
	refused(await daemon.api('GET', '/v1/images/never/export'), 404, 'IMAGE_NOT_FOUND');
	await put(t, 'plain', skeletonTar());
	refused(await daemon.api('GET', '/v1/images/plain/export?format=zip'), 400, 'VALIDATION_FAILED');
	await daemon.api('PUT', '/v1/images/hosted?kind=host', skeletonTar({ x: { name: 'x', data: '' } }), { headers: { 'content-type': 'application/x-tar' } });
	t.after(() => daemon.api('DELETE', '/v1/images/hosted'));
	const answer = await daemon.api('GET', '/v1/images/hosted/export');
	assert.equal(answer.status, 400);
	assert.match(answer.body.message, /kind host/);
});

/** Processes of silt-fetch below this daemon. */
const packers = () => fs.readdirSync('/proc').filter(pid => /^\d+$/.test(pid)).filter(pid => {
	try {
		return fs.readFileSync(`/proc/${pid}/comm`, 'utf8') === 'silt-fetch\n' && fs.readFileSync(`/proc/${pid}/cgroup`, 'utf8').includes(daemon.instance);
	} catch {
		return false;
	}
});

test('who leaves in the middle leaves nothing behind; who reads slowly holds it back', async t => {
	await put(t, 'large', layout({ layers: [[...SKELETON, { name: 'opt/large', data: Buffer.alloc(60_000_000, 'x') }]], pack: x => x }));
	const sockets = [];
	t.after(() => sockets.forEach(socket => socket.destroy()));
	for (let i = 0; i < 4; i++) {
		const [host, port] = daemon.address.split(':');
		const socket = net.connect(Number(port), host); // nobody reads from it
		socket.on('error', () => {});
		socket.write(`GET /v1/images/large/export HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${daemon.token}\r\n\r\n`);
		sockets.push(socket);
	}
	await until('four are under way', () => sockets.every(socket => socket.bytesRead > 1000), 60_000);
	const busy = await daemon.api('GET', '/v1/images/large/export');
	assert.equal(busy.status, 429);
	assert.match(busy.body.message, /exported already/);
	refused(await daemon.api('DELETE', '/v1/images/large'), 409, 'RESOURCE_BUSY');
	for (const socket of sockets)
		socket.destroy();
	await until('no packer is left', () => packers().length === 0);
	assert.ok((await take('large')).length > 60_000_000);
});

test('the command writes a file only when it is whole', async t => {
	await put(t, 'cli', layout({ config: CONFIG }));
	const target = path.join(directory, 'cli.tar');
	const done = await silt(daemon, ['image', 'export', 'cli', '-o', target]);
	assert.deepEqual([done.stdout, done.code], ['', 0], done.stderr);
	assert.deepEqual(open(fs.readFileSync(target)).config.config, CONFIG);
	const failed = await silt(daemon, ['image', 'export', 'never', '-o', path.join(directory, 'never.tar')]);
	assert.equal(failed.code, 125);
	assert.match(failed.stderr, /export never: image 'never' does not exist/);
	assert.deepEqual(fs.readdirSync(directory).filter(name => name.startsWith('never')), []);
	const back = await silt(daemon, ['image', 'import', 'back:1', target]);
	assert.match(back.stdout, /^back:1 sha256:[0-9a-f]{64}\n$/, back.stderr);
	await silt(daemon, ['image', 'rm', 'back:1']);
});

test('Ctrl-C in the middle leaves the file that was there and nothing else', async t => {
	const home = fs.mkdtempSync(path.join(directory, 'interrupted-'));
	const target = path.join(home, 'app.tar');
	fs.writeFileSync(target, 'old');
	const server = http.createServer((request, response) => { response.writeHead(200).write('half of it'); }); // and no more
	t.after(() => { server.closeAllConnections(); server.close(); });
	await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
	let child;
	const exporting = silt({ address: `127.0.0.1:${server.address().port}`, token: daemon.token }, ['image', 'export', 'app', '-o', target], { onStart: c => { child = c; } });
	await until('half a file is there', () => fs.readdirSync(home).some(name => name !== 'app.tar' && fs.statSync(path.join(home, name)).size > 0));
	child.kill('SIGINT');
	assert.deepEqual([(await exporting).code, fs.readdirSync(home), fs.readFileSync(target, 'utf8')], [130, ['app.tar'], 'old']);
});

test('the command writes to a link or a pipe, and does not replace it', async t => {
	await put(t, 'cli', layout({ config: CONFIG }));
	const home = fs.mkdtempSync(path.join(directory, 'odd-'));
	fs.symlinkSync('target', path.join(home, 'link'));
	fs.writeFileSync(path.join(home, 'target'), '');
	const done = await silt(daemon, ['image', 'export', 'cli', '-o', path.join(home, 'link')]);
	assert.equal(done.code, 0, done.stderr);
	assert.ok(fs.lstatSync(path.join(home, 'link')).isSymbolicLink());
	assert.deepEqual(open(fs.readFileSync(path.join(home, 'target'))).config.config, CONFIG);
	execFileSync('mkfifo', [path.join(home, 'pipe')]);
	const reading = fs.promises.readFile(path.join(home, 'pipe'));
	assert.equal((await silt(daemon, ['image', 'export', 'cli', '-o', path.join(home, 'pipe')])).code, 0);
	assert.deepEqual(open(await reading).config.config, CONFIG);
});

test('the command imports a directory with a layout, and says what else a directory is', async () => {
	const layoutDirectory = path.join(directory, 'layout');
	for (const { name, type, data } of untar(layout({ ref: 'example.com/from-directory:1' })).values())
		if (type === 'dir')
			fs.mkdirSync(path.join(layoutDirectory, name), { recursive: true });
		else {
			fs.mkdirSync(path.dirname(path.join(layoutDirectory, name)), { recursive: true });
			fs.writeFileSync(path.join(layoutDirectory, name), data);
		}
	const done = await silt(daemon, ['image', 'import', layoutDirectory]);
	assert.match(done.stdout, /^example\.com\/from-directory:1 sha256:/, done.stderr);
	await silt(daemon, ['image', 'rm', 'example.com/from-directory:1']);
	const wrong = await silt(daemon, ['image', 'import', 'x', directory]);
	assert.equal(wrong.code, 125);
	assert.match(wrong.stderr, /no OCI layout/);
});
