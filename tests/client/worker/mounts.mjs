// SPDX-License-Identifier: Apache-2.0
// Mounts of a local bucket: the client copies both ways, and learns what to copy from a watch.

import assert from 'node:assert/strict';
import { until } from './lib.mjs';
import { bucket, stored } from './storage.mjs';

const content = async key => (await bucket.get(key))?.text();

const mounts = at => (_, where) => stored(where, async sandbox => {
	const prefix = `${where.id}${at}/`;
	await bucket.put(`${prefix}there`, 'from the bucket');
	await sandbox.mountBucket('BACKUP_BUCKET', at, { localBucket: true, prefix: `/${prefix}` });
	assert.equal((await sandbox.readFile(`${at}/there`)).content, 'from the bucket');
	await until('the watch', async () => { // the client mounts before it watches
		await sandbox.exec(`echo again >> ${at}/first`);
		return bucket.head(`${prefix}first`);
	});
	await sandbox.exec(`mkdir ${at}/deep && echo mine > ${at}/deep/file && mv ${at}/deep/file ${at}/deep/moved && rm ${at}/there`);
	await until('the changes', async () => await content(`${prefix}deep/moved`) === 'mine\n' && !await bucket.head(`${prefix}there`));
	await bucket.put(`${prefix}late`, 'later');
	await until('what is new in the bucket', async () => (await sandbox.exec(`cat ${at}/late`)).stdout === 'later');
	await sandbox.unmountBucket(at);
});

export const localMount = mounts('/workspace/data');
export const localMountElsewhere = mounts('/mnt/data');
