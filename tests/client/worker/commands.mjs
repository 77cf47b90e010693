// SPDX-License-Identifier: Apache-2.0
// Commands: exec and execStream.

import assert from 'node:assert/strict';
import { getSandbox, isExecResult } from '@cloudflare/sandbox';
import { events, rejects, text, until } from './lib.mjs';

export async function exec(sandbox) {
	const result = await sandbox.exec('echo out; echo err >&2; exit_code() { return 3; }; exit_code');
	assert.ok(isExecResult(result));
	assert.deepEqual([result.stdout.trim(), result.stderr.trim(), result.exitCode, result.success], ['out', 'err', 3, false]);
	assert.ok(result.duration >= 0 && result.timestamp && result.command.startsWith('echo out'));
}

export async function execKeepsItsShell(sandbox) {
	await sandbox.exec('cd /tmp && export COLOUR=blue && greet() { echo hello $1; }');
	assert.equal((await sandbox.exec('pwd; echo $COLOUR; greet you')).stdout, '/tmp\nblue\nhello you\n');
}

export async function execWithOptions(sandbox) {
	const result = await sandbox.exec('pwd; echo $A', { cwd: '/usr', env: { A: 'b c', B: undefined } });
	assert.equal(result.stdout, '/usr\nb c\n');
	assert.equal((await sandbox.exec('echo "[$A]"')).stdout, '[]\n');
}

export async function execAsAShellDoes(sandbox) {
	assert.equal((await sandbox.exec('no-such-command-here')).exitCode, 127);
	assert.equal((await sandbox.exec('cat; read line; echo over')).stdout, 'over\n'); // there is nothing to read
	const nowhere = await sandbox.exec('pwd', { cwd: '/no/such/directory' });
	assert.deepEqual([nowhere.exitCode, nowhere.success], [1, false]);
	assert.match(nowhere.stderr, /no\/such\/directory/);
	assert.equal((await sandbox.exec('cat <<E | tr a-z A-Z && (exit 0)\nhere\nE')).stdout, 'HERE\n');
}

/** In the object itself: signals do not cross to it. */
export async function execAborted(sandbox) {
	assert.deepEqual(await sandbox.abortedCommands(), { before: 'Operation was aborted', during: 'Operation was aborted', stream: 'Operation was aborted' });
	assert.equal((await sandbox.exec('echo on')).stdout, 'on\n');
}

export async function execTellsItsEnd(sandbox) {
	let completed, failed;
	await sandbox.exec('echo done', { onComplete: result => { completed = result; } });
	await until('the callback', () => completed);
	assert.equal(completed.stdout, 'done\n');
	await assert.rejects(sandbox.exec('exit 3', { onError: error => { failed = error; } }));
	await until('the callback', () => failed);
	assert.ok(failed instanceof Error);
}

export async function execTimeout(sandbox) {
	await assert.rejects(sandbox.exec('sleep 60', { timeout: 300 }), /time/i);
	assert.equal((await sandbox.exec('echo on')).stdout, 'on\n');
}

export async function execStreamsToCallbacks(sandbox) {
	const pieces = [];
	let completed;
	const result = await sandbox.exec('echo one; echo two >&2; echo three', { stream: true, onOutput: (stream, data) => pieces.push([stream, data]), onComplete: r => { completed = r; } });
	await until('the last callback', () => completed); // callbacks are calls from the object back to the Worker
	const of = name => pieces.filter(([stream]) => stream === name).map(([, data]) => data).join('');
	assert.deepEqual([of('stdout'), of('stderr'), result.exitCode, completed?.exitCode], ['one\nthree\n', 'two\n', 0, 0]);
}

export async function execLargeOutput(sandbox) {
	const { stdout } = await sandbox.exec('head -c 3000000 /dev/zero | tr "\\0" x');
	assert.equal(stdout.length, 3_000_000);
}

export async function execExit(sandbox) {
	await rejects(sandbox.exec('exit 5'), 'SESSION_TERMINATED');
	assert.equal((await sandbox.exec('echo new')).stdout, 'new\n');
}

