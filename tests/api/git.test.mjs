// SPDX-License-Identifier: Apache-2.0
// Cloning repositories, from a real git server over HTTP that runs inside the sandbox.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { SESSIONLESS } from '../lib/box.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { refused, TIME } from '../lib/expect.mjs';
import { open, PASSWORD, PORT, startGitServer, stopGitServer, USER, withCredentials } from '../lib/gitserver.mjs';
import * as host from '../lib/host.mjs';
import { collect, events } from '../lib/sse.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
let box; // with the server
before(async () => {
	daemon = await startDaemon({ flags: { 'log.level': 'debug' } });
	box = await daemon.box();
	await startGitServer(box);
});
after(() => daemon?.stop());

const checkout = (body, b = box) => b.api('POST', '/api/git/checkout', body);
let count = 0;
const fresh = () => `/tmp/clone-${++count}`;
const quote = text => `'${text.replaceAll("'", "'\\''")}'`;

/** The last event of the native route. */
async function native(body) {
	const response = await daemon.client.open('POST', `/v1/sandboxes/${box.id}/git/clone`, body);
	return (await collect(events(response))).all.at(-1).data;
}

/** A checkout that must work: the answer's body. */
async function clone(body) {
	const answer = await checkout(body);
	assert.equal(answer.status, 200, answer.raw.toString());
	return answer.body;
}

async function nothingAt(target, b = box) {
	assert.equal((await b.run(`test -e ${quote(target)} || test -L ${quote(target)}`)).exitCode, 1, `${target} is not left behind`);
}

test('a repository is cloned with its own branch to /workspace/<name>', async () => {
	const body = await clone({ repoUrl: open('repo.git') });
	assert.deepEqual(Object.keys(body), ['success', 'repoUrl', 'branch', 'targetDir', 'timestamp']);
	assert.deepEqual({ ...body, timestamp: '' }, { success: true, repoUrl: open('repo.git'), branch: 'main', targetDir: '/workspace/repo', timestamp: '' });
	assert.match(body.timestamp, TIME);
	assert.equal(await box.out('cat /workspace/repo/file'), 'line 1\nline 2\nline 3\n');
});

test('without credentials blobs are left out until they are needed', async () => {
	const target = fresh();
	await clone({ repoUrl: open('repo.git'), targetDir: target });
	assert.equal((await box.out(`git -C ${target} config remote.origin.partialclonefilter`)).trim(), 'blob:none');
	assert.equal((await box.out(`git -C ${target} remote get-url origin`)).trim(), open('repo.git'));
});

test('branch and tag', async () => {
	const target = fresh();
	assert.equal((await clone({ repoUrl: open('repo.git'), branch: 'feature/x', targetDir: target })).branch, 'feature/x');
	assert.equal(await box.out(`cat ${target}/only-here`), 'other\n');
	assert.equal((await clone({ repoUrl: open('repo.git'), branch: 'v1', targetDir: fresh() })).branch, 'v1');
});

test('depth', async () => {
	for (const repoUrl of [open('repo.git'), withCredentials('repo.git')]) {
		const target = fresh();
		await clone({ repoUrl, depth: 2, targetDir: target });
		assert.equal((await box.out(`git -C ${target} rev-list --count HEAD`)).trim(), '2');
	}
});

test('an empty repository has its branch', async () => {
	assert.equal((await clone({ repoUrl: open('empty.git'), targetDir: fresh() })).branch, 'main');
});

test('a relative target begins at the directory of the session', async () => {
	await box.out('mkdir -p /tmp/here && cd /tmp/here', { sessionId: 'there' });
	const body = await clone({ repoUrl: open('repo.git'), targetDir: 'sub/dir', sessionId: 'there' });
	assert.equal(body.targetDir, 'sub/dir');
	assert.equal(await box.out('cat /tmp/here/sub/dir/file'), 'line 1\nline 2\nline 3\n');
	await clone({ repoUrl: open('repo.git'), targetDir: 'plain', sessionId: SESSIONLESS });
	assert.equal(await box.out('cat /workspace/plain/file'), 'line 1\nline 2\nline 3\n');
});

test('the session keeps its directory, options and state', async () => {
	const sessionId = 'odd';
	await box.out('cd /tmp; set -u; git() { echo no; }; alias git=false; shopt -s expand_aliases; export GIT_DIR=/nowhere GIT_WORK_TREE=/nowhere', { sessionId });
	const target = fresh();
	assert.equal((await clone({ repoUrl: open('repo.git'), targetDir: target, sessionId })).branch, 'main');
	assert.equal(await box.out('pwd; echo $GIT_DIR', { sessionId }), '/tmp\n/nowhere\n');
});

