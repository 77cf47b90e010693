// SPDX-License-Identifier: Apache-2.0
// Debian's own docker client against the engine socket: each command works, or fails with a sentence that says why.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { Docker } from '../lib/docker.mjs';
import { Engine, newName } from '../lib/engine.mjs';

let daemon, engine, docker, home;
before(async () => {
	home = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-docker-'));
	daemon = await startDaemon();
	engine = new Engine(daemon);
	docker = new Docker(engine, home);
});
after(async () => {
	await daemon?.stop();
	fs.rmSync(home, { recursive: true, force: true });
});

async function good(...words) {
	const done = await docker.run(words);
	assert.equal(done.code, 0, `docker ${words.join(' ')}: ${done.err}`);
	return done.out;
}
async function bad(sentence, ...words) {
	const done = await docker.run(words);
	assert.notEqual(done.code, 0, `docker ${words.join(' ')}: ${done.out}`);
	assert.match(done.err, sentence, words.join(' '));
	return done.code;
}
const fresh = () => `d-${randomUUID().slice(0, 8)}`;
async function started(t, ...words) {
	const name = fresh();
	t.after(() => docker.run(['rm', '-f', name]));
	await good('run', '-d', '--name', name, ...words);
	return name;
}

test('version, info, images', async () => {
	assert.match(await good('version'), /Server: Silt[^]*API version: +1\.47 \(minimum version 1\.24\)/);
	const info = await docker.run(['info']);
	assert.match(info.out, /Operating System: Silt/);
	assert.doesNotMatch(info.out + info.err, /WARNING/);
	assert.match(await good('images'), /^REPOSITORY +TAG[^]*\nbase +latest/m);
	assert.match(await good('image', 'inspect', '--format', '{{.Os}}', 'base'), /^linux\n$/);
});

test('run: output, errors and the exit code are the program\'s, and --rm leaves nothing', async () => {
	const done = await docker.run(['run', '--rm', '-e', 'A=b', 'base', 'sh', '-c', 'echo out $A; echo err >&2; exit 3']);
	assert.deepEqual(done, { code: 3, out: 'out b\n', err: 'err\n' });
	assert.equal(await good('run', '--rm', 'base', 'echo', 'fine'), 'fine\n');
	assert.equal((await good('run', '--rm', 'base', 'sh', '-c', 'seq 200000')).length, 1288895);
	assert.equal(await good('ps', '-aq'), '');
	assert.equal(await bad(/program '\/nope' not found/, 'run', '--rm', 'base', '/nope'), 127);
	assert.equal(await good('ps', '-aq'), '');
});

