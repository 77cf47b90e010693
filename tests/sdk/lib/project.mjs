// SPDX-License-Identifier: Apache-2.0
// Projects that use the library: a directory with the packed package installed, and programs in it.

import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { BUILD } from '../../lib/daemon.mjs';
import { within } from '../../lib/wait.mjs';

const TOP = path.join(import.meta.dirname, '../../..');
const said = (file, ...words) => execFileSync(file, words, { env: { ...process.env, BUILD }, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim();

export const CASES = path.join(TOP, 'sdk/cases');
export const SOURCE = path.join(TOP, 'sdk/typescript');

/** The packed package. */
export const packed = () => said(path.join(TOP, 'script/sdk'), '--pack');
/** Programs of Node and Bun. */
export const programs = () => said(path.join(TOP, 'script/node'), '--bun');
/** Packages that examples and tests use. */
export const packages = () => said(path.join(TOP, 'tests/sdk/packages'));

/** A directory with the library installed under both of its names, removed when the test t ends. files: {name: text}. */
export function makeProject(t, files = {}) {
	const home = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-sdk-'));
	t.after(() => fs.rmSync(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }));
	for (const name of ['silt-sandbox', '@cloudflare/sandbox']) {
		const target = path.join(home, 'node_modules', name);
		fs.mkdirSync(target, { recursive: true });
		execFileSync('tar', ['-xzf', packed(), '-C', target, '--strip-components=1', '--no-same-owner']);
	}
	fs.writeFileSync(path.join(home, 'package.json'), '{"type":"module"}\n');
	for (const [name, text] of Object.entries(files))
		fs.writeFileSync(path.join(home, name), text);
	return home;
}

/** Runs a program to its end. */
export async function run(words, { cwd, env = {}, ms = 120_000, input } = {}) {
	const child = spawn(words[0], words.slice(1), { cwd, env: { PATH: process.env.PATH, HOME: cwd, ...env }, stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'] });
	child.stdin?.end(input);
	let stdout = '', stderr = '';
	child.stdout.setEncoding('utf8').on('data', text => { stdout += text; });
	child.stderr.setEncoding('utf8').on('data', text => { stderr += text; });
	try {
		const code = await within(ms, words.join(' '), new Promise((resolve, reject) => child.once('error', reject).once('close', resolve)));
		return { code, stdout, stderr };
	} catch (error) {
		child.kill('SIGKILL');
		throw new Error(`${error.message}\n${stdout}\n${stderr}`);
	}
}

/** All cases, with the files they are from. */
export const cases = () => fs.readdirSync(CASES).filter(name => name.endsWith('.json')).sort().flatMap(name => JSON.parse(fs.readFileSync(path.join(CASES, name), 'utf8')).map(one => ({ ...one, name: `${name.replace('.json', '')}: ${one.name}` })));
