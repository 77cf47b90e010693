// SPDX-License-Identifier: Apache-2.0
// How large containers of the engine socket are, and how many of one class run: what the image says, and wrangler's file.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { built } from '../lib/build.mjs';
import { BUILD, startDaemon } from '../lib/daemon.mjs';
import { Engine, newName } from '../lib/engine.mjs';
import { pids, processInfo } from '../lib/host.mjs';
import { dockerArchive } from '../lib/oci.mjs';
import { until, within } from '../lib/wait.mjs';

let daemon, engine;
before(async () => {
	daemon = await startDaemon({ flags: { 'engine.max_instances': 'on' } });
	engine = new Engine(daemon);
});
after(() => daemon.stop());

/** What the kernel holds a program with these arguments to: microseconds of each period, Infinity: nothing. */
async function quota(mark) {
	const { cgroup } = await until('its program', () => pids().map(processInfo).find(({ name, command }) => name === 'sleep' && command[1] === mark));
	return quotaOf(cgroup.split('\n').map(line => line.split(':')));
}

function quotaOf(groups) {
	const v1 = groups.find(([, names]) => names?.split(',').includes('cpu'));
	const value = v1 ? read(['/sys/fs/cgroup/cpu', '/sys/fs/cgroup/cpu,cpuacct'], v1[2], 'cpu.cfs_quota_us')
		: read(['/sys/fs/cgroup', '/sys/fs/cgroup/unified'], groups.find(([number]) => number === '0')[2], 'cpu.max').split(' ')[0];
	return value === undefined || /^(-1|max)/.test(value) ? Infinity : Number(value);
}

/** The group's, or that of one above it: processes are in groups of their own inside. */
function read(roots, group, file) {
	const found = [];
	for (let at = group; at !== '/'; at = path.dirname(at))
		for (const root of roots)
			if (fs.existsSync(path.join(root, at, file)))
				found.push(fs.readFileSync(path.join(root, at, file), 'latin1').trim());
	return found.find(text => !/^(-1|max)/.test(text)) ?? found[0];
}

async function limits(name) {
	const { SiltSandbox } = await engine.expect(200, 'GET', `/containers/${name}/json`);
	return (await daemon.api('GET', `/v1/sandboxes/${SiltSandbox}`)).body;
}

let marks = 700000 + Math.floor(Math.random() * 90000) * 10;
async function image(t, text, query) {
	const name = `size-${randomUUID().slice(0, 8)}`;
	t.after(() => engine.ask('DELETE', `/images/${name}`));
	await built(daemon, { Dockerfile: text }, { names: [name], query });
	return name;
}

test('a container has no ceiling of cpu time unless its image says a size, and memory as every sandbox', async t => {
	const mark = String(marks++);
	const plain = await engine.app(t, { cmd: ['sleep', mark] });
	const seen = await limits(plain.name);
	assert.deepEqual([seen.limits.cpu, seen.limits.memoryMiB, seen.type], [null, 4096, null]);
	assert.equal(await quota(mark), Infinity);
	const other = String(marks++);
	const sized = await engine.app(t, { image: await image(t, 'FROM base\nLABEL silt.type=basic\n'), cmd: ['sleep', other] });
	const small = await limits(sized.name);
	assert.deepEqual([small.limits.cpu, small.limits.memoryMiB, small.type], [0.25, 1024, 'basic']);
	const held = await quota(other);
	assert.ok(held < 100_000, `${held}`);
	const ordinary = await daemon.box(t, { labels: { of: 'the api' } });
	assert.equal((await daemon.api('GET', `/v1/sandboxes/${ordinary.id}`)).body.limits.cpu, 0.5, 'other sandboxes have theirs');
});

test('files that were kept wake with the size that their image has', async t => {
	const { name, id } = await engine.app(t);
	await engine.expect(204, 'POST', `/containers/${id}/kill?signal=SIGTERM`);
	await engine.wait(name);
	await engine.expect(204, 'DELETE', `/containers/${id}`);
	await engine.create(name);
	await engine.expect(204, 'POST', `/containers/${id}/start`, '');
	assert.equal((await limits(name)).limits.cpu, null);
});

test('a size that nobody knows is refused, and an image from elsewhere has no say', async t => {
	const bad = await image(t, 'FROM base\nLABEL silt.type=huge\n');
	const refused = await engine.ask('POST', '/containers/create', { Image: bad });
	assert.equal(refused.status, 400);
	assert.match(refused.json.message, /silt\.type is 'huge'/);
	const tag = `stranger/${randomUUID().slice(0, 8)}:1`;
	t.after(() => engine.ask('DELETE', `/images/${tag}`));
	const archive = dockerArchive({ tags: [tag], config: { Cmd: ['x'], Labels: { 'silt.type': 'standard-4', 'silt.max_instances': '9', maker: 'me' } } });
	assert.equal((await engine.ask('POST', '/images/load', archive, { headers: { 'content-type': 'application/x-tar' } })).status, 201);
	assert.deepEqual((await engine.expect(200, 'GET', `/images/${tag}/json`)).Config.Labels, { maker: 'me' });
	const built = await image(t, `FROM ${tag}\nENV A=1\n`);
	assert.deepEqual((await engine.expect(200, 'GET', `/images/${built}/json`)).Config.Labels, { maker: 'me' });
});

