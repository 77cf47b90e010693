// SPDX-License-Identifier: Apache-2.0
// Sessions.

import assert from 'node:assert/strict';
import { collectFile, getSandbox, parseSSEStream } from '@cloudflare/sandbox';
import { events, rejects, text, until, within } from './lib.mjs';

export async function createSession(sandbox) {
	const session = await sandbox.createSession({ id: 'one', env: { WHO: 'one' }, cwd: '/tmp' });
	assert.equal(session.id, 'one');
	assert.equal((await session.exec('pwd; echo $WHO')).stdout, '/tmp\none\n');
	assert.equal((await sandbox.exec('echo "[$WHO]"')).stdout, '[]\n');
	await rejects(sandbox.createSession({ id: 'one' }), 'SESSION_ALREADY_EXISTS');
	assert.equal((await (await sandbox.getSession('one')).exec('echo $WHO')).stdout, 'one\n');
	assert.equal((await sandbox.deleteSession('one')).sessionId, 'one');
	assert.equal((await (await sandbox.getSession('one')).exec('echo "[$WHO]"')).stdout, '[]\n');
}

export async function sessionCommandTimeout(sandbox) {
	const session = await sandbox.createSession({ id: 'hasty', commandTimeoutMs: 300 });
	await assert.rejects(session.exec('sleep 60'), /time/i);
}

export async function sessionMethods(sandbox) {
	const session = await sandbox.createSession({ id: 's', cwd: '/workspace' });
	await session.setEnvVars({ A: 'of the session' });
	assert.equal(text(await events(await session.execStream('echo $A')), 'stdout'), 'of the session\n');
	await session.mkdir('d');
	await session.writeFile('d/file', 'x');
	await session.renameFile('d/file', 'd/other');
	await session.moveFile('d/other', 'd/third');
	assert.equal((await session.readFile('d/third')).content, 'x');
	assert.equal((await session.exists('d/third')).exists, true);
	assert.equal((await session.listFiles('d')).count, 1);
	await session.deleteFile('d/third');
	const process = await session.startProcess('echo $A; sleep 60');
	assert.equal((await process.waitForLog('session', 60_000)).line.trim(), 'of the session');
	assert.equal((await session.getProcess(process.id)).status, 'running');
	assert.ok((await session.listProcesses()).some(p => p.id === process.id));
	assert.equal((await session.getProcessLogs(process.id)).stdout, 'of the session\n');
	const logs = await events(await session.streamProcessLogs(process.id), event => event.type === 'stdout');
	assert.equal(logs.at(-1).data, 'of the session\n');
	await session.killProcess(process.id);
	assert.equal(await session.killAllProcesses(), 0);
	assert.equal(await session.cleanupCompletedProcesses(), 0);
}

export async function sessionFilesAndCode(sandbox) {
	const session = await sandbox.createSession({ id: 's', cwd: '/workspace' });
	await session.exec('mkdir sub && cd sub && echo text > here.txt');
	assert.equal((await collectFile(await session.readFileStream('here.txt'))).content, 'text\n');
	assert.equal((await session.checkChanges('/workspace')).status, 'unchanged');
	const stream = await session.watch('/workspace');
	await within('the event', (async () => {
		for await (const event of parseSSEStream(stream)) {
			if (event.type === 'watching')
				await session.writeFile('/workspace/new.txt', 'x');
			if (event.type === 'event' && event.path.endsWith('new.txt'))
				return;
		}
	})());
	const context = await session.createCodeContext({ language: 'javascript' });
	assert.equal((await session.runCode('6 * 7', { context })).results[0].text, '42');
	assert.ok((await session.listCodeContexts()).some(c => c.id === context.id));
	assert.equal(text(await events(await session.runCodeStream('console.log("hi")', { context })), 'stdout'), 'hi\n');
	await session.deleteCodeContext(context.id);
}

export async function sessionsEnd(sandbox, { id }) {
	await sandbox.exec('true');
	const session = await sandbox.createSession({ id: 'brief', cwd: '/no/such/directory' });
	assert.equal((await session.exec('pwd')).stdout.trim(), '/root'); // home, where there is no such directory
	const process = await session.startProcess('sleep 60');
	await sandbox.deleteSession('brief');
	await until('the end of its process', async () => (await sandbox.getProcess(process.id)).status === 'error');
	await assert.rejects(sandbox.deleteSession(`sandbox-${id}`), /default/i);
}

export async function sessionsAtOnce(sandbox) {
	const [one, two] = await Promise.all(['one', 'two'].map(id => sandbox.createSession({ id })));
	const slow = one.exec('until [ -e /tmp/go ]; do sleep 0.05; done; echo slow');
	await two.exec('touch /tmp/go'); // it would not end if they waited for each other
	assert.equal((await slow).stdout, 'slow\n');
}

export async function sessionless(sandbox, { env, id, transport }) {
	const bare = getSandbox(env.Sandbox, id, { transport, enableDefaultSession: false });
	await bare.exec('cd /tmp; export A=1');
	assert.equal((await bare.exec('pwd; echo "[$A]"')).stdout, '/workspace\n[]\n');
	const late = await bare.exec('sleep 60', { timeout: 300 });
	assert.equal(late.exitCode, 124);
	assert.equal(late.sessionId, undefined);
	assert.equal(text(await events(await bare.execStream('pwd')), 'stdout'), '/workspace\n');
	await bare.writeFile('plain.txt', 'x');
	assert.equal((await bare.readFile('/workspace/plain.txt')).content, 'x');
	assert.equal((await bare.exists('plain.txt')).exists, true);
	assert.equal((await bare.listFiles('/workspace')).count, 1);
	const process = await bare.startProcess('pwd');
	await process.waitForExit(60_000);
	assert.equal((await process.getLogs()).stdout, '/workspace\n');
	const session = await bare.createSession({ id: 'named' });
	await session.exec('cd /tmp');
	assert.equal((await session.exec('pwd')).stdout, '/tmp\n');
}
