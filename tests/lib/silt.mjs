// SPDX-License-Identifier: Apache-2.0
// The silt program, as a user types it.

import { spawn } from 'node:child_process';
import path from 'node:path';
import { BUILD } from './daemon.mjs';
import { within } from './wait.mjs';

/**
 * Runs silt against the daemon. options: env, cwd, input (bytes for standard input), terminal (true: a terminal of its own, all it
 * shows comes as stdout), onStart (gets the child), onOutput and onError (see what has come so far, and the child). Bytes of stdout are in `raw`.
 * `stderr` is without the remark that a sandbox was created, which depends on what a test did before; `said` is all of it.
 */
export function silt(daemon, args, { onStart, onOutput, onError, env = {}, cwd, input, terminal = false } = {}) {
	const program = path.join(BUILD, 'silt');
	const words = terminal ? ['script', '-qefc', [program, ...args].map(quote).join(' '), '/dev/null'] : [program, ...args];
	const child = spawn(words[0], words.slice(1), {
		cwd,
		env: { PATH: process.env.PATH, SILT_SERVER: daemon.address, SILT_TOKEN: daemon.token, ...env },
		stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
	});
	onStart?.(child);
	const pieces = [];
	let stderr = '';
	child.stdin?.on('error', () => {}); // it may end before it has read everything
	child.stdin?.end(input);
	child.stdout.on('data', piece => {
		pieces.push(piece);
		onOutput?.(Buffer.concat(pieces).toString(), child);
	});
	child.stderr.setEncoding('utf8').on('data', text => {
		stderr += text;
		onError?.(stderr, child);
	});
	return within(180_000, `silt ${args.join(' ')}`, new Promise((resolve, reject) => {
		child.once('error', reject);
		child.once('close', (code, signal) => {
			const raw = Buffer.concat(pieces);
			resolve({ stdout: raw.toString(), raw, stderr: stderr.replace(/^silt: created sandbox \S+\n/gm, ''), said: stderr, code, signal });
		});
	})).catch(error => {
		child.kill('SIGKILL');
		throw error;
	});
}

function quote(word) {
	return `'${word.replaceAll("'", "'\\''")}'`;
}
