// SPDX-License-Identifier: Apache-2.0
// Imported before inside.mjs: fetches Debian's Go while there is still a network, and names its packages in SILT_TEST_DEBS.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { BUILD } from '../../lib/daemon.mjs';

const WANTED = ['golang-go', 'golang-src', 'golang-1.19-go', 'golang-1.19-src'];

if (!process.env.SILT_TEST_DEBS) {
	const directory = path.join(BUILD, 'debs');
	fs.mkdirSync(directory, { recursive: true });
	const have = () => fs.readdirSync(directory).filter(name => WANTED.some(wanted => name.startsWith(`${wanted}_`) && name.endsWith('.deb')));
	if (have().length < WANTED.length) {
		const done = spawnSync('apt-get', ['-o', 'APT::Sandbox::User=root', 'download', ...WANTED], { cwd: directory, encoding: 'utf8' });
		assert.equal(done.status, 0, `apt-get download: ${done.stderr}`);
	}
	process.env.SILT_TEST_DEBS = have().map(name => path.join(directory, name)).join(':');
}
