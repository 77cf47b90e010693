// SPDX-License-Identifier: Apache-2.0
// B13: signals to PID 1, to everybody, to the host.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { SESSIONLESS } from '../lib/box.mjs';
import { bothWays, outcomes } from '../lib/escape.mjs';

export const without = ['pidns'];

export async function attack(box, daemon, t) {
	const onHost = spawn('/bin/sleep', ['1000.1301'], { stdio: 'ignore' });
	let ended = false;
	onHost.once('exit', () => { ended = true; });
	t.after(() => onHost.kill('SIGKILL'));
	const program = await box.install('signals');
	const probes = outcomes(await box.out(`${program} ${onHost.pid} ${daemon.pid}`));
	return { succeeded: probes[`probe-${onHost.pid}`] === 'EPERM', probes, hostAlive: !ended, onHost: onHost.pid };
}

bothWays('B13 signals to others', {
	without,
	attack,
	async repelled(evidence, box, daemon, t) {
		const neighbour = await daemon.box(t);
		await neighbour.out('X=kept; sleep 1000.1302 &');
		const agent = await box.init();
		const siltd = daemon.siltd();
		const shots = await box.exec('/tmp/signals 2>&1', { sessionId: SESSIONLESS });
		assert.ok(shots.status >= 200, 'an answer came');
		assert.equal(await box.init(), agent, 'silt-init is the same process');
		assert.equal(daemon.siltd(), siltd);
		assert.equal(await neighbour.out('echo $X'), 'kept\n');
		assert.equal(daemon.marked('1000.1302').length, 1);
		assert.equal(evidence.hostAlive, true);
		assert.equal(await box.out('echo usable', { sessionId: 'after' }), 'usable\n');
	},
});