export async function execStream(sandbox) {
	const all = await events(await sandbox.execStream('for i in 1 2 3; do echo $i; done; echo no >&2; (exit 4)'));
	assert.equal(all[0].type, 'start');
	assert.equal(text(all, 'stdout'), '1\n2\n3\n');
	assert.equal(text(all, 'stderr'), 'no\n');
	assert.deepEqual([all.at(-1).type, all.at(-1).exitCode], ['complete', 4]);
}

export async function execStreamWithOptions(sandbox) {
	await sandbox.createSession({ id: 'one', env: { WHO: 'one' } });
	const all = await events(await sandbox.execStream('echo "$WHO $A $PWD"', { sessionId: 'one', env: { A: 'a' }, cwd: '/usr' }));
	assert.equal(text(all, 'stdout'), 'one a /usr\n');
	assert.ok(all.every(event => typeof event.timestamp === 'string'));
	await assert.rejects(async () => sandbox.execStream('true', { sessionId: ' ' }), /session/i);
}

export async function execStreamIsLive(sandbox) {
	const seen = await events(await sandbox.execStream('echo first; sleep 60'), event => event.type === 'stdout');
	assert.equal(seen.at(-1).data, 'first\n');
}

export async function setEnvVars(sandbox) {
	await sandbox.setEnvVars({ ONE: '1', TWO: "it's 2" });
	assert.equal((await sandbox.exec('echo $ONE; echo "$TWO"')).stdout, "1\nit's 2\n");
	await sandbox.setEnvVars({ ONE: undefined });
	assert.equal((await sandbox.exec('echo "[$ONE]"')).stdout, '[]\n');
	const session = await sandbox.createSession({ id: 'other', env: { TWO: 'of the session' } });
	assert.equal((await session.exec('echo $TWO')).stdout, 'of the session\n');
	assert.equal((await session.exec('echo $TWO', { env: { TWO: 'of the command' } })).stdout, 'of the command\n');
	await assert.rejects(sandbox.setEnvVars({ 'no-name': '1' }), /no-name/);
}

export async function variablesOfTheSandboxReachNewSessions(sandbox) {
	await sandbox.setEnvVars({ WIDE: 'everywhere' });
	assert.equal((await (await sandbox.createSession({ id: 'fresh' })).exec('echo $WIDE')).stdout, 'everywhere\n');
	const process = await sandbox.startProcess('echo $WIDE');
	await process.waitForExit(60_000);
	assert.equal((await process.getLogs()).stdout, 'everywhere\n');
}

/** The client forgets them with its object: the server does not. */
export async function variablesOutliveTheObject(_, { env, id, transport }) {
	const open = () => getSandbox(env.Sandbox, `${id}-r`, { transport });
	const sandbox = open();
	await sandbox.exec('touch /tmp/same');
	await sandbox.setEnvVars({ KEPT: "it's\n'here'", GONE: 'x', CHANGED: 'old' });
	await sandbox.setEnvVars({ GONE: undefined, CHANGED: 'new' });
	await sandbox.restart().catch(() => {}); // what was opened before is broken now
	const again = open();
	try {
		const session = await again.createSession({ id: 'later', env: { OWN: 'own' } });
		assert.equal((await session.exec('ls /tmp/same; echo "$KEPT|${GONE-gone}|$CHANGED|$OWN"')).stdout, "/tmp/same\nit's\n'here'|gone|new|own\n");
		assert.equal((await again.exec('echo "$KEPT"')).stdout, "it's\n'here'\n");
	} finally {
		await again.destroy();
	}
}

