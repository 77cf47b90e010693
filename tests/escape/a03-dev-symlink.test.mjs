// SPDX-License-Identifier: Apache-2.0
// A3: images in which a place we mount on is a symlink.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { daemonWithout } from '../lib/escape.mjs';
import { envelope } from '../lib/expect.mjs';
import { skeletonTar } from '../lib/tar.mjs';

export const without = ['dev_symlink'];

const OWN_IMAGES = { images: false };

/** Imports the image and tries to use it; answers of both steps. */
async function use(daemon, t, name, replace) {
	const imported = await daemon.api('PUT', `/v1/images/${name}?kind=host`, skeletonTar(replace), { headers: { 'content-type': 'application/x-tar' } });
	if (imported.status !== 201)
		return { imported };
	const box = await daemon.box(t);
	const created = await daemon.api('POST', '/v1/sandboxes', { id: box.id, image: name });
	if (created.status !== 201)
		return { imported, created };
	return { imported, created, ran: await box.exec('ls /etc') };
}

export async function attack(daemon, t) {
	const answers = await use(daemon, t, 'dev-is-etc', { dev: { name: 'dev', type: 'symlink', target: 'etc' } });
	const ran = answers.ran?.status === 200 ? answers.ran.body.stdout : '';
	return { succeeded: ran.split('\n').includes('null'), answers };
}

test('A3 an image whose /dev is a symlink: repelled', async t => {
	const { succeeded, answers } = await attack(await daemonWithout([], OWN_IMAGES), t);
	assert.equal(succeeded, false);
	const last = answers.ran ?? answers.created ?? answers.imported;
	envelope(last);
	assert.ok(last.status >= 400 && last.status !== 503);
});

test(`A3 an image whose /dev is a symlink: succeeds without ${without}`, async t => {
	const evidence = await attack(await daemonWithout(without, OWN_IMAGES), t);
	assert.equal(evidence.succeeded, true, JSON.stringify(evidence.answers, (key, value) => (key === 'raw' ? undefined : value)));
});

test('A3 symlinks that leave the image create nothing on the host', async t => {
	const daemon = await daemonWithout([], OWN_IMAGES);
	const outside = path.join(daemon.home, 'outside');
	fs.mkdirSync(outside, { mode: 0o777 });
	fs.chmodSync(outside, 0o777);
	let number = 0;
	for (const place of ['dev', 'proc', 'sys', 'tmp', 'workspace', 'usr', 'run', 'etc']) {
		for (const target of [outside, `../../../../../../../..${outside}`]) {
			const answers = await use(daemon, t, `out-${number++}`, { [place]: { name: place, type: 'symlink', target }, 'etc/passwd': null, 'etc/group': null, 'var/tmp': null });
			assert.notEqual((answers.ran ?? answers.created ?? answers.imported).status, 503, place);
			assert.deepEqual(fs.readdirSync(outside), [], `${place} -> ${target}`);
		}
	}
});
