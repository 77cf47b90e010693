// SPDX-License-Identifier: Apache-2.0
// Images from registries: Debian's docker-registry in a world of the test's own.
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { BUILD, startDaemon } from '../lib/daemon.mjs';
import { Engine } from '../lib/engine.mjs';
import { refused } from '../lib/expect.mjs';
import { NETWORK } from '../lib/internet.mjs';
import { notPulled, pull, pulled } from '../lib/pull.mjs';
import { image, LOCKED, OPEN, PLAIN, Registries, root, USER } from '../lib/registries.mjs';
import { silt } from '../lib/silt.mjs';
import { until, within } from '../lib/wait.mjs';

let registries, daemon, engine, small;
before(async () => {
	registries = await Registries.start();
	daemon = await startDaemon({ images: false, flags: { ...NETWORK.flags, image: 'none', 'images.authorities': registries.authority, 'images.insecure': `elsewhere.test, ${PLAIN}` } });
	engine = new Engine(daemon);
	small = text => image([root(), [{ name: 'hello', data: text }]]);
});
after(async () => {
	try {
		await daemon?.stop();
	} finally {
		await registries?.stop();
	}
});

const remove = name => daemon.api('DELETE', `/v1/images/${encodeURIComponent(name)}`);
const sandboxes = async () => (await daemon.api('GET', '/v1/sandboxes')).body.sandboxes.map(s => s.id);
const nothingLeft = () => until('no sandbox is left', async () => (await sandboxes()).filter(id => id.startsWith('pull-')).length === 0);

/** What `cat /hello` says in a sandbox of the image. */
async function hello(t, name) {
	const box = await daemon.box(t, { image: name, network: { mode: 'none' } });
	const said = await box.out('cat /hello');
	await box.destroy();
	return said;
}

test('an image is pushed to a registry, pulled from there, and runs', async t => {
	registries.push(OPEN, 'team/app:1', image([root(), [{ name: 'hello', data: 'hello from a registry\n' }, { name: 'gone', data: 'x' }], [{ name: '.wh.gone', data: '' }]],
		{ Env: ['GREETING=hi'], WorkingDir: '/tmp', Cmd: ['/bin/bash'], Labels: { 'silt.control': 'builtin', mine: 'yes' } }));
	const { done, output, events } = await pulled(daemon, { reference: `${OPEN}/team/app:1` });
	assert.equal(done.name, `${OPEN}/team/app:1`);
	assert.match(done.id, /^sha256:[0-9a-f]{64}$/);
	assert.match(output, /Copying blob/, 'skopeo tells what it does');
	assert.equal(events.at(-1).type, 'done');
	assert.ok(events.some(e => e.type === 'unpacking'));
	const { config } = (await daemon.api('GET', `/v1/images/${encodeURIComponent(done.name)}`)).body;
	assert.deepEqual(config.Labels, { mine: 'yes' }, 'a stranger does not say who serves its sandboxes');
	const box = await daemon.box(t, { image: done.name, network: { mode: 'none' } });
	assert.equal(await box.out('cat /hello; echo $GREETING; pwd; ls /gone 2>/dev/null || echo no'), 'hello from a registry\nhi\n/tmp\nno\n');
	await box.destroy();
	await nothingLeft();
	await remove(done.name);
});

test('a tag that has moved is taken anew, a digest is what it was, and --name names it', async t => {
	const [first, second] = [small('first\n'), small('second\n')];
	registries.push(OPEN, 'moving', first);
	await pulled(daemon, { reference: `${OPEN}/moving` });
	assert.equal(await hello(t, `${OPEN}/moving`), 'first\n');
	registries.push(OPEN, 'moving', second);
	await pulled(daemon, { reference: `${OPEN}/moving:latest` });
	assert.equal(await hello(t, `${OPEN}/moving`), 'second\n');
	const { done } = await pulled(daemon, { reference: `${OPEN}/moving@${first.digest}`, name: 'pinned:1' });
	assert.equal(done.name, 'pinned:1');
	assert.equal(await hello(t, 'pinned:1'), 'first\n');
	assert.equal(await hello(t, `${OPEN}/moving`), 'second\n', 'the other name stays where it was');
	for (const name of ['pinned:1', `${OPEN}/moving`])
		assert.equal((await remove(name)).body.deleted, true);
});