test('a private repository needs the right credentials', async () => {
	const target = fresh();
	const wrong = await checkout({ repoUrl: withCredentials('repo.git', USER, 'not-the-password'), targetDir: target });
	const context = refused(wrong, 500, 'GIT_OPERATION_FAILED');
	assert.deepEqual(Object.keys(context), ['repository', 'targetDir', 'exitCode', 'stderr']);
	assert.equal(context.repository, `http://******@127.0.0.1:${PORT}/private/repo.git`);
	assert.equal(context.targetDir, target);
	assert.equal(context.exitCode, 128);
	assert.ok(!wrong.raw.includes('not-the-password') && !wrong.raw.includes('bob'), wrong.raw.toString());
	await nothingAt(target);
	refused(await checkout({ repoUrl: `http://127.0.0.1:${PORT}/private/repo.git`, targetDir: target }), 500, 'GIT_OPERATION_FAILED');
	assert.equal((await clone({ repoUrl: withCredentials('repo.git'), targetDir: target })).branch, 'main');
});

test('after a private clone everything works with the server stopped, and nothing secret is left', async t => {
	const own = await daemon.box(t);
	await startGitServer(own);
	const answer = await own.api('POST', '/api/git/checkout', { repoUrl: withCredentials('repo.git'), targetDir: '/workspace/r' });
	assert.equal(answer.status, 200, answer.raw.toString());
	await stopGitServer(own);
	await until('the server is gone', async () => (await daemon.api('POST', `/v1/sandboxes/${own.id}/ports/wait`, { port: PORT, mode: 'tcp', timeoutMs: 20 })).body.reached === false);
	assert.equal(await own.out('cd /workspace/r && git checkout -q feature/x && cat only-here'), 'other\n');
	assert.equal((await own.out('git -C /workspace/r log -p --all | grep -c "^commit"')).trim(), '4');
	assert.equal((await own.out('git -C /workspace/r remote get-url origin')).trim(), `http://127.0.0.1:${PORT}/private/repo.git`);
	assert.equal((await own.out('git -C /workspace/r config --get-all remote.origin.promisor; git -C /workspace/r config --get-regexp credential; true')).trim(), '');
	for (const secret of [PASSWORD, encodeURIComponent(PASSWORD), Buffer.from(`${USER}:${PASSWORD}`).toString('base64')])
		assert.equal((await own.run(`grep -rFl -- ${quote(secret)} /workspace /root /tmp`)).stdout, '');
});

test('while git runs, no command line and no environment of the machine shows the credentials', async t => {
	const own = await daemon.box(t);
	await startGitServer(own);
	const secret = 'sEcReT-0123456789';
	const user = 'uSeR-0123456789';
	const url = `http://${user}:${secret}@127.0.0.1:${PORT}/hang/repo.git`;
	const pending = own.api('POST', '/api/git/checkout', { repoUrl: url, targetDir: '/tmp/h', timeoutMs: 8_000 });
	await until('the request hangs', async () => (await own.out('cat /srv/requests')).includes('/hang/'));
	const shown = pid => ['cmdline', 'environ'].map(name => {
		try {
			return fs.readFileSync(`/proc/${pid}/${name}`, 'latin1');
		} catch {
			return '';
		}
	}).join('');
	const inside = host.processesOf(daemon.instance).filter(p => /git/.test(p.command.join(' ')));
	assert.ok(inside.length >= 2, 'git and its helper run');
	for (const pid of host.pids())
		assert.ok(!shown(pid).includes(secret) && !shown(pid).includes(user), `process ${pid}`);
	const seen = await own.out('cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr "\\0" "\\n"', { sessionId: 'spy' });
	assert.ok(seen.includes('/hang/repo.git') && !seen.includes(secret) && !seen.includes(user));
	const answer = await pending;
	refused(answer, 502, 'GIT_NETWORK_ERROR');
	assert.ok(!answer.raw.includes(secret) && !answer.raw.includes(user));
	assert.ok(!daemon.log().includes(secret) && !daemon.log().includes(user), 'nor does our log');
	await nothingAt('/tmp/h', own);
});

