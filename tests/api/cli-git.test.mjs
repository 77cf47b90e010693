// SPDX-License-Identifier: Apache-2.0
// silt git-clone: a repository into a sandbox, against a daemon of the test's own.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { silt as runSilt } from '../lib/silt.mjs';

let daemon;
before(async () => { daemon = await startDaemon({ flags: { 'git.local_remotes': 'on' } }); });
after(() => daemon?.stop());

const silt = (args, options) => runSilt(daemon, args, options);

/** A sandbox with a repository of two commits and two branches in /srv/project.git. */
async function boxWithRepository(t) {
	const box = await daemon.box(t);
	await box.out(`git init -q -b main /tmp/p && cd /tmp/p && git config user.email a@b && git config user.name n && echo 1 > a && git add a && git commit -qm one
		echo 2 > a && git commit -qam two && git checkout -qb other && echo 3 > b && git add b && git commit -qm three && git checkout -q main && git clone -q --bare /tmp/p /srv/project.git`);
	return box;
}

test('git-clone clones into the default directory and prints it', async t => {
	const box = await boxWithRepository(t);
	const end = await silt(['git-clone', box.id, 'file:///srv/project.git']);
	assert.deepEqual([end.stdout, end.stderr, end.code], ['/workspace/project\n', '', 0]);
	assert.equal(await box.out('cat /workspace/project/a; git -C /workspace/project log --format=%s'), '2\ntwo\none\n');
});

test('git-clone takes a directory, a branch and a depth', async t => {
	const box = await boxWithRepository(t);
	const end = await silt(['git-clone', box.id, 'file:///srv/project.git', '/opt/x', '--branch', 'other', '--depth', '1', '--json']);
	assert.equal(end.code, 0);
	const told = JSON.parse(end.stdout);
	assert.deepEqual([told.branch, told.targetDir], ['other', '/opt/x']);
	assert.equal(await box.out('cat /opt/x/b; git -C /opt/x log --format=%s'), '3\nthree\n');
});

test('git-clone shows its progress on a terminal', async t => {
	const box = await boxWithRepository(t);
	const end = await silt(['git-clone', box.id, 'file:///srv/project.git', '/opt/y'], { terminal: true });
	assert.equal(end.code, 0);
	assert.match(end.stdout, /\r.*objects: +\d+%/);
	assert.match(end.stdout, /\/opt\/y\r\n$/);
});

test('git-clone reads a URL from standard input and shows no password of it', async t => {
	const box = await daemon.box(t);
	const end = await silt(['git-clone', box.id, '-'], { input: 'http://user:sesame@127.0.0.1:1/none.git\n' });
	assert.equal(end.code, 125);
	assert.match(end.stderr, /127\.0\.0\.1/);
	assert.doesNotMatch(end.stderr, /sesame/);
});

test('git-clone says what went wrong', async t => {
	const box = await boxWithRepository(t);
	const fails = async (words, pattern) => {
		const end = await silt(['git-clone', box.id, ...words]);
		assert.equal(end.code, 125);
		assert.match(end.stderr, pattern);
	};
	await fails(['file:///srv/nothing.git'], /nothing/);
	await fails(['file:///srv/project.git', '--branch', 'nope'], /nope/);
	await fails(['ext::sh -c true'], /repoUrl/);
	await fails(['file:///srv/project.git', '--depth', '0'], /--depth/);
	await fails([], /usage/);
});
