// SPDX-License-Identifier: Apache-2.0
// Images from elsewhere: OCI layouts and what `docker save` writes become images, layer on layer.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import zlib from 'node:zlib';
import { startDaemon } from '../lib/daemon.mjs';
import { refused } from '../lib/expect.mjs';
import { dockerArchive, dockerBlobs, layout, layoutFiles, sha256, SKELETON } from '../lib/oci.mjs';
import { skeletonTar, tar } from '../lib/tar.mjs';

let daemon;
before(async () => { daemon = await startDaemon({ images: false, flags: { image: 'plain' } }); });
after(() => daemon?.stop());

const send = (method, path, bytes) => daemon.api(method, path, bytes, { headers: { 'content-type': 'application/x-tar' }, deadline: 60_000 });

/** Imports as kind=host (so that there are programs in it), gives the image; it goes after the test. */
async function put(t, name, bytes, query = '') {
	const answer = await send('PUT', `/v1/images/${name}?kind=host${query}`, bytes);
	assert.equal(answer.status, 201, answer.raw.toString());
	t.after(() => daemon.api('DELETE', `/v1/images/${name}`));
	return answer.body;
}

/** A sandbox of what was imported. */
async function boxOf(t, bytes, query) {
	let box;
	t.after(() => box?.destroy()); // before the image goes
	await put(t, 'it', bytes, query);
	box = await daemon.box(t, { image: 'it' });
	return box;
}

const FILE = (name, data, more) => ({ name, data, ...more });
const DIR = (name, more) => ({ name, type: 'dir', ...more });
const LAYERS = [
	[...SKELETON, DIR('opt/a'), FILE('opt/a/one', '1\n'), FILE('opt/a/two', '2\n'), DIR('opt/b'), FILE('opt/b/old', 'old\n'), FILE('opt/gone', 'x'), DIR('opt/tree'), DIR('opt/tree/deep'), FILE('opt/tree/deep/leaf', 'x'), DIR('opt/swap'), FILE('opt/swap/x', 'x')],
	[FILE('opt/a/one', 'one\n', { mode: 0o4755, uid: 1000, gid: 1000 }), FILE('opt/.wh.gone', ''), FILE('opt/.wh.tree', ''), FILE('opt/b/new', 'new\n'), FILE('opt/b/.wh..wh..opq', ''), FILE('opt/swap', 'now a file\n')],
	[FILE('opt/gone', 'again\n'), { name: 'opt/a/same', type: 'hardlink', target: 'opt/a/two' }, FILE('lib/marker', 'through a link of another layer\n')],
];
const LOOK = 'cd /opt; find . -type f | sort; cat a/one a/same b/new gone swap; stat -c "%a %u %g %h" a/one a/two; readlink /lib';
const SEEN = './a/one\n./a/same\n./a/two\n./b/new\n./gone\n./swap\none\n2\nnew\nagain\nnow a file\n4755 1000 1000 1\n644 0 0 2\nusr/lib\n';

// lib/marker lies in usr/lib, which the machine's /usr covers in images of kind host: it is left away there.
const HOST_LAYERS = LAYERS.map((layer, i) => (i === 2 ? layer.filter(f => f.name !== 'lib/marker') : layer));
const FORMS = {
	'an OCI layout with gzip layers': () => layout({ layers: HOST_LAYERS }),
	'an OCI layout with plain layers': () => layout({ layers: HOST_LAYERS, pack: x => x }),
	'an OCI layout with nested indexes for several machines': () => layout({ layers: HOST_LAYERS, nested: 2 }),
	'an OCI layout as a gzip': () => zlib.gzipSync(layout({ layers: HOST_LAYERS })),
	'an old docker-save archive': () => dockerArchive({ layers: HOST_LAYERS }),
	'a docker-save archive whose layers are links': () => dockerArchive({ layers: HOST_LAYERS, links: true }),
	'a new docker-save archive': () => dockerBlobs({ layers: HOST_LAYERS }),
	'a layout whose index comes first': () => tar(layoutFiles({ layers: HOST_LAYERS }).reverse()),
	'a directory packed with ./ before each name': () => tar([{ name: './', type: 'dir' }, ...layoutFiles({ layers: HOST_LAYERS }).map(f => ({ ...f, name: `./${f.name}` }))]),
};

