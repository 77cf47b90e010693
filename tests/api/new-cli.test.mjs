// SPDX-License-Identifier: Apache-2.0
// silt new: a directory with an app. It needs no daemon; tests/client runs what it makes.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { silt as run } from '../lib/silt.mjs';

const EXAMPLES = path.join(import.meta.dirname, '../../examples');
const silt = (args, options) => run({ address: '127.0.0.1:9', token: 'none' }, args, options);

function makeDirectory(t) {
	const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-new-'));
	t.after(() => fs.rmSync(directory, { recursive: true }));
	return directory;
}

test('a new app is an example with a name of its own', async t => {
	const cwd = makeDirectory(t);
	const made = await silt(['new', 'My_First App!'], { cwd });
	assert.equal(made.code, 0, made.stderr);
	assert.match(made.stdout, /npm install\n.*wrangler-env.*\n.*npm run dev/);
	const read = name => fs.readFileSync(path.join(cwd, 'My_First App!', name), 'utf8');
	for (const name of ['package.json', 'wrangler.jsonc'])
		assert.equal(JSON.parse(read(name)).name, 'my-first-app', name);
	assert.match(JSON.parse(read('package.json')).dependencies['@cloudflare/sandbox'], /^\^0\.12/);
	for (const name of ['Dockerfile', 'src/index.ts', 'tsconfig.json'])
		assert.equal(read(name), fs.readFileSync(path.join(EXAMPLES, 'minimal', name), 'utf8'), name);
	assert.match(read('.gitignore'), /^\.dev\.vars$/m);
	assert.doesNotMatch(read('README.md'), /\.\.\//);
});

test('every example is a template, with all of its files', async t => {
	const cwd = makeDirectory(t);
	const names = fs.readdirSync(EXAMPLES).filter(name => name !== 'README.md');
	for (const name of names) {
		const made = await silt(['new', name, '--template', name], { cwd });
		assert.equal(made.code, 0, made.stderr);
		const list = directory => fs.readdirSync(directory, { recursive: true }).sort();
		assert.deepEqual(list(path.join(cwd, name)).filter(file => file !== '.gitignore'), list(path.join(EXAMPLES, name)));
		assert.match(JSON.parse(fs.readFileSync(path.join(cwd, name, 'package.json'), 'utf8')).dependencies['@cloudflare/sandbox'], /^\^0\.12/, name);
	}
	const unknown = await silt(['new', 'other', '--template', 'nonsense'], { cwd });
	assert.equal(unknown.code, 125);
	assert.match(unknown.stderr, /no template nonsense; there are .*minimal/);
	for (const name of names)
		assert.ok(unknown.stderr.includes(name), name);
	assert.ok(!fs.existsSync(path.join(cwd, 'other')));
});

test('nothing that is there is touched', async t => {
	const cwd = makeDirectory(t);
	fs.writeFileSync(path.join(cwd, 'package.json'), 'mine');
	assert.match((await silt(['new', '.'], { cwd })).stderr, /is not empty/);
	assert.deepEqual(fs.readdirSync(cwd), ['package.json']);
	assert.match((await silt(['new', 'package.json'], { cwd })).stderr, /open the directory package\.json/);
	assert.match((await silt(['new'], { cwd })).stderr, /usage/);
	fs.mkdirSync(path.join(cwd, 'empty'));
	assert.equal((await silt(['new', 'empty'], { cwd })).code, 0);
});
