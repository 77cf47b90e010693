// SPDX-License-Identifier: Apache-2.0
// Sessions.

import assert from 'node:assert/strict';
import { getSandbox } from '@cloudflare/sandbox';
import { events, rejects, text } from './lib.mjs';

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
	assert.equal((await process.waitForLog('session', 20_000)).line.trim(), 'of the session');
	assert.equal((await session.getProcess(process.id)).status, 'running');
	assert.ok((await session.listProcesses()).some(p => p.id === process.id));
	assert.equal((await session.getProcessLogs(process.id)).stdout, 'of the session\n');
	await session.killProcess(process.id);
	assert.equal(await session.killAllProcesses(), 0);
	const context = await session.createCodeContext({ language: 'javascript' });
	assert.equal((await session.runCode('6 * 7', { context })).results[0].text, '42');
	await session.deleteCodeContext(context.id);
}

export async function sessionless(sandbox, { env, id, transport }) {
	const bare = getSandbox(env.Sandbox, id, { transport, enableDefaultSession: false });
	await bare.exec('cd /tmp; export A=1');
	assert.equal((await bare.exec('pwd; echo "[$A]"')).stdout, '/workspace\n[]\n');
	const late = await bare.exec('sleep 60', { timeout: 300 });
	assert.equal(late.exitCode, 124);
}
