// SPDX-License-Identifier: Apache-2.0
// Imported before inside.mjs: fetches the npm registry of the tests while there is still a network, and names its program in SILT_TEST_VERDACCIO.

import { execFileSync } from 'node:child_process';
import path from 'node:path';

if (!process.env.SILT_TEST_VERDACCIO)
	process.env.SILT_TEST_VERDACCIO = execFileSync(path.join(import.meta.dirname, '../../script/verdaccio'), { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim();
