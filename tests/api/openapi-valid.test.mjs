// SPDX-License-Identifier: Apache-2.0
// The OpenAPI documents as others judge them: redocly and swagger-parser.
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { BUILD } from '../lib/daemon.mjs';

const TOP = path.join(import.meta.dirname, '../..');
const modules = path.join(execFileSync(path.join(TOP, 'tests/openapi/packages'), { env: { ...process.env, BUILD }, encoding: 'utf8' }).trim(), 'node_modules');

for (const name of ['openapi.json', 'openapi-compat.json']) {
	const file = path.join(TOP, 'docs', name);

	test(`${name} is valid for redocly`, async () => {
		const { stdout } = await promisify(execFile)(process.execPath, [path.join(modules, '@redocly/cli/bin/cli.js'), 'lint', '--extends=minimal', '--format=json', file], { cwd: modules, env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }, timeout: 120_000, maxBuffer: 64 << 20 });
		assert.equal(JSON.parse(stdout).totals.errors, 0);
	});

	test(`${name} is valid for swagger-parser`, async () => {
		const { default: SwaggerParser } = await import(pathToFileURL(path.join(modules, '@apidevtools/swagger-parser/lib/index.js')));
		const api = await SwaggerParser.validate(file);
		assert.equal(api.openapi, '3.1.0');
	});
}
