// SPDX-License-Identifier: Apache-2.0
// A1: overwriting the agent's binary through /proc/1/exe.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { BUILD } from '../lib/daemon.mjs';
import { bothWays, outcomes, worked } from '../lib/escape.mjs';

export const without = ['proc_exe'];

const AGENT = path.join(BUILD, 'silt-init');

function fingerprint(file) {
	const { ino, mode, size, mtimeMs, ctimeMs } = fs.statSync(file);
	return { ino, mode, size, mtimeMs, ctimeMs, hash: createHash('sha256').update(fs.readFileSync(file)).digest('hex') };
}

export async function attack(box) {
	const program = await box.install('exe');
	const results = outcomes(await box.out(`${program} 1`));
	// The other way of CVE-2019-5736: a script whose interpreter is the agent itself, so that it is not running when it is opened.
	const script = await box.exec("printf '#!/proc/1/exe\\n' > /tmp/script; chmod 755 /tmp/script; /tmp/script < /dev/null; cat /proc/1/exe > /dev/null && echo readable; : >> /proc/1/exe", { timeoutMs: 5_000 });
	const changed = worked(results).filter(name => /-(open|write|truncate|chmod|utimes)$/.test(name));
	return { succeeded: changed.length > 0, changed, results, script: script.body };
}

const before = fs.existsSync(AGENT) ? fingerprint(AGENT) : null;

bothWays('A1 overwriting the agent through /proc/1/exe', {
	context: true,
	without,
	attack,
	async repelled(evidence, box) {
		assert.deepEqual(fingerprint(AGENT), before, "the host's silt-init is untouched");
		assert.equal(await box.out('echo alive'), 'alive\n');
	},
});
