// SPDX-License-Identifier: Apache-2.0
// Failures, in the object itself: there nothing of them is lost on the way.

import assert from 'node:assert/strict';

async function check(sandbox, call, wanted) {
	const said = await sandbox.failure(...call);
	assert.ok(said, `${call[0]} does not fail`);
	assert.deepEqual({ call: call[0], said: [said.name, said.code, said.status] }, { call: call[0], said: wanted });
	return said;
}

export async function errorsOfFiles(sandbox, { transport }) {
	await sandbox.exec('mkdir -p /workspace/d; touch /workspace/f; truncate -s 33M /workspace/huge.txt');
	const missing = await check(sandbox, ['readFile', '/workspace/none'], ['FileNotFoundError', 'FILE_NOT_FOUND', 404]);
	assert.equal(missing.context.path, '/workspace/none');
	await check(sandbox, ['readFile', '/workspace/huge.txt'], ['FileTooLargeError', 'FILE_TOO_LARGE', 413]);
	await check(sandbox, ['readFile', ''], ['ValidationFailedError', 'VALIDATION_FAILED', 400]);
	await check(sandbox, ['mkdir', '/workspace/d'], ['FileSystemError', 'FILESYSTEM_ERROR', 500]);
	const directory = await check(sandbox, ['deleteFile', '/workspace/d'], ['FileSystemError', 'IS_DIRECTORY', 400]);
	assert.equal(directory.message, "Cannot delete directory with deleteFile() at '/workspace/d'. Use exec('rm -rf <path>') instead.");
	await check(sandbox, ['listFiles', '/workspace/f'], ['FileSystemError', 'NOT_DIRECTORY', 400]);
	await check(sandbox, ['writeFile', `/workspace/${'n'.repeat(300)}`, 'x'], ['FileSystemError', 'NAME_TOO_LONG', 400]);
	await check(sandbox, ['writeFile', '/sys/x', 'x'], ['FileSystemError', 'FILESYSTEM_ERROR', 500]);
	if (transport === 'http') // of a WebSocket's streams the client keeps no class, and by rpc nothing is refused
		await check(sandbox, ['watch', '/etc'], ['PermissionDeniedError', 'PERMISSION_DENIED', 403]);
}

export async function errorsOfCommands(sandbox) {
	const late = await check(sandbox, ['exec', 'sleep 60', { timeout: 300 }], ['CommandError', 'COMMAND_EXECUTION_ERROR', 500]);
	assert.match(late.message, /time/i);
	const ended = await check(sandbox, ['exec', 'exit 7'], ['SessionTerminatedError', 'SESSION_TERMINATED', 410]);
	assert.equal(ended.context.exitCode, 7);
	await check(sandbox, ['killProcess', 'nobody'], ['ProcessNotFoundError', 'PROCESS_NOT_FOUND', 404]);
	await sandbox.createSession({ id: 'twice' });
	await check(sandbox, ['createSession', { id: 'twice' }], ['SessionAlreadyExistsError', 'SESSION_ALREADY_EXISTS', 409]);
}

export async function errorsOfTheRest(sandbox, { transport }) {
	await check(sandbox, ['gitCheckout', 'no url'], ['InvalidGitUrlError', 'INVALID_GIT_URL', 400]);
	const unreachable = await check(sandbox, ['gitCheckout', 'http://127.0.0.1:1/x.git'], ['GitError', 'GIT_OPERATION_FAILED', 500]);
	assert.match(unreachable.message, /^Failed to clone repository 'http:\/\/127\.0\.0\.1:1\/x\.git': [^]*fatal: unable to access/);
	assert.deepEqual(Object.keys(unreachable.context), ['repository', 'targetDir', 'exitCode', 'stderr']);
	await check(sandbox, ['deleteCodeContext', 'none'], ['ContextNotFoundError', 'CONTEXT_NOT_FOUND', 404]);
	await check(sandbox, ['exposePort', 8080, { hostname: 'x.workers.dev' }], ['CustomDomainRequiredError', 'CUSTOM_DOMAIN_REQUIRED', 400]);
	if (transport === 'rpc') {
		const said = await sandbox.failure('callTunnels', 'get', [8080]);
		assert.deepEqual([said.name, said.code, said.context.port], ['SandboxError', 'CLOUDFLARED_NOT_FOUND', 8080]);
	}
}

export async function errorsOfMissingInterpreters(sandbox, { transport }) {
	await sandbox.exec('rm -f /usr/bin/python3* "$(readlink -f "$(command -v node)")" "$(command -v node)" "$(command -v bun)"');
	const status = transport === 'rpc' ? 501 : 500; // by rpc the client has its own table of statuses
	const python = await check(sandbox, ['createCodeContext', { language: 'python' }], ['SandboxError', 'PYTHON_NOT_AVAILABLE', status]);
	assert.match(python.message, /^Python interpreter not available\. Use the cloudflare\/sandbox:\S+-python image variant for Python code execution\./);
	const script = await check(sandbox, ['createCodeContext', { language: 'javascript' }], ['SandboxError', 'INTERNAL_ERROR', 500]);
	assert.match(script.message, /^Failed to create code context: JavaScript runtime not available\./);
}
