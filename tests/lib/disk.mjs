// SPDX-License-Identifier: Apache-2.0
// A small disk of the test's own: a file with a file system in it, loop-mounted, gone when the test is.

import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const MIB = 2 ** 20;

function untilFull(write) {
	try {
		for (;;)
			write();
	} catch (error) {
		if (error.code !== 'ENOSPC')
			throw error;
	}
}

/** type: ext4 or btrfs. Its directory is empty but for lost+found; fill() leaves so many MiB. */
export function makeDisk(t, type, mib) {
	const place = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-disk-'));
	const image = path.join(place, 'image');
	const directory = path.join(place, 'disk');
	const run = (program, ...words) => execFileSync(program, words, { stdio: ['ignore', 'ignore', 'pipe'] });
	const users = [];
	let mounted = false;
	t.after(async () => {
		for (const end of users)
			await end().catch(error => t.diagnostic(error.stack));
		if (mounted)
			run('umount', directory);
		fs.rmSync(place, { recursive: true, force: true });
	});
	fs.chmodSync(place, 0o755);
	fs.mkdirSync(directory);
	fs.writeFileSync(image, '');
	fs.truncateSync(image, mib * MIB);
	if (type === 'ext4')
		run('mkfs.ext4', '-q', '-F', '-m', '0', image);
	else
		run('mkfs.btrfs', '-q', '-K', image);
	run('mount', '-o', 'loop,nodiscard', image, directory);
	mounted = true;
	fs.chmodSync(directory, 0o755);
	const filler = path.join(directory, 'filler');
	return {
		directory,
		state: path.join(directory, 'state'),
		free: () => { const s = fs.statfsSync(directory); return s.bavail * s.bsize / MIB; },
		/** Another program takes the room, all but this much. */
		fill(left) {
			const take = Math.floor(this.free() - left);
			if (take > 0)
				run('fallocate', '-o', String(fs.existsSync(filler) ? fs.statSync(filler).size : 0), '-l', String(take * MIB), filler);
		},
		/** And the last block of it; again: what has come free since. */
		fillAll() {
			this.fill(1);
			const file = fs.openSync(`${filler}-2`, 'as');
			try {
				for (const size of [64 << 10, 4 << 10]) // a large write fails where a small one does not
					untilFull(() => fs.writeSync(file, Buffer.alloc(size)));
			} finally {
				fs.closeSync(file);
			}
		},
		empty: () => [filler, `${filler}-2`].forEach(file => fs.rmSync(file, { force: true })),
		/** This, which uses the disk, is ended before the disk goes. */
		usedBy: end => users.push(end),
	};
}
