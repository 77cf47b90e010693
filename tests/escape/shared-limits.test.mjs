// SPDX-License-Identifier: Apache-2.0
// What all sandboxes share in the kernel and no memory limit counts: one of them must not take it all.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const SOCKETS = `
import socket
held, keep = 0, []
for i in range(60):
    try:
        l = socket.socket(); l.bind(("127.0.0.1", 0)); l.listen(1)
        a = socket.create_connection(l.getsockname()); b = l.accept()[0]
        for s in (a, b):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 << 20)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
        a.setblocking(False)
        keep += [l, a, b]
        while True:
            held += a.send(bytes(1 << 20))
    except OSError:
        pass
print(held >> 20)
`;

test('buffers of TCP sockets are bounded with the memory of the sandbox', async t => {
	const box = await daemon.box(t, { type: 'lite' });
	const held = Number(await box.out(`python3 - <<'END'\n${SOCKETS}\nEND`, { timeoutMs: 60_000 }));
	assert.ok(held < 80, `${held} MiB lie in the sockets of a sandbox of 256 MiB`);
});

test('one sandbox cannot take the terminals of the others', async t => {
	const [greedy, modest] = [await daemon.box(t), await daemon.box(t)];
	const take = 'python3 -c \'import os,time\nn=0\ntry:\n  while n<500: os.open("/dev/ptmx",os.O_RDWR); n+=1\nexcept OSError: pass\nprint(n,flush=True)\'';
	assert.equal(await greedy.out(take), '64\n');
	assert.equal(await modest.out(take), '64\n');
});
