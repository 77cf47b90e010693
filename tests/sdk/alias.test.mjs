// SPDX-License-Identifier: Apache-2.0
// The library in place of @cloudflare/sandbox: programs and Workers with their import lines as they are, of every documented version; and the seven examples.
import './lib/fetched.mjs';
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Model, KEY } from '../client/lib/model.mjs';
import { CodeHost, SECRET, TOKEN, hook } from '../client/lib/codehost.mjs';
import { packages as clients } from '../client/lib/workerd.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { NETWORK } from '../lib/internet.mjs';
import { Services } from '../lib/services.mjs';
import { until } from '../lib/wait.mjs';
import { makeProject, run, SOURCE } from './lib/project.mjs';
import { startWorker } from './lib/worker.mjs';

const EXAMPLES = path.join(SOURCE, '../../examples');
const EXPORTS = [
	'getSandbox', 'proxyToSandbox', 'proxyTerminal', 'parseSSEStream', 'responseToAsyncIterable', 'asyncIterableToSSEStream', 'streamFile', 'collectFile', 'isExecResult', 'isProcess', 'isProcessStatus',
	'isPlatformTransientError', 'isDurableObjectCodeUpdateReset', 'Sandbox', 'ContainerProxy', 'CodeInterpreter', 'SandboxClient', 'CommandClient', 'FileClient', 'ProcessClient', 'PortClient', 'GitClient',
	'UtilityClient', 'BackupClient', 'SessionTerminatedError', 'ProcessReadyTimeoutError', 'ProcessExitedBeforeReadyError', 'BackupNotFoundError', 'BackupExpiredError', 'BackupCreateError', 'BackupRestoreError',
	'InvalidBackupConfigError', 'ContainerUnavailableError', 'RPCTransportError', 'OperationInterruptedError', 'BucketMountError', 'BucketUnmountError', 'S3FSMountError', 'MissingCredentialsError', 'InvalidMountConfigError',
];

let services, daemon;
before(async () => {
	services = await Services.start(['git']);
	daemon = await startDaemon({ flags: NETWORK.flags, warm: true });
});
after(async () => {
	await daemon?.stop();
	await services?.stop();
});

const settings = () => ({ SILT_URL: `http://${daemon.address}`, SILT_TOKEN: daemon.token });

test('in Node a program of the package runs as it is', async t => {
	assert.equal(EXPORTS.length, 40);
	const home = makeProject(t, { 'main.mjs': `import { ${EXPORTS.join(', ')} } from '@cloudflare/sandbox';
import { Shell, Editor } from '@cloudflare/sandbox/openai';
import { SandboxAddon } from '@cloudflare/sandbox/xterm';
import { createOpencode } from '@cloudflare/sandbox/opencode';
import { bridge, shellQuote } from '@cloudflare/sandbox/bridge';
const all = { ${EXPORTS.join(', ')} };
for (const name in all) if (typeof all[name] !== 'function') throw new Error(name);
const sandbox = getSandbox({ idFromName: name => name, get: () => ({}) }, 'alias-node');
const shell = new Shell(sandbox);
const { output } = await shell.run({ commands: ['echo one', 'sleep 9', 'echo never'], timeoutMs: 400 });
const editor = new Editor(sandbox, '/workspace');
await editor.createFile({ type: 'create_file', path: 'a.txt', diff: '+one\\n+two\\n' });
await editor.updateFile({ type: 'update_file', path: 'a.txt', diff: '@@\\n one\\n-two\\n+three\\n' });
const { content } = await sandbox.readFile('/workspace/a.txt');
const refused = await editor.deleteFile({ type: 'delete_file', path: '../../etc/passwd' }).then(() => 'deleted', error => error.message);
await editor.deleteFile({ type: 'delete_file', path: 'a.txt' });
const opencode = await Promise.resolve().then(() => createOpencode(sandbox)).catch(error => error.message);
const client = new SandboxClient({ sandboxId: 'alias-node' });
const pong = await client.utils.ping();
const low = (await client.commands.execute('echo low')).stdout;
await sandbox.destroy();
console.log(JSON.stringify({ output, content, refused, opencode, pong, low, quoted: typeof shellQuote, addon: typeof SandboxAddon, bridge: typeof bridge }));
` });
	const ended = await run([process.execPath, 'main.mjs'], { cwd: home, env: settings() });
	assert.equal(ended.code, 0, ended.stderr);
	const said = JSON.parse(ended.stdout);
	assert.deepEqual(said.output.map(one => [one.command, one.stdout, one.outcome.type]), [['echo one', 'one\n', 'exit'], ['sleep 9', '', 'timeout']]);
	assert.deepEqual([said.content.trim(), said.low, said.quoted, said.addon, said.bridge], ['one\nthree', 'low\n', 'function', 'function', 'function']);
	assert.match(said.refused, /outside|escape/i);
	assert.match(said.opencode, /OpenCode/i);
});

