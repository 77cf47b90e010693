// SPDX-License-Identifier: Apache-2.0
// The examples, as their READMEs start them: wrangler dev builds the Dockerfile and runs the Worker; the model and the code host are stand-ins on loopback, repositories
// and packages come from a world of the test's own.
import '../lib/registry.mjs';
import './lib/debs.mjs';
import './lib/fetched.mjs';
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { BUILD, startDaemon } from '../lib/daemon.mjs';
import { NETWORK } from '../lib/internet.mjs';
import { Services } from '../lib/services.mjs';
import { silt } from '../lib/silt.mjs';
import { until } from '../lib/wait.mjs';
import { CodeHost, SECRET, TOKEN, hook } from './lib/codehost.mjs';
import { KEY, Model } from './lib/model.mjs';
import { packages, startWrangler } from './lib/workerd.mjs';

const EXAMPLES = path.join(import.meta.dirname, '../../examples');
const NAMES = ['minimal', 'code-interpreter', 'ai-code-executor', 'data-analysis', 'code-review-bot', 'test-pipeline', 'agent'];

// The official image by its own name, but with the package servers of the test's world.
const OFFICIAL = `FROM base
ENV PIP_INDEX_URL=http://pypi.example.test/simple PIP_TRUSTED_HOST=pypi.example.test npm_config_registry=http://registry.npm.test/
RUN rm -rf /etc/apt/sources.list.d && echo 'deb [trusted=yes] http://deb.example.test ./' > /etc/apt/sources.list
`;

let services, daemon;
before(async () => {
	services = await Services.start(['git', 'npm', 'pip', 'apt']);
	for (const file of process.env.SILT_TEST_DEBS.split(':'))
		services.package(file);
	daemon = await startDaemon({ flags: NETWORK.flags, warm: true });
	const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-official-'));
	fs.writeFileSync(path.join(directory, 'Dockerfile'), OFFICIAL);
	const built = await silt(daemon, ['image', 'build', '-t', 'cloudflare/sandbox:0.12.10', '-t', 'cloudflare/sandbox:0.12.10-python', directory]);
	fs.rmSync(directory, { recursive: true });
	assert.equal(built.code, 0, built.stderr);
});
after(async () => {
	await daemon?.stop();
	await services?.stop();
});

const start = (t, name, vars) => startWrangler(t, daemon, path.join(EXAMPLES, name), vars);
const post = (server, where, body, headers = {}) => fetch(`${server.url}${where}`, { method: 'POST', body: typeof body === 'string' || body instanceof FormData ? body : JSON.stringify(body), headers });

async function model(t, answer) {
	const started = await Model.start(answer);
	t.after(() => started.stop());
	return { model: started, vars: { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: started.url } };
}

test('each is whole: a README, a Dockerfile, types that fit', () => {
	assert.deepEqual(fs.readdirSync(EXAMPLES).filter(name => name !== 'README.md').sort(), [...NAMES].sort());
	const home = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-types-'));
	try {
		fs.symlinkSync(path.join(packages(), 'node_modules'), path.join(home, 'node_modules'));
		for (const name of NAMES) {
			fs.cpSync(path.join(EXAMPLES, name), path.join(home, name), { recursive: true });
			assert.ok(fs.existsSync(path.join(home, name, 'README.md')) && fs.existsSync(path.join(home, name, 'Dockerfile')), name);
			const types = spawnSync(path.join(packages(), 'node_modules/.bin/tsc'), ['--noEmit', '-p', path.join(home, name)], { encoding: 'utf8' });
			assert.equal(types.status, 0, types.stdout);
		}
	} finally {
		fs.rmSync(home, { recursive: true });
	}
});

test('minimal: a command and a file', async t => {
	const server = await start(t, 'minimal');
	assert.deepEqual(await (await fetch(`${server.url}/run`)).json(), { stdout: '2 + 2 = 4\n', stderr: '', exitCode: 0, success: true });
	assert.deepEqual(await (await fetch(`${server.url}/file`)).json(), { content: 'Hello from a file\n' });
});

