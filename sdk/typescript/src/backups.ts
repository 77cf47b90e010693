// SPDX-License-Identifier: Apache-2.0
// Directories as archives, and back; buckets.
import { defined, LINK, withExtras } from './core.js';
import { clientError, InvalidMountConfigError, S3FSMountError } from './errors.js';
import { Terminals } from './terminal.js';
import type { BackupOptions, DirectoryBackup, MountBucketOptions, RestoreBackupResult } from './types.js';

const PLACES = /^\/(workspace|home|tmp|var\/tmp|app)(\/|$)/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const archiveOf = (id: string): string => `/var/backups/${id}.sqsh`;

const invalid = (reason: string): never => {
	throw clientError('INVALID_BACKUP_CONFIG', 400, `Invalid backup configuration: ${reason}`, { reason });
};

function checkDirectory(dir: string): void {
	if (typeof dir !== 'string' || !dir.startsWith('/'))
		invalid('dir must be an absolute path');
	if (dir.split('/').includes('..') || dir.includes('\0'))
		invalid('dir has .. or NUL');
	if (!PLACES.test(dir))
		invalid('dir must be in /workspace, /home, /tmp, /var/tmp or /app');
}

/** Backups and buckets of a sandbox. */
export class Backups extends Terminals {
	/** Makes an archive of a directory; it stays with the sandbox. */
	async createBackup(options: BackupOptions): Promise<DirectoryBackup> {
		const { dir, name, ttl, excludes, gitignore, compression } = options;
		checkDirectory(dir);
		if (options.localBucket)
			invalid('localBucket needs an R2 binding of a Worker; without it the archive is kept with the sandbox');
		if (name !== undefined && (name.length > 256 || /[\0-\x1f\x7f]/.test(name)))
			invalid('name has at most 256 characters and no control characters');
		if (ttl !== undefined && !(ttl > 0))
			invalid('ttl must be positive');
		const id = crypto.randomUUID();
		await this[LINK].call('POST', '/sandboxes/{id}/api/backup/create', { json: defined({ dir, archivePath: archiveOf(id), excludes, gitignore, compression }), slow: true });
		if (ttl !== undefined)
			await this.writeFile(`${archiveOf(id)}.expires`, new Date(Date.now() + ttl * 1000).toISOString());
		return withExtras({ id, dir }, { name });
	}

	/** Puts a directory back as it was. `dir` may be another directory. */
	async restoreBackup(backup: DirectoryBackup): Promise<RestoreBackupResult> {
		const { id, dir } = backup;
		if (!UUID.test(id))
			invalid('the id of a backup is a UUID');
		checkDirectory(dir);
		if (backup.localBucket)
			invalid('localBucket needs an R2 binding of a Worker');
		if (!(await this.exists(archiveOf(id))).exists)
			throw clientError('BACKUP_NOT_FOUND', 404, `there is no backup ${id} in sandbox ${this[LINK].id}`, { backupId: id });
		const expires = `${archiveOf(id)}.expires`;
		if ((await this.exists(expires)).exists) {
			const expiredAt = (await this.readFile(expires, { encoding: 'utf8' })).content;
			if (Date.parse(expiredAt) <= Date.now())
				throw clientError('BACKUP_EXPIRED', 400, `backup ${id} has expired`, { backupId: id, expiredAt });
		}
		await this[LINK].call('POST', '/sandboxes/{id}/api/backup/restore', { json: { dir, archivePath: archiveOf(id) }, slow: true });
		return { success: true, dir, id };
	}

	/** Buckets are mounted by the operator of the server; see its documentation. */
	async mountBucket(_bucket: string, mountPath: string, options: MountBucketOptions): Promise<void> {
		if (!mountPath?.startsWith('/'))
			throw new InvalidMountConfigError(`a bucket is mounted at an absolute path, not at ${mountPath}`);
		if (!(options as { endpoint?: string }).endpoint)
			throw new InvalidMountConfigError('R2 bindings and localBucket belong to Workers with a container: give an `endpoint`');
		throw new S3FSMountError('this server does not mount buckets for its clients: copy with download and uploadTar, or mount in the image');
	}

	/** The reverse of mountBucket. */
	async unmountBucket(mountPath: string): Promise<void> {
		throw new InvalidMountConfigError(`no bucket is mounted at ${mountPath}`);
	}
}
