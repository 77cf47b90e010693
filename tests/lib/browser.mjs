// SPDX-License-Identifier: Apache-2.0
// A real browser: Debian's chromium, without a window, driven by playwright-core.

import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { BUILD } from './daemon.mjs';

/** A browser that is closed when the test t ends. */
export async function openBrowser(t) {
	const folder = execFileSync(path.join(import.meta.dirname, '../browser/packages'), { env: { ...process.env, BUILD }, encoding: 'utf8' }).trim();
	const { chromium } = await import(path.join(folder, 'index.mjs'));
	const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'], timeout: 120_000 });
	t.after(() => browser.close());
	return browser;
}

/** Where a test may leave a picture: SILT_TEST_PICTURES, or nowhere. */
export async function picture(page, name) {
	const folder = process.env.SILT_TEST_PICTURES;
	if (folder) {
		fs.mkdirSync(folder, { recursive: true });
		await page.screenshot({ path: path.join(folder, `${name}.png`) });
	}
}
