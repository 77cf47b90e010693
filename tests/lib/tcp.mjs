// SPDX-License-Identifier: Apache-2.0
// What the kernel holds for the TCP connections of one sandbox, from the list of sockets of its network namespace: what other programs
// of the machine do meanwhile does not count.

import { execFile } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';

const MIB = 2 ** 20;
const PAUSE_MS = 20;
const run = promisify(execFile);

/** The bytes of one list of `ss -tanOHem`. A connection that was reset while it waited to be accepted is in no list, only in its listener's count: it
 * holds as much as others that wait there. */
export function tcpBytes(list) {
	const listeners = new Map(); // port: how many wait, how many of them are listed, the most that one of these holds
	const connections = [];
	let sum = 0;
	for (const line of list.split('\n').filter(Boolean)) {
		const [state, waiting, , local] = line.split(/\s+/);
		const [, received, ahead, sent] = /skmem:\(r(\d+),.*?,f(\d+),w(\d+)/.exec(line) ?? [0, 0, 0, 0];
		const port = local.slice(local.lastIndexOf(':') + 1);
		sum += Number(received) + Number(ahead) + Number(sent);
		if (state === 'LISTEN')
			listeners.set(port, { waiting: Number(waiting) + (listeners.get(port)?.waiting ?? 0), listed: 0, most: 0 });
		else if (/ ino:0 /.test(line) && /^(ESTAB|CLOSE-WAIT)$/.test(state))
			connections.push({ port, received: Number(received) });
	}
	for (const { port, received } of connections) {
		const at = listeners.get(port);
		if (at) {
			at.listed++;
			at.most = Math.max(at.most, received);
		}
	}
	return [...listeners.values()].reduce((all, at) => all + Math.max(0, at.waiting - at.listed) * at.most, sum);
}

/** pid: of a process in the sandbox that outlives `command`, a promise. When (ms) how much (MiB) was held, until the promise is kept. */
export async function watchTcp(pid, command) {
	const samples = [];
	let over = false;
	const ended = command.finally(() => over = true);
	while (!over) {
		const { stdout } = await run('nsenter', ['--target', String(pid), '--net', 'ss', '-tanOHem'], { maxBuffer: 64 * MIB });
		samples.push({ at: performance.now(), mib: tcpBytes(stdout) / MIB });
		await pause(PAUSE_MS);
	}
	return { samples, answer: await ended };
}

/** The most that was held for as long as windowMs: what is taken back at once does not count. */
export function heldMiB(samples, windowMs) {
	let most = 0;
	for (let from = 0, to = 0; to < samples.length; to++) {
		while (samples[to].at - samples[from].at > windowMs)
			from++;
		if (from > 0)
			most = Math.max(most, Math.min(...samples.slice(from, to + 1).map(s => s.mib)));
	}
	return most;
}
