// SPDX-License-Identifier: Apache-2.0
// Files through the engine socket: archives, volumes, snapshots of directories and of whole containers, images.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { after, before, test } from 'node:test';
import { built } from '../lib/build.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { connect, Engine, newName, talk } from '../lib/engine.mjs';
import { tar } from '../lib/tar.mjs';
import { until, within } from '../lib/wait.mjs';

let daemon, engine;
before(async () => {
	daemon = await startDaemon();
	engine = new Engine(daemon);
});
after(() => daemon.stop());

const put = (name, path, bytes) => engine.ask('PUT', `/containers/${name}/archive?path=${encodeURIComponent(path)}`, bytes, { headers: { 'content-type': 'application/x-tar' } });
const get = (name, path) => engine.ask('GET', `/containers/${name}/archive?path=${encodeURIComponent(path)}`);
const run = async (port, command) => {
	const { socket } = await connect(port);
	try {
		return (await talk(socket, 'POST', '/api/execute', { command })).json;
	} finally {
		socket.destroy();
	}
};
/** The status of an archive that is too long to be read. */
const begins = (name, path) => within(30_000, `the archive of ${path}`, new Promise((resolve, reject) => {
	const request = http.get({ socketPath: engine.socket, path: `/containers/${name}/archive?path=${encodeURIComponent(path)}`, agent: false }, response => {
		resolve(response.statusCode);
		response.on('error', () => {});
		request.destroy();
	}).on('error', reject);
}));

