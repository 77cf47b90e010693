// SPDX-License-Identifier: Apache-2.0
// A14: filling every file system that a guest can write to ends in its own limit.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SESSIONLESS } from '../lib/box.mjs';
import { startDaemon } from '../lib/daemon.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const LIMITS = { diskMiB: 256, memoryMiB: 128 };
const WRITABLE = "awk '$2 !~ \"^/(proc|sys)\" && $4 ~ /(^|,)rw(,|$)/ && $3 !~ /^(proc|sysfs|devpts|cgroup.*|mqueue)$/ { print $2 }' /proc/mounts | sort -u";

test('A14 whatever a guest fills, neighbour and server go on', async t => {
	const neighbour = await daemon.box(t, {});
	const places = (await neighbour.out(WRITABLE)).split('\n').filter(Boolean);
	assert.ok(places.includes('/') && places.includes('/dev/shm'), places.join(' '));
	for (const place of places) {
		const greedy = await daemon.box(t, { limits: LIMITS });
		const { body } = await greedy.exec(`head -c 1G /dev/zero > ${place}/fill`, { sessionId: SESSIONLESS, timeoutMs: 60_000 });
		assert.notEqual(body.exitCode, 0, `${place} is full before a gigabyte`);
		assert.equal(body.death, undefined, `${place}: what lies in a tmpfs is memory, and its size leaves some`);
		assert.equal(await greedy.out(`stat -c %s ${place}/fill | awk '{ print $1 <= ${LIMITS.diskMiB << 20} }'`, { sessionId: SESSIONLESS }), '1\n', place);
		assert.equal(await greedy.out(`rm ${place}/fill && echo back > ${place}/after && cat ${place}/after`, { sessionId: SESSIONLESS }), 'back\n', `there is room again in ${place}`);
		assert.equal(await neighbour.out('echo still > /workspace/x && cat /workspace/x'), 'still\n', place);
	}
});

test('A14 names without content are counted, too', async t => {
	const [greedy, neighbour] = [await daemon.box(t, { limits: { diskMiB: 64 } }), await daemon.box(t, {})];
	const made = await greedy.out('mkdir -p /workspace/names && cd /workspace/names && python3 -c \'\nimport os\nn = 0\ntry:\n  for d in range(100):\n    os.mkdir(str(d))\n    for i in range(2000):\n      os.symlink("x" * 4000, "%d/%d" % (d, i)); n += 1\nexcept OSError: pass\nprint(n)\'', { timeoutMs: 120_000 });
	assert.ok(Number(made) < 200_000 - 1, `${made} links of 4,000 bytes in 64 MiB`);
	assert.equal(await neighbour.out('echo still > /workspace/x && cat /workspace/x'), 'still\n');
	assert.equal(await greedy.out('rm -rf /workspace/names && echo x > /workspace/after && cat /workspace/after', { timeoutMs: 120_000 }), 'x\n');
});
