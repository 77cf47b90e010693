// SPDX-License-Identifier: Apache-2.0
// A13: writing, linking, renaming and changing owners in one sandbox reaches neither the image nor its other sandboxes.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { skeletonTar } from '../lib/tar.mjs';

let daemon;
before(async () => { daemon = await startDaemon({ images: false }); });
after(() => daemon?.stop());

/** Every file of the image below /opt and /etc: its name, bytes, mode, owner, times and links. */
function fingerprint(directory) {
	const hash = createHash('sha256');
	for (const name of fs.readdirSync(directory, { recursive: true }).sort()) {
		const file = path.join(directory, name);
		const stat = fs.lstatSync(file);
		hash.update(JSON.stringify([name, stat.ino, stat.mode, stat.uid, stat.gid, stat.size, stat.mtimeMs, stat.ctimeMs, stat.nlink]));
		if (stat.isFile())
			hash.update(fs.readFileSync(file));
	}
	return hash.digest('hex');
}

const CHANGES = [
	'echo evil >> /opt/tool', 'echo evil > /opt/tool', 'ln /opt/tool /opt/second && echo evil >> /opt/second', 'mv /opt/tool /opt/third; echo evil > /opt/tool',
	'chmod 4777 /opt/tool', 'chown 1:1 /opt/tool', 'touch -d @0 /opt/tool', 'truncate -s 0 /opt/tool', 'rm -rf /opt', 'mkdir -p /opt; ln -s /etc/passwd /opt/tool',
	'python3 -c \'import mmap, os; f = os.open("/etc/config", os.O_RDWR); m = mmap.mmap(f, 0); m[:4] = b"EVIL"; m.flush()\'',
	'python3 -c \'import os; os.setxattr("/etc/config", "user.evil", b"x")\'', 'cp --reflink=auto /etc/config /etc/copy; echo evil > /etc/copy',
];

test('A13 nothing that a guest does to files of its image changes the image or a neighbour', async t => {
	const entries = [{ name: 'opt/tool', data: 'tool of the image\n', mode: 0o755 }, { name: 'etc/config', data: 'of the image\n' }];
	const answer = await daemon.api('PUT', '/v1/images/shared?kind=host', skeletonTar(Object.fromEntries(entries.map(entry => [entry.name, entry]))), { headers: { 'content-type': 'application/x-tar' } });
	assert.equal(answer.status, 201, answer.raw.toString());
	const digest = answer.body.digest.replace('sha256:', '');
	const image = [path.join(daemon.state, 'images', digest), path.join(daemon.state, 'pool/images', digest)].find(directory => fs.existsSync(directory));
	assert.ok(image, 'the image is a directory of the host');
	const before = fingerprint(image);
	const [evil, neighbour] = [await daemon.box(t, { image: 'shared' }), await daemon.box(t, { image: 'shared' })];
	for (const change of CHANGES)
		await evil.run(change);
	assert.equal(await evil.out('cat /opt/tool /etc/config | grep -ci evil || true; readlink /opt/tool'), '1\n/etc/passwd\n', 'they were made in its own layer');
	assert.equal(await neighbour.out('cat /opt/tool /etc/config; stat -c "%a %u %h" /opt/tool'), 'tool of the image\nof the image\n755 0 1\n');
	assert.equal(fingerprint(image), before);
});
