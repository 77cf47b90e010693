// SPDX-License-Identifier: Apache-2.0
// The Python library: its own tests against a daemon, its types, its wheel, and the samples of its guide.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';

const root = path.join(import.meta.dirname, '../..');
const library = path.join(root, 'sdk/python');
const PYTHON = '/usr/bin/python3'; // Debian's, with Debian's httpx

let daemon, scratch;
before(async () => {
	daemon = await startDaemon();
	scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-python-'));
});
after(async () => {
	fs.rmSync(scratch, { recursive: true, force: true });
	await daemon?.stop();
});

const python = (args, { cwd = library, env = {} } = {}) => new Promise(resolve => {
	execFile(PYTHON, args, {
		cwd, timeout: 240_000, maxBuffer: 16 << 20,
		env: { PATH: '/usr/bin:/bin', HOME: scratch, PYTHONDONTWRITEBYTECODE: '1', SILT_URL: `http://${daemon.address}`, SILT_TOKEN: daemon.token, ...env },
	}, (error, stdout, stderr) => resolve({ code: error ? error.code ?? 1 : 0, stdout, stderr, all: stdout + stderr }));
});

test('the blocking half is made of the awaited half', async () => {
	const end = await python(['make_sync.py', '--check']);
	assert.equal(end.code, 0, end.all);
});

test('mypy --strict finds nothing', async () => {
	const end = await python(['-m', 'mypy', '--cache-dir', path.join(scratch, 'mypy'), 'silt_sandbox', 'tests']);
	assert.equal(end.code, 0, end.all);
});

test('its own tests pass', async () => {
	const end = await python(['-m', 'unittest', '-v', 'tests.test_sandbox']);
	assert.equal(end.code, 0, end.all.slice(end.all.indexOf('\n====')));
	assert.match(end.stderr, /^Ran \d\d tests/m);
	assert.doesNotMatch(end.stderr, /skipped/);
});

test('a wheel is built and installed without the network', async () => {
	const source = path.join(scratch, 'source'), target = path.join(scratch, 'empty');
	fs.cpSync(library, source, { recursive: true });
	const offline = { cwd: source, env: { http_proxy: 'http://127.0.0.1:1', https_proxy: 'http://127.0.0.1:1' } };
	const built = await python(['-m', 'build', '--no-isolation', '-w'], offline);
	assert.equal(built.code, 0, built.all);
	const [wheel] = fs.readdirSync(path.join(source, 'dist'));
	assert.match(wheel, /^silt_sandbox-\d+\.\d+\.\d+-py3-none-any\.whl$/);
	const installed = await python(['-m', 'pip', 'install', '--no-index', '--no-deps', '--target', target, path.join('dist', wheel)], offline);
	assert.equal(installed.code, 0, installed.all);
	const used = await python(['-c', 'import silt_sandbox as s, os; print(s.__file__); print(s.Sandbox.create().exec("echo installed").stdout, end="")'], { cwd: scratch, env: { PYTHONPATH: target } });
	assert.equal(used.stdout, `${target}/silt_sandbox/__init__.py\ninstalled\n`, used.stderr);
	assert.ok(fs.existsSync(path.join(target, 'silt_sandbox/py.typed')));
});

test('every sample of the guide runs', async () => {
	const samples = [...fs.readFileSync(path.join(root, 'docs/python.md'), 'utf8').matchAll(/^```python\n([^]*?)^```/gm)].map(match => match[1]);
	assert.ok(samples.length >= 8, `${samples.length} samples`);
	const end = await python(['-c', samples.join('\n')]);
	assert.equal(end.code, 0, end.all);
	assert.match(end.stdout, /hello\nLinux/);
});
