// SPDX-License-Identifier: Apache-2.0
// Attack programs: small, static, compiled on first use, one directory per test process.

import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const SOURCES = path.join(import.meta.dirname, '../escape/attacks');
let directory;

export function compile(name) {
	if (!directory) {
		directory = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-attacks-'));
		process.once('exit', () => fs.rmSync(directory, { recursive: true, force: true }));
	}
	const program = path.join(directory, name);
	if (!fs.existsSync(program))
		execFileSync(compiler(), ['-static', '-O1', '-pthread', '-Wall', '-Wextra', '-Werror', '-o', program, path.join(SOURCES, `${name}.c`)], { stdio: 'pipe' });
	return program;
}

function compiler() {
	const directories = process.env.PATH.split(':');
	return directories.some(f => fs.existsSync(path.join(f, 'musl-gcc'))) ? 'musl-gcc' : 'gcc';
}
