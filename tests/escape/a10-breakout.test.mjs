// SPDX-License-Identifier: Apache-2.0
// A10: walking out of a chroot, and opening files by handle.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { bothWays, outcomes } from '../lib/escape.mjs';

export const withoutPivot = ['pivot'];
export const withoutHandles = ['handles'];

export async function walkOut(box, daemon) {
	const secret = path.join(daemon.home, 'secret');
	fs.writeFileSync(secret, 'of the host', { mode: 0o644 });
	const program = await box.install('breakout');
	const results = outcomes(await box.out(`${program} ${secret}`));
	return { succeeded: results.text?.includes('of the host') ?? false, results };
}

export async function openByHandle(box) {
	const program = await box.install('call');
	const native = await box.out(`${program} x64:304:-100,0,0`);
	const old = await box.out(`${program} i386:342:-100,0,0`);
	return { succeeded: /errno 14\n/.test(native), native, old }; // EFAULT: the kernel itself looked at the handle
}

bothWays('A10 walking out of a chroot', {
	context: true,
	without: withoutPivot,
	attack: walkOut,
	async repelled(evidence, box) {
		assert.equal(evidence.results['chroot-up'], 'ok', 'the walk itself is allowed: it ends in our own root');
		assert.equal(await box.out('stat -c %i / /..  | uniq | wc -l'), '1\n');
	},
});

bothWays('A10 open_by_handle_at', {
	context: true,
	without: withoutHandles,
	attack: openByHandle,
	repelled(evidence) {
		assert.match(evidence.native, /errno (1|38)\n/);
		assert.match(evidence.old, /(errno (1|38)|signal (31|11))\n/);
	},
});
