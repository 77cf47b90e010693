// SPDX-License-Identifier: Apache-2.0
// A real browser: Debian's chromium, without a window, driven by playwright-core.

import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { BUILD } from './daemon.mjs';

/** A browser that is closed when the test t ends. options: home (of its user), authority (a file with one whom it trusts, like its user who added it). */
export async function openBrowser(t, { home, authority } = {}) {
	const directory = execFileSync(path.join(import.meta.dirname, '../browser/packages'), { env: { ...process.env, BUILD }, encoding: 'utf8' }).trim();
	const { chromium } = await import(path.join(directory, 'index.mjs'));
	if (authority)
		trust(path.join(home, '.pki/nssdb'), authority);
	const browser = await chromium.launch({ ...(home && { env: { ...process.env, HOME: home } }), executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'], timeout: 120_000 });
	t.after(() => browser.close());
	return browser;
}

function trust(database, authority) {
	fs.mkdirSync(database, { recursive: true });
	execFileSync('certutil', ['-d', `sql:${database}`, '-N', '--empty-password']);
	execFileSync('certutil', ['-d', `sql:${database}`, '-A', '-t', 'C,,', '-n', 'test', '-i', authority]);
}

/** Where a test may leave a picture: SILT_TEST_PICTURES, or nowhere. */
export async function picture(page, name) {
	const directory = process.env.SILT_TEST_PICTURES;
	if (directory) {
		fs.mkdirSync(directory, { recursive: true });
		await page.screenshot({ path: path.join(directory, `${name}.png`) });
	}
}
