// SPDX-License-Identifier: Apache-2.0
// docs/production.md: its files, as they stand there, run two apps with secrets and cron triggers on one daemon.
import './lib/fetched.mjs';
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { BUILD, startDaemon } from '../lib/daemon.mjs';
import { Internet, NETWORK } from '../lib/internet.mjs';
import { silt } from '../lib/silt.mjs';
import { freePort } from '../lib/port.mjs';
import { packages, startServer } from './lib/workerd.mjs';

const page = fs.readFileSync(path.join(import.meta.dirname, '../../docs/production.md'), 'utf8');
const files = Object.fromEntries([...page.matchAll(/^\*\*`([^`]+)`\*\*[^\n]*\n\n```\w+\n(.*?)^```$/gms)].map(([, name, text]) => [name, text]));
const WORKERD = path.join(packages(), 'node_modules/@cloudflare/workerd-linux-64/bin/workerd');

const APP = `import { getSandbox } from '@cloudflare/sandbox';
export { Sandbox } from '@cloudflare/sandbox';
const run = async (env, command) => (await getSandbox(env.Sandbox, 'one').exec(command)).stdout;
export default {
	async fetch(request, env) {
		return Response.json({ secret: env.API_KEY, runs: await run(env, 'cat /workspace/runs 2>/dev/null || true') });
	},
	async scheduled(controller, env) {
		await run(env, \`echo '\${controller.cron}' >> /workspace/runs\`);
	},
};
`;

let internet, daemon, directory;
before(async () => {
	directory = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-production-'));
	internet = await Internet.start();
	daemon = await startDaemon(NETWORK);
});
after(async () => {
	await daemon?.stop();
	internet?.stop();
	fs.rmSync(directory, { recursive: true, force: true });
});

/** The bundle, by the command of the page. */
function bundle() {
	const project = path.join(directory, 'my-app');
	execFileSync(path.join(BUILD, 'silt'), ['new', project]);
	fs.symlinkSync(path.join(packages(), 'node_modules'), path.join(directory, 'node_modules'));
	fs.writeFileSync(path.join(project, 'src/index.ts'), APP);
	const words = /^npx wrangler (.*?) +#/m.exec(page)[1].split(' ');
	execFileSync(process.execPath, [path.join(packages(), 'node_modules/wrangler/bin/wrangler.js'), ...words],
		{ cwd: project, env: { PATH: process.env.PATH, HOME: directory, CI: '1', WRANGLER_SEND_METRICS: 'false' }, stdio: ['ignore', 'ignore', 'inherit'] });
	return project;
}

/** The words of a unit's command for an app whose directories are all in `home`. */
const command = (unit, app, home, variables) => /^ExecStart=((?:.*\\\n)*.*)$/m.exec(files[unit])[1].split(/\s+(?:\\\n\s*)?/).map(word => word
	.replace('/usr/local/bin/workerd', WORKERD).replace('/var/lib/silt-apps/%i', `${home}/state`).replace('/run/silt-apps/%i', home).replaceAll('%i', app)
	.replace(/\$\{(\w+)\}/, (_, name) => variables[name]));

async function start(t, app, project, secret) {
	const home = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-client-'));
	fs.mkdirSync(path.join(home, 'state'));
	fs.cpSync(path.join(project, 'dist'), path.join(home, 'dist'), { recursive: true });
	fs.writeFileSync(path.join(home, 'serve.js'), files['serve.js']);
	fs.writeFileSync(path.join(home, 'config.capnp'), files['config.capnp'].replaceAll('my-app', app).replace('/run/silt/engine.sock', daemon.engine));
	assert.equal((await silt(daemon, ['image', 'build', '-t', app, project])).code, 0);
	const PORT = String(await freePort());
	return startServer(t, { home, port: Number(PORT), words: command('silt-app@.service', app, home, { PORT }), env: { PATH: process.env.PATH, API_KEY: secret }, cwd: home });
}

test('two apps run by the files of the page, with secrets and cron triggers of their own', async t => {
	const project = bundle();
	const first = await start(t, 'my-app', project, 'first secret');
	const second = await start(t, 'other-app', project, 'second secret');
	const CRON = /^Environment="CRON=(.*)"$/m.exec(files['silt-app-cron@.service'])[1];
	const [program, ...words] = command('silt-app-cron@.service', 'my-app', first.home, { CRON });
	assert.equal(execFileSync(program, words, { encoding: 'utf8' }), 'done\n');
	const ask = async server => (await fetch(server.url)).json();
	assert.deepEqual(await ask(first), { secret: 'first secret', runs: `${CRON}\n` });
	assert.deepEqual(await ask(second), { secret: 'second secret', runs: '' });
});

test('systemd understands the units', () => {
	const units = path.join(directory, 'units');
	fs.mkdirSync(units);
	for (const name of Object.keys(files).filter(name => /@\.(service|timer)$/.test(name)))
		fs.writeFileSync(path.join(units, name), files[name].replace('/usr/local/bin/workerd', WORKERD));
	const names = ['silt-app@my-app.service', 'silt-app-cron@my-app.service', 'silt-app-cron@my-app.timer'];
	const said = spawnSync('systemd-analyze', ['verify', '--man=no', ...names], { env: { PATH: process.env.PATH, SYSTEMD_UNIT_PATH: `${units}:` }, encoding: 'utf8' });
	assert.equal(said.status, 0, said.stderr);
	assert.doesNotMatch(said.stderr, /silt-app/);
});
