// SPDX-License-Identifier: Apache-2.0
// POST /v1/sandboxes/{id}/exec: one answer or events, in a session or beside all.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { refused, TIME } from '../lib/expect.mjs';
import { events } from '../lib/sse.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const url = (box, rest = '/exec') => `/v1/sandboxes/${box.id}${rest}`;
const exec = (box, body, options) => daemon.api('POST', url(box), body, options);
const get = async (box, rest) => (await daemon.api('GET', url(box, rest))).body;

async function open(box, body, path = '/exec', method = 'POST') {
	const response = await daemon.client.open(method, url(box, path), body, { headers: { accept: 'text/event-stream' } });
	assert.equal(response.statusCode, 200);
	return response;
}

async function collect(response) {
	const all = [];
	for await (const { data } of events(response, 60_000))
		all.push(data);
	return all;
}

test('a command answers with its output, its exit code and its times', async t => {
	const box = await daemon.box(t, {});
	const answer = await exec(box, { command: 'echo out; echo err >&2; exit 3', sessionId: null });
	assert.equal(answer.status, 200, answer.raw.toString());
	const { startedAt, durationMs, ...rest } = answer.body;
	assert.deepEqual(rest, { exitCode: 3, stdout: 'out\n', stderr: 'err\n' });
	assert.match(startedAt, TIME);
	assert.ok(Math.abs(Date.parse(startedAt) - Date.now()) < 60_000 && durationMs >= 0);
});

test('a session keeps what a command changes; null and argv share nothing', async t => {
	const box = await daemon.box(t, {});
	await exec(box, { command: 'cd /tmp; A=kept' });
	assert.equal((await exec(box, { command: 'echo $PWD $A' })).body.stdout, '/tmp kept\n');
	assert.equal((await exec(box, { command: 'echo $PWD $A', sessionId: null })).body.stdout, '/workspace\n');
	const named = await exec(box, { command: 'echo $PWD $A', sessionId: 'other' });
	assert.deepEqual([named.body.stdout, named.body.sessionId], ['/workspace\n', 'other']);
	assert.equal((await exec(box, { argv: ['printf', '%s|', '$HOME', "it's"], env: { A: 'x' } })).body.stdout, "$HOME|it's|");
	refused(await exec(box, { argv: ['true'], sessionId: 'other' }), 400, 'VALIDATION_FAILED');
	refused(await exec(box, { argv: ['true'], command: 'true' }), 400, 'VALIDATION_FAILED');
	refused(await exec(box, {}), 400, 'INVALID_COMMAND');
});

test('standard input arrives whole, as text or base64, with a shell or without, also as a stream', async t => {
	const box = await daemon.box(t, {});
	const bytes = Buffer.alloc(1 << 20, 'stdin of a command\n');
	const sum = (await exec(box, { command: 'sha256sum', stdin: bytes.toString('base64'), stdinEncoding: 'base64' })).body.stdout;
	assert.equal((await exec(box, { argv: ['sha256sum'], stdin: bytes.toString() })).body.stdout, sum);
	assert.equal((await exec(box, { command: 'read a; read b; echo "$b-$a"; ls /proc/self/fd | wc -l', stdin: '1\n2\n' })).body.stdout.split('\n')[0], '2-1');
	assert.equal((await exec(box, { argv: ['wc', '-c'], stdin: '' })).body.stdout.trim(), '0');
	const streamed = await collect(await open(box, { command: 'cat', stdin: 'through\n' }));
	assert.equal(streamed.filter(e => e.type === 'stdout').map(e => e.data).join(''), 'through\n');
	for (const body of [{ stdin: `${bytes}x` }, { stdin: '?', stdinEncoding: 'base64' }, { stdin: 'x', stdinEncoding: 'hex' }, { stdin: 'x', sessionId: 's' }, { stdin: true }])
		refused(await exec(box, { command: 'cat', ...body }), 400, 'VALIDATION_FAILED');
});

test('a user of the image runs it', async t => {
	const box = await daemon.box(t, {});
	assert.equal((await exec(box, { command: 'id -u', user: '1000:1000' })).body.stdout, '1000\n');
	refused(await exec(box, { command: 'id', user: '1000', sessionId: 's' }), 400, 'VALIDATION_FAILED');
});