test("an image in Docker's own format, and of several machines' the one for this one", async t => {
	registries.push(OPEN, 'docker:1', small('docker\n'), { docker: true });
	await pulled(daemon, { reference: `${OPEN}/docker:1` });
	assert.equal(await hello(t, `${OPEN}/docker:1`), 'docker\n');
	const [ours, other] = [small('ours\n'), small('other\n')];
	registries.push(OPEN, 'many:a', ours);
	registries.push(OPEN, 'many:b', other);
	const entry = (content, architecture) => ({ mediaType: 'application/vnd.oci.image.manifest.v1+json', digest: content.digest, size: content.manifest.length, platform: { os: 'linux', architecture } });
	registries.put(OPEN, 'many', 'all', 'application/vnd.oci.image.index.v1+json', { schemaVersion: 2, mediaType: 'application/vnd.oci.image.index.v1+json', manifests: [entry(other, 'arm64'), entry(ours, 'amd64')] });
	await pulled(daemon, { reference: `${OPEN}/many:all` });
	assert.equal(await hello(t, `${OPEN}/many:all`), 'ours\n');
	registries.put(OPEN, 'many', 'foreign', 'application/vnd.oci.image.index.v1+json', { schemaVersion: 2, mediaType: 'application/vnd.oci.image.index.v1+json', manifests: [entry(other, 'arm64')] });
	assert.match((await notPulled(daemon, { reference: `${OPEN}/many:foreign` })).message, /amd64/);
	await remove(`${OPEN}/docker:1`);
	await remove(`${OPEN}/many:all`);
});

test('a registry with a password lets in who has it', async t => {
	registries.push(LOCKED, 'secret:1', small('secret\n'));
	const reference = `${LOCKED}/secret:1`;
	assert.equal((await notPulled(daemon, { reference })).code, 'REGISTRY_DENIED');
	assert.equal((await notPulled(daemon, { reference, username: USER.username, password: 'wrong' })).code, 'REGISTRY_DENIED');
	await pulled(daemon, { reference, ...USER });
	assert.equal(await hello(t, reference), 'secret\n');
	assert.equal((await notPulled(daemon, { reference })).code, 'REGISTRY_DENIED', 'nobody remembers it');
	assert.ok(!daemon.log().includes(USER.password) && !daemon.log().includes(Buffer.from(`${USER.username}:${USER.password}`).toString('base64')), 'no log has it');
	await remove(reference);
});

test('what does not exist is told so', async () => {
	const tag = await notPulled(daemon, { reference: `${OPEN}/team/nothing:1` });
	assert.equal(tag.code, 'IMAGE_NOT_FOUND', tag.message);
	assert.match(tag.message, /nothing:1/);
	const digest = await notPulled(daemon, { reference: `${OPEN}/team/nothing@sha256:${'0'.repeat(64)}` });
	assert.equal(digest.code, 'IMAGE_NOT_FOUND', digest.message);
	assert.equal((await notPulled(daemon, { reference: 'nowhere.example.test/a' })).code, 'PULL_FAILED');
	await nothingLeft();
});

test('a registry without TLS is one that the operator has named', async t => {
	registries.push(PLAIN, 'plain', small('plain\n'));
	await pulled(daemon, { reference: `${PLAIN}/plain` });
	assert.equal(await hello(t, `${PLAIN}/plain`), 'plain\n');
	await remove(`${PLAIN}/plain`);
	const other = await startDaemon({ images: false, flags: { ...NETWORK.flags, image: 'none', 'images.pull_max': '64M' } });
	try {
		assert.match((await notPulled(other, { reference: `${PLAIN}/plain` })).message, /HTTP response to HTTPS client/);
		assert.match((await notPulled(other, { reference: `${OPEN}/team/app:1` })).message, /certificate/, 'nor does it know the authority');
	} finally {
		await other.stop();
	}
});

