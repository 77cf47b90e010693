// SPDX-License-Identifier: Apache-2.0
// Backups, with presigned URLs and with a local bucket. The class is Stored, in index.mjs; the storage is storage.mjs.

import assert from 'node:assert/strict';
import { rejects } from './lib.mjs';
import { bucket, seen, stored } from './storage.mjs';

const MAKE = "mkdir -p /workspace/app/src /workspace/app/node_modules/x && cd /workspace/app && echo one > src/a && echo skip > b.log && echo 'odd' > \"odd 'name'\" && ln -s src/a link && touch node_modules/x/y";

/** Small ones go by one PUT of curl's. */
export const backups = (_, where) => stored(where, async sandbox => {
	await sandbox.exec(MAKE);
	const backup = await sandbox.createBackup({ dir: '/workspace/app', name: 'first', excludes: ['**/node_modules/**', '*.log'] });
	assert.deepEqual(Object.keys(backup), ['id', 'dir']);
	const { sizeBytes, name, ttl } = await (await bucket.get(`backups/${backup.id}/meta.json`)).json();
	assert.deepEqual([sizeBytes, name, ttl], [(await bucket.head(`backups/${backup.id}/data.sqsh`)).size, 'first', 259200]);
	assert.ok(seen.some(([method, key, , by]) => method === 'PUT' && key === `backups/${backup.id}/data.sqsh` && by === 'sandbox'), 'the Worker saw it pass');
	assert.equal((await sandbox.exec('ls /var/backups | grep -c sqsh')).stdout, '0\n');

	await sandbox.exec('echo other > src/a; echo later > later; exec 7<later'); // the session stands in the directory
	assert.deepEqual(await sandbox.restoreBackup(backup), { success: true, dir: '/workspace/app', id: backup.id });
	assert.equal((await sandbox.exec("cat <&7; cat src/a \"odd 'name'\"; LC_ALL=C ls -A; readlink link")).stdout, "later\none\nodd\nlink\nodd 'name'\nsrc\nsrc/a\n");
	await sandbox.restoreBackup({ ...backup, dir: '/home/elsewhere' });
	assert.equal((await sandbox.exec('cat /home/elsewhere/src/a')).stdout, 'one\n');
});

/** Forty mebibytes go in parts, and come back in eight ranges at once. */
export const backupsInParts = (_, where) => stored(where, async sandbox => {
	await sandbox.exec('mkdir -p /workspace/data && head -c 41943040 /dev/urandom > /workspace/data/bytes');
	const sum = (await sandbox.exec('sha256sum < /workspace/data/bytes')).stdout;
	const backup = await sandbox.createBackup({ dir: '/workspace/data', compression: { format: 'zstd', threads: 2 } });
	const parts = seen.filter(([method, key, , by]) => method === 'PUT' && key === `backups/${backup.id}/data.sqsh` && by === 'sandbox');
	assert.ok(parts.length > 4, `${parts.length} parts`);
	await sandbox.exec('rm -rf /workspace/data');
	await sandbox.restoreBackup(backup);
	assert.equal((await sandbox.exec('sha256sum < /workspace/data/bytes')).stdout, sum);
	await bucket.delete(`backups/${backup.id}/data.sqsh`);
});

/** By http and websocket an archive comes back as one text of base64. */
export const localBackups = (_, where) => stored(where, async sandbox => {
	await sandbox.exec(`${MAKE} && git init -q . && echo '*.log' > .gitignore && head -c ${40 << 20} /dev/urandom > bytes`);
	const sum = (await sandbox.exec('sha256sum < bytes')).stdout;
	const backup = await sandbox.createBackup({ dir: '/workspace/app', localBucket: true, gitignore: true });
	assert.deepEqual({ ...backup, id: '' }, { id: '', dir: '/workspace/app', localBucket: true });
	assert.ok(!seen.some(([, key]) => key === `backups/${backup.id}/data.sqsh`), 'no URL of a storage');
	await sandbox.exec('cd / && rm -rf /workspace/app');
	await sandbox.restoreBackup(backup);
	assert.equal((await sandbox.exec('cat /workspace/app/src/a; sha256sum < /workspace/app/bytes; ls /workspace/app/b.log')).stdout, `one\n${sum}`);
	await bucket.delete(`backups/${backup.id}/data.sqsh`);
});

export const backupErrors = (_, where) => stored(where, async sandbox => {
	await rejects(sandbox.createBackup({ dir: '/workspace/none' }), 'BackupCreateError');
	await rejects(sandbox.createBackup({ dir: '/workspace/none', localBucket: true }), 'BackupCreateError');
	await rejects(sandbox.createBackup({ dir: '/etc' }), 'InvalidBackupConfigError');
	await rejects(sandbox.createBackup({ dir: '/workspace', excludes: ['/absolute'] }), 'BackupCreateError');
	await rejects(sandbox.restoreBackup({ id: crypto.randomUUID(), dir: '/workspace' }), 'BackupNotFoundError');
	await sandbox.exec('echo x > /workspace/file');
	const short = await sandbox.createBackup({ dir: '/workspace', ttl: 30 }); // less than the margin
	await rejects(sandbox.restoreBackup(short), 'BackupExpiredError');
	const broken = await sandbox.createBackup({ dir: '/workspace' });
	const archive = `backups/${broken.id}/data.sqsh`;
	await bucket.put(archive, new Uint8Array((await bucket.head(archive)).size));
	await rejects(sandbox.restoreBackup(broken), 'BackupRestoreError');
	assert.equal((await sandbox.readFile('/workspace/file')).content, 'x\n');
	await sandbox.exec('rm -f /usr/bin/mksquashfs');
	await assert.rejects(async () => sandbox.createBackup({ dir: '/workspace' }), error => error.name === 'BackupCreateError' && error.message.includes('squashfs-tools'));
});
