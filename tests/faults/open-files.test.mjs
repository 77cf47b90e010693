// SPDX-License-Identifier: Apache-2.0
// Too few open files: said once, at the start, with the way out; and where the limit is only low, the instance runs.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { BUILD, startDaemon } from '../lib/daemon.mjs';

/** Root that may not raise its limits, as in many containers. */
const limited = files => ['setpriv', '--bounding-set=-sys_resource', '--inh-caps=-sys_resource', 'prlimit', `--nofile=${files}:${files}`];

test('a start with too few open files ends with one sentence: the limit, the need, the way out', () => {
	const [first, ...rest] = [...limited(512), path.join(BUILD, 'silt-super')];
	const end = spawnSync(first, [...rest, '--config=', '--state=/nonexistent/silt', '--instance=tfew'], { encoding: 'utf8', timeout: 60_000 });
	assert.equal(end.status, 2, end.stderr);
	const lines = (end.stdout + end.stderr).trim().split('\n');
	assert.equal(lines.length, 1, end.stdout + end.stderr);
	assert.match(lines[0], /at most 512 open files, at least \d{4} are needed: raise LimitNOFILE=.* or `ulimit -Hn`/);
});

test('silt doctor says the same', () => {
	const [first, ...rest] = [...limited(512), path.join(BUILD, 'silt'), 'doctor'];
	const { stdout } = spawnSync(first, rest, { encoding: 'utf8', timeout: 60_000 });
	assert.match(stdout, /open files +512 open files here, the daemon does not start with less than \d{4}/);
	assert.match(stdout, /LimitNOFILE=/);
});

test('an instance with few, but enough, open files serves', async t => {
	const daemon = await startDaemon({ through: limited(4096) });
	t.after(() => daemon.stop());
	assert.match(daemon.log(), /super\.files open_files=4096 wanted=/);
	const answer = await daemon.api('POST', '/sandboxes/few/api/execute', { command: 'ulimit -Hn' });
	assert.equal(answer.body.stdout, '4096\n');
});
