// SPDX-License-Identifier: Apache-2.0
// The Worker of the snapshot tests: POST /TRANSPORT/NAME runs a scenario. Snapshots are taken by the object's own container; what is in them is looked at by
// the client, with that transport.

import assert from 'node:assert/strict';
import { getSandbox, Sandbox as Client } from '@cloudflare/sandbox';

export class Sandbox extends Client {
	snapshotDirectory(dir) {
		return this.ctx.container.snapshotDirectory({ dir });
	}

	snapshotAll() {
		return this.ctx.container.snapshotContainer({ name: 'all' });
	}

	async startFrom(options) {
		await this.ctx.container.destroy();
		this.ctx.container.start({ enableInternet: true, ...options });
	}
}

const read = async (sandbox, path) => (await sandbox.exec(`cat ${path}`)).stdout;

const scenarios = {
	/** Of an image that ends in steps without files. */
	async ofTheImage(sandbox) {
		assert.equal(await read(sandbox, '/layer'), 'of the image\n');
		await sandbox.writeFile('/workspace/file', 'first');
		const first = await sandbox.snapshotAll();
		await sandbox.startFrom({ containerSnapshot: first });
		assert.equal(await read(sandbox, '/workspace/file'), 'first');
		assert.equal((await sandbox.exec('echo $LAST')).stdout, 'step\n');
		await sandbox.writeFile('/workspace/file', 'second');
		await sandbox.startFrom({ containerSnapshot: await sandbox.snapshotAll() }); // of what a snapshot had begun with
		assert.equal(await read(sandbox, '/workspace/file /layer'), 'secondof the image\n');
	},

	async ofAnotherImage(sandbox) {
		await sandbox.exec('true');
		await sandbox.startFrom({ image: 'other' });
		assert.equal(await read(sandbox, '/layer'), 'of the other\n');
		await sandbox.writeFile('/workspace/file', 'kept');
		await sandbox.startFrom({ containerSnapshot: await sandbox.snapshotAll() });
		assert.equal(await read(sandbox, '/workspace/file /layer'), 'keptof the other\n');
	},

	async withoutDirectories(sandbox) {
		await sandbox.exec('mkdir -p /data/deep && echo mounted > /data/deep/file');
		const directory = await sandbox.snapshotDirectory('/data');
		await sandbox.startFrom({ directorySnapshots: ['/mounted/here', '/etc/apt', '/linked/here'].map(mountPoint => ({ snapshot: directory, mountPoint })) });
		assert.equal(await read(sandbox, '/mounted/here/deep/file /etc/apt/deep/file /opt/here/deep/file'), 'mounted\n'.repeat(3));
		await sandbox.writeFile('/workspace/file', 'kept');
		await sandbox.startFrom({ containerSnapshot: await sandbox.snapshotAll() });
		assert.equal(await read(sandbox, '/workspace/file'), 'kept');
		for (const path of ['/mounted/here', '/etc/apt', '/linked/here', '/opt/here'])
			assert.equal(await sandbox.readFile(`${path}/deep/file`).then(() => 'read', error => error.name), 'FileNotFoundError', path);
		assert.equal((await sandbox.exec('test -e /etc/apt/apt.conf.d')).exitCode, 0, 'what the image has there');
	},
};

export default {
	async fetch(request, env) {
		const [, transport, name] = /^\/(http|websocket|rpc)\/(\w+)$/.exec(new URL(request.url).pathname) ?? [];
		if (!(name in scenarios))
			return new Response('no such scenario\n', { status: 404 });
		const sandbox = getSandbox(env.Sandbox, `${transport}-${crypto.randomUUID().slice(0, 13)}`, { transport });
		try {
			await scenarios[name](sandbox);
			return new Response('done');
		} catch (error) {
			return new Response(`${error.stack ?? error}`, { status: 500 });
		} finally {
			await sandbox.destroy();
		}
	},
};