test('traces that a session asks git for do not show the credentials', async () => {
	const sessionId = 'traces';
	await box.out('export GIT_TRACE_CURL=2 GIT_TRACE_REDACT=0 GIT_CURL_VERBOSE=1 GIT_TRACE2_EVENT=/tmp/trace2 GIT_TRACE_PACKET=/tmp/packets', { sessionId });
	const answer = await checkout({ repoUrl: withCredentials('missing.git'), targetDir: fresh(), sessionId });
	refused(answer, 500, 'GIT_OPERATION_FAILED');
	assert.doesNotMatch(answer.raw.toString(), /authorization|trace/i);
	assert.equal((await box.run('ls /tmp/trace2 /tmp/packets')).stdout, '');
});

test('a redirect to another server does not get the credentials', async () => {
	const answer = await checkout({ repoUrl: `http://${encodeURIComponent(USER)}:${encodeURIComponent(PASSWORD)}@127.0.0.1:${PORT}/away/repo.git`, targetDir: fresh() });
	refused(answer, 500, 'GIT_OPERATION_FAILED');
	assert.deepEqual([...new Set((await box.out('cat /srv/stolen')).trim().split('\n'))], ['-']);
});

const FAILURES = [
	[{ repoUrl: open('nowhere.git') }, 404, 'GIT_REPOSITORY_NOT_FOUND'],
	[{ repoUrl: open('repo.git'), branch: 'nowhere' }, 404, 'GIT_BRANCH_NOT_FOUND'],
	[{ repoUrl: `http://127.0.0.1:${PORT}/forbidden/x.git` }, 401, 'GIT_AUTH_FAILED'],
	[{ repoUrl: 'http://127.0.0.1:9/x.git' }, 502, 'GIT_NETWORK_ERROR'],
	[{ repoUrl: 'http://no-such-host.invalid/x.git' }, 502, 'GIT_NETWORK_ERROR'],
	[{ repoUrl: 'git://127.0.0.1:9/x.git' }, 502, 'GIT_NETWORK_ERROR'],
	[{ repoUrl: open('repo.git'), targetDir: '/proc/version/x' }, 500, 'GIT_CLONE_FAILED'],
	[{ repoUrl: `http://127.0.0.1:${PORT}/hub/x.git` }, 404, 'GIT_REPOSITORY_NOT_FOUND', true],
];

test('what fails has its own code on the native route, and leaves no half directory', async () => {
	for (const [body, status, code] of FAILURES) {
		const target = body.targetDir ?? fresh();
		const said = await native({ targetDir: target, ...body });
		assert.deepEqual([said.type, said.httpStatus, said.code, said.context.repository, said.context.targetDir], ['error', status, code, body.repoUrl, target]);
		await nothingAt(target);
	}
});

test('on the compatible route nearly all that fails is one code, as in the official server', async () => {
	for (const [body, status, code, isOfficial] of FAILURES) {
		const target = body.targetDir ?? fresh();
		const answer = await checkout({ targetDir: target, ...body });
		const context = refused(answer, ...(isOfficial ? [status, code] : [500, 'GIT_OPERATION_FAILED']));
		assert.deepEqual(Object.keys(context), ['repository', 'targetDir', 'exitCode', 'stderr']);
		assert.deepEqual([context.repository, context.targetDir, context.exitCode], [body.repoUrl, target, 128]);
		assert.equal(answer.body.message, `Failed to clone repository '${body.repoUrl}': ${context.stderr.trimEnd()}`);
		await nothingAt(target);
	}
});

test('an existing directory with files is refused and stays as it is; an empty one is used', async () => {
	const target = fresh();
	await box.out(`mkdir ${target} && echo mine > ${target}/file`);
	refused(await checkout({ repoUrl: open('repo.git'), targetDir: target }), 500, 'GIT_OPERATION_FAILED');
	assert.equal(await box.out(`ls ${target}; cat ${target}/file`), 'file\nmine\n');
	await box.out(`rm ${target}/file`);
	refused(await checkout({ repoUrl: open('nowhere.git'), targetDir: target }), 500, 'GIT_OPERATION_FAILED');
	assert.equal((await box.run(`test -d ${target}`)).exitCode, 0);
	await clone({ repoUrl: open('repo.git'), targetDir: target });
});

test('a server that never answers: GIT_NETWORK_ERROR when the time is over, and git is gone', async () => {
	const target = fresh();
	const context = refused(await checkout({ repoUrl: `http://127.0.0.1:${PORT}/hang/x.git`, targetDir: target, timeoutMs: 300 }), 502, 'GIT_NETWORK_ERROR');
	assert.equal(context.exitCode, 124);
	await nothingAt(target);
	assert.deepEqual(host.processesOf(daemon.instance).filter(p => p.command.join(' ').includes(target)), []);
});

