// SPDX-License-Identifier: Apache-2.0
// B11: processes of the host and of neighbours.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { bothWays } from '../lib/escape.mjs';

export const without = ['pidns'];

const LOOK = `for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; tr '\\0' '\\n' < $p/environ; ls -l $p/root $p/cwd $p/exe; cat $p/comm; done 2>/dev/null; true`;

export async function attack(box, daemon, t) {
	const onHost = spawn('/bin/sleep', ['1000.8811'], { stdio: 'ignore', env: { HOST_SECRET: 'of-the-host' } });
	t.after(() => onHost.kill('SIGKILL'));
	const neighbour = await daemon.box(t, {});
	await neighbour.out('NEIGHBOUR_SECRET=of-the-neighbour sleep 1000.8822 &');
	const seen = await box.out(LOOK);
	const pids = (await box.out('ls -d /proc/[0-9]* 2>/dev/null || :')).trim().split('\n').length;
	return { succeeded: seen.includes('1000.8811'), neighbour: seen.includes('1000.8822'), secrets: /of-the-(host|neighbour)/.test(seen), pids };
}

bothWays('B11 seeing processes of others', {
	context: true,
	without,
	attack,
	async repelled(evidence, box) {
		assert.equal(evidence.neighbour, false);
		assert.equal(evidence.secrets, false);
		assert.ok(evidence.pids < 20, `${evidence.pids} processes are visible`);
		assert.equal((await box.run('ls /proc/1/root/ /proc/1/cwd/ /proc/1/fd/')).stdout.includes('silt-test'), false);
	},
});
