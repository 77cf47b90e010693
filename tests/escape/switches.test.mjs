// SPDX-License-Identifier: Apache-2.0
// The switches that take protections away exist in builds for tests only.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { BUILD } from '../lib/daemon.mjs';

const PROGRAMS = ['silt-super', 'silt-priv', 'siltd', 'silt-init', 'silt-fetch', 'silt-proxy', 'silt-trust', 'silt'];

test('no program of an ordinary build knows SILT_WITHOUT', () => {
	for (const program of PROGRAMS)
		assert.ok(!fs.readFileSync(path.join(BUILD, program)).includes('SILT_WITHOUT'), program);
});

test('a build for tests refuses a protection it does not know', () => {
	assert.ok(process.env.SILT_UNSAFE_BUILD, 'SILT_UNSAFE_BUILD names a build made with -Dunsafe_tests=true');
	const program = path.join(process.env.SILT_UNSAFE_BUILD, 'silt-super');
	const end = spawnSync(program, ['--state=/nonexistent/silt', '--instance=twout'], { env: { SILT_WITHOUT: 'no_such_protection' }, timeout: 60_000, encoding: 'utf8' });
	assert.ok(end.status !== 0 && end.status !== null, 'it ends with an error');
	assert.match(end.stderr + end.stdout, /no_such_protection/);
});
