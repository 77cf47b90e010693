// SPDX-License-Identifier: Apache-2.0
// silt-docker, as wrangler calls it, and silt wrangler-env.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { BUILD, startDaemon } from '../lib/daemon.mjs';
import { connect, Engine, talk } from '../lib/engine.mjs';
import { dockerArchive } from '../lib/oci.mjs';
import { untar } from '../lib/untar.mjs';
import { until, within } from '../lib/wait.mjs';

let daemon, engine, env;
before(async () => {
	daemon = await startDaemon();
	engine = new Engine(daemon);
	env = { PATH: process.env.PATH, WRANGLER_DOCKER_HOST: `unix://${engine.socket}`, SILT_CONFIG: '' };
});
after(() => daemon.stop());

function run(words, { input = '', more = {}, program = 'silt-docker', cwd } = {}) {
	const child = spawn(path.join(BUILD, program), words, { cwd, env: { ...env, ...more } });
	const out = [];
	const err = [];
	child.stdout.on('data', piece => out.push(piece));
	child.stderr.on('data', piece => err.push(piece));
	child.stdin.on('error', () => {}).end(input);
	return within(60_000, words.join(' '), new Promise(resolve => child.on('close', code => resolve({ code, out: Buffer.concat(out).toString(), err: Buffer.concat(err).toString() }))));
}
async function good(words, options) {
	const done = await run(words, options);
	assert.equal(done.code, 0, `${words.join(' ')}: ${done.err}`);
	return done.out;
}

test('info, version and the security options are told', async () => {
	assert.match(await good(['info']), /Silt/);
	const options = JSON.parse(await good(['--host', `unix://${engine.socket}`, 'info', '--format', '{{json .SecurityOptions}}'], { more: { WRANGLER_DOCKER_HOST: '' } }));
	assert.ok(Array.isArray(options) && !options.includes('name=rootless'));
	assert.match(await good(['version', '--format', '{{.Server.ApiVersion}}']), /^1\.47\n$/);
	assert.equal((await run(['info'], { more: { WRANGLER_DOCKER_HOST: 'unix:///nowhere.sock' } })).code, 1);
	assert.equal((await run(['nonsense'])).code, 1);
	assert.match(await good(['info', '-f', '{{.OperatingSystem}}']), /^Silt\n$/);
	for (const words of [['--help'], ['build', '--help'], ['--version'], ['-v']])
		assert.match(await good(words, { more: { WRANGLER_DOCKER_HOST: 'unix:///nowhere.sock' } }), /^silt-docker \d[\s\S]*usage: /, words.join(' '));
});

test('pull, tag, look at, and remove an image', async () => {
	const tag = `cloudflare-dev/sandbox:${randomUUID().slice(0, 8)}`;
	await good(['pull', 'docker.io/cloudflare/sandbox:0.12.1', '--platform', 'linux/amd64']);
	await good(['tag', 'docker.io/cloudflare/sandbox:0.12.1', tag]);
	const tags = (await good(['image', 'inspect', tag, '--format', '{{ range .RepoTags }}{{ . }}\n{{ end }}'])).split('\n');
	assert.ok(tags.includes(tag) && tags.includes('base:latest'), tags.join());
	assert.match(await good(['image', 'inspect', tag, '--format', '{{ len .Config.ExposedPorts }}']), /^[1-9]\d*\n$/);
	assert.match(JSON.parse(await good(['image', 'inspect', tag]))[0].Id, /^sha256:/);
	await good(['rmi', tag]);
	assert.equal((await run(['image', 'inspect', tag])).code, 1);
	assert.equal((await run(['rmi', tag])).code, 1);
	assert.equal((await run(['pull', 'nobody/nothing:1'])).code, 1);
});

test('the sidecar that wrangler wants is never fetched', async () => {
	await good(['pull', 'cloudflare/proxy-everything:3cb1195@sha256:0ef6716c52430096900b150d84a3302057d6cd2319dae7987128c85d0733e3c8', '--platform', 'linux/amd64']);
	await good(['pull', 'my/own:sidecar'], { more: { MINIFLARE_CONTAINER_EGRESS_IMAGE: 'my/own:sidecar' } });
});

test('filters that are too long are refused with a sentence', async () => {
	const done = await run(['ps', '--filter', `name=${'x'.repeat(8000)}`]);
	assert.equal(done.code, 1);
	assert.match(done.err, /too long/);
});