test('a client that leaves does not stop the clone', async () => {
	const target = fresh();
	const response = daemon.client.open('POST', `/v1/sandboxes/${box.id}/git/clone`, { repoUrl: open('repo.git'), targetDir: target });
	(await response).destroy();
	await until('it is there', async () => (await box.run(`test -f ${target}/file && test -z "$(git -C ${target} status --porcelain)"`)).exitCode === 0);
});

const INJECTIONS = ['', ' ', '-', '--upload-pack=touch /tmp/pwned', '-c core.x=y', 'ext::sh -c touch% /tmp/pwned', 'ext::touch /tmp/pwned', 'fd::3', 'file:///srv/git/open/repo.git', '/srv/git/open/repo.git', './repo', '../x', 'repo', 'ftp://h/x', 'ssh://-oProxyCommand=touch%20/tmp/pwned/x', 'git@-oProxyCommand=x:y', 'http://h/a\nb', 'http://h/a\u0000b', 'http://u:%0Apassword=x@h/', 'http://u:p/w@h/x', `http://h/${'x'.repeat(2048)}`, 5, null, undefined, {}];

test('addresses that could run something, or are none, are refused', async () => {
	for (const repoUrl of INJECTIONS) {
		const context = refused(await checkout({ repoUrl, targetDir: fresh() }), 400, 'INVALID_GIT_URL');
		assert.deepEqual([context.validationErrors.length, context.validationErrors[0].field, context.validationErrors[0].code], [1, 'repoUrl', 'INVALID_GIT_URL'], String(repoUrl));
	}
	await nothingAt('/tmp/pwned');
});

test('wrong fields are refused', async () => {
	const repoUrl = open('repo.git');
	const rows = [
		...[0, -1, 1.5, 'x', null, true].map(timeoutMs => [{ timeoutMs }, 'timeoutMs', 'INVALID_TIMEOUT']),
		...[0, -1, 1.5, '1', null].map(depth => [{ depth }, 'depth', 'INVALID_DEPTH']),
		...['', 5, 'a\0b', 'x'.repeat(5000)].map(targetDir => [{ targetDir }, 'targetDirectory', 'INVALID_PATH']),
		...['-b', '--upload-pack=x', 'a\nb', 5, 'x'.repeat(2000)].map(branch => [{ branch }, 'branch', 'INVALID_BRANCH']),
	];
	for (const [fields, field, code] of rows) {
		const answer = await checkout({ repoUrl, ...fields });
		const { validationErrors } = refused(answer, 400, 'VALIDATION_FAILED');
		if (fields.timeoutMs === 0)
			assert.equal(answer.body.message, 'Invalid timeout value: 0. Must be a positive integer number of milliseconds.');
		assert.deepEqual([validationErrors[0].field, validationErrors[0].code], [field, code], JSON.stringify(fields).slice(0, 100));
	}
});

const NASTY = ['$(touch /tmp/pwned)', '`touch /tmp/pwned`', '; touch /tmp/pwned', "'; touch /tmp/pwned; '", '"; touch /tmp/pwned; "', '| touch /tmp/pwned', '&& touch /tmp/pwned', '\\', "'", '"', '$IFS', '*', '?', '~', '!!', '#', 'ünï 😀', ' lead', 'trail ', '{a,b}', '<x', '>x', '%s', '.-'];

test('branch names and targets of any kind are only names', async () => {
	for (const nasty of NASTY)
		refused(await checkout({ repoUrl: open('repo.git'), branch: nasty, targetDir: fresh() }), 500, 'GIT_OPERATION_FAILED');
	await box.out('mkdir /tmp/nasty && cd /tmp/nasty', { sessionId: 'nasty' });
	for (const nasty of [...NASTY, '-rf', '--', '-', 'a\nb']) {
		const body = await clone({ repoUrl: open('repo.git'), depth: 1, targetDir: nasty, sessionId: 'nasty' });
		assert.equal(body.targetDir, nasty);
		assert.equal(body.branch, 'main', nasty);
		assert.equal(await box.out(`cat -- ${quote(`./${nasty}/file`)}`, { sessionId: 'nasty' }), 'line 1\nline 2\nline 3\n');
	}
	await nothingAt('/tmp/pwned');
});

