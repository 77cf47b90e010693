// SPDX-License-Identifier: Apache-2.0
// RUN --mount: what a command sees, what of it stays in the image (nothing), what the step is remembered by, what is refused.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { built, failed } from '../lib/build.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { namesIn } from '../lib/host.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const sandboxes = async () => (await daemon.api('GET', '/v1/sandboxes?limit=1000')).body.sandboxes.map(s => s.id);

async function nothingLeft() {
	await daemon.api('POST', '/v1/images/prune');
	await until('no sandbox of a build is left', async () => (await sandboxes()).every(id => !id.startsWith('build-')), 30_000);
	await until('no layer is left', () => namesIn(path.join(daemon.state, 'pool', 'l'), daemon.pid).length === 0, 30_000);
}

const said = async (lines, files = {}, options = {}) => (await built(daemon, { Dockerfile: `FROM base\n${lines.join('\n')}\n`, ...files }, options)).output;

const FILES = { 'package.json': '{"name":"app"}', 'src/a.txt': 'a', 'src/run': { data: '#!/bin/sh\necho ran\n', mode: 0o755 }, 'src/link': { type: 'symlink', target: 'a.txt' } };

test('the context, a directory and a file of it are there for one command, and nothing of them stays', async () => {
	const text = await said([
		'WORKDIR /app',
		'RUN ls -A / > /before',
		'RUN --mount=type=bind,target=/in/deep ls -A /in/deep && cat /in/deep/src/link',
		'RUN --mount=type=bind,source=src,target=code --mount=source=package.json,dst=package.json code/run && cat package.json && readlink code/link && cp code/a.txt kept',
		'RUN ls -A / | cmp - /before && ls -A /app; test -e /in || echo gone',
	], FILES);
	assert.equal(text, 'Dockerfile\npackage.json\nsrc\naran\n{"name":"app"}a.txt\nkept\ngone\n');
	await nothingLeft();
});

test('what a mount covers is hidden and comes back as it was, in a sandbox of its own stage and in one from a remembered step', async () => {
	const lines = last => [
		'RUN mkdir -p /app/own && echo mine > /app/own/file && echo one > /app/config && chmod 750 /app/own && chown 7:8 /app/own',
		'RUN --mount=type=bind,source=src,target=/app --mount=type=bind,source=package.json,target=/app/link ls /app && cat /app/link',
		`RUN --mount=type=bind,source=src/a.txt,target=/app/config cat /app/config; echo ${last}`,
		`RUN cat /app/own/file /app/config && stat -c %a:%u:%g /app/own && ls -A /app && echo ${last}`,
	];
	const seen = 'a.txt\nlink\nrun\n{"name":"app"}';
	const left = last => `a${last}\nmine\none\n750:7:8\nconfig\nown\n${last}\n`;
	assert.equal(await said(lines('first'), FILES), seen + left('first'));
	assert.equal(await said(lines('again'), FILES), left('again'), 'the first two are remembered');
	await nothingLeft();
});

test('what is written to a mount is seen by the command and by nobody else', async () => {
	const text = await said([
		'RUN --mount=type=bind,target=/in,rw echo changed > /in/package.json && echo more > /in/more && rm -r /in/src && cat /in/package.json',
		'RUN --mount=type=bind,target=/in cat /in/package.json && ls -A /in /in/src',
		'COPY package.json /p',
		'RUN cat /p; test -e /in || echo gone',
	], FILES);
	assert.equal(text, 'changed\n{"name":"app"}/in:\nDockerfile\npackage.json\nsrc\n\n/in/src:\na.txt\nlink\nrun\n{"name":"app"}gone\n');
	await nothingLeft();
});

test('stages and images can be mounted, with their owners; a stage that only a mount needs is built', async () => {
	const { output } = await built(daemon, { Dockerfile: `FROM base AS make
RUN mkdir -p /out/bin && echo made > /out/bin/tool && chown -R 7:8 /out/bin && chmod 640 /out/bin/tool
FROM base AS unused
RUN exit 7
FROM base
ARG WHERE=/mnt/tools
RUN --mount=type=bind,from=make,source=/out,target=\${WHERE} cat /mnt/tools/bin/tool && stat -c %u:%g:%a /mnt/tools/bin/tool
RUN --mount=type=bind,from=base,source=/etc/passwd,target=/theirs cmp /theirs /etc/passwd && echo same
RUN ls -d /mnt/* /theirs 2>/dev/null; true
` });
	assert.equal(output, 'made\n7:8:640\nsame\n');
	await nothingLeft();
});