const WORKER = `import { getSandbox, parseSSEStream, proxyToSandbox, Sandbox as Client } from '@cloudflare/sandbox';
export { ContainerProxy } from '@cloudflare/sandbox';

export class Sandbox extends Client {
	envVars = { MARK: 'of the class' };
	sleepAfter = '5m';
	labels = { kind: 'worker' };
	enableInternet = false;

	async greet(word) {
		const { stdout } = await this.exec(\`echo \${word} $MARK\`);
		return stdout;
	}
	async failure() {
		return this.readFile('/nope').then(() => 'read', ({ name, code, httpStatus, context }) => ({ name, code, httpStatus, path: context.path }));
	}
}

export default {
	async fetch(request, env) {
		const preview = await proxyToSandbox(request, env);
		if (preview)
			return preview;
		const url = new URL(request.url);
		const sandbox = getSandbox(env.Sandbox, 'worker', { normalizeId: true });
		switch (url.pathname) {
		case '/first': return Response.json({ stdout: (await sandbox.exec('echo $MARK')).stdout, info: await sandbox.getInfo(), network: (await sandbox.getNetwork()).mode });
		case '/own': return Response.json({ greeting: await sandbox.greet('hello'), failure: await sandbox.failure() });
		case '/stream': return new Response(await sandbox.execStream('echo one; echo two'), { headers: { 'content-type': 'text/event-stream' } });
		case '/events': {
			const all = [];
			for await (const event of parseSSEStream(await sandbox.execStream('echo one; exit 2')))
				all.push([event.type, event.data ?? event.exitCode ?? null]);
			return Response.json(all);
		}
		case '/old': {
			const old = await proxyToSandbox(request, env.Sandbox, 'worker');
			const session = await sandbox.createSession({ name: 'old' });
			const { success, stdout } = await sandbox.exec('echo $PWD', { session: JSON.parse(JSON.stringify(session)).id });
			const result = await sandbox.runCode((await sandbox.createCodeContext({ language: 'python' })).id, 'print(1)\\n2', { stream: true });
			return Response.json({ status: old.status, success, stdout, output: result.output, formats: result.formats, names: await sandbox.readdir('/workspace') });
		}
		case '/upload': return Response.json({ ...await sandbox.writeFile('/workspace/up.bin', request.body), size: (await sandbox.readFile('/workspace/up.bin')).size });
		case '/serve': {
			const process = await sandbox.startProcess('exec python3 /workspace/server.py');
			await process.waitForPort(8123, { timeout: 30000 });
			return Response.json(await sandbox.exposePort(8123, { hostname: url.host, token: 'abcdefgh' }));
		}
		case '/ws': return sandbox.wsConnect(new Request(new URL('/echo', url), request), 8123);
		case '/terminal': return sandbox.terminal(request, { cols: 91, rows: 21 });
		case '/destroy': await sandbox.destroy(); return new Response('gone');
		default: return new Response('here');
		}
	},
};
`;

