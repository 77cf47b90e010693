// SPDX-License-Identifier: Apache-2.0
// A siltd that has been taken over wants to be root. silt-priv is driven directly (tests/engine/takeover.c); root vouches for an image beside it, as script/up does.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { BUILD } from '../lib/daemon.mjs';
import { outcomes } from '../lib/escape.mjs';

export const without = ['staging_group', 'trust_unpack'];

function takeOver(build, env) {
	const end = spawnSync(path.join(build, 'tests/unit/engine/takeover'), [build], { env, encoding: 'utf8', timeout: 120_000 });
	assert.equal(end.status, 0, end.stdout + end.stderr);
	return outcomes(end.stdout);
}

test('G20 a siltd that changes a tree after root has vouched for it: repelled', () => {
	const { PATH } = process.env;
	assert.deepEqual(takeOver(BUILD, { PATH }), { imported: 'yes', published: 'yes', vouched: 'yes', changed: 'no', trusted: 'yes', succeeded: 'no' });
});

test('G20 a siltd that changes a tree after root has vouched for it: succeeds without staging_group and trust_unpack', () => {
	const build = process.env.SILT_UNSAFE_BUILD;
	assert.ok(build, 'SILT_UNSAFE_BUILD names a build made with -Dunsafe_tests=true');
	const { PATH } = process.env;
	assert.deepEqual(takeOver(build, { PATH, SILT_WITHOUT: without.join() }), { imported: 'yes', published: 'yes', vouched: 'yes', changed: 'yes', trusted: 'yes', succeeded: 'yes' });
});