test('what the caller of a build says counts where the Dockerfile itself says nothing; labels of the caller count always', async t => {
	const labels = async name => (await engine.expect(200, 'GET', `/images/${name}/json`)).Config.Labels;
	const mine = await image(t, 'FROM base\nLABEL silt.type=standard-2 who=file\n', { type: 'lite', max_instances: '3', labels: '{"who":"caller"}' });
	assert.deepEqual(await labels(mine), { 'silt.control': 'builtin', 'silt.max_instances': '3', 'silt.type': 'standard-2', who: 'caller' });
	const next = await image(t, `FROM ${mine}\nENV A=1\n`, { type: 'lite' });
	assert.equal((await labels(next))['silt.type'], 'lite', 'inherited is not said');
	assert.equal((await labels(next))['silt.max_instances'], '3');
	for (const query of ['type=huge', 'max_instances=0', 'max_instances=x', 'labels=[]', 'labels={"a":1}'])
		assert.equal((await daemon.api('POST', `/v1/images/build?${query}`, Buffer.alloc(1024))).status, 400, query);
});

test('no more run than the image says: the next is refused, a destroyed or sleeping one leaves its place', async t => {
	const name = await image(t, 'FROM base\nLABEL silt.max_instances=2\n');
	const [first] = [await engine.app(t, { image: name }), await engine.app(t, { image: name })];
	const third = newName();
	await engine.sidecar(t, `${third}-proxy`);
	t.after(() => engine.ask('DELETE', `/containers/${third}?force=true`));
	await engine.create(third, { image: name });
	const isRefused = async which => { // workerd shows its Worker what /wait says, and no more of a start than that it failed
		await engine.expect(204, 'POST', `/containers/${which}/start`, '');
		assert.match((await engine.expect(500, 'POST', `/containers/${which}/wait`)).message, /^Maximum number of running container instances exceeded/);
		assert.equal((await engine.expect(200, 'GET', `/containers/${which}/json`)).State.Running, false);
	};
	await isRefused(third);
	await engine.expect(204, 'DELETE', `/containers/${first.id}?force=true`);
	await engine.expect(204, 'POST', `/containers/${third}/start`, '');
	const again = newName();
	await engine.sidecar(t, `${again}-proxy`);
	t.after(() => engine.ask('DELETE', `/containers/${again}?force=true`));
	await engine.create(again, { image: name });
	await isRefused(again);
	await engine.expect(204, 'POST', `/containers/${third}/kill?signal=SIGTERM`);
	await engine.wait(third);
	await engine.expect(204, 'POST', `/containers/${again}/start`, '');
	const other = newName().replace('app-Sandbox', 'other-Sandbox');
	await engine.sidecar(t, `${other}-proxy`);
	t.after(() => engine.ask('DELETE', `/containers/${other}?force=true`));
	await engine.create(other, { image: name });
	await engine.expect(204, 'POST', `/containers/${other}/start`, '');
	assert.equal((await engine.expect(200, 'GET', `/containers/${other}/json`)).State.Running, true);
});

function docker(words, cwd) {
	const child = spawn(path.join(BUILD, 'silt-docker'), words, { cwd, env: { PATH: process.env.PATH, DOCKER_HOST: `unix://${engine.socket}`, SILT_CONFIG: '' } });
	const err = [];
	child.stdout.resume();
	child.stderr.on('data', piece => err.push(piece));
	child.stdin.end('FROM base\n');
	return within(60_000, words.join(' '), new Promise(resolve => child.on('close', code => resolve({ code, err: Buffer.concat(err).toString() }))));
}

test('silt-docker build passes on what wrangler\'s file in its directory says about the class', async t => {
	const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-size-'));
	t.after(() => fs.rmSync(directory, { recursive: true, force: true }));
	const size = async (tag, config, file = 'wrangler.jsonc', ...words) => {
		fs.rmSync(path.join(directory, 'wrangler.json'), { force: true });
		fs.writeFileSync(path.join(directory, file), config);
		const done = await docker(['build', '--load', '-t', tag, ...words, '-f', '-', directory], directory);
		assert.equal(done.code, 0, done.err);
		const { Config } = await engine.expect(200, 'GET', `/images/${encodeURIComponent(tag)}/json`);
		await engine.ask('DELETE', `/images/${encodeURIComponent(tag)}`);
		return [Config.Labels['silt.type'], Config.Labels['silt.max_instances']];
	};
	const two = `{ // containers
		"containers": [ /* "instance_type": "x" */
			{ "class_name": "Other", "instance_type": "lite", "max_instances": 9, },
			{ "class_name": "Sandbox", "image": "./Dockerfile", "instance_type": "standard-2", "max_instances": 4, "note": "// \\" ,}" },
		],
	}`;
	assert.deepEqual(await size('cloudflare-dev/sandbox:a1', two), ['standard-2', '4']);
	assert.deepEqual(await size('mine:1', two), [undefined, undefined], 'which of them is not said');
	assert.deepEqual(await size('cloudflare-dev/sandbox:a2', '{"containers":[{"class_name":"Sandbox","instance_type":"dev"}]}', 'wrangler.json'), ['lite', undefined]);
	assert.deepEqual(await size('mine:2', '{"containers":[{"class_name":"Sandbox","instance_type":{"vcpu":1,"memory_mib":5000,"disk_mb":2000}}]}'), ['standard-2', undefined]);
	assert.deepEqual(await size('mine:3', '{"containers":[{"class_name":"Sandbox","instance_type":"lite"}]}', 'wrangler.jsonc', '--label', 'silt.type=basic'), ['basic', undefined]);
	assert.deepEqual(await size('mine:4', '{ nonsense', 'wrangler.jsonc'), [undefined, undefined]);
});
