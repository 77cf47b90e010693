// SPDX-License-Identifier: Apache-2.0
// silt-super is killed, and with it the instance, or the machine is rebooted: the next start has every sandbox that was acknowledged, with its files.
import assert from 'node:assert/strict';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { Box } from '../lib/box.mjs';
import { startDaemon } from '../lib/daemon.mjs';

test('a killed instance has its sandboxes and their files after the next start', async () => {
	const first = await startDaemon();
	let running = first;
	try {
		const box = await first.box(undefined, { id: 'kept', labels: { a: 'b' } });
		await box.out('echo content > /workspace/file; X=1');
		await first.crash();
		running = await startDaemon({ home: first.home });
		const again = new Box(running, 'kept');
		assert.deepEqual((await again.info()).labels, { a: 'b' });
		assert.equal((await again.info()).lastDeath.cause, 'daemon_restart');
		assert.equal(await again.out('cat /workspace/file; echo [$X]'), 'content\n[]\n');
	} finally {
		await running.stop();
	}
});

test('after a reboot every sandbox is stopped, with its files, and leftovers are gone before the first answer', async () => {
	const first = await startDaemon();
	let running = first;
	try {
		const box = await first.box(undefined, { id: 'kept', labels: { a: 'b' } });
		await box.out('echo content > /workspace/file; X=1; sleep 1000.8001 &');
		await first.crash();
		const database = new DatabaseSync(path.join(first.state, 'db/silt.db'));
		assert.equal(database.prepare("UPDATE meta SET value = 'another boot' WHERE name = 'boot_id'").run().changes, 1);
		database.close();
		running = await startDaemon({ home: first.home });
		assert.deepEqual(running.marked('1000.8001'), [], 'it answers: nothing of before runs');
		const again = new Box(running, 'kept');
		const info = await again.info();
		assert.deepEqual([info.state, info.lastDeath.cause, info.labels], ['stopped', 'host_reboot', { a: 'b' }]);
		assert.equal(await again.out('cat /workspace/file; echo [$X]'), 'content\n[]\n');
	} finally {
		await running.stop();
	}
});