/** Its repository lies in the sandbox, behind git's own HTTP server. */
const GIT = `const http = require('http'), { spawn } = require('child_process');
http.createServer((q, r) => {
	const url = new URL(q.url, 'http://x');
	if (q.url.startsWith('/hang/'))
		return;
	if (q.url.startsWith('/hub/'))
		return r.writeHead(404, { 'content-type': 'text/plain' }).end('Repository not found.');
	const cgi = spawn('git', ['http-backend'], { env: { PATH: process.env.PATH, GIT_PROJECT_ROOT: '/srv/git', GIT_HTTP_EXPORT_ALL: '1', PATH_INFO: url.pathname, QUERY_STRING: url.search.slice(1), REQUEST_METHOD: q.method, CONTENT_TYPE: q.headers['content-type'] || '', HTTP_CONTENT_ENCODING: q.headers['content-encoding'] || '', GIT_PROTOCOL: q.headers['git-protocol'] || '' } });
	q.pipe(cgi.stdin);
	const all = [];
	cgi.stdout.on('data', d => all.push(d)).on('end', () => {
		const said = Buffer.concat(all), end = said.indexOf('\\r\\n\\r\\n');
		let status = 200;
		for (const line of said.subarray(0, end).toString().split('\\r\\n')) {
			const [name, value] = line.split(': ');
			name === 'Status' ? status = parseInt(value) : r.setHeader(name, value);
		}
		r.writeHead(status).end(said.subarray(end + 4));
	});
}).listen(8418, '127.0.0.1');`;

async function serveRepository(sandbox) {
	await sandbox.exec(`export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
		git init -q -b main /srv/w && cd /srv/w && echo hi > file && git add -A && git commit -qm first && git checkout -q -b other && echo there > file && git commit -qam second
		git clone -q --bare /srv/w /srv/git/repo.git && git -C /srv/git/repo.git symbolic-ref HEAD refs/heads/main && git -C /srv/git/repo.git config uploadpack.allowFilter true`);
	await sandbox.writeFile('/srv/server.cjs', GIT);
	const server = await sandbox.startProcess('node /srv/server.cjs');
	await server.waitForPort(8418, { mode: 'tcp', timeout: 30_000 });
	return 'http://127.0.0.1:8418/repo.git';
}

export async function gitCheckout(sandbox) {
	const url = await serveRepository(sandbox);
	const main = await sandbox.gitCheckout(url);
	assert.deepEqual([main.success, main.branch, main.targetDir], [true, 'main', '/workspace/repo']);
	assert.equal((await sandbox.readFile('/workspace/repo/file')).content, 'hi\n');
	const other = await sandbox.gitCheckout(url, { branch: 'other', targetDir: '/workspace/elsewhere', depth: 1 });
	assert.deepEqual([other.branch, other.targetDir], ['other', '/workspace/elsewhere']);
	assert.equal((await sandbox.exec('git -C /workspace/elsewhere rev-list --count HEAD')).stdout.trim(), '1');
	const session = await sandbox.createSession({ id: 'git' });
	assert.equal((await session.gitCheckout(url, { targetDir: '/tmp/third' })).targetDir, '/tmp/third');
	assert.equal((await session.readFile('/tmp/third/file')).content, 'hi\n');
}

export async function gitFailures(sandbox) {
	const url = await serveRepository(sandbox);
	await rejects(sandbox.gitCheckout('http://127.0.0.1:8418/none.git'), 'GitError'); // git's own 128, whatever is behind it
	await rejects(sandbox.gitCheckout(url, { branch: 'never' }), 'GitError');
	await rejects(sandbox.gitCheckout('http://127.0.0.1:1/x.git'), 'GitError');
	await rejects(sandbox.gitCheckout('http://127.0.0.1:8418/hub/x.git'), 'GIT_REPOSITORY_NOT_FOUND');
	await rejects(sandbox.gitCheckout('http://127.0.0.1:8418/hang/x.git', { cloneTimeoutMs: 500 }), 'GIT_NETWORK');
	await rejects(sandbox.gitCheckout('no url'), 'INVALID_GIT_URL');
	await assert.rejects(sandbox.gitCheckout(url, { depth: 0 }), /Invalid depth value: 0\. Must be a positive integer \(e\.g\., 1, 5, 10\)\./);
	await assert.rejects(sandbox.gitCheckout(url, { cloneTimeoutMs: 0 }), /Invalid timeout value: 0\. Must be a positive integer number of milliseconds\./);
	await assert.rejects(sandbox.gitCheckout(url, { cloneTimeoutMs: -1 }), /Invalid timeout value: -1\. Must/);
}