/** Answers with what it was asked, and echoes one WebSocket frame. */
const SERVER = `import base64, hashlib, http.server
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        if self.headers.get('Upgrade', '').lower() == 'websocket':
            key = base64.b64encode(hashlib.sha1((self.headers['Sec-WebSocket-Key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').encode()).digest()).decode()
            self.send_response(101); self.send_header('Upgrade', 'websocket'); self.send_header('Connection', 'Upgrade'); self.send_header('Sec-WebSocket-Accept', key); self.end_headers()
            head = self.rfile.read(2); mask = self.rfile.read(4); body = bytes(b ^ mask[i % 4] for i, b in enumerate(self.rfile.read(head[1] & 127)))
            self.wfile.write(bytes([0x81, len(body)]) + body); self.wfile.flush(); self.rfile.read(2); self.close_connection = True
            return
        body = f"{self.command} {self.path} {self.headers.get('X-Sandbox-Name')} {self.headers.get('X-Forwarded-Proto')} {self.headers.get('Cookie')}".encode()
        self.send_response(200); self.send_header('Content-Length', str(len(body))); self.send_header('Set-Cookie', 'a=1'); self.end_headers(); self.wfile.write(body)
http.server.ThreadingHTTPServer(('127.0.0.1', 8123), Handler).serve_forever()
`;

/** A GET with a host of its choice, which fetch does not let through. */
function get(worker, host, where, headers = {}) {
	return new Promise((resolve, reject) => http.get({ host: '127.0.0.1', port: worker.port, path: where, headers: { ...headers, Host: host } }, async response => resolve({ status: response.statusCode, headers: response.headers, text: (await response.toArray()).join('') })).on('error', reject));
}