test('minimal: with an older wrangler and its workerd, too', async t => {
	const server = await startWrangler(t, daemon, path.join(EXAMPLES, 'minimal'), {}, { wrangler: 'wrangler-older', date: '2026-06-01' });
	assert.deepEqual(await (await fetch(`${server.url}/run`)).json(), { stdout: '2 + 2 = 4\n', stderr: '', exitCode: 0, success: true });
	assert.deepEqual(await (await fetch(`${server.url}/file`)).json(), { content: 'Hello from a file\n' });
	await server.stop('SIGINT');
	const left = await silt(daemon, ['ls', '--json']);
	assert.ok(!left.stdout.includes('minimal'), `it has removed its containers: ${left.stdout}`);
});

test('code-interpreter: variables live on, for each user', async t => {
	const server = await start(t, 'code-interpreter');
	const run = async (code, where = '/run', language) => (await post(server, where, { code, language })).json();
	await run('r = 2');
	assert.equal((await run('r * 21')).results[0].text, '42');
	assert.equal((await run('r', '/run?session=bob')).error.name, 'NameError');
	assert.equal((await run('enum A { B = 7 }; A.B', '/run', 'typescript')).results[0].text, '7');
	assert.equal((await post(server, '/run', { code: 'x', language: 'cobol' })).status, 400);
});

test('ai-code-executor: the model writes, the sandbox runs, an overloaded model is asked again', async t => {
	const { model: asked, vars } = await model(t, body => [{ type: 'tool_use', id: 'toolu_1', name: 'run_python', input: { code: body.messages[0].content.includes('fail') ? 'raise SystemExit("no")' : 'print(sum(range(101)))' } }]);
	const server = await start(t, 'ai-code-executor', vars);
	const said = await (await post(server, '/ask', { question: 'Add the numbers to 100' })).json();
	assert.deepEqual([said.output, said.exitCode], ['5050\n', 0]);
	assert.equal(asked.tries, 2);
	const failed = await post(server, '/ask', { question: 'please fail' });
	assert.deepEqual([failed.status, (await failed.json()).error], [422, 'no\n']);
});

test('data-analysis: a file and a question become a chart', async t => {
	const { vars } = await model(t, body => {
		assert.match(body.messages[0].content, /month,sold/);
		return [{ type: 'text', text: 'Here it is:\n```python\nimport pandas as pd\nimport matplotlib.pyplot as plt\nd = pd.read_csv("/workspace/data.csv")\nprint(d.loc[d.sold.idxmax(), "month"])\nd.plot(x="month", y="sold", kind="bar")\nplt.show()\n```\n' }];
	});
	const server = await start(t, 'data-analysis', vars);
	const form = new FormData();
	form.set('file', new File(['month,sold\nJan,3\nFeb,9\nMar,4\n'], 'sales.csv'));
	form.set('question', 'Which month sold best?');
	const answer = await post(server, '/', form);
	const said = await answer.json();
	assert.equal(answer.status, 200, JSON.stringify(said));
	assert.equal(said.output, 'Feb\n');
	assert.deepEqual([...Buffer.from(said.chart, 'base64').subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47]);
});

