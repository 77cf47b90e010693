// SPDX-License-Identifier: Apache-2.0
// A warm Python of a sandbox's own is a process of the guest's: what silt-init gives it, and hears from it, must not stop silt-init.
import assert from 'node:assert/strict';
import { built } from '../lib/build.mjs';
import { context, run } from '../lib/code.mjs';
import { bothWays } from '../lib/escape.mjs';
import { until } from '../lib/wait.mjs';

export const without = ['inner_zygote'];

const READY = '/workspace/warm-is-ready';
const ASKED = '/workspace/warm-was-asked';

/** In the place of python3: number 5 is a socket where contexts are to be forked. CLONE_PARENT: the child is silt-init's. */
const PYTHON = `#!/usr/bin/python3 -I
import ctypes, os, signal, socket, stat, struct, sys
try: warm = stat.S_ISSOCK(os.fstat(5).st_mode)
except OSError: warm = False
if not warm: os.execv("/usr/bin/python3", ["python3", *sys.argv[1:]])
control, clone = socket.socket(fileno=5), {"x86_64": 56}.get(os.uname().machine, 220)
os.write(4, bytes([10]))
open("${READY}", "w").close()
while True:
    data, fds, _, _ = socket.recv_fds(control, 1, 8)
    if not data: os._exit(0)
    gate = os.open(f"/proc/self/fd/{fds[5]}", os.O_WRONLY | os.O_NONBLOCK)
    try:
        while True: os.write(gate, bytes(4096))
    except BlockingIOError: open("${ASKED}", "w").close()
    if ctypes.CDLL(None).syscall(clone, 0x8000, 0, 0, 0, 0) == 0:
        os.write(fds[4], struct.pack("i", os.getpid()))
        while True: signal.pause()
`;

bothWays('G25 a warm Python that fills the pipes it is given', {
	without,
	daemon: { warm: true, flags: { 'pool.sandboxes': 0, 'agent.deadline_ms': 10_000 } },
	async attack(_, daemon, t) {
		await built(daemon, { Dockerfile: 'FROM base\nCOPY --chmod=755 python3 /usr/local/bin/python3\n', python3: PYTHON }, { names: ['warm'] });
		const box = await daemon.box(t, { image: 'warm' });
		const agent = await box.init();
		await context(box); // the first is started, and then there is a warm one
		await until('a warm one', async () => (await box.run(`test -e ${READY}`)).exitCode === 0, 60_000);
		const made = await box.api('POST', '/api/contexts', {}, { deadline: 90_000 });
		const said = made.status === 200 && (await run(box, made.body.contextId, '6 * 7')).results[0]?.text;
		const sameAgent = await box.init() === agent;
		const asked = (await box.run(`test -e ${ASKED}`)).exitCode === 0; // a sandbox that was lost keeps its files
		return { succeeded: said !== '42' || !sameAgent, asked, made: made.body, said, sameAgent };
	},
	repelled: evidence => assert.ok(evidence.asked, 'it was asked'),
	broken: evidence => assert.ok(evidence.asked, 'it was asked'),
});
