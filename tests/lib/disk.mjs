// SPDX-License-Identifier: Apache-2.0
// A small disk of the test's own: a file with a file system in it, loop-mounted, gone when the test is.

import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const MIB = 2 ** 20;

/** type: ext4 or btrfs. Its folder is empty but for lost+found; fill() leaves so many MiB. */
export function makeDisk(t, type, mib) {
	const place = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-disk-'));
	const image = path.join(place, 'image');
	const folder = path.join(place, 'disk');
	const run = (program, ...words) => execFileSync(program, words, { stdio: ['ignore', 'ignore', 'pipe'] });
	const users = [];
	let mounted = false;
	t.after(async () => {
		for (const end of users)
			await end().catch(error => t.diagnostic(error.stack));
		if (mounted)
			run('umount', folder);
		fs.rmSync(place, { recursive: true, force: true });
	});
	fs.chmodSync(place, 0o755);
	fs.mkdirSync(folder);
	fs.writeFileSync(image, '');
	fs.truncateSync(image, mib * MIB);
	if (type === 'ext4')
		run('mkfs.ext4', '-q', '-F', '-m', '0', image);
	else
		run('mkfs.btrfs', '-q', '-K', image);
	run('mount', '-o', 'loop,nodiscard', image, folder);
	mounted = true;
	fs.chmodSync(folder, 0o755);
	const filler = path.join(folder, 'filler');
	return {
		folder,
		state: path.join(folder, 'state'),
		free: () => { const s = fs.statfsSync(folder); return s.bavail * s.bsize / MIB; },
		/** Another program takes the room, all but this much. */
		fill(left) {
			const take = Math.floor(this.free() - left);
			if (take > 0)
				run('fallocate', '-o', String(fs.existsSync(filler) ? fs.statSync(filler).size : 0), '-l', String(take * MIB), filler);
		},
		/** And the last block of it. */
		fillAll() {
			this.fill(1);
			try {
				fs.writeFileSync(`${filler}-2`, Buffer.alloc(4 * MIB));
			} catch (error) {
				if (error.code !== 'ENOSPC')
					throw error;
			}
		},
		empty: () => fs.rmSync(filler, { force: true }),
		/** This, which uses the disk, is ended before the disk goes. */
		usedBy: end => users.push(end),
	};
}