test('code-review-bot: signed hooks only, the diff is read, a broken gateway is tried again', async t => {
	services.repository('project', { main: { 'app.py': 'print("hi")\n' }, 'fix/it\'s': { 'app.py': 'print("bye")\n' } });
	const { model: asked, vars } = await model(t, () => [{ type: 'text', text: 'app.py:1 says goodbye now.' }]);
	const host = await CodeHost.start();
	t.after(() => host.stop());
	const server = await start(t, 'code-review-bot', { ...vars, GITHUB_TOKEN: TOKEN, GITHUB_API_URL: host.url, WEBHOOK_SECRET: SECRET });
	const body = JSON.stringify({
		action: 'opened', number: 7, repository: { name: 'project', owner: { login: 'ann' }, clone_url: 'http://git.example.test/project.git' },
		pull_request: { head: { ref: 'fix/it\'s' }, base: { ref: 'main' } },
	});
	assert.equal((await post(server, '/webhook', body, hook('pull_request', body, 'a wrong secret'))).status, 401);
	assert.equal((await post(server, '/webhook', body, hook('pull_request', body))).status, 202);
	await until('the comment', () => host.comments.length === 1, 60_000);
	assert.deepEqual(host.comments[0], { owner: 'ann', repo: 'project', number: 7, body: 'app.py:1 says goodbye now.' });
	assert.match(asked.requests[0].messages[0].content, /^\+print\("bye"\)$/m);
	assert.equal(host.tries, 2);
});

const PROJECTS = {
	node: { 'package.json': '{"name":"p","version":"1.0.0","scripts":{"test":"node --test"},"dependencies":{"silt-hello":"*"}}', 'p.test.js': 'require("node:test")("greets", () => require("node:assert").equal(require("silt-hello")(), "hello from a module"));\n' },
	python: { 'requirements.txt': 'silthello\n', 'test_p.py': 'import unittest, silthello\nclass T(unittest.TestCase):\n    def test_greets(self):\n        self.assertEqual(silthello.greet(), "hello from a wheel")\n' },
	go: { 'go.mod': 'module example.test/p\n\ngo 1.19\n', 'p.go': 'package p\n\nfunc Twice(n int) int { return 2 * n }\n', 'p_test.go': 'package p\n\nimport "testing"\n\nfunc TestTwice(t *testing.T) {\n\tif Twice(21) != 42 {\n\t\tt.Fatal("not twice")\n\t}\n}\n' },
};

test('test-pipeline: Node, Python and Go repositories, with their packages', async t => {
	const server = await start(t, 'test-pipeline');
	const lines = async name => (await (await post(server, '/', { repository: `http://git.example.test/${name}.git`, branch: 'main' })).text()).trim().split('\n').map(line => JSON.parse(line));
	for (const [kind, files] of Object.entries(PROJECTS)) {
		services.repository(kind, { main: files });
		const all = await lines(kind);
		assert.deepEqual([all.find(event => event.kind)?.kind, all.at(-1)], [kind, { passed: true }], JSON.stringify(all, null, 1));
	}
	services.repository('broken', { main: { ...PROJECTS.go, 'p.go': 'package p\n\nfunc Twice(n int) int { return n }\n' } });
	const all = await lines('broken');
	assert.deepEqual(all.at(-1), { passed: false, failed: 'go test ./...', exitCode: 1 });
	assert.match(all.map(event => event.output ?? '').join(''), /not twice/);
});

test('agent: what was said and done is there the next time', async t => {
	const { model: asked, vars } = await model(t, body => {
		const last = body.messages.at(-1).content;
		if (typeof last === 'string')
			return [{ type: 'text', text: 'Let me see.' }, { type: 'tool_use', id: `toolu_${body.messages.length}`, name: 'shell', input: { command: last.includes('Write') ? 'cd /workspace && echo kept > note && export MOOD=fine' : 'cat note; echo $MOOD' } }];
		return [{ type: 'text', text: `It says: ${last[0].content}` }];
	});
	const server = await start(t, 'agent', vars);
	await post(server, '/agents/ann', { message: 'Write a note' });
	const said = await (await post(server, '/agents/ann', { message: 'What is in the note?' })).json();
	assert.equal(said.answer, 'It says: kept\nfine\n');
	assert.equal(asked.requests.at(-1).messages[0].content, 'Write a note');
	const other = await (await post(server, '/agents/bob', { message: 'What is in the note?' })).json();
	assert.match(other.answer, /No such file/);
});
