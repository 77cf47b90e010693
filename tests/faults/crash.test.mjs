// SPDX-License-Identifier: Apache-2.0
// silt-super is killed, and with it the instance: the next start has every sandbox that was acknowledged, with its files.
import assert from 'node:assert/strict';
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
