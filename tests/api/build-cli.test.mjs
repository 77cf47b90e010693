// SPDX-License-Identifier: Apache-2.0
// silt image build, tag, commit and prune, as one types them.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { silt as run } from '../lib/silt.mjs';

let daemon;
let directory;
before(async () => {
	daemon = await startDaemon();
	directory = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-context-'));
	const files = {
		Dockerfile: 'FROM base\nARG WHO=nobody\nCOPY . /ctx\nRUN echo hello $WHO > /greeting && echo built\nFROM base AS other\nRUN echo other > /other\n',
		'.dockerignore': '# nothing secret\nsecret*\nnode_modules\n!secret-not\n**/*.log\n',
		'app.js': 'app', 'secret.txt': 's', 'secret-not': 'n', 'node_modules/x': 'x', 'deep/a.log': 'l', 'deep/b': 'b',
	};
	for (const [name, text] of Object.entries(files)) {
		fs.mkdirSync(path.dirname(path.join(directory, name)), { recursive: true });
		fs.writeFileSync(path.join(directory, name), text);
	}
});
after(async () => {
	fs.rmSync(directory, { recursive: true, force: true });
	await daemon?.stop();
});

const silt = (args, options) => run(daemon, args, options);

test('an image is built from a directory, without what .dockerignore names', async t => {
	const first = await silt(['image', 'build', '-t', 'cli/app:1', '-t', 'cli/app', '--build-arg', 'WHO=you', '--target', '0', directory]);
	assert.equal(first.code, 0, first.stderr);
	assert.match(first.stdout, /^sha256:[0-9a-f]{64}\n$/);
	assert.match(first.stderr, /\[1\/4\] FROM base[\s\S]*\[4\/4\] RUN echo hello[\s\S]*built/);
	const again = await silt(['image', 'build', '-t', 'cli/app:1', '--build-arg', 'WHO=you', '--target', '0', directory]);
	assert.match(again.stderr, /RUN echo hello.*cached/);
	assert.equal(again.stdout, first.stdout);
	const box = await daemon.box(t, { image: 'cli/app' });
	assert.equal(await box.out('cat /greeting; cd /ctx; find . -type f | sort'), 'hello you\n./.dockerignore\n./Dockerfile\n./app.js\n./deep/b\n./secret-not\n');
	const committed = await silt(['image', 'commit', box.id, 'cli/committed']);
	assert.equal(committed.code, 0, committed.stderr);
	await box.destroy();
	assert.equal((await silt(['image', 'tag', 'cli/committed', 'cli/tagged:x'])).code, 0);
	assert.match((await silt(['image', 'ls'])).stdout, /^cli\/tagged:x\b/m);
	for (const name of ['cli/app:1', 'cli/app', 'cli/committed', 'cli/tagged:x'])
		assert.equal((await silt(['image', 'rm', name])).code, 0, name);
	assert.match((await silt(['image', 'prune'])).stdout, /^\d+ steps forgotten\n$/);
});

test('a build does without a network and without what was done before, when that is asked for', async t => {
	const plain = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-plain-'));
	t.after(() => fs.rmSync(plain, { recursive: true }));
	t.after(() => silt(['image', 'rm', 'cli/plain']));
	fs.writeFileSync(path.join(plain, 'Dockerfile'), 'FROM base\nRUN ls /sys/class/net > /links\n');
	const build = (...words) => silt(['image', 'build', '-t', 'cli/plain', ...words, plain]);
	const first = await build('--network', 'none');
	assert.equal(first.code, 0, first.stderr);
	assert.match((await build('--network', 'none')).stderr, /RUN ls.*cached/);
	assert.doesNotMatch((await build('--network', 'none', '--no-cache')).stderr, /cached/);
	const box = await daemon.box(t, { image: 'cli/plain' });
	assert.equal(await box.out('cat /links'), 'lo\n');
	const unknown = await build('--network', 'some');
	assert.match(unknown.stderr, /public or none/);
});

test('a file that is too large for a context is refused, and nothing is taken for something else', async t => {
	const large = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-large-'));
	t.after(() => fs.rmSync(large, { recursive: true }));
	fs.writeFileSync(path.join(large, 'Dockerfile'), 'FROM base\nCOPY . /ctx\n');
	fs.writeFileSync(path.join(large, 'hole'), '');
	fs.truncateSync(path.join(large, 'hole'), 2 ** 33);
	const result = await silt(['image', 'build', '-t', 'cli/large', large]);
	assert.notEqual(result.code, 0);
	assert.match(result.stderr, /hole has 8 GiB or more/);
});

test('a Dockerfile from elsewhere, or from standard input, is not part of the image', async t => {
	const elsewhere = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'silt-dockerfile-')), 'My.Dockerfile');
	t.after(() => fs.rmSync(path.dirname(elsewhere), { recursive: true }));
	fs.writeFileSync(elsewhere, 'FROM base\nCOPY . /ctx\n');
	const result = await silt(['image', 'build', '-t', 'cli/elsewhere', '-f', elsewhere, directory]);
	assert.equal(result.code, 0, result.stderr);
	const box = await daemon.box(t, { image: 'cli/elsewhere' });
	assert.equal(await box.out('ls -A /ctx'), '.dockerignore\nDockerfile\napp.js\ndeep\nsecret-not\n');
	await box.destroy();
	await silt(['image', 'rm', 'cli/elsewhere']);
	await silt(['image', 'prune']);
});

test('a build that fails says why and has a status of its own', async () => {
	fs.writeFileSync(path.join(directory, 'Bad'), 'FROM base\nRUN echo oops >&2; exit 3\n');
	const result = await silt(['image', 'build', '-t', 'cli/bad', '-f', path.join(directory, 'Bad'), directory]);
	assert.notEqual(result.code, 0);
	assert.match(result.stderr, /oops[\s\S]*code 3/);
	assert.notEqual((await silt(['image', 'build', '-t', 'cli/none', '/does/not/exist'])).code, 0);
	fs.rmSync(path.join(directory, 'Bad'));
});