test('requests that make no sense are refused', async () => {
	for (const reference of [undefined, '', 'A', 'a b', '../a', 'docker://a', '--help', 'a@sha256:1', 'localhost:5000/a', '127.0.0.1/a', 'docker.io/evil.test/a', 'a'.repeat(300), 7])
		refused(await daemon.api('POST', '/v1/images/pull', { reference }), 400, 'VALIDATION_FAILED');
	for (const ours of ['base', 'docker.io/library/base', 'host', 'cloudflare/sandbox:0.4'])
		refused(await daemon.api('POST', '/v1/images/pull', { reference: ours }), 400, 'VALIDATION_FAILED');
	const reference = `${OPEN}/team/app:1`;
	for (const more of [{ name: 'A' }, { username: 'a:b', password: 'x' }, { username: 'a'.repeat(257) }, { username: 'a', password: 'x'.repeat(20_000) }, { username: 1 }, { name: 'a\0' }])
		refused(await daemon.api('POST', '/v1/images/pull', { reference, ...more }), 400, 'VALIDATION_FAILED');
	assert.match((await daemon.api('POST', '/v1/images/pull', { reference: 'localhost:5000/a' })).raw.toString(), /silt image import/);
	refused(await daemon.api('POST', '/v1/images/pull', { reference }, { token: false }), 401, 'UNAUTHORIZED');
	const off = await startDaemon({ images: false, flags: { image: 'none' } });
	try {
		refused(await off.api('POST', '/v1/images/pull', { reference }), 503, 'NETWORK_UNAVAILABLE');
	} finally {
		await off.stop();
	}
});

test('silt image pull shows progress, takes a password from standard input, and tells what went wrong', async t => {
	registries.push(LOCKED, 'cli:1', small('cli\n'));
	const words = ['image', 'pull', `${LOCKED}/cli:1`, '--name', 'cli'];
	const done = await silt(daemon, [...words, '--user', USER.username, '--password-stdin'], { input: `${USER.password}\n` });
	assert.equal(done.code, 0, done.stderr);
	assert.match(done.stdout, /^cli sha256:[0-9a-f]{64}\n$/);
	assert.match(done.stderr, /Copying blob/);
	assert.equal(await hello(t, 'cli'), 'cli\n');
	await remove('cli');
	const without = await silt(daemon, words);
	assert.equal(without.code, 125);
	assert.match(without.stderr, /unauthorized|authentication required/);
	assert.match((await silt(daemon, [...words, '--user', 'a'])).stderr, /password-stdin/);
	assert.match((await silt(daemon, [...words, '--user', 'a', '--password-stdin'], { input: '\n' })).stderr, /no password/);
	assert.match((await silt(daemon, ['image', 'pull', 'localhost:1/a'])).stderr, /this machine itself/);
});

/** silt-docker, as wrangler calls it. */
function docker(...words) {
	const child = spawn(path.join(BUILD, 'silt-docker'), words, { env: { PATH: process.env.PATH, WRANGLER_DOCKER_HOST: `unix://${engine.socket}`, SILT_CONFIG: '' } });
	let said = '';
	for (const stream of [child.stdout, child.stderr])
		stream.setEncoding('utf8').on('data', text => { said += text; });
	return within(120_000, words.join(' '), new Promise(resolve => child.on('close', code => resolve({ code, said }))));
}

