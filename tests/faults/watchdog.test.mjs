// SPDX-License-Identifier: Apache-2.0
// siltd's loop stands still: silt-super writes down where, ends siltd after ten seconds and starts it again. Builds for tests have
// signals that make it stand: SIGUSR1 in a read that never ends, SIGUSR2 in a loop.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon({ build: process.env.SILT_UNSAFE_BUILD }); });
after(() => daemon.stop());

const aborts = async () => Number(/^silt_watchdog_aborts_total (\d+)$/m.exec((await daemon.api('GET', '/metrics')).raw.toString())[1]);

for (const [signal, where] of [['SIGUSR1', /siltd\.stands pid=\d+ ms=\d+ state=S wchan=\S*pipe\S* syscall="0 .*" stack=".*pipe/], ['SIGUSR2', /siltd\.stands pid=\d+ ms=\d+ state=R .*syscall="running"/]]) {
	test(`a siltd that stands still (${signal}) is written down, ended and started again; sandboxes live on`, async t => {
		const box = await daemon.box(t);
		await box.out('X=kept; sleep 1000.6001 &');
		const number = await aborts();
		const siltd = daemon.siltd();
		const begin = Date.now();
		process.kill(siltd, signal);
		await until('siltd.stands', () => where.test(daemon.log()));
		await until('another siltd', () => ![undefined, siltd].includes(daemon.programs('siltd')[0]), 60_000);
		assert.ok(Date.now() - begin >= 9_000, 'it had ten seconds');
		await daemon.healthy();
		assert.match(daemon.log(), new RegExp(`siltd\\.abort pid=${siltd} ms=\\d{5} `));
		assert.match(daemon.log(), new RegExp(`program\\.exit program=siltd pid=${siltd} status=-1 signal=6 `));
		assert.equal(await aborts(), number + 1);
		assert.equal(await box.out('echo $X'), 'kept\n');
		assert.equal(daemon.marked('1000.6001').length, 1);
	});
}

test('a siltd that is stopped by its operator is left alone', async () => {
	const siltd = daemon.siltd();
	const lines = daemon.log().split('siltd.stands').length;
	process.kill(siltd, 'SIGSTOP');
	await new Promise(resolve => setTimeout(resolve, 4_000)); // nothing is to happen
	process.kill(siltd, 'SIGCONT');
	await daemon.healthy();
	assert.equal(daemon.siltd(), siltd);
	assert.equal(daemon.log().split('siltd.stands').length, lines);
});
