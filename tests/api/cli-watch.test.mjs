// SPDX-License-Identifier: Apache-2.0
// silt watch: what happens to files, a line for each event, against a daemon of the test's own.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { silt as runSilt } from '../lib/silt.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const silt = (args, options) => runSilt(daemon, args, options);

/** Watches, does the deed when the watch stands, ends it with Ctrl-C once `last` was seen. */
async function watching(args, deed, last) {
	let begun = false;
	return silt(['watch', ...args], {
		onError: (text, child) => {
			if (begun || !/watching/.test(text))
				return;
			begun = true;
			deed().catch(() => child.kill('SIGKILL'));
		},
		onOutput: (text, child) => { if (last.test(text)) child.kill('SIGINT'); },
	});
}

test('watch prints time, type and path of each event', async t => {
	const box = await daemon.box(t);
	await box.run('mkdir -p /workspace/src');
	const end = await watching([box.id, '/workspace/src'], () => box.run('cd /workspace/src; mkdir d; echo x > a; mv a b; rm b'), /delete +\/workspace\/src\/b$/m);
	assert.equal(end.code, 130);
	const rows = end.stdout.trim().split('\n').map(line => /^\d\d:\d\d:\d\d\.\d{3} {2}(\S+) +(\S+)$/.exec(line)?.slice(1).join(' '));
	for (const row of ['create /workspace/src/d/', 'create /workspace/src/a', 'modify /workspace/src/a', 'move_from /workspace/src/a', 'move_to /workspace/src/b', 'delete /workspace/src/b'])
		assert.ok(rows.includes(row), `${row} in\n${end.stdout}`);
});

test('watch keeps to the patterns', async t => {
	const box = await daemon.box(t);
	await box.run('mkdir -p /workspace/src');
	const write = () => box.run('cd /workspace/src; echo 1 > a.txt; echo 2 > b.js; echo 3 > last.txt; echo 4 > last.js');
	const only = await watching([box.id, 'src', '--include', '*.js'], write, /last\.js/);
	assert.match(only.stdout, /b\.js/);
	assert.doesNotMatch(only.stdout, /txt/);
	const others = await watching([box.id, 'src', '--exclude', '*.js'], write, /last\.txt/);
	assert.match(others.stdout, /a\.txt/);
	assert.doesNotMatch(others.stdout, /\.js/);
});

test('watch prints events as JSON, one a line', async t => {
	const box = await daemon.box(t);
	await box.run('mkdir -p /workspace/src');
	let touched;
	const end = await silt(['watch', box.id, 'src', '--json'], {
		onOutput: (text, child) => {
			touched ??= box.run('touch /workspace/src/a');
			if (text.includes('"create"'))
				child.kill('SIGINT');
		},
	});
	await touched;
	const events = end.stdout.trim().split('\n').map(line => JSON.parse(line));
	assert.equal(events[0].type, 'watching');
	assert.deepEqual([events[1].eventType, events[1].path], ['create', '/workspace/src/a']);
});

test('watch says that a path is not there, and when a watched one goes', async t => {
	const box = await daemon.box(t);
	await box.run('mkdir -p /workspace/src');
	const end = await silt(['watch', box.id, '/workspace/nope']);
	assert.equal(end.code, 125);
	assert.match(end.stderr, /nope/);
	const gone = await watching([box.id, 'src'], () => box.run('rm -r /workspace/src'), /\0/);
	assert.equal(gone.code, 125);
	assert.match(gone.stderr, /watch of src ended/);
	assert.match((await silt(['watch', box.id])).stderr, /usage/);
	assert.match((await silt(['watch', box.id, '/tmp', '--event', 'rename'])).stderr, /--event rename: must be create,/);
});
