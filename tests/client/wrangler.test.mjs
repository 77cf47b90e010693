// SPDX-License-Identifier: Apache-2.0
// wrangler dev beyond the examples: what `silt new` makes, and an image of a registry, without an account at Cloudflare.
import './lib/fetched.mjs';
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { BUILD, startDaemon } from '../lib/daemon.mjs';
import { Internet, NETWORK } from '../lib/internet.mjs';
import { startWrangler } from './lib/workerd.mjs';

const MINIMAL = path.join(import.meta.dirname, '../../examples/minimal');

let internet, daemon;
before(async () => {
	internet = await Internet.start();
	daemon = await startDaemon(NETWORK);
});
after(async () => {
	await daemon?.stop();
	internet?.stop();
});

/** A directory for this test. */
function makeDirectory(t) {
	const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-project-'));
	t.after(() => fs.rmSync(directory, { recursive: true }));
	return directory;
}

/** The smallest example with an image of a registry in place of its Dockerfile. */
function withImage(t, image) {
	const project = path.join(makeDirectory(t), 'minimal');
	fs.cpSync(MINIMAL, project, { recursive: true });
	fs.rmSync(path.join(project, 'Dockerfile'));
	const file = path.join(project, 'wrangler.jsonc');
	fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace('./Dockerfile', image));
	return project;
}

/** What a shell has set after `eval "$(silt wrangler-env --no-account)"`. */
function withoutAccount() {
	const lines = execFileSync(path.join(BUILD, 'silt'), ['wrangler-env', '--no-account'], { env: { WRANGLER_DOCKER_HOST: `unix://${daemon.engine}`, SILT_CONFIG: '' }, encoding: 'utf8' });
	return Object.fromEntries([...lines.matchAll(/^export (\w+)='(.*)'$/gm)].map(([, name, value]) => [name, value]));
}

test('what silt new makes runs at once', async t => {
	const project = path.join(makeDirectory(t), 'my-app');
	execFileSync(path.join(BUILD, 'silt'), ['new', project]);
	const server = await startWrangler(t, daemon, project);
	assert.deepEqual(await (await fetch(`${server.url}/file`)).json(), { content: 'Hello from a file\n' });
});

for (const [wrangler, date] of [['wrangler'], ['wrangler-older', '2026-06-01']])
	test(`the image may be a name of a registry that Silt maps: ${wrangler}`, async t => {
		const server = await startWrangler(t, daemon, withImage(t, 'docker.io/cloudflare/sandbox:0.12.10'), {}, { wrangler, date, env: withoutAccount() });
		assert.deepEqual(await (await fetch(`${server.url}/run`)).json(), { stdout: '2 + 2 = 4\n', stderr: '', exitCode: 0, success: true });
	});