test('as a Worker: a class of its own, previews, sockets, streams, older forms', async t => {
	const home = makeProject(t, { 'worker.mjs': WORKER });
	const worker = await startWorker(t, { home, entry: 'worker.mjs', variables: settings() });
	const json = async where => {
		const answer = await fetch(`${worker.url}${where}`);
		const text = await answer.text();
		assert.equal(answer.status, 200, `${where}: ${text}\n${worker.log()}`);
		return JSON.parse(text);
	};
	const first = await json('/first');
	assert.deepEqual([first.stdout, first.info.labels, first.info.sleepAfter, first.network], ['of the class\n', { kind: 'worker' }, 300, 'none']);
	assert.deepEqual(await json('/own'), { greeting: 'hello of the class\n', failure: { name: 'FileNotFoundError', code: 'FILE_NOT_FOUND', httpStatus: 404, path: '/nope' } });
	assert.match(await (await fetch(`${worker.url}/stream`)).text(), /^event: start\ndata: \{"type":"start".*\n\nevent: stdout\ndata: .*one/);
	assert.deepEqual(await json('/events'), [['start', null], ['stdout', 'one\n'], ['complete', 2]]);
	assert.deepEqual(await json('/old'), { status: 404, success: true, stdout: '/workspace\n', output: '1\n', formats: ['text'], names: [] });
	const up = await (await fetch(`${worker.url}/upload`, { method: 'POST', body: new Uint8Array(300_000) })).json();
	assert.deepEqual([up.success, up.bytesWritten, up.size], [true, 300_000, 300_000]);
	await daemon.api('PUT', '/v1/sandboxes/worker/files?path=/workspace/server.py', Buffer.from(SERVER));
	const { url } = await json('/serve');
	assert.match(url, /^http:\/\/8123-worker-abcdefgh\.localhost/);
	const seen = await get(worker, `8123-worker-abcdefgh.localhost:${worker.port}`, '/a%20b?c=d&e={f}', { Cookie: 'x=y', 'X-Sandbox-Name': 'forged' });
	assert.deepEqual([seen.status, seen.text, seen.headers['set-cookie']], [200, 'GET /a%20b?c=d&e={f} worker http x=y', ['a=1']]);
	assert.equal(seen.headers['content-security-policy'], undefined);
	const wrong = await get(worker, `8123-worker-abcdefgi.localhost:${worker.port}`, '/');
	assert.deepEqual([wrong.status, JSON.parse(wrong.text).code], [404, 'INVALID_TOKEN']);
	const socket = new WebSocket(`ws://127.0.0.1:${worker.port}/ws`);
	const echoed = await new Promise((resolve, reject) => {
		socket.onopen = () => socket.send('through the Worker');
		socket.onmessage = event => resolve(event.data);
		socket.onerror = () => reject(new Error(`the WebSocket failed\n${worker.log()}`));
	});
	assert.equal(echoed, 'through the Worker');
	socket.close();
	const terminal = new WebSocket(`ws://127.0.0.1:${worker.port}/terminal`);
	terminal.binaryType = 'arraybuffer';
	let shown = '';
	await new Promise((resolve, reject) => {
		terminal.onerror = () => reject(new Error(`the terminal failed\n${worker.log()}`));
		terminal.onclose = resolve;
		terminal.onmessage = ({ data }) => {
			if (typeof data !== 'string')
				shown += new TextDecoder().decode(data);
			else if (JSON.parse(data).type === 'ready')
				terminal.send(new TextEncoder().encode('stty size; exit\n'));
		};
	});
	assert.match(shown, /21 91/);
	await fetch(`${worker.url}/destroy`);
	assert.equal((await daemon.api('GET', '/v1/sandboxes/worker')).status, 404);
});

/** An example as a Worker with the library in place of the package, without its container. */
async function startExample(t, name, vars = {}, classes = ['Sandbox']) {
	const home = makeProject(t);
	fs.cpSync(path.join(EXAMPLES, name, 'src'), path.join(home, 'src'), { recursive: true });
	return startWorker(t, { home, entry: 'src/index.ts', classes, variables: { ...settings(), ...vars } });
}

const post = (server, where, body, headers = {}) => fetch(`${server.url}${where}`, { method: 'POST', body: typeof body === 'string' || body instanceof FormData ? body : JSON.stringify(body), headers });

async function model(t, answer) {
	const started = await Model.start(answer);
	t.after(() => started.stop());
	return { model: started, vars: { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: started.url } };
}

test('the seven examples, by alias: their types fit', t => {
	const home = makeProject(t);
	for (const name of fs.readdirSync(path.join(clients(), 'node_modules')))
		if (!fs.existsSync(path.join(home, 'node_modules', name)))
			fs.symlinkSync(path.join(clients(), 'node_modules', name), path.join(home, 'node_modules', name));
	fs.symlinkSync(path.join(clients(), 'node_modules/@cloudflare/workers-types'), path.join(home, 'node_modules/@cloudflare/workers-types'));
	const names = fs.readdirSync(EXAMPLES).filter(name => fs.existsSync(path.join(EXAMPLES, name, 'wrangler.jsonc')));
	assert.equal(names.length, 7);
	for (const name of names) {
		fs.cpSync(path.join(EXAMPLES, name), path.join(home, name), { recursive: true });
		const types = spawnSync(path.join(clients(), 'node_modules/.bin/tsc'), ['--noEmit', '-p', path.join(home, name)], { encoding: 'utf8' });
		assert.equal(types.status, 0, `${name}\n${types.stdout}`);
	}
});

test('examples by alias: minimal and code-interpreter', async t => {
	const minimal = await startExample(t, 'minimal');
	assert.deepEqual(await (await fetch(`${minimal.url}/run`)).json(), { stdout: '2 + 2 = 4\n', stderr: '', exitCode: 0, success: true });
	assert.deepEqual(await (await fetch(`${minimal.url}/file`)).json(), { content: 'Hello from a file\n' });
	const interpreter = await startExample(t, 'code-interpreter');
	const ran = async (code, where = '/run', language) => (await post(interpreter, where, { code, language })).json();
	await ran('r = 2');
	assert.equal((await ran('r * 21')).results[0].text, '42');
	assert.equal((await ran('r', '/run?session=bob')).error.name, 'NameError');
	assert.equal((await ran('enum A { B = 7 }; A.B', '/run', 'typescript')).results[0].text, '7');
});

test('examples by alias: ai-code-executor, data-analysis and agent', async t => {
	const { vars } = await model(t, body => {
		const last = body.messages.at(-1).content;
		if (body.tools?.some(tool => tool.name === 'run_python'))
			return [{ type: 'tool_use', id: 'toolu_1', name: 'run_python', input: { code: 'print(sum(range(101)))' } }];
		if (body.tools)
			return typeof last === 'string' ? [{ type: 'tool_use', id: `toolu_${body.messages.length}`, name: 'shell', input: { command: last.includes('Write') ? 'cd /workspace && echo kept > note && export MOOD=fine' : 'cat note; echo $MOOD' } }] : [{ type: 'text', text: `It says: ${last[0].content}` }];
		return [{ type: 'text', text: 'Here:\n```python\nimport pandas as pd\nimport matplotlib.pyplot as plt\nd = pd.read_csv("/workspace/data.csv")\nprint(d.loc[d.sold.idxmax(), "month"])\nd.plot(x="month", y="sold", kind="bar")\nplt.show()\n```\n' }];
	});
	const executor = await startExample(t, 'ai-code-executor', vars);
	const said = await (await post(executor, '/ask', { question: 'Add the numbers to 100' })).json();
	assert.deepEqual([said.output, said.exitCode], ['5050\n', 0]);
	const analysis = await startExample(t, 'data-analysis', vars);
	const form = new FormData();
	form.set('file', new File(['month,sold\nJan,3\nFeb,9\nMar,4\n'], 'sales.csv'));
	form.set('question', 'Which month sold best?');
	const charted = await (await post(analysis, '/', form)).json();
	assert.equal(charted.output, 'Feb\n', JSON.stringify(charted));
	assert.deepEqual([...Buffer.from(charted.chart, 'base64').subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47]);
	const agent = await startExample(t, 'agent', vars, ['Sandbox', 'Agent']);
	await post(agent, '/agents/ann', { message: 'Write a note' });
	assert.equal((await (await post(agent, '/agents/ann', { message: 'What is in the note?' })).json()).answer, 'It says: kept\nfine\n');
});

test('examples by alias: code-review-bot and test-pipeline', async t => {
	services.repository('project', { main: { 'app.py': 'print("hi")\n' }, 'fix/it\'s': { 'app.py': 'print("bye")\n' } });
	const { vars } = await model(t, () => [{ type: 'text', text: 'app.py:1 says goodbye now.' }]);
	const host = await CodeHost.start();
	t.after(() => host.stop());
	const bot = await startExample(t, 'code-review-bot', { ...vars, GITHUB_TOKEN: TOKEN, GITHUB_API_URL: host.url, WEBHOOK_SECRET: SECRET });
	const body = JSON.stringify({
		action: 'opened', number: 7, repository: { name: 'project', owner: { login: 'ann' }, clone_url: 'http://git.example.test/project.git' },
		pull_request: { head: { ref: 'fix/it\'s' }, base: { ref: 'main' } },
	});
	assert.equal((await post(bot, '/webhook', body, hook('pull_request', body))).status, 202);
	await until('the comment', () => host.comments.length === 1, 60_000).catch(error => assert.fail(`${error.message}\n${bot.log()}`));
	assert.equal(host.comments[0].body, 'app.py:1 says goodbye now.');
	services.repository('tested', { main: { 'pyproject.toml': '', 'test_p.py': 'import unittest\nclass T(unittest.TestCase):\n    def test_sum(self):\n        self.assertEqual(1 + 1, 2)\n' } });
	const pipeline = await startExample(t, 'test-pipeline');
	const lines = (await (await post(pipeline, '/', { repository: 'http://git.example.test/tested.git', branch: 'main' })).text()).trim().split('\n').map(line => JSON.parse(line));
	assert.deepEqual([lines.find(event => event.kind)?.kind, lines.at(-1)], ['python', { passed: true }], JSON.stringify(lines, null, 1));
});