for (const [name, make] of Object.entries(FORMS))
	test(`${name} becomes an image with its layers applied`, async t => {
		const box = await boxOf(t, make());
		assert.equal(await box.out(LOOK), SEEN);
	});

test('what layers replace or take away does not count as size', async t => {
	const large = Buffer.alloc(1_000_000, 'x');
	const before = await put(t, 'small', layout({ layers: [SKELETON, [FILE('opt/a', 'a'), FILE('opt/b', Buffer.alloc(500_000, 'b'))]] }));
	const after = await put(t, 'once-large', layout({ layers: [[...SKELETON, FILE('opt/a', large), FILE('opt/gone', large), FILE('opt/b', Buffer.alloc(500_000, 'b')), { name: 'opt/c', type: 'hardlink', target: 'opt/b' }], [FILE('opt/a', 'a'), FILE('opt/.wh.gone', '')]] }));
	assert.ok(before.sizeBytes >= 500_000, `${before.sizeBytes}`);
	assert.ok(Math.abs(after.sizeBytes - before.sizeBytes) < 10, `${before.sizeBytes} and ${after.sizeBytes}`);
});

test('the same layers are the same files, whatever they came in', async t => {
	const digests = new Set();
	for (const make of Object.values(FORMS))
		digests.add((await put(t, 'same', make())).digest);
	assert.equal(digests.size, 1);
});

test('a layer writes through the links of the layers below, inside the image', async t => {
	const box = await boxOf(t, layout({ layers: [[...SKELETON, { name: 'opt/link', type: 'symlink', target: '/srv' }, { name: 'opt/up', type: 'symlink', target: '../../../../home' }], [FILE('opt/link/file', 'in srv\n'), FILE('opt/up/file', 'in home\n')]] }));
	assert.equal(await box.out('cat /srv/file /home/file; readlink /opt/link'), 'in srv\nin home\n/srv\n');
});

test('what the image says about its commands is kept, but silt.control is not its to say', async t => {
	const config = { Env: ['PATH=/usr/bin:/bin', 'COLOR=blue'], Cmd: ['sleep', '9'], Entrypoint: ['/bin/sh', '-c'], WorkingDir: '/srv', User: 'ann', ExposedPorts: { '80/tcp': {} }, Labels: { 'silt.control': 'builtin', maker: 'me' }, StopSignal: 'SIGINT', Volumes: { '/data': {} }, OnBuild: null, Healthcheck: { Test: ['NONE'] } };
	const image = await put(t, 'says', layout({ config }));
	assert.deepEqual(image.config, { Env: config.Env, Cmd: config.Cmd, Entrypoint: config.Entrypoint, WorkingDir: '/srv', User: 'ann', ExposedPorts: config.ExposedPorts, Labels: { maker: 'me' }, StopSignal: 'SIGINT' });
	const box = await daemon.box(t, { image: 'says' });
	assert.equal(await box.out('echo $COLOR; pwd'), 'blue\n/srv\n');
	await box.destroy();
});

test('what the caller says about an image stands before what the archive says', async t => {
	const image = await put(t, 'mine', layout({ config: { Env: ['A=1'] } }), `&config=${encodeURIComponent('{"Labels":{"silt.control":"builtin"}}')}`);
	assert.deepEqual(image.config, { Labels: { 'silt.control': 'builtin' } });
});

const post = async (t, query, bytes) => {
	const answer = await send('POST', `/v1/images/import?kind=host${query}`, bytes);
	for (const { name } of (await daemon.api('GET', '/v1/images')).body.images)
		t.after(() => daemon.api('DELETE', `/v1/images/${encodeURIComponent(name)}`));
	return answer;
};
const names = async () => (await daemon.api('GET', '/v1/images')).body.images.map(i => i.name).sort();

test('without a name an image gets those that its archive tells', async t => {
	assert.equal((await post(t, '', dockerArchive({ tags: ['docker.io/library/tool:1', 'ghcr.io/team/tool:latest'] }))).body.name, 'tool:1');
	assert.deepEqual(await names(), ['ghcr.io/team/tool', 'tool:1']);
});