test('the engine socket pulls with the progress of Docker, and silt-docker shows it', async t => {
	const create = (from, tag, headers) => engine.ask('POST', `/images/create?fromImage=${encodeURIComponent(from)}&tag=${tag}`, undefined, { headers, deadline: 120_000 });
	registries.push(OPEN, 'engine:1', small('engine\n'));
	registries.push(LOCKED, 'engine:1', small('locked\n'));
	const { status, raw } = await create(`${OPEN}/engine`, '1');
	assert.equal(status, 200, raw.toString());
	const lines = raw.toString().trim().split('\r\n').map(line => JSON.parse(line));
	assert.ok(lines.some(line => /Copying blob/.test(line.status)));
	assert.match(lines.at(-1).status, /engine:1$/);
	assert.equal(await hello(t, `${OPEN}/engine:1`), 'engine\n');
	const missing = await create(`${OPEN}/engine`, '2');
	assert.equal(missing.status, 404, missing.raw.toString());
	assert.equal(typeof missing.json.message, 'string');
	assert.ok((await create(`${LOCKED}/engine`, '1')).status >= 400);
	const login = Buffer.from(JSON.stringify({ ...USER, serveraddress: LOCKED })).toString('base64url');
	assert.equal((await create(`${LOCKED}/engine`, '1', { 'x-registry-auth': login })).status, 200);
	assert.equal(await hello(t, `${LOCKED}/engine:1`), 'locked\n');
	assert.equal((await create(`${LOCKED}/engine`, '1', { 'x-registry-auth': '!' })).status, 400);

	registries.push(OPEN, 'engine:1', small('newer\n'));
	const good = await docker('pull', `${OPEN}/engine:1`, '--platform', 'linux/amd64');
	assert.equal(good.code, 0, good.said);
	assert.match(good.said, /Copying blob[\s\S]*engine:1\n$/);
	assert.equal(await hello(t, `${OPEN}/engine:1`), 'newer\n');
	const bad = await docker('pull', `${OPEN}/engine:3`);
	assert.equal(bad.code, 1, bad.said);
	for (const name of [`${OPEN}/engine:1`, `${LOCKED}/engine:1`])
		await remove(name);
});

test('an image that is here is not replaced by a stranger on docker.io, and is used when its registry does not answer', async t => {
	registries.push(OPEN, 'here:1', small('here\n'));
	await pulled(daemon, { reference: `${OPEN}/here:1`, name: 'here:1' });
	const local = await docker('pull', 'here:1');
	assert.deepEqual(local, { code: 0, said: 'Image is up to date\n' });
	assert.match((await docker('pull', 'docker.io/library/base')).said, /no registry may give it/);
	assert.match((await docker('pull', 'cloudflare/sandbox:0.4')).said, /no registry may give it/);
	assert.equal((await daemon.api('POST', '/v1/images/here:1/tag?name=base')).status, 201);
	assert.deepEqual(await docker('pull', 'docker.io/library/base'), local, 'nor is what sandboxes are made from');
	assert.equal((await daemon.api('POST', '/v1/images/here:1/tag?name=nowhere.example.test/here:1')).status, 201);
	const gone = await docker('pull', 'nowhere.example.test/here:1');
	assert.equal(gone.code, 0, gone.said);
	assert.match(gone.said, /could not be asked/);
	assert.equal(await hello(t, 'nowhere.example.test/here:1'), 'here\n');
	for (const name of ['here:1', 'base', 'nowhere.example.test/here:1'])
		await remove(name);
});

test('pulls beside each other: four run, a fifth is told to wait', async () => {
	registries.push(OPEN, 'beside:1', small('beside\n'));
	const results = await Promise.all(Array.from({ length: 6 }, (_, i) => pull(daemon, { reference: `${OPEN}/beside:1`, name: `beside-${i}` })));
	const done = results.filter(r => r.done);
	assert.ok(done.length >= 4, JSON.stringify(results.map(r => r.error ?? r.answer.status)));
	for (const { answer } of results.filter(r => !r.done))
		refused(answer, 429, 'LIMIT_REACHED');
	assert.equal(new Set(done.map(r => r.done.id)).size, 1, 'equal files are one image');
	for (const { done: { name } } of done)
		await remove(name);
	await nothingLeft();
	assert.deepEqual((await daemon.api('GET', '/v1/images')).body.images, [], 'what pulls are made of is not seen');
});
