// SPDX-License-Identifier: Apache-2.0
// B15: variables that a caller, an image or a guest chooses reach programs of that sandbox, and none of ours.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import * as host from '../lib/host.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const EVIL = { LD_PRELOAD: '/workspace/evil-marker.so', LD_LIBRARY_PATH: '/workspace/evil-marker', LD_AUDIT: '/workspace/evil-marker.so', BASH_ENV: '/workspace/evil-marker.sh', GCONV_PATH: '/workspace/evil-marker', PYTHONPATH: '/workspace/evil-marker', GIT_SSH_COMMAND: 'evil-marker', TAR_OPTIONS: '--checkpoint-action=exec=evil-marker', PATH: '/workspace/evil-marker:/usr/bin:/bin' };

function environment(pid) {
	try {
		return fs.readFileSync(`/proc/${pid}/environ`, 'latin1');
	} catch {
		return '';
	}
}

test('B15 no program of ours ever has a variable that somebody chose for a sandbox', async t => {
	const box = await daemon.box(t, { env: EVIL });
	await box.out('echo "touch /workspace/ran-\\$\\$" > /workspace/evil-marker.sh; mkdir -p /workspace/d; echo x > /workspace/d/x');
	const seen = new Set();
	let over = false;
	const watching = (async () => {
		while (!over) {
			for (const pid of host.pids()) {
				const text = environment(pid);
				if (text.includes('evil-marker'))
					seen.add(JSON.stringify([host.processInfo(pid).name, host.processInfo(pid).nsPids.length]));
			}
			await new Promise(resolve => setImmediate(resolve));
		}
	})();
	try {
		await box.run('true', { env: EVIL });
		await daemon.api('GET', `/v1/sandboxes/${box.id}/files?path=/workspace/d&format=tar`);
		await box.api('POST', '/api/read', { path: '/workspace/d/x' });
		await box.api('POST', '/api/git/checkout', { repoUrl: 'https://127.0.0.1:1/x.git' });
		await box.run('sleep 0.2', { env: EVIL });
	} finally {
		over = true;
		await watching;
	}
	const inside = [...seen].map(text => JSON.parse(text));
	assert.ok(inside.some(([name]) => ['bash', 'sleep', 'env'].includes(name)), `commands have them: ${[...seen].join(' ')}`);
	for (const [name, depth] of inside) {
		assert.ok(depth > 1, `${name} of the host has them`);
		assert.doesNotMatch(name, /^silt/, name);
	}
});
