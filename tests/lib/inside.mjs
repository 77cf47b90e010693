// SPDX-License-Identifier: Apache-2.0
// Imported first by a test file: runs it again in a network namespace of its own, which has no way out of the machine but those that the test makes.

import { spawnSync } from 'node:child_process';

const MARK = 'SILT_TEST_INSIDE';

if (!process.env[MARK]) {
	const run = spawnSync('unshare', ['--net', '--', process.execPath, ...process.execArgv, ...process.argv.slice(1)], {
		stdio: 'inherit',
		env: { ...process.env, [MARK]: String(process.pid) },
	});
	process.exit(run.status ?? 1);
}