test('a tmpfs is empty, and nothing of it stays; what it covers does', async () => {
	assert.equal(await said([
		'RUN mkdir /var/cache/mine && echo kept > /var/cache/mine/x',
		'RUN --mount=type=tmpfs,target=/var/cache/mine --mount=type=tmpfs,target=/scratch,size=1000000 ls -A /var/cache/mine; echo big > /scratch/x; stat -c %a /scratch',
		'RUN cat /var/cache/mine/x; test -e /scratch || echo gone',
	]), '1777\nkept\ngone\n');
	await nothingLeft();
});

test('other users see mounts, too, and cannot write to them', async () => {
	assert.equal(await said([
		'USER nobody',
		'RUN --mount=type=bind,source=src,target=/code cat /code/a.txt; (echo x > /code/a.txt) 2>/dev/null || echo refused',
		'RUN --mount=type=tmpfs,target=/scratch echo y > /scratch/y && cat /scratch/y',
	], FILES), 'arefused\ny\n');
	await nothingLeft();
});

test('a step with a mount is remembered by what is mounted, not by the rest of the context', async () => {
	const lines = ['RUN --mount=type=bind,source=src,target=/code date +%N > /when && cat /code/a.txt'];
	const run = async (files, text = lines) => (await built(daemon, { Dockerfile: `FROM base\n${text.join('\n')}\n`, ...files })).steps.map(s => s.cached)[1];
	assert.equal(await run(FILES), false);
	assert.equal(await run(FILES), true);
	assert.equal(await run({ ...FILES, 'package.json': 'other' }), true);
	assert.equal(await run({ ...FILES, 'src/a.txt': 'b' }), false);
	assert.equal(await run({ ...FILES, 'src/b.txt': '' }), false);
	assert.equal(await run(FILES, [lines[0].replace('/code date', '/kode date').replace('/code/a', '/kode/a')]), false);
	await nothingLeft();
});

test('a command that fails, or takes its mount away itself, leaves nothing of it either', async () => {
	assert.match((await failed(daemon, { Dockerfile: 'FROM base\nRUN --mount=type=bind,target=/in cat /in/missing', ...FILES })).error.message, /missing/);
	assert.equal(await said([
		'RUN mkdir /app && echo mine > /app/x',
		'RUN --mount=type=bind,target=/app --mount=type=bind,source=src,target=/other/src rm -rf /app /other && echo note > /note',
		'RUN cat /app/x /note; test -e /other || echo gone',
	], FILES), 'mine\nnote\ngone\n');
	await nothingLeft();
});

test('mounts for which nobody gives anything have no effect, and the build says so', async () => {
	const { notices, output } = await built(daemon, { Dockerfile: 'FROM base\nRUN --mount=type=cache,target=/root/.npm,sharing=locked --mount=type=secret,id=npmrc,target=/root/.npmrc --mount=type=ssh test -e /root/.npmrc || echo none\n' });
	assert.equal(output, 'none\n');
	assert.deepEqual(notices.map(n => /type=(\w+).*no effect/.exec(n)?.[1]), ['cache', 'secret', 'ssh']);
	await nothingLeft();
});

const WRONG = {
	'a source out of the context': ['source=../../etc,target=/x', /out of the context|no such/],
	'a link that leads out of the context': ['source=out,target=/x', /out of the context/],
	'a source that is not there': ['source=missing,target=/x', /missing/],
	'a pattern, which is only a name here': ['source=*.json,target=/x', /no such/],
	'no target': ['source=src', /target/],
	'the root as its target': ['target=/', /nothing can be mounted on \//],
	'a target that is the kernel\'s': ['target=/proc', /busy|denied|not permitted/i],
	'an image that is not here': ['from=nowhere/image:1,target=/x', /nowhere\/image:1.*not here/],
	'an unknown type': ['type=floppy,target=/x', /line 2.*floppy/],
	'an unknown option': ['type=bind,target=/x,colour=red', /line 2.*colour/],
	'a secret that is required': ['type=secret,id=x,required=true', /required/],
};
for (const [name, [mount, message]] of Object.entries(WRONG))
	test(`a mount with ${name} is refused with a sentence`, async () => {
		const { error } = await failed(daemon, { Dockerfile: `FROM base\nRUN --mount=${mount} true`, ...FILES, out: { type: 'symlink', target: '/etc' } });
		assert.match(error.message, message);
		await nothingLeft();
	});
