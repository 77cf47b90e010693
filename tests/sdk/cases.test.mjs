// SPDX-License-Identifier: Apache-2.0
// The table of cases (sdk/cases) with the TypeScript library, in every run time: Node, Bun, Deno, workerd, Chromium.
import './lib/fetched.mjs';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { openBrowser } from '../lib/browser.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { startWorker } from './lib/worker.mjs';
import { CASES, cases, makeProject, packages, programs, run } from './lib/project.mjs';

const ONLY = process.env.SILT_TEST_CASES; // a pattern, for whoever works on some

let daemon;
before(async () => {
	daemon = await startDaemon({ warm: true });
});
after(() => daemon?.stop());

const settings = () => ({ SILT_URL: `http://${daemon.address}`, SILT_TOKEN: daemon.token });

/** Programs and pages that run the table and say what came out. */
const shared = () => ({ 'run.mjs': fs.readFileSync(path.join(CASES, 'run.mjs'), 'utf8'), 'cases.mjs': `export default ${JSON.stringify(cases())};\n` });
const MAIN = `import * as library from 'silt-sandbox';
import cases from './cases.mjs';
import { runCases } from './run.mjs';
console.log('RESULT ' + JSON.stringify(await runCases(library, cases, { only: ${ONLY ? `/${ONLY}/` : 'undefined'} })));
`;

function check({ passed, failures }) {
	assert.deepEqual(failures.map(({ name, error }) => `${name}\n${error}`), []);
	assert.ok(passed > (ONLY ? 0 : 30), `${passed} cases`);
}

/** The line that a program prints. */
function resultOf({ code, stdout, stderr }) {
	const line = /^RESULT (.*)$/m.exec(stdout);
	assert.ok(line && code === 0, `it ended with ${code}:\n${stdout.slice(0, 2000)}\n${stderr.slice(0, 4000)}`);
	return JSON.parse(line[1]);
}

const program = (t, words) => {
	const home = makeProject(t, { ...shared(), 'main.mjs': MAIN });
	return run([...words, path.join(home, 'main.mjs')], { cwd: home, env: settings() });
};

test('in Node', async t => check(resultOf(await program(t, [process.execPath]))));
test('in Bun', async t => check(resultOf(await program(t, [path.join(programs(), 'bun')]))));
test('in Deno', async t => check(resultOf(await program(t, [path.join(packages(), 'node_modules/@deno/linux-x64-glibc/deno'), 'run', '-A', '--no-lock', '--node-modules-dir=manual']))));

test('in workerd', async t => {
	const home = makeProject(t, {
		...shared(), 'worker.mjs': `import * as library from 'silt-sandbox';
import cases from './cases.mjs';
import { runCases } from './run.mjs';
export { Sandbox } from 'silt-sandbox';
export default { fetch: async request => new URL(request.url).pathname === '/run' ? Response.json(await runCases(library, cases, { only: ${ONLY ? `/${ONLY}/` : 'undefined'} })) : new Response('here') };
` });
	const worker = await startWorker(t, { home, entry: 'worker.mjs', variables: settings() });
	check(await (await fetch(`${worker.url}/run`)).json());
});

/** A page and the daemon behind one origin, as a front of theirs would have it. */
async function startFront(t, home) {
	const server = http.createServer((request, response) => {
		const file = path.join(home, request.url === '/' ? 'page.html' : request.url);
		if (file.startsWith(home) && fs.existsSync(file) && fs.statSync(file).isFile())
			return response.writeHead(200, { 'content-type': file.endsWith('.html') ? 'text/html' : 'text/javascript' }).end(fs.readFileSync(file));
		const [host, port] = daemon.address.split(':');
		request.pipe(http.request({ host, port, method: request.method, path: request.url, headers: request.headers }, answer => {
			response.writeHead(answer.statusCode, answer.headers);
			answer.pipe(response);
		}).on('error', () => response.destroy()).on('close', () => response.destroyed || response.end()));
	});
	await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
	t.after(() => {
		server.closeAllConnections();
		return new Promise(resolve => server.close(resolve));
	});
	return `http://127.0.0.1:${server.address().port}`;
}

test('in Chromium', async t => {
	const home = makeProject(t, { ...shared(), 'page.html': '<!doctype html><title>cases</title><script type="importmap">{"imports":{"silt-sandbox":"/node_modules/silt-sandbox/dist/index.js"}}</script>' });
	const origin = await startFront(t, home);
	const browser = await openBrowser(t);
	const page = await browser.newPage();
	await page.goto(origin);
	check(await page.evaluate(async ({ url, token, only }) => {
		const [library, { default: cases }, { runCases }] = await Promise.all([import('silt-sandbox'), import('/cases.mjs'), import('/run.mjs')]);
		const here = { ...library, getSandbox: (id, options) => library.getSandbox(id, { ...options, url, token }) };
		return runCases(here, cases, { only: only ? new RegExp(only) : undefined });
	}, { url: origin, token: daemon.token, only: ONLY }));
});
