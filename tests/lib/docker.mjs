// SPDX-License-Identifier: Apache-2.0
// The docker client of Debian: only that program of its package, which is unpacked and not installed: no daemon comes with it.

import { execFileSync, spawn } from 'node:child_process';
import path from 'node:path';
import { within } from './wait.mjs';

const program = () => execFileSync(path.join(import.meta.dirname, '../../script/docker-client'), { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim();

export class Docker {
	constructor(engine, home) {
		this.program = program();
		this.env = { PATH: '/usr/bin:/bin', HOME: home, DOCKER_CONFIG: home, DOCKER_HOST: `unix://${engine.socket}`, DOCKER_BUILDKIT: '0' };
	}

	/** {code, out, err} */
	run(words, { input = '' } = {}) {
		const child = spawn(this.program, words, { env: this.env });
		const out = [], err = [];
		child.stdout.on('data', piece => out.push(piece));
		child.stderr.on('data', piece => err.push(piece));
		child.stdin.on('error', () => {}).end(input);
		return within(60_000, `docker ${words.join(' ')}`, new Promise(resolve => child.on('close', code => resolve({ code, out: Buffer.concat(out).toString(), err: Buffer.concat(err).toString() }))));
	}
}
