// SPDX-License-Identifier: Apache-2.0
// The library in place of @cloudflare/sandbox: programs and Workers with their import lines as they are, of every documented version; and the seven examples.
import './lib/fetched.mjs';
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import fs from 'node:fs';
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