test('containers of an image are listed and removed', async t => {
	const { name } = await engine.app(t);
	const ids = (await good(['ps', '-a', '--filter', 'ancestor=base', '--format', '{{.ID}}'])).trim().split('\n');
	const { Id } = await engine.expect(200, 'GET', `/containers/${name}/json`);
	assert.deepEqual(ids, [Id.slice(0, 12)]);
	await good(['rm', '--force', ...ids]);
	assert.equal((await good(['ps', '-a', '--filter', 'ancestor=base', '--format', '{{.ID}}'])).trim(), '');
	assert.equal((await engine.ask('GET', `/containers/${name}/json`)).status, 404);
	assert.equal((await run(['rm', '-f', 'nobody'])).code, 1);
});

test('ps prints ids alone, whole, in a form of the caller\'s, and only of those that are meant', async t => {
	const name = `listed-${randomUUID()}`, proxy = `proxy-${randomUUID()}`;
	await engine.sidecar(t, proxy);
	t.after(() => engine.ask('DELETE', `/containers/${name}?force=true`));
	const { Id } = await engine.expect(201, 'POST', `/containers/create?name=${name}`, { Image: 'base', Labels: { team: 'a', 'x.y': '' }, HostConfig: { NetworkMode: `container:${proxy}` } });
	await engine.expect(204, 'POST', `/containers/${name}/start`, '');
	for (const words of [['-q'], ['-aq'], ['-qa'], ['-a', '-q'], ['--all', '--quiet']])
		assert.equal(await good(['ps', ...words, '--filter', `name=${name}`]), `${Id.slice(0, 12)}\n`, words.join(' '));
	assert.equal(await good(['container', 'ls', '-q', '--no-trunc', '-f', `name=${name}`]), `${Id}\n`);
	assert.equal(await good(['ps', '--filter', `name=${name}`, '--format', 'table {{.Names}}\\t{{.State}}']), `${name}\trunning\n`);
	assert.equal(JSON.parse(await good(['ps', '--filter', `name=${name}`, '--format', 'json'])).Names, name);
	const labelled = async (...labels) => (await good(['ps', '-q', '--filter', `name=${name}`, ...labels.flatMap(l => ['--filter', `label=${l}`])])).trim();
	for (const labels of [['team'], ['team=a'], ['x.y', 'team=a'], ['x.y=']])
		assert.equal(await labelled(...labels), Id.slice(0, 12), labels.join());
	for (const labels of [['team=b'], ['none'], ['team=a', 'none']])
		assert.equal(await labelled(...labels), '', labels.join());
	for (const words of [['-aqz'], ['-af'], ['--filter', 'colour=red'], ['--filter', 'nonsense']])
		assert.equal((await run(['ps', ...words])).code, 1, words.join(' '));
	assert.equal((await engine.ask('GET', '/containers/json?filters={"colour":["red"]}')).status, 400);
});

test('an image leaves by save and comes back by load, and docker\'s own requests do the same', async t => {
	const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-save-'));
	t.after(() => fs.rmSync(directory, { recursive: true, force: true }));
	const own = await startDaemon({ images: false, flags: { image: 'plain' } }); // the images of the other are everybody's
	t.after(() => own.stop());
	const socket = new Engine(own);
	const more = { WRANGLER_DOCKER_HOST: `unix://${socket.socket}` };
	const there = (words, options) => good(words, { ...options, more });
	const tag = 'team/saved:1', file = path.join(directory, 'image.tar');
	fs.writeFileSync(file, dockerArchive({ tags: [tag], config: { Env: ['A=1'] } }));
	assert.equal(await there(['load', '-i', file]), `Loaded image: ${tag}\n`);
	assert.equal(await there(['save', '-o', file, tag]), '');
	assert.deepEqual(JSON.parse(untar(fs.readFileSync(file)).get('manifest.json').data)[0].RepoTags, [tag]);
	await there(['rmi', tag]);
	assert.equal(await there(['image', 'load'], { input: fs.readFileSync(file) }), `Loaded image: ${tag}\n`);
	assert.equal(await there(['image', 'inspect', tag, '--format', '{{json .Config.Env}}']), '["A=1"]\n');
	await there(['image', 'save', '--output', file, tag]);
	const whole = await socket.ask('GET', `/v1.47/images/${tag}/get`);
	assert.equal(whole.status, 200);
	assert.deepEqual(whole.raw, fs.readFileSync(file));
	assert.equal((await socket.ask('POST', '/v1.47/images/load?quiet=1', whole.raw, { headers: { 'content-type': 'application/x-tar' } })).status, 201);
	for (const words of [['save', '-o', file, 'nobody/nothing:1'], ['save', '-o', file], ['save', '-o', file, tag, tag], ['load', '-i', '/no/such/file'], ['load', tag], ['load', '-i', '/dev/null']])
		assert.equal((await run(words, { more })).code, 1, words.join(' '));
	assert.deepEqual(fs.readdirSync(directory), ['image.tar']);
	assert.deepEqual(whole.raw, fs.readFileSync(file), 'a failure leaves what was there');
});