/** Names and contents of the files of a tar. */
function list(bytes) {
	const found = {};
	for (let at = 0; at + 512 <= bytes.length && bytes[at] !== 0;) {
		const name = bytes.toString('utf8', at, at + 100).replace(/\0.*$/s, '').replace(/^\.\//, '');
		const size = parseInt(bytes.toString('latin1', at + 124, at + 136), 8);
		if (bytes[at + 156] === 0x30)
			found[name] = bytes.toString('utf8', at + 512, at + 512 + size);
		at += 512 + Math.ceil(size / 512) * 512;
	}
	return found;
}

test('a tar goes into a container before its start, with directories that it does not name', async t => {
	const name = newName();
	const port = await engine.sidecar(t, `${name}-proxy`);
	t.after(() => engine.ask('DELETE', `/containers/${name}?force=true`));
	await engine.create(name);
	assert.equal((await put(name, '/etc', tar([{ name: 'cloudflare/certs/cloudflare-containers-ca.crt', data: 'PEM' }]))).status, 200);
	await engine.expect(204, 'POST', `/containers/${name}/start`, '');
	assert.equal((await run(port, 'cat /etc/cloudflare/certs/cloudflare-containers-ca.crt; test -s /etc/passwd && echo " and passwd"')).stdout, 'PEM and passwd\n');
	assert.equal((await put(name, '/srv/new', tar([{ name: 'a', data: '1' }]))).status, 200, 'while it runs');
	const content = await get(name, '/srv/new/.');
	assert.equal(content.status, 200);
	assert.deepEqual(list(content.raw), { a: '1' });
	assert.equal((await get(name, '/no/such/directory/.')).status, 404);
	assert.deepEqual(list((await get(name, '/srv/new')).raw), { 'new/a': '1' }, 'the directory itself');
	assert.deepEqual(list((await get(name, '/srv/new/a')).raw), { a: '1' }, 'a file');
	assert.equal((await put(name, '/srv/new', tar([{ name: '--help', data: '2' }, { name: 'link', type: 'symlink', target: '/etc/passwd' }]))).status, 200);
	assert.deepEqual(list((await get(name, '/srv/new/--help')).raw), { '--help': '2' });
	assert.deepEqual(list((await get(name, '/srv/new/link')).raw), {}, 'a link is a link');
	assert.equal((await get(name, '/srv/new/missing')).status, 404);
	for (const path of ['/', '//', '/./'])
		assert.equal(await begins(name, path), 200, path);
	assert.equal((await get(name, '/srv/new/a/b')).status, 400);
	for (const path of ['', 'relative', '../etc'])
		assert.equal((await get(name, path)).status, 400, path);
	assert.notEqual((await put(name, '/srv', Buffer.from('this is no tar'))).status, 200);
});

test('a built-in container whose HTTPS is intercepted trusts the certificate that was put into it, and does not start without it', async t => {
	const name = newName();
	const port = await engine.sidecar(t, `${name}-proxy`);
	t.after(() => engine.ask('DELETE', `/containers/${name}?force=true`));
	const env = ['SANDBOX_INTERCEPT_HTTPS=1', 'CURL_CA_BUNDLE=/its/own'];
	await engine.create(name, { env });
	await engine.expect(204, 'POST', `/containers/${name}/start`, '');
	assert.match((await engine.expect(500, 'POST', `/containers/${name}/wait`)).message, /certificate in \/etc\/cloudflare/);
	const pem = '-----BEGIN CERTIFICATE-----\nMIIB*[a]?\n-----END CERTIFICATE-----';
	for (let times = 0; times < 2; times++) { // files are kept for the next of the name: once is enough
		await engine.ask('DELETE', `/containers/${name}?force=true`);
		await engine.create(name, { env });
		assert.equal((await put(name, '/etc', tar([{ name: 'cloudflare/certs/cloudflare-containers-ca.crt', data: pem }]))).status, 200);
		await engine.expect(204, 'POST', `/containers/${name}/start`, '');
		const said = await run(port, 'grep -cF "MIIB*[a]?" "$SSL_CERT_FILE"; echo "$SSL_CERT_FILE $NODE_EXTRA_CA_CERTS $CURL_CA_BUNDLE"');
		assert.equal(said.stdout, '1\n/etc/ssl/certs/ca-certificates.crt /etc/cloudflare/certs/cloudflare-containers-ca.crt /its/own\n');
		await engine.expect(204, 'POST', `/containers/${name}/kill?signal=SIGTERM`, '');
		await engine.ask('POST', `/containers/${name}/wait`, '');
	}
});

test('what an image names as its user does not keep a container from trusting the certificate, and that of an earlier authority goes', async t => {
	const image = `user-${randomUUID()}`;
	await built(daemon, { Dockerfile: 'FROM base\nRUN useradd app\nUSER app\n' }, { names: [image] });
	const name = newName();
	const port = await engine.sidecar(t, `${name}-proxy`);
	t.after(() => engine.ask('DELETE', `/containers/${name}?force=true`));
	for (const authority of ['first', 'second']) {
		await engine.create(name, { image, env: ['SANDBOX_INTERCEPT_HTTPS=1'] });
		assert.equal((await put(name, '/etc', tar([{ name: 'cloudflare/certs/cloudflare-containers-ca.crt', data: `-----BEGIN CERTIFICATE-----\n${authority}\n-----END CERTIFICATE-----` }]))).status, 200);
		await engine.expect(204, 'POST', `/containers/${name}/start`, '');
		const said = await run(port, 'grep -xE "first|second" "$SSL_CERT_FILE"; grep -c "BEGIN CERT" "$SSL_CERT_FILE"; stat -c %a "$SSL_CERT_FILE"; ls -d "$SSL_CERT_FILE".*');
		const [kept, count, ...rest] = said.stdout.split('\n');
		assert.equal(kept, authority);
		assert.ok(Number(count) > 1, 'the others are still there');
		assert.deepEqual(rest, ['644', '']);
		await engine.expect(204, 'POST', `/containers/${name}/kill?signal=SIGTERM`, '');
		await engine.wait(name);
		await engine.expect(204, 'DELETE', `/containers/${name}`); // the files stay
	}
});

test('a container of an image whose name moves on twice before its start keeps what was put into it', async t => {
	const name = newName();
	const port = await engine.sidecar(t, `${name}-proxy`);
	t.after(() => engine.ask('DELETE', `/containers/${name}?force=true`));
	const image = `moving-${randomUUID()}`;
	const move = number => built(daemon, { Dockerfile: `FROM base\nRUN echo ${number} > /number\n` }, { names: [image] });
	await move(1);
	await engine.create(name, { image });
	await move(2);
	assert.equal((await put(name, '/srv', tar([{ name: 'a', data: 'put' }]))).status, 200);
	await move(3);
	await engine.expect(204, 'POST', `/containers/${name}/start`, '');
	assert.equal((await run(port, 'cat /number /srv/a')).stdout, '2\nput');
});

test('volumes are made, found by a part of their name, and removed', async () => {
	const name = `workerd-snap-${randomUUID()}`;
	const labels = { 'dev.workerd.snapshot-created-at': '1' };
	assert.equal((await engine.expect(201, 'POST', '/volumes/create', { Name: name, Labels: labels })).Name, name);
	assert.equal((await engine.ask('POST', '/volumes/create', { Name: name })).status, 200);
	const found = await engine.expect(200, 'GET', `/volumes?filters=${encodeURIComponent('{"name":["workerd-snap-"]}')}`);
	assert.deepEqual(found.Volumes.map(v => [v.Name, v.Labels]), [[name, labels]]);
	assert.deepEqual((await engine.expect(200, 'GET', '/volumes?filters=%7B%22name%22%3A%5B%22other%22%5D%7D')).Volumes, []);
	await engine.expect(200, 'GET', `/volumes/${name}`);
	await engine.expect(204, 'DELETE', `/volumes/${name}`);
	await engine.expect(404, 'GET', `/volumes/${name}`);
	await engine.expect(404, 'DELETE', `/volumes/${name}`);
	for (const body of ['', '{', '[]', '{"Name":1}', '{"Name":"/etc"}', '{"Name":"a/b"}', '{"Name":"x","Labels":[]}'])
		assert.equal((await engine.ask('POST', '/volumes/create', body)).status, 400, body);
});

test('a directory is kept as a snapshot and comes back in another container, nested ones over their parents', async t => {
	const first = await engine.app(t);
	await run(first.port, 'mkdir -p /data/sub && echo one > /data/a && echo two > /data/sub/b && ln -s a /data/link && chmod 750 /data/sub');
	const packed = await get(first.id, '/data/.');
	assert.equal(packed.status, 200);
	const snap = `workerd-snap-${randomUUID()}`;
	await engine.expect(201, 'POST', '/volumes/create', { Name: snap });
	const helper = await engine.expect(201, 'POST', '/containers/create', { Image: 'base', HostConfig: { Binds: [`${snap}:/mnt`] } });
	assert.equal((await put(helper.Id, '/mnt', packed.raw)).status, 200);
	assert.equal((await engine.ask('DELETE', `/volumes/${snap}`)).status, 409, 'in use');
	await engine.expect(204, 'DELETE', `/containers/${helper.Id}?force=true`);
	const clones = [];
	for (let i = 0; i < 2; i++) {
		const clone = `workerd-snap-clone-${randomUUID()}`;
		clones.push(clone);
		await engine.expect(201, 'POST', '/volumes/create', { Name: clone });
		const copy = await engine.expect(201, 'POST', '/containers/create', { Image: 'sidecar', Entrypoint: ['/bin/cp'], Cmd: ['-a', '/src/.', '/dst/'], HostConfig: { Binds: [`${snap}:/src:ro`, `${clone}:/dst`] } });
		await engine.expect(204, 'POST', `/containers/${copy.Id}/start`, '');
		assert.deepEqual((await engine.wait(copy.Id, 'not-running')).json, { StatusCode: 0 });
		await engine.expect(204, 'DELETE', `/containers/${copy.Id}?force=true`);
	}
	const mount = (source, target) => ({ Type: 'volume', Source: source, Target: target, ReadOnly: false, VolumeOptions: { NoCopy: true } });
	const second = await engine.app(t, { Mounts: [mount(clones[1], '/etc/apt/deep/down'), mount(clones[0], '/etc/apt')] });
	const seen = await run(second.port, 'cd /etc/apt && ls; cat a sub/b link deep/down/a; stat -c %a sub');
	assert.equal(seen.stdout, 'a\ndeep\nlink\nsub\none\ntwo\none\none\n750\n');
	await engine.expect(204, 'DELETE', `/containers/${second.id}?force=true`);
	for (const volume of [...clones, snap])
		await engine.expect(204, 'DELETE', `/volumes/${volume}`);
});

test('a container becomes an image, whose parent is its own, and another one begins there', async t => {
	const first = await engine.app(t, { env: ['COMMITTED=yes'] });
	await run(first.port, 'echo kept > /workspace/file');
	const repo = `workerd-container-snap-${randomUUID()}`;
	const { Id } = await engine.expect(201, 'POST', `/commit?container=${first.id}&pause=true&repo=${repo}`, '');
	assert.match(Id, /^sha256:[0-9a-f]{64}$/);
	const image = await engine.expect(200, 'GET', `/images/${repo}/json`);
	const base = await engine.expect(200, 'GET', '/images/base/json');
	assert.equal(image.Id, Id);
	assert.equal(image.Parent, base.Id);
	assert.ok(image.Size >= 0 && image.Config.Env.includes('COMMITTED=yes'));
	assert.equal((await engine.expect(200, 'GET', `/images/${encodeURIComponent(Id)}/json`)).Id, Id);
	const second = await engine.app(t, { image: repo });
	assert.equal((await run(second.port, 'cat /workspace/file; echo $COMMITTED')).stdout, 'kept\nyes\n');
	await engine.expect(204, 'DELETE', `/containers/${second.id}?force=true`);
	assert.equal((await engine.ask('DELETE', `/images/${repo}?noprune=true`)).status, 200);
	assert.equal((await engine.ask('GET', `/images/${repo}/json`)).status, 404);
	assert.equal((await engine.ask('DELETE', `/images/${repo}?noprune=true`)).status, 404);
});

test('a commit names the image of its container as its parent, whatever steps that image ends in', async t => {
	const tag = `parent-${randomUUID().slice(0, 8)}`, repos = [];
	await built(daemon, { Dockerfile: 'FROM base\nRUN echo layer > /layer\nENV A=b\nEXPOSE 8080\nCMD ["sleep", "1000"]\n' }, { names: [tag] });
	t.after(async () => {
		for (const name of [...repos.toReversed(), tag])
			await engine.ask('DELETE', `/images/${name}?noprune=true`);
	});
	for (let image = tag; repos.length < 2; image = repos.at(-1)) { // a commit of what was committed, too
		const { id, port } = await engine.app(t, { image });
		await run(port, 'echo more >> /layer');
		const repo = `workerd-container-snap-${randomUUID()}`;
		await engine.expect(201, 'POST', `/commit?container=${id}&pause=true&repo=${repo}`, '');
		repos.push(repo);
		const parent = await engine.expect(200, 'GET', `/images/${image}/json`);
		assert.equal((await engine.expect(200, 'GET', `/images/${repo}/json`)).Parent, parent.Id);
		await engine.expect(204, 'DELETE', `/containers/${id}?force=true`);
	}
	const last = await engine.app(t, { image: repos.at(-1) });
	assert.equal((await run(last.port, 'cat /layer; echo $A')).stdout, 'layer\nmore\nmore\nb\n');
});

/** A volume with the file deep/secret. */
async function volume(t) {
	const name = `workerd-snap-${randomUUID()}`;
	t.after(() => engine.ask('DELETE', `/volumes/${name}`));
	await engine.expect(201, 'POST', '/volumes/create', { Name: name });
	const helper = await engine.expect(201, 'POST', '/containers/create', { Image: 'base', HostConfig: { Binds: [`${name}:/mnt`] } });
	assert.equal((await put(helper.Id, '/mnt', tar([{ name: 'deep/secret', data: 'x' }]))).status, 200);
	await engine.expect(204, 'DELETE', `/containers/${helper.Id}?force=true`);
	return name;
}

/** The image that a container is committed to. */
async function commit(t, container) {
	const repo = `workerd-container-snap-${randomUUID()}`;
	t.after(() => engine.ask('DELETE', `/images/${repo}?noprune=true`));
	await engine.expect(201, 'POST', `/commit?container=${container}&pause=true&repo=${repo}`, '');
	return repo;
}

const mounts = (Source, targets) => ({ Mounts: targets.map(Target => ({ Type: 'volume', Source, Target })) });

test('files of volumes are not part of a commit, and no link leads to others that are left out in their place', async t => {
	const targets = ['/etc/apt', '/data/new', '/data/new/below', '/gone', '/link', '/way/through'];
	const first = await engine.app(t, mounts(await volume(t), targets));
	const left = '/tmp/kept /opt/own/through /data/beside';
	assert.equal((await run(first.port, `cat ${targets.map(one => `${one}/deep/secret`).join(' ')} && mkdir -p ${left} && cd /etc/apt && d=. && for i in $(seq 60); do d=$d/d; done && mkdir -p $d &&
		rm -rf /gone /link /way && ln -s /opt /link && ln -s /opt/own /way`)).stdout, 'x'.repeat(targets.length));
	const repo = await commit(t, first.id);
	assert.equal((await run(first.port, 'cat /data/new/deep/secret')).stdout, 'x', 'the container has them still');
	assert.equal((await engine.expect(200, 'GET', `/images/${repo}/json`)).Parent, (await engine.expect(200, 'GET', '/images/base/json')).Id);
	const [second, plain] = [await engine.app(t, { image: repo }), await engine.app(t)];
	for (const target of targets)
		assert.equal((await get(second.id, `${target}/deep/secret`)).status, 404, target);
	assert.equal((await run(second.port, `ls -d ${left}; ls /opt; ls -d /link /data/new`)).stdout, `${left.split(' ').sort().join('\n')}\nown\n`);
	const list = 'cd /etc/apt && find . | sort';
	assert.equal((await run(second.port, list)).stdout, (await run(plain.port, list)).stdout, 'what the image has there is seen again');
});

test('a commit leaves out volumes whose mount point lies behind links of the image, also when siltd died in between', async t => {
	const image = `links-${randomUUID().slice(0, 8)}`;
	await built(daemon, { Dockerfile: 'FROM base\nRUN mkdir -p /opt/real && echo image > /opt/real/own && ln -s /opt/real /first && ln -s ../first /opt/second\n' }, { names: [image] });
	t.after(() => engine.ask('DELETE', `/images/${image}`));
	const empty = `workerd-snap-${randomUUID()}`;
	t.after(() => engine.ask('DELETE', `/volumes/${empty}`));
	const { Mounts } = mounts(await volume(t), ['/first/here', '/opt/second/there/deep', '/var/run/volume']);
	const first = await engine.app(t, { image, Mounts: [...Mounts, ...mounts(empty, ['/first/empty']).Mounts] });
	assert.equal((await run(first.port, 'cd /opt/real && cat here/deep/secret there/deep/deep/secret && echo > empty/later && echo > beside && readlink -f /var/run')).stdout, 'xx/run\n');
	const old = daemon.siltd();
	process.kill(old, 'SIGKILL');
	await until('a new siltd', () => daemon.programs('siltd').some(pid => pid !== old));
	await daemon.healthy();
	await until('the engine socket', async () => (await engine.ask('GET', '/_ping', undefined, { deadline: 2_000 })).status === 200);
	const second = await engine.app(t, { image: await commit(t, first.id) });
	for (const target of [...Mounts.map(one => one.Target), '/run/volume', '/opt/real/here', '/opt/real/there/deep'])
		assert.equal((await get(second.id, `${target}/deep/secret`)).status, 404, target);
	assert.equal((await run(second.port, 'cd /first && find . | sort; cat own')).stdout, '.\n./beside\n./own\n./there\nimage\n');
});

test('images have names, and two names of one have the same id', async () => {
	const tag = `cloudflare-dev/sandbox:${randomUUID().slice(0, 8)}`;
	const [repo, version] = tag.split(':');
	assert.equal((await engine.ask('POST', `/images/base/tag?repo=${encodeURIComponent(repo)}&tag=${version}`)).status, 201);
	const image = await engine.expect(200, 'GET', `/images/${tag}/json`);
	assert.equal(image.Id, (await engine.expect(200, 'GET', '/v1.47/images/base/json')).Id);
	assert.ok(image.RepoTags.includes(tag) && image.RepoTags.includes('base:latest'));
	assert.ok(Object.keys(image.Config.ExposedPorts).length > 0);
	assert.ok((await engine.expect(200, 'GET', '/images/json')).some(one => one.RepoTags.includes(tag)));
	assert.equal((await engine.ask('POST', '/images/create?fromImage=docker.io%2Fcloudflare%2Fsandbox&tag=0.12.1')).status, 200, 'a mapped name');
	assert.equal((await engine.ask('POST', '/images/create?fromImage=cloudflare%2Fproxy-everything%3A1&tag=sha256:abc')).status, 200, 'the sidecar needs no image');
	assert.equal((await engine.ask('POST', '/images/create?fromImage=nobody%2Fnothing')).status, 404);
	assert.equal((await engine.ask('DELETE', `/images/${tag}`)).status, 200);
	assert.equal((await engine.ask('GET', `/images/${tag}/json`)).status, 404);
	assert.equal((await engine.ask('POST', '/images/base/tag?repo=NOT%20A%20NAME')).status, 400);
	assert.equal((await engine.ask('POST', '/commit?container=nobody')).status, 404);
});