test('hooks, filters and submodules of a repository run nothing', async () => {
	await box.out(`bash -c ${quote(`set -e
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
rm -rf /srv/evil; mkdir -p /srv/evil/hooks /srv/templates/hooks; cd /srv/evil; git init -q -b main .
printf '#!/bin/sh\\ntouch /tmp/pwned\\n' > hooks/post-checkout; chmod 755 hooks/post-checkout
cp hooks/post-checkout /srv/templates/hooks/
printf '* filter=evil\\n' > .gitattributes
printf '[submodule "s"]\\n\\tpath = s\\n\\turl = ext::touch /tmp/pwned\\n' > .gitmodules
git add -A; git update-index --add --cacheinfo 160000,$(git -C /srv/w rev-parse HEAD),s; git commit -q -m evil
git config --global init.templateDir /srv/templates; git config --global submodule.recurse true
git clone -q --bare . /srv/git/open/evil.git`)}`);
	const target = fresh();
	await clone({ repoUrl: open('evil.git'), targetDir: target });
	await box.out('git config --global --unset init.templateDir; git config --global --unset submodule.recurse');
	await nothingAt('/tmp/pwned');
	assert.equal((await box.out(`ls -A ${target}/s`)).trim(), '');
});

test('a session whose shell has ended is told as such, one that cannot be is refused', async t => {
	const own = await daemon.box(t);
	const pid = (await own.out('mkfifo /tmp/g; { read x < /tmp/g; kill -9 $$; } & echo $$', { sessionId: 'gone' })).trim();
	await own.out(`echo > /tmp/g; while kill -0 ${pid} 2>/dev/null; do :; done`);
	const body = { repoUrl: 'http://127.0.0.1:9/x.git', sessionId: 'gone' };
	await until('the end is known', async () => !(await own.api('GET', '/api/session/list')).body.data.includes('gone'));
	const answer = await own.api('POST', '/api/git/checkout', body);
	assert.ok([410, 500].includes(answer.status), answer.raw.toString());
	refused(await own.api('POST', '/api/git/checkout', { ...body, sessionId: '  ' }), 500, 'GIT_OPERATION_FAILED');
});

test('the native route tells its progress, then the commit', async () => {
	const target = fresh();
	const response = await daemon.client.open('POST', `/v1/sandboxes/${box.id}/git/clone`, { repoUrl: withCredentials('repo.git'), targetDir: target });
	assert.equal(response.statusCode, 200);
	const { all } = await collect(events(response));
	const progress = all.filter(e => e.event === 'progress').map(e => e.data);
	assert.ok(progress.some(p => p.phase === 'Receiving objects' && p.percent === 100), JSON.stringify(progress));
	assert.ok(progress.every(p => typeof p.text === 'string' && (p.percent === undefined || (p.percent >= 0 && p.percent <= 100))));
	const { type, branch, targetDir, commit } = all.at(-1).data;
	assert.deepEqual({ type, branch, targetDir }, { type: 'complete', branch: 'main', targetDir: target });
	assert.equal(commit, (await box.out(`git -C ${target} rev-parse HEAD`)).trim());
});

test('the native route ends with an error event that has code and context', async () => {
	const response = await daemon.client.open('POST', `/v1/sandboxes/${box.id}/git/clone`, { repoUrl: withCredentials('repo.git', 'x', 'wrong-password'), targetDir: fresh() });
	const { all } = await collect(events(response));
	const last = all.at(-1).data;
	assert.deepEqual([last.type, last.code, last.httpStatus, last.context.exitCode], ['error', 'GIT_AUTH_FAILED', 401, 128]);
	assert.ok(!JSON.stringify(all).includes('wrong-password'));
	refused(await daemon.api('POST', '/v1/sandboxes/nobody-made-it/git/clone', { repoUrl: open('repo.git') }), 404, 'SANDBOX_NOT_FOUND');
	refused(await daemon.api('POST', `/v1/sandboxes/${box.id}/git/clone`, { repoUrl: '-x' }), 400, 'INVALID_GIT_URL');
});

test('with git.local_remotes paths of the sandbox are fine', async () => {
	const own = await startDaemon({ flags: { 'git.local_remotes': 'on' } });
	try {
		const local = await own.box();
		await local.out('git init -q -b trunk /srv/r && cd /srv/r && echo x > f && git add f && git -c user.name=a -c user.email=a@b commit -q -m m');
		for (const repoUrl of ['/srv/r', 'file:///srv/r'])
			assert.equal((await local.api('POST', '/api/git/checkout', { repoUrl, targetDir: `/tmp/${repoUrl.length}` })).body.branch, 'trunk');
		refused(await local.api('POST', '/api/git/checkout', { repoUrl: 'ext::true' }), 400, 'INVALID_GIT_URL');
	} finally {
		await own.stop();
	}
});