test('silt ls tells which container, class and object a sandbox is', async t => {
	const { name } = await engine.app(t);
	const listed = await good(['ls'], { program: 'silt', more: { SILT_SERVER: daemon.address, SILT_TOKEN: daemon.token } });
	assert.ok(listed.includes(`container ${name}\n`), listed);
	assert.ok(listed.includes(`class app-Sandbox, object ${name.slice(-64)}\n`), listed);
});

test('the context names the socket, and a login is taken', async () => {
	const line = JSON.parse(await good(['context', 'ls', '--format', 'json']));
	assert.deepEqual([line.Current, line.DockerEndpoint], [true, `unix://${engine.socket}`]);
	await good(['login', '--password-stdin', '--username', 'u', 'registry.example'], { input: 'secret\n' });
});

test('a format that makes no sense is an error', async () => {
	for (const format of ['{{', '{{end}}', '{{range .A}}', '{{what .A}}', '{{nonsense}}'])
		assert.equal((await run(['info', '--format', format])).code, 1, format);
	assert.equal(await good(['info', '--format', 'x{{if .Nothing}}y{{end}}{{if .Name}}z{{end}}']), 'xz\n');
});

test('silt wrangler-env prints what to set', async () => {
	const lines = await good(['wrangler-env'], { program: 'silt' });
	assert.match(lines, /^export WRANGLER_DOCKER_BIN='\/.*\/silt-docker'$/m);
	assert.ok(lines.includes(`export WRANGLER_DOCKER_HOST='unix://${engine.socket}'\n`));
	assert.equal((await run(['wrangler-env'], { program: 'silt' })).err, '');
	assert.match((await run(['wrangler-env'], { program: 'silt', more: { WRANGLER_DOCKER_HOST: 'unix:///no/such.sock' } })).err, /is not there: is the daemon running/);
	const odd = (await run(['wrangler-env'], { program: 'silt', more: { WRANGLER_DOCKER_HOST: 'unix:///tmp/$(x);y.sock' } })).out;
	assert.ok(odd.includes("export DOCKER_HOST='unix:///tmp/$(x);y.sock'\n"), odd);
	assert.equal((await run(['wrangler-env'], { program: 'silt', more: { WRANGLER_DOCKER_HOST: "unix:///tmp/'.sock" } })).out, '');
});

