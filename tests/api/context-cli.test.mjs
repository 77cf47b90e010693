// SPDX-License-Identifier: Apache-2.0
// What a build sends: only what the Dockerfile can use. A server of the test's own sees the bytes; the daemon shows that they are enough.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { silt } from '../lib/silt.mjs';

const FILES = {
	'package.json': '{}', 'package-lock.json': '{}', 'src/index.ts': 'index', 'src/deep/a.ts': 'a', 'docker/start.sh': 'start', 'README.md': 'read',
	'node_modules/large/index.js': 'x', '.hidden': 'h', 'lib/one.tar.txt': 'one',
};

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

function makeDirectory(t, files) {
	const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-context-'));
	t.after(() => fs.rmSync(directory, { recursive: true }));
	for (const [name, text] of Object.entries({ ...FILES, ...files })) {
		fs.mkdirSync(path.dirname(path.join(directory, name)), { recursive: true });
		fs.writeFileSync(path.join(directory, name), text);
	}
	return directory;
}

/** A server that takes a context, `pauseMs` after its first bytes, and refuses to build it. */
async function startTaker(t, pauseMs = 0) {
	const taker = { bytes: Buffer.alloc(0), token: 'x' };
	const server = http.createServer(async (request, response) => {
		await new Promise(resolve => request.once('readable', resolve));
		await new Promise(resolve => setTimeout(resolve, pauseMs)); // a slow network
		const pieces = [];
		for await (const piece of request)
			pieces.push(piece);
		taker.bytes = Buffer.concat(pieces);
		response.writeHead(400, { 'content-type': 'application/json' }).end('{"code":"INVALID","message":"taken"}');
	}).listen(0, '127.0.0.1');
	await new Promise(resolve => server.once('listening', resolve));
	t.after(() => server.close());
	taker.address = `http://127.0.0.1:${server.address().port}`;
	return taker;
}

/** Names of the files in a tar; directories are left out. */
function filesOf(tar) {
	const names = [];
	for (let at = 0; tar[at] !== undefined && tar[at] !== 0;) {
		const field = (from, length) => tar.subarray(at + from, at + from + length).toString().replace(/\0.*$/s, '');
		if (tar[at + 156] !== 0x35)
			names.push(field(0, 100));
		at += 512 + Math.ceil(parseInt(field(124, 12), 8) / 512) * 512;
	}
	return names;
}

async function sent(t, dockerfile, files = {}, prepare) {
	const taker = await startTaker(t);
	const directory = makeDirectory(t, { Dockerfile: dockerfile, ...files });
	prepare?.(directory);
	const result = await silt(taker, ['image', 'build', '-t', 'x', directory]);
	assert.match(result.stderr, /taken/);
	return filesOf(taker.bytes);
}

const ALL = [...Object.keys(FILES), 'Dockerfile'].sort();

test('a Dockerfile that copies nothing is sent alone', async t => {
	assert.deepEqual(await sent(t, 'FROM base\nEXPOSE 8080\nRUN echo hi\n'), ['Dockerfile']);
});

test('what is copied, added or mounted is sent, whatever lies beside it', async t => {
	assert.deepEqual(await sent(t, 'FROM base AS one\nCOPY package*.json ./\nADD ["docker/start.sh", "/"]\nFROM one\nCOPY --from=one / /x\nRUN --mount=type=bind,source=src/deep,target=/s ls /s\n'),
		['Dockerfile', 'docker/start.sh', 'package-lock.json', 'package.json', 'src/deep/a.ts']);
	assert.deepEqual(await sent(t, 'FROM base\nCOPY src lib/* /app/\n', { '.dockerignore': 'src/deep\n' }), ['Dockerfile', 'lib/one.tar.txt', 'src/index.ts']);
});

test('what cannot be decided sends everything', async t => {
	for (const lines of ['COPY . /app', 'ARG FROM_HERE=src\nCOPY $FROM_HERE /app', 'COPY src/../lib /app', 'ONBUILD COPY src /app', 'RUN --mount=target=/src ls', 'FLY away'])
		assert.deepEqual((await sent(t, `FROM base\n${lines}\n`)).sort(), ALL, lines);
	const link = directory => fs.symlinkSync('node_modules/large', path.join(directory, 'link'));
	assert.deepEqual((await sent(t, 'FROM base\nCOPY link /app\n', {}, link)).sort(), [...ALL, 'link'].sort());
	assert.deepEqual(await sent(t, 'FROM base\nCOPY package.json /app\n', {}, link), ['Dockerfile', 'package.json']);
});

test('a Dockerfile from standard input or from elsewhere is sent with what it names', async t => {
	const taker = await startTaker(t);
	const directory = makeDirectory(t, {});
	const result = await silt(taker, ['image', 'build', '-t', 'x', '-f', '-', directory], { input: 'FROM base\nCOPY README.md /\n' });
	assert.match(result.stderr, /taken/);
	assert.deepEqual(filesOf(taker.bytes), ['.silt-dockerfile', 'README.md']);
});

test('a context that takes long says so, and why it is large', async t => {
	const taker = await startTaker(t, 1100);
	const directory = makeDirectory(t, { Dockerfile: 'FROM base\nCOPY . /app\n', large: Buffer.alloc(32 << 20) });
	const plain = await silt(taker, ['image', 'build', '-t', 'x', directory]);
	assert.match(plain.stderr, /sending the whole directory: line 2 of the Dockerfile uses the whole directory; a \.dockerignore/);
	const shown = await silt(taker, ['image', 'build', '-t', 'x', directory], { terminal: true });
	assert.match(shown.stdout, /build context +\d+\.\d MiB .* MiB\/s/);
	assert.doesNotMatch((await silt(taker, ['image', 'build', '-q', '-t', 'x', directory])).stderr, /sending/);
});

test('the daemon builds from what was sent', async t => {
	const directory = makeDirectory(t, {
		Dockerfile: 'FROM base\nCOPY package*.json /app/\nCOPY --parents src/**/*.ts /app/\nADD docker/[s]tart.sh /app/\nCOPY link /app/link\nRUN --mount=type=bind,source=lib,target=/lib-here cat /lib-here/one.tar.txt > /app/one\n',
	});
	fs.symlinkSync('README.md', path.join(directory, 'link'));
	t.after(() => silt(daemon, ['image', 'rm', 'context/app']));
	const build = lines => {
		if (lines)
			fs.writeFileSync(path.join(directory, 'Dockerfile'), lines);
		return silt(daemon, ['image', 'build', '-t', 'context/app', directory]);
	};
	const list = async () => {
		const box = await daemon.box(t, { image: 'context/app' });
		const out = await box.out('cd /app; find . -type f | sort; cat one link 2>/dev/null || true');
		await box.destroy();
		return out;
	};
	const first = await build();
	assert.equal(first.code, 0, first.stderr);
	assert.equal(await list(), './link\n./one\n./package-lock.json\n./package.json\n./src/deep/a.ts\n./src/index.ts\n./start.sh\noneread');
	fs.rmSync(path.join(directory, 'link'));
	const second = await build(fs.readFileSync(path.join(directory, 'Dockerfile'), 'utf8').replace('COPY link /app/link\n', ''));
	assert.equal(second.code, 0, second.stderr);
	assert.equal(await list(), './one\n./package-lock.json\n./package.json\n./src/deep/a.ts\n./src/index.ts\n./start.sh\none');
	const missing = await build('FROM base\nCOPY nothing /app/\n');
	assert.match(missing.stderr, /nothing: no such file or directory/);
});