test('what a container cannot have is refused with a sentence', async () => {
	await bad(/no terminal and no standard input[^]*exec -it/, 'run', '--rm', '-i', 'base', 'cat');
	await bad(/a path of the machine is not available/, 'run', '--rm', '-v', '/etc:/x', 'base', 'true');
	await bad(/ports of containers are not published/, 'run', '--rm', '-p', '8080:80', 'base', 'true');
	await bad(/Privileged is not available/, 'run', '--rm', '--privileged', 'base', 'true');
	await bad(/nobody\/nothing:1 is not here/, 'pull', 'nobody/nothing:1');
	for (const words of [['top', 'x'], ['pause', 'x'], ['diff', 'x'], ['search', 'x'], ['push', 'base'], ['history', 'base'], ['events']])
		await bad(/Silt serves the part of Docker's API that docs\/engine\.md names/, ...words);
	await bad(/No such container: nobody/, 'exec', 'nobody', 'true');
});

test('a container that runs: ps, inspect, exec, logs, cp, stats, stop, rm', async t => {
	const name = await started(t, 'base', 'sh', '-c', 'echo one; echo two >&2; exec sleep 1000');
	assert.match(await good('ps'), new RegExp(`base +"sh" .* Up .*${name}`));
	assert.equal(await good('inspect', '--format', '{{.State.Status}} {{.Config.Image}}', name), 'running base\n');
	assert.equal(await good('exec', name, 'echo', 'inside'), 'inside\n');
	assert.equal((await docker.run(['exec', '-i', name, 'cat'], { input: 'typed' })).out, 'typed');
	assert.deepEqual(await docker.run(['logs', name]), { code: 0, out: 'one\n', err: 'two\n' });
	const last = await docker.run(['logs', '--tail', '1', '-t', name]);
	assert.match(last.out + last.err, /^\d{4}-\d\d-\d\dT[\d:.]+Z (one|two)\n$/);
	fs.writeFileSync(path.join(home, 'in'), 'there and back');
	await good('cp', path.join(home, 'in'), `${name}:/tmp/file`);
	await good('cp', `${name}:/tmp/file`, path.join(home, 'out'));
	assert.equal(fs.readFileSync(path.join(home, 'out'), 'utf8'), 'there and back');
	await good('exec', name, 'sh', '-c', 'mkdir -p /tmp/d/e; echo x > /tmp/d/e/f');
	await good('cp', `${name}:/tmp/d`, path.join(home, 'd'));
	assert.equal(fs.readFileSync(path.join(home, 'd/e/f'), 'utf8'), 'x\n');
	await bad(/Could not find|No such container:path/, 'cp', `${name}:/tmp/none`, home);
	assert.match(await good('stats', '--no-stream', name), new RegExp(`${name} +[\\d.]+% +[\\d.]+\\w+ / 4GiB`));
	await good('stop', '-t', '1', name);
	assert.match(await good('ps', '-a'), new RegExp(`Exited .*${name}`));
	assert.deepEqual(await docker.run(['logs', name]), { code: 0, out: 'one\n', err: 'two\n' }, 'also after its end');
	assert.equal(await good('rm', name), `${name}\n`);
	assert.equal(await good('ps', '-aq'), '', 'the files of one that no workerd has made go with it');
});

test('tag, pull, rmi, and a build without BuildKit', async t => {
	const tag = `${fresh()}:1`, directory = path.join(home, fresh());
	fs.mkdirSync(directory);
	t.after(() => docker.run(['rmi', tag]));
	await good('tag', 'base', tag);
	assert.match(await good('rmi', tag), new RegExp(`Untagged: ${tag}`));
	assert.match(await good('pull', 'docker.io/cloudflare/sandbox:0.12.1'), /mapped to one of this machine/);
	fs.writeFileSync(path.join(directory, 'Dockerfile'), 'FROM base\nARG WHO=x\nCOPY file /file\nRUN echo built for $WHO\nCMD ["cat", "/file"]\n');
	fs.writeFileSync(path.join(directory, 'file'), 'copied');
	assert.match(await good('build', '-t', tag, '--build-arg', 'WHO=docker', '--label', 'made=here', directory), /Step 4\/5 : RUN echo built for \$WHO\nbuilt for docker\n[^]*Successfully built [0-9a-f]{12}\nSuccessfully tagged/);
	assert.equal(await good('image', 'inspect', '--format', '{{.Config.Labels.made}}', tag), 'here\n');
	assert.equal(await good('run', '--rm', tag), 'copied');
	fs.writeFileSync(path.join(directory, 'Dockerfile'), 'FROM base\nRUN exit 7\n');
	await bad(/ended with code 7/, 'build', directory);
	await good('system', 'df');
	await good('system', 'prune', '-f');
});

test('files that were kept are listed, named by rmi, and removed like a container', async t => {
	const tag = `${fresh()}:1`, name = newName();
	t.after(async () => {
		await docker.run(['rm', '-f', name]);
		await docker.run(['rmi', tag]);
	});
	await good('build', '-q', '-t', tag, (fs.writeFileSync(path.join(home, 'Dockerfile'), 'FROM base\nENV A=kept\n'), home));
	await engine.app(t, { name, image: tag });
	await engine.expect(204, 'POST', `/containers/${name}/kill?signal=SIGTERM`);
	await engine.wait(name);
	await engine.expect(204, 'DELETE', `/containers/${name}?force=true`);
	const [id] = (await good('ps', '-a', '--no-trunc', '--format', '{{.ID}} {{.Names}} {{.Status}}')).split('\n').filter(line => line.includes(`${name} `)).map(line => line.split(' ')[0]);
	assert.match(await good('ps', '-a', '--no-trunc'), /Removed, files kept/);
	assert.equal(await good('ps', '-aq', '--filter', `ancestor=${tag}`), '', 'wrangler removes what this lists when it ends');
	assert.equal(await good('inspect', '--format', '{{.State.Status}}', name), 'exited\n');
	await bad(new RegExp(`used by the kept files of container ${name} \\(${id.slice(0, 12)}\\)`), 'rmi', tag);
	await engine.expect(404, 'DELETE', `/containers/${name}?force=true`);
	await good('rm', id.slice(0, 12));
	assert.doesNotMatch(await good('ps', '-a', '--no-trunc'), new RegExp(`${name}\n`));
	await good('rmi', tag);
});

test('a program that fails at once leaves its last words', async t => {
	const name = fresh();
	t.after(() => docker.run(['rm', '-f', name]));
	await docker.run(['run', '--name', name, 'base', 'sh', '-c', 'echo the database is missing >&2; exit 3']);
	assert.equal(await good('inspect', '--format', '{{.State.ExitCode}} {{.State.Error}}', name), '3 its program ended at once with code 3; its last words: the database is missing\n');
});