test('a layer may lack its end mark, which its digest makes up for', async t => {
	const whole = tar([...SKELETON, FILE('opt/last', 'there\n')]);
	const box = await boxOf(t, layout({ layers: [whole.subarray(0, whole.length - 1024)] }));
	assert.equal(await box.out('cat /opt/last'), 'there\n');
});

test('names that sandboxes get unasked, or that stand for others, are a caller\'s to give and no archive\'s to take', async t => {
	const evil = tags => dockerArchive({ layers: [[...SKELETON, FILE('opt/evil', '')]], tags });
	const reserved = ['base', 'host', 'docker.io/library/base:latest', 'plain', 'cloudflare/sandbox:0.9', 'docker.io/cloudflare/sandbox-python:1'];
	const before = (await put(t, 'base', layout())).digest;
	assert.equal((await post(t, '', evil(['tool:1', ...reserved]))).body.name, 'tool:1');
	assert.deepEqual(await names(), ['base', 'tool:1']);
	assert.equal((await daemon.api('GET', '/v1/images/base')).body.digest, before);
	for (const name of reserved)
		assert.equal((await post(t, '', evil([name]))).status, 400);
	assert.notEqual((await put(t, 'base', evil([]))).digest, before, 'who names it may');
});

test('a layout tells its name by an annotation', async t => {
	assert.equal((await post(t, '', layout({ ref: 'example.com/app:7' }))).body.name, 'example.com/app:7');
});

test('an archive that tells no name needs one', async t => {
	for (const bytes of [layout(), layout({ ref: 'latest' }), skeletonTar()]) {
		const answer = await post(t, '', bytes);
		assert.equal(answer.status, 400);
		assert.match(answer.body.message, /no name of the image/);
	}
	assert.deepEqual(await names(), []);
});

test('of several images in an archive the first is taken, or the one that is asked for', async t => {
	const one = { layers: [[...SKELETON, FILE('opt/which', 'one\n')]], ref: 'one:1' };
	const two = layoutFiles({ layers: [[...SKELETON, FILE('opt/which', 'two\n')]], ref: 'two:2' });
	const files = layoutFiles({ ...one, others: JSON.parse(two.at(-1).data).manifests });
	const both = tar([...files, ...two.filter(f => f.name.startsWith('blobs/sha256/') && !files.some(o => o.name === f.name))]);
	assert.equal((await post(t, '', both)).body.name, 'one:1');
	assert.equal((await post(t, '&image=two:2', both)).body.name, 'two:2');
	const box = await daemon.box(t, { image: 'two:2' });
	assert.equal(await box.out('cat /opt/which'), 'two\n');
	await box.destroy();
	refused(await post(t, '&image=three', both), 404, 'IMAGE_NOT_FOUND');
});

test('a root tar with an image archive inside is what ?format= says', async t => {
	const root = tar([{ name: 'index.json', data: 'a web page' }, ...SKELETON]);
	assert.equal((await send('PUT', '/v1/images/odd?kind=host', root)).status, 400);
	const box = await boxOf(t, root, '&format=tar');
	assert.equal(await box.out('cat /index.json'), 'a web page');
	refused(await send('PUT', '/v1/images/odd?format=zip', root), 400, 'VALIDATION_FAILED');
	assert.equal((await send('PUT', '/v1/images/odd?format=oci', skeletonTar())).status, 400);
	assert.equal((await send('PUT', '/v1/images/odd?format=docker', layout())).status, 400);
});

test('device nodes are left out, and the answer tells', async t => {
	const image = await put(t, 'nodes', layout({ layers: [[...SKELETON, { name: 'opt/sda', type: 'block', major: 8, minor: 0 }, { name: 'opt/mem', type: 'char', major: 1, minor: 1 }]] }));
	assert.equal(image.leftOut, 2);
	const box = await daemon.box(t, { image: 'nodes' });
	assert.equal(await box.out('ls /opt'), '');
	await box.destroy();
});

test('an image is known by its layers, not by the time they were packed', async t => {
	const first = await put(t, 'a', layout({ config: { Env: ['A=1'] } }));
	const second = await put(t, 'b', layout({ config: { Env: ['A=2'] } }));
	assert.equal(second.parent, first.digest, 'the same files, saying something else');
	assert.match(first.digest, /^sha256:/);
	assert.notEqual(first.digest, `sha256:${sha256(tar(SKELETON))}`);
});