test('output of a stream comes as it is written, and bytes that are no text as base64', async t => {
	const box = await daemon.box(t, {});
	const all = await collect(await open(box, { command: 'echo one; printf "\\377\\0\\376"; echo two >&2; exit 4', sessionId: null }));
	assert.deepEqual([all[0].type, all.at(-1).type, all.at(-1).exitCode], ['start', 'complete', 4]);
	const out = Buffer.concat(all.filter(e => e.type === 'stdout').map(e => e.base64 ? Buffer.from(e.base64, 'base64') : Buffer.from(e.data)));
	assert.deepEqual(out, Buffer.from([...Buffer.from('one\n'), 0xff, 0, 0xfe]));
	assert.equal(all.find(e => e.type === 'stderr').data, 'two\n');
});

test('a stream that is cut 50 times goes on at its cursor, and nothing is lost or repeated', async t => {
	const box = await daemon.box(t, {});
	const lines = 20_000;
	let response = await open(box, { command: `for i in $(seq ${lines}); do echo "line $i"; done`, sessionId: null });
	let text = '', cursor, processId, cuts = 0, over = false;
	while (!over) {
		let seen = 0;
		for await (const { data } of events(response, 60_000)) {
			processId = data.processId ?? processId;
			if (data.type === 'stdout') {
				text += data.data;
				cursor = data.cursor ?? cursor;
				seen++;
			}
			over = data.type === 'complete' || data.type === 'exit';
			if (over || (cuts < 50 && seen === 2))
				break;
		}
		if (!over) {
			cuts++;
			response.destroy();
			response = await open(box, undefined, `/processes/${processId}/stream?cursor=${cursor}`, 'GET');
		}
	}
	response.destroy();
	assert.equal(text, Array.from({ length: lines }, (_, i) => `line ${i + 1}\n`).join(''));
	assert.ok(cuts >= 10, `${cuts} cuts`);
});

test('sessions are created, shown with their variables, changed and deleted', async t => {
	const box = await daemon.box(t, { env: { OF_BOX: 'box' } });
	const sessions = (method, rest = '', body) => daemon.api(method, url(box, `/sessions${rest}`), body);
	const made = await sessions('POST', '', { id: 'a b', cwd: '/tmp', env: { A: '1' }, commandTimeoutMs: 5_000 });
	assert.equal(made.status, 201, made.raw.toString());
	assert.deepEqual(made.body, { id: 'a b', cwd: null, busy: false, commandTimeoutMs: 5_000 });
	refused(await sessions('POST', '', { id: 'a b' }), 409, 'SESSION_ALREADY_EXISTS');
	assert.match((await sessions('POST')).body.id, /^session_/);
	assert.equal((await sessions('GET')).body.sessions.length, 2);
	assert.equal((await sessions('GET', '/a%20b')).body.cwd, '/tmp');
	await exec(box, { command: "cd /etc; export QUOTED=$'a\\'b\\nc'; IFS=x; hidden=1", sessionId: 'a b' });
	const shown = (await sessions('GET', '/a%20b')).body;
	assert.deepEqual([shown.cwd, shown.env.A, shown.env.OF_BOX, shown.env.QUOTED, shown.env.hidden], ['/etc', '1', 'box', "a'b\nc", undefined]);
	const changed = await sessions('PATCH', '/a%20b', { env: { A: null, B: "it's $HOME\n", QUOTED: 'new' } });
	assert.equal(changed.status, 200, changed.raw.toString());
	assert.equal((await exec(box, { command: 'echo "${A-unset}|$B|$QUOTED"', sessionId: 'a b' })).body.stdout, "unset|it's $HOME\n|new\n");
	refused(await sessions('PATCH', '/a%20b', { env: { '1x': null } }), 400, 'VALIDATION_FAILED');
	refused(await sessions('PATCH', '/a%20b', {}), 400, 'VALIDATION_FAILED');
	refused(await sessions('PATCH', '/none', { env: {} }), 404, 'SESSION_NOT_FOUND');
	assert.deepEqual((await sessions('DELETE', '/a%20b')).body, { sessionId: 'a b' });
	refused(await sessions('GET', '/a%20b'), 404, 'SESSION_NOT_FOUND');
	refused(await sessions('DELETE', '/a%20b'), 404, 'SESSION_NOT_FOUND');
});

test('a busy session says so, and keeps its variables for later', async t => {
	const box = await daemon.box(t, {});
	await exec(box, { command: 'true', sessionId: 's' });
	const running = exec(box, { command: 'touch /tmp/on; while [ -e /tmp/on ]; do sleep 0.05; done', sessionId: 's' });
	while ((await exec(box, { command: 'test -e /tmp/on', sessionId: null })).body.exitCode !== 0)
		;
	const shown = await get(box, '/sessions/s');
	assert.deepEqual([shown.busy, shown.env], [true, null]);
	await exec(box, { command: 'rm /tmp/on', sessionId: null });
	await running;
	assert.equal((await get(box, '/sessions/s')).busy, false);
});

