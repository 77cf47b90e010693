// SPDX-License-Identifier: Apache-2.0
// B9: a crash inside must not make the kernel run a program outside (a core_pattern that begins with a pipe), nor leave memory in a file.
// A limit of 0 would not do: the kernel runs the program all the same. A limit of exactly 1 byte is what it takes for "no".
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SESSIONLESS } from '../lib/box.mjs';
import { startDaemon } from '../lib/daemon.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const LOOK = `
import ctypes, os, resource
print(resource.getrlimit(resource.RLIMIT_CORE), 'at first')
libc = ctypes.CDLL(None, use_errno=True)
for soft, hard in [(0, 1), (0, 0), (1, 2), (-1, -1), (1 << 30, 1 << 30)]:
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
    except (OSError, ValueError):
        pass
libc.prctl(4, 1, 0, 0, 0)
print(resource.getrlimit(resource.RLIMIT_CORE), 'in the end')
`;

test('B9 nobody inside can have a core file or a helper of the host for a crash', async t => {
	const box = await daemon.box(t);
	for (const sessionId of ['default', SESSIONLESS])
		assert.equal(await box.out(`python3 - <<'END'\n${LOOK}\nEND`, { sessionId }), '(1, 1) at first\n(1, 1) in the end\n', sessionId);
	assert.equal((await box.run("mkdir /tmp/c && cd /tmp/c && ulimit -c unlimited 2>/dev/null; sh -c 'kill -SEGV $$'; ls -A /tmp/c | wc -l")).stdout, '0\n');
	assert.equal(await box.out("grep -h 'core file size' /proc/1/limits | tr -s ' '"), 'Max core file size 1 1 bytes \n', 'nor has silt-init');
});
