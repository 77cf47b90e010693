// SPDX-License-Identifier: Apache-2.0
// The examples of the TypeScript library, and the samples of its page, as a reader would run them.
import './lib/fetched.mjs';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { KEY, Model } from '../client/lib/model.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { makeProject, packages, run, SOURCE } from './lib/project.mjs';

let daemon;
before(async () => {
	daemon = await startDaemon({ warm: true });
});
after(() => daemon?.stop());

const settings = () => ({ SILT_URL: `http://${daemon.address}`, SILT_TOKEN: daemon.token });
const left = async () => (await daemon.api('GET', '/v1/sandboxes')).body.sandboxes.map(({ id }) => id);

test('an agent loop: the model is asked again, its commands run, nothing is left', async t => {
	const home = makeProject(t);
	fs.copyFileSync(path.join(SOURCE, 'examples/agent.ts'), path.join(home, 'agent.ts'));
	const model = await Model.start(body => {
		const last = body.messages.at(-1).content;
		if (typeof last === 'string')
			return [{ type: 'text', text: 'Let me look.' }, { type: 'tool_use', id: 'toolu_1', name: 'shell', input: { command: 'cd /tmp && echo "from the shell"' } }];
		return body.messages.length === 3
			? [{ type: 'tool_use', id: 'toolu_2', name: 'shell', input: { command: 'pwd' } }]
			: [{ type: 'text', text: `In ${last[0].content.trim()}: ${body.messages[2].content[0].content.trim()}` }];
	});
	t.after(() => model.stop());
	const ended = await run([process.execPath, 'agent.ts', 'Say something'], { cwd: home, env: { ...settings(), ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: model.url } });
	assert.deepEqual([ended.code, ended.stdout], [0, 'In /tmp: from the shell\n'], ended.stderr);
	assert.equal(model.tries, 4, 'the first request met an overloaded server');
	assert.deepEqual(await left(), []);
});

test('a sandbox client of OpenAI\'s Agents SDK: an agent runs in it', async t => {
	const home = makeProject(t);
	fs.copyFileSync(path.join(SOURCE, 'examples/openai-agents.ts'), path.join(home, 'silt.ts'));
	for (const name of fs.readdirSync(path.join(packages(), 'node_modules')))
		if (!fs.existsSync(path.join(home, 'node_modules', name)))
			fs.symlinkSync(path.join(packages(), 'node_modules', name), path.join(home, 'node_modules', name));
	fs.writeFileSync(path.join(home, 'main.ts'), `import { Runner, setTracingDisabled } from '@openai/agents-core';
import { Manifest, SandboxAgent, shell } from '@openai/agents-core/sandbox';
import { assistantMessage, functionCall, ScriptedModel } from '@openai/agents-core/testing';
import { SiltSandboxClient } from './silt.ts';
setTracingDisabled(true);
const client = new SiltSandboxClient();
const manifest = new Manifest({ entries: { 'notes/a.txt': { type: 'file', content: 'kept\\n' } }, environment: { MOOD: 'fine' } });
const model = new ScriptedModel([
	[functionCall('exec_command', { cmd: 'cat notes/a.txt; echo $MOOD; pwd; exit 3' }, { callId: 'one' })],
	{ type: 'responder', respond: ({ request }) => [assistantMessage(JSON.stringify((request.input as any[]).at(-1).output))] },
]);
const agent = new SandboxAgent({ name: 'worker', model, instructions: 'Work.', defaultManifest: manifest, capabilities: [shell()] });
const result = await new Runner().run(agent, 'Read the note', { sandbox: { client } });
const session = await client.create(manifest) as any;
const state = await client.serializeSessionState(session.state);
const again = await client.resume(await client.deserializeSessionState(state));
const text = new TextDecoder().decode(await again.readFile({ path: 'notes/a.txt' }));
await again.createEditor().updateFile({ type: 'update_file', path: 'notes/a.txt', diff: '@@\\n-kept\\n+changed\\n' });
const names = (await again.listDir({ path: 'notes' })).map(one => one.name + ' ' + one.type);
const tar = await again.persistWorkspace();
await again.hydrateWorkspace(tar);
const changed = (await again.exec({ cmd: 'cat notes/a.txt' })).stdout;
await again.close();
console.log(JSON.stringify({ said: result.finalOutput, text, names, changed, exists: await again.pathExists('x').catch(error => error.code) }));
`);
	const ended = await run([process.execPath, 'main.ts'], { cwd: home, env: settings() });
	assert.equal(ended.code, 0, ended.stderr);
	const said = JSON.parse(ended.stdout);
	assert.match(said.said, /exited with code 3.*kept.*fine.*\/workspace/);
	assert.deepEqual([said.text, said.names, said.changed, said.exists], ['kept\n', ['a.txt file'], 'changed\n', 'SANDBOX_NOT_FOUND']);
	assert.deepEqual(await left(), []);
});

/** The samples of a page: each block of `ts` is a program. */
const samples = file => [...fs.readFileSync(file, 'utf8').matchAll(/^(?:#+ (.*)|```ts\n([\s\S]*?)^```)/gm)].reduce((all, [, title, code]) => (title ? { ...all, title } : { ...all, list: [...all.list, { title: all.title, code }] }), { list: [] }).list;

for (const [name, file] of [['docs/typescript.md', path.join(SOURCE, '../../docs/typescript.md')], ['the README of the package', path.join(SOURCE, 'README.md')], ['README.md', path.join(SOURCE, '../../README.md')]])
	test(`the samples of ${name} run`, async t => {
		const all = samples(file);
		assert.ok(all.length > 0);
		const home = makeProject(t, Object.fromEntries(all.map(({ code }, i) => [`sample${i}.ts`, code])));
		fs.writeFileSync(path.join(home, 'main.ts'), `${all.map(({ title }, i) => `try { await import('./sample${i}.ts'); } catch (error) { console.error(${JSON.stringify(title ?? '')}, error); process.exitCode = 1; }`).join('\n')}\n`);
		const ended = await run([process.execPath, 'main.ts'], { cwd: home, env: settings() });
		assert.equal(ended.code, 0, ended.stderr);
	});