test('languages have the version of what runs them, and run needs no context', async t => {
	const box = await daemon.box(t, {});
	const { languages } = await get(box, '/languages');
	assert.deepEqual(languages.map(l => l.language), ['python', 'javascript', 'typescript']);
	for (const { language, version, ready } of languages) {
		assert.match(version, /^\d+\.\d+/, language);
		assert.equal(ready, true, language);
	}
	const once = await daemon.api('POST', url(box, '/run'), { code: 'x = 6 * 7\nx' }, { deadline: 60_000 });
	assert.equal(once.status, 200, once.raw.toString());
	assert.equal(once.body.results[0].text, '42');
	assert.equal((await daemon.api('POST', url(box, '/run'), { code: 'x', language: 'python' })).body.results[0].text, '42');
	const streamed = await collect(await open(box, { code: 'print(1)' }, '/run'));
	assert.equal(streamed.at(-1).executionCount, 3);
});

test('one exposed port, direct access and a preview by path', async t => {
	const box = await daemon.box(t, {});
	await daemon.api('POST', url(box, '/processes'), { argv: ['node', '-e', 'require("http").createServer((q, s) => { s.setHeader("set-cookie", "a=b"); s.end(`${q.method} ${q.url} ${q.headers.authorization}`); }).listen(8000)'] });
	const made = (await daemon.api('POST', url(box, '/ports'), { port: 8000, name: 'web' })).body;
	assert.deepEqual(await get(box, '/ports/8000'), made);
	refused(await daemon.api('GET', url(box, '/ports/8001')), 404, 'PORT_NOT_EXPOSED');
	const direct = await daemon.api('GET', url(box, '/proxy/8000/some/where?a=1'));
	assert.equal(direct.raw.toString(), 'GET /some/where?a=1 undefined');
	assert.match(direct.headers['content-security-policy'], /^sandbox/);
	const preview = (token, options) => daemon.api('POST', `/v1/previews/8000/${box.id}/${token}/x?y`, Buffer.from('body'), options);
	const seen = await preview(made.token);
	assert.equal(seen.raw.toString(), 'POST /x?y undefined');
	assert.deepEqual([seen.headers['content-security-policy'], seen.headers['set-cookie']], [undefined, ['a=b']]);
	refused(await preview('wrongtoken'), 404, 'INVALID_TOKEN');
	refused(await daemon.api('GET', `/v1/previews/8001/${box.id}/${made.token}/`), 404, 'INVALID_TOKEN');
	refused(await daemon.api('GET', `/v1/previews/8000/none/${made.token}/`), 404, 'INVALID_TOKEN');
	refused(await preview(made.token, { token: false }), 401, 'UNAUTHORIZED');
});

test('a wait for a port is one answer or events', async t => {
	const box = await daemon.box(t, {});
	const waiting = open(box, { port: 8100, mode: 'tcp' }, '/ports/wait');
	await daemon.api('POST', url(box, '/processes'), { argv: ['node', '-e', 'require("net").createServer().listen(8100)'] });
	assert.deepEqual((await collect(await waiting)).map(e => e.type), ['watching', 'ready']);
	assert.deepEqual((await collect(await open(box, { port: 8101, timeoutMs: 50 }, '/ports/wait'))).map(e => e.type), ['watching', 'error']);
});

test('watch/check takes any path', async t => {
	const box = await daemon.box(t, {});
	const check = async since => (await daemon.api('POST', url(box, '/watch/check'), { path: '/tmp', ...(since && { since }) })).body;
	const first = await check();
	assert.deepEqual(Object.keys(first), ['status', 'version']);
	await exec(box, { command: 'touch /tmp/new' });
	assert.equal((await check(first.version)).status, 'changed');
});

test('a terminal is ended, once', async t => {
	const box = await daemon.box(t, {});
	const end = async () => (await daemon.api('DELETE', url(box, '/terminal?sessionId=s'))).body;
	assert.deepEqual(await end(), { sessionId: 's', ended: false });
	refused(await daemon.api('GET', '/v1/sandboxes/never-there/terminal?sessionId=s', undefined, { headers: { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' } }), 404, 'SANDBOX_NOT_FOUND');
	refused(await daemon.api('GET', url(box, '/terminal?sessionId=s')), 426, 'UPGRADE_REQUIRED');
});

test('the daemon tells its version', async () => {
	assert.deepEqual((await daemon.api('GET', '/v1/version')).body, { version: '0.1.0', api: 'v1' });
});