test('silt wrangler-env tells how an image of a registry needs no account', async t => {
	const cwd = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-app-'));
	t.after(() => fs.rmSync(cwd, { recursive: true }));
	const told = async (image, more) => {
		fs.writeFileSync(path.join(cwd, 'wrangler.jsonc'), `{ "containers": [{ "class_name": "Sandbox", "image": "${image}", }] } // minimal`);
		return (await run(['wrangler-env'], { program: 'silt', cwd, more })).err;
	};
	fs.writeFileSync(path.join(cwd, 'Dockerfile'), 'FROM base\n');
	assert.equal(await told('./Dockerfile'), '');
	assert.match(await told('docker.io/cloudflare/sandbox:0.12.10'), /docker\.io\/cloudflare\/sandbox:0\.12\.10 is a registry's[\s\S]*wrangler-env --no-account/);
	assert.equal(await told('docker.io/cloudflare/sandbox:0.12.10', { CLOUDFLARE_API_TOKEN: 'x' }), '');
	const without = await run(['wrangler-env', '--no-account'], { program: 'silt', cwd });
	assert.equal(without.err, '');
	assert.match(without.out, /^export CLOUDFLARE_API_TOKEN='none'$/m);
});

test('an image that cannot be pulled is named, with the reason', async () => {
	const missing = await run(['pull', 'silt.invalid/nobody/nothing:1']);
	assert.equal(missing.code, 1);
	assert.match(missing.err, /Failed to pull container image silt\.invalid\/nobody\/nothing:1: \S/);
	assert.match((await run(['pull', 'No:Such:Name'])).err, /Failed to pull container image No:Such:Name: \S/);
});

test('an image is built from a directory, with the Dockerfile on standard input, and a container runs it', async t => {
	const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-context-'));
	t.after(() => fs.rmSync(directory, { recursive: true, force: true }));
	const long = 'x'.repeat(120);
	fs.mkdirSync(path.join(directory, 'sub/node_modules'), { recursive: true });
	fs.writeFileSync(path.join(directory, 'hello.txt'), 'hello\n');
	fs.writeFileSync(path.join(directory, 'sub', long), 'long\n');
	fs.writeFileSync(path.join(directory, 'sub/node_modules/big'), 'ignored\n');
	fs.symlinkSync('hello.txt', path.join(directory, 'link'));
	fs.writeFileSync(path.join(directory, '.dockerignore'), '**/node_modules\n');
	const tag = `cloudflare-dev/built:${randomUUID().slice(0, 8)}`;
	t.after(() => run(['rmi', tag]));
	const dockerfile = 'FROM docker.io/cloudflare/sandbox:0.12.1\nARG WHO\nENV GREETED=$WHO\nCOPY . /app/\nEXPOSE 8080\n';
	const built = await run(['build', '--load', '-t', tag, '--platform', 'linux/amd64', '--provenance=false', '--build-arg', 'WHO=world', '--network', 'host', '-f', '-', directory], { input: dockerfile });
	assert.equal(built.code, 0, built.err);
	assert.match(await good(['image', 'inspect', tag, '--format', '{{ len .Config.ExposedPorts }}']), /^1\n$/);
	const { port } = await engine.app(t, { image: tag });
	const { socket } = await connect(port);
	t.after(() => socket.destroy());
	const seen = (await talk(socket, 'POST', '/api/execute', { command: `cd /app && cat hello.txt link sub/${long}; echo $GREETED; ls sub | wc -l` })).json;
	assert.equal(seen.stdout, 'hello\nhello\nlong\nworld\n1\n', seen.stderr);
	const bad = await run(['build', '-t', tag, '-f', '-', directory], { input: 'FROM no-such-image\n' });
	assert.equal(bad.code, 1);
	assert.match(bad.err, /no-such-image/);
	assert.equal((await run(['build', '-t', tag, '/no/such/directory'])).code, 1);
});

test('images has a line of titles, and names, tags and ids below it', async () => {
	const [titles, ...rows] = (await good(['images'])).trim().split('\n');
	assert.match(titles, /^REPOSITORY +TAG +IMAGE ID +SIZE$/);
	assert.ok(rows.some(row => /^base +latest +[0-9a-f]{12} +\S/.test(row)), rows.join('\n'));
	assert.ok((await good(['images', '--format', '{{.Repository}}:{{.Tag}}'])).split('\n').includes('base:latest'));
	assert.match(await good(['images', '-q']), /^[0-9a-f]{12}\n/);
});

test('run and logs: what the program writes, and its exit code', async t => {
	const name = `run-${randomUUID()}`;
	t.after(() => run(['rm', '-f', name]));
	assert.deepEqual(await run(['run', '--rm', '-e', 'A=b', 'base', 'sh', '-c', 'echo out $A; echo err >&2; exit 5']), { code: 5, out: 'out b\n', err: 'err\n' });
	assert.deepEqual(await run(['run', '--name', name, 'base', 'echo', '--fine', '-x']), { code: 0, out: '--fine -x\n', err: '' });
	assert.equal(await good(['logs', name]), '--fine -x\n');
	assert.match(await good(['logs', '--tail', '1', '-t', name]), /^\d{4}-\S+Z --fine -x\n$/);
	const none = await run(['run', '--rm', 'base', '/nope']);
	assert.equal(none.code, 125);
	assert.match(none.err, /program '\/nope' not found/);
	assert.equal((await run(['logs', 'nobody'])).code, 1);
	assert.equal((await run(['run'])).code, 125);
	assert.match(await good(['system', 'df']), /^TYPE +TOTAL +SIZE\nImages +[1-9]\d* +\S+[^]*Containers +\d/);
	const { Id } = await engine.expect(200, 'GET', `/containers/${name}/json`);
	assert.match(await good(['system', 'prune', '-f']), new RegExp(Id));
	await until('its removal', async () => (await engine.ask('GET', `/containers/${name}/json`)).status === 404);
});
