// SPDX-License-Identifier: Apache-2.0
// Remote procedure calls with the real client of capnweb: every method, when it succeeds and when it fails.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { open as repository, startGitServer } from '../lib/gitserver.mjs';
import { atRest, bytesOf, connect, eventsOf, failure } from '../lib/rpc.mjs';
import { until } from '../lib/wait.mjs';

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const SID = 'default';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

async function open(t) {
	const box = await daemon.box(t);
	const link = await connect(t, box);
	return { box, ...link };
}

/** Exactly these members, in any order; a time is only looked at. */
function is(value, expected) {
	const { timestamp, ...rest } = value;
	if ('timestamp' in expected)
		assert.match(timestamp, ISO);
	const { timestamp: _, ...wanted } = expected;
	assert.deepEqual(rest, wanted);
	assert.equal('timestamp' in value, 'timestamp' in expected);
}

function typed(error, code, details) {
	assert.equal(error.name, 'Error');
	assert.equal(error.code, code, error.message);
	if (details)
		assert.deepEqual(Object.fromEntries(Object.keys(details).map(key => [key, error.details[key]])), details);
}

test('commands.execute answers with what the command said, and only that', async t => {
	const link = await open(t);
	is(await link.api.commands.execute('echo out; echo err >&2; (exit 3)', SID), { success: false, exitCode: 3, stdout: 'out\n', stderr: 'err\n', command: 'echo out; echo err >&2; (exit 3)', timestamp: 1 });
	const more = await link.api.commands.execute('echo $A-$PWD', SID, { env: { A: 'ä', B: undefined }, cwd: '/tmp', origin: 'internal', timeoutMs: undefined });
	assert.equal(more.stdout, 'ä-/tmp\n');
	typed(await failure(link.api.commands.execute('sleep 30', SID, { timeoutMs: 100 })), 'COMMAND_EXECUTION_ERROR', { command: 'sleep 30' });
	const plain = await link.api.commands.execute('sleep 30', '__DISABLE_SESSION__', { timeoutMs: 100 });
	assert.equal(plain.exitCode, 124);
	typed(await failure(link.api.commands.execute('exit 7', SID)), 'SESSION_TERMINATED', { sessionId: SID, exitCode: 7 });
	await atRest(link);
});

test('commands.executeStream streams events; what cannot start is an event, too', async t => {
	const link = await open(t);
	const seen = [];
	for await (const event of eventsOf(await link.api.commands.executeStream('echo a; echo b >&2; (exit 4)', SID, { env: { X: '1' } })))
		seen.push(event);
	assert.deepEqual(seen.map(e => [e.event, e.type]), seen.map(e => [e.type, e.type]));
	assert.equal(seen[0].type, 'start');
	assert.equal(seen[0].sessionId, SID);
	assert.ok(seen[0].pid > 0);
	assert.equal(seen.filter(e => e.type === 'stdout').map(e => e.data).join(''), 'a\n');
	assert.equal(seen.filter(e => e.type === 'stderr').map(e => e.data).join(''), 'b\n');
	assert.deepEqual([seen.at(-1).type, seen.at(-1).exitCode], ['complete', 4]);
	const failed = [];
	for await (const event of eventsOf(await link.api.commands.executeStream('', SID)))
		failed.push(event);
	assert.equal(failed.length, 1);
	assert.equal(failed[0].type, 'error');
	assert.equal(failed[0].data, failed[0].error);
	assert.match(failed[0].timestamp, ISO);
	await atRest(link);
});

test('files are written, read, listed, moved and removed', async t => {
	const link = await open(t);
	const { files } = link.api;
	is(await files.writeFile('/workspace/ü.txt', 'käse "q" \\ \n', SID), { success: true, path: '/workspace/ü.txt', bytesWritten: 13, timestamp: 1 });
	is(await files.readFile('/workspace/ü.txt', SID), { success: true, content: 'käse "q" \\ \n', path: '/workspace/ü.txt', encoding: 'utf-8', isBinary: false, size: 13, mimeType: 'text/plain', timestamp: 1 });
	is(await files.writeFile('b.bin', 'AAEC/w==', SID, { encoding: 'base64', permissions: '600' }), { success: true, path: 'b.bin', bytesWritten: 8, timestamp: 1 });
	const binary = await files.readFile('b.bin', SID, { encoding: 'base64' });
	assert.deepEqual([binary.content, binary.isBinary, binary.size], ['AAEC/w==', true, 4]);
	is(await files.mkdir('/workspace/d/e', SID, { recursive: true }), { success: true, path: '/workspace/d/e', recursive: true, timestamp: 1 });
	is(await files.renameFile('b.bin', 'c.bin', SID), { success: true, path: 'b.bin', oldPath: 'b.bin', newPath: 'c.bin', timestamp: 1 });
	is(await files.moveFile('c.bin', '/workspace/d/c.bin', SID), { success: true, path: 'c.bin', newPath: '/workspace/d/c.bin', timestamp: 1 });
	is(await files.exists('/workspace/d/c.bin', SID), { success: true, exists: true, path: '/workspace/d/c.bin', timestamp: 1 });
	const list = await files.listFiles('/workspace/d', SID, { recursive: true, includeHidden: true });
	is({ ...list, files: list.files.map(file => file.name).sort() }, { success: true, files: ['c.bin', 'e'], count: 2, path: '/workspace/d', timestamp: 1 });
	assert.equal(typeof list.files[0].permissions.readable, 'boolean');
	const empty = await files.listFiles('/workspace/d/e', SID);
	assert.deepEqual(empty.files, []);
	is(await files.deleteFile('/workspace/d/c.bin', SID), { success: true, path: '/workspace/d/c.bin', timestamp: 1 });
	is(await files.exists('/workspace/d/c.bin', SID), { success: true, exists: false, path: '/workspace/d/c.bin', timestamp: 1 });
	await atRest(link);
});

test('failures of files carry their code and details', async t => {
	const link = await open(t);
	const { files } = link.api;
	const lost = await failure(files.readFile('/nope', SID));
	typed(lost, 'FILE_NOT_FOUND', { path: '/nope', operation: 'file.read' });
	assert.equal(lost.message, 'File not found: /nope');
	typed(await failure(files.readFile('/nope', SID, { encoding: 'none' })), 'FILE_NOT_FOUND', { path: '/nope' });
	typed(await failure(files.readFile('/workspace', SID, { encoding: 'none' })), 'FILE_NOT_FOUND');
	typed(await failure(files.writeFile('/workspace', 'x', SID)), 'FILESYSTEM_ERROR');
	typed(await failure(files.deleteFile('/workspace', SID)), 'IS_DIRECTORY');
	typed(await failure(files.renameFile('/nope', '/x', SID)), 'FILE_NOT_FOUND', { operation: 'file.rename' });
	typed(await failure(files.moveFile('/nope', '/x', SID)), 'FILE_NOT_FOUND', { operation: 'file.move' });
	typed(await failure(files.mkdir('/workspace', SID)), 'FILESYSTEM_ERROR');
	typed(await failure(files.listFiles('/etc/passwd', SID)), 'NOT_DIRECTORY');
	const bad = await failure(files.exists('', SID));
	typed(bad, 'VALIDATION_FAILED');
	assert.equal(bad.details.validationErrors[0].field, 'path');
	typed(await failure(files.writeFile('a', '!!', SID, { encoding: 'base64' })), 'VALIDATION_FAILED');
	typed(await failure(files.writeFile('a', 'x', SID, 'no options')), 'VALIDATION_FAILED');
	typed(await failure(files.writeFileStream('/workspace/x', 'no stream', SID)), 'VALIDATION_FAILED');
	const stream = [];
	for await (const event of eventsOf(await files.readFileStream('/nope', SID)))
		stream.push(event);
	assert.deepEqual(stream.map(e => [e.type, e.error]), [['error', 'File not found: /nope']]);
	await atRest(link);
});

test('files.readFileStream and readFile with encoding none give the bytes', async t => {
	const link = await open(t);
	await link.api.files.writeFile('/workspace/t.txt', 'é'.repeat(100_000), SID);
	const seen = [];
	for await (const event of eventsOf(await link.api.files.readFileStream('/workspace/t.txt', SID)))
		seen.push(event);
	assert.equal(seen[0].type, 'metadata');
	assert.equal(seen.filter(e => e.type === 'chunk').map(e => e.data).join(''), 'é'.repeat(100_000));
	assert.deepEqual([seen.at(-1).type, seen.at(-1).bytesRead], ['complete', 200_000]);
	const raw = await link.api.files.readFile('/workspace/t.txt', SID, { encoding: 'none' });
	const { content, ...rest } = raw;
	is(rest, { success: true, path: '/workspace/t.txt', size: 200_000, mimeType: 'text/plain', timestamp: 1 });
	assert.equal((await bytesOf(content)).toString(), 'é'.repeat(100_000));
	await link.api.commands.execute('cd /tmp; printf "" > empty; printf x > here', SID);
	const here = await link.api.files.readFile('here', SID, { encoding: 'none' });
	assert.equal((await bytesOf(here.content)).toString(), 'x');
	const empty = await link.api.files.readFile('empty', SID, { encoding: 'none' });
	assert.equal((await bytesOf(empty.content)).length, 0);
	await atRest(link);
});

test('processes start, are listed, tell their logs and end', async t => {
	const link = await open(t);
	const { processes } = link.api;
	const started = await processes.startProcess('echo one; echo two >&2; sleep 600', SID, { processId: 'p:1', env: { A: 'b' }, autoCleanup: false });
	is({ ...started, pid: typeof started.pid }, { success: true, processId: 'p:1', pid: 'number', command: 'echo one; echo two >&2; sleep 600', timestamp: 1 });
	const got = await processes.getProcess('p:1');
	const record = { id: 'p:1', pid: started.pid, command: started.command, status: 'running' };
	is({ ...got, process: { ...got.process, startTime: undefined } }, { success: true, process: { ...record, startTime: undefined }, timestamp: 1 });
	assert.match(got.process.startTime, ISO);
	const list = await processes.listProcesses();
	assert.deepEqual([list.processes.length, list.processes[0].id], [1, 'p:1']);
	await until('the log is there', async () => {
		const { stdout, stderr } = await processes.getProcessLogs('p:1'); // two pipes have no order
		return stdout === 'one\n' && stderr === 'two\n';
	});
	is(await processes.getProcessLogs('p:1'), { success: true, processId: 'p:1', stdout: 'one\n', stderr: 'two\n', timestamp: 1 });
	const logs = eventsOf(await processes.streamProcessLogs('p:1'));
	const first = (await logs.next()).value;
	assert.notEqual(first.type, 'process_info');
	is(await processes.killProcess('p:1'), { success: true, processId: 'p:1', timestamp: 1 });
	const events = [first];
	for await (const event of logs)
		events.push(event);
	assert.equal(events.filter(e => e.type === 'stdout').map(e => e.data).join(''), 'one\n');
	assert.deepEqual([events.at(-1).type, events.at(-1).exitCode, 'data' in events.at(-1)], ['exit', 143, false]);
	const over = await processes.getProcess('p:1');
	assert.deepEqual([over.process.status, over.process.exitCode, 'endTime' in over.process], ['killed', 143, false]);
	typed(await failure(processes.killProcess('p:1')), 'COMMAND_NOT_FOUND');
	for (const method of ['getProcess', 'killProcess', 'getProcessLogs', 'streamProcessLogs'])
		typed(await failure(processes[method]('nobody')), 'PROCESS_NOT_FOUND', { processId: 'nobody' });
	await processes.startProcess('sleep 600', SID);
	is(await processes.killAllProcesses(), { success: true, cleanedCount: 1, timestamp: 1 });
	typed(await failure(processes.startProcess('', SID)), 'INVALID_COMMAND');
	await atRest(link);
});

test('ports.watchPort tells when a port answers, and when its process ends', async t => {
	const link = await open(t);
	await link.api.processes.startProcess('sleep 1; python3 -m http.server 8765', SID, { processId: 'web' });
	const request = { port: 8765, mode: 'http', path: '/', statusMin: 200, statusMax: 299, processId: 'web', interval: 100 };
	const seen = [];
	for await (const event of eventsOf(await link.api.ports.watchPort(request)))
		seen.push(event);
	assert.deepEqual(seen.map(e => [e.type, e.port]), [['watching', 8765], ['ready', 8765]]);
	await link.api.processes.killProcess('web');
	const gone = [];
	for await (const event of eventsOf(await link.api.ports.watchPort({ ...request, port: 8766 })))
		gone.push(event);
	assert.equal(gone.at(-1).type, 'process_exited');
	await atRest(link);
});

test('git.checkout clones, and says why it cannot', async t => {
	const link = await open(t);
	typed(await failure(link.api.git.checkout('', SID)), 'INVALID_GIT_URL');
	await startGitServer(link.box);
	is(await link.api.git.checkout(repository('repo.git'), SID, { depth: 1, timeoutMs: 60_000, branch: undefined }), { success: true, repoUrl: repository('repo.git'), branch: 'main', targetDir: '/workspace/repo', timestamp: 1 });
	const lost = await failure(link.api.git.checkout(repository('nothing.git'), SID));
	typed(lost, 'GIT_OPERATION_FAILED');
	assert.equal(lost.details.targetDir, '/workspace/nothing');
	await atRest(link);
});

test('interpreter: contexts have dates, code streams, and callbacks are called one after the other', async t => {
	const link = await open(t);
	const { interpreter } = link.api;
	const context = await interpreter.createCodeContext({ language: 'python', cwd: '/workspace', envVars: { A: 'b' } });
	assert.deepEqual(Object.keys(context).sort(), ['createdAt', 'cwd', 'id', 'language', 'lastUsed']);
	assert.deepEqual([context.language, context.cwd], ['python', '/workspace']);
	assert.ok(context.createdAt instanceof Date && Math.abs(context.createdAt - Date.now()) < 600_000);
	assert.ok(context.lastUsed instanceof Date);
	const list = await interpreter.listCodeContexts();
	assert.deepEqual(list.map(c => [c.id, c.createdAt.getTime()]), [[context.id, context.createdAt.getTime()]]);
	const seen = [];
	for await (const event of eventsOf(await interpreter.streamCode(context.id, 'import os\nprint(os.environ["A"])\n[1,[2]]', 'python')))
		seen.push(event);
	assert.equal(seen.filter(e => e.type === 'stdout').map(e => e.text).join(''), 'b\n');
	assert.equal(seen.at(-1).type, 'execution_complete');

	const calls = [];
	let running = 0;
	const note = name => async value => {
		assert.equal(++running, 1, 'one at a time');
		await new Promise(resolve => setImmediate(resolve));
		running--;
		calls.push([name, value]);
	};
	const callbacks = { onStdout: note('stdout'), onStderr: note('stderr'), onResult: note('result'), onError: note('error') };
	const code = 'import sys\nprint("o"); sys.stdout.flush()\nprint("e", file=sys.stderr); sys.stderr.flush()\n{"a": [1, [2]]}';
	assert.equal(await interpreter.runCodeStream(context.id, code, undefined, callbacks), undefined);
	assert.equal(calls.filter(([name]) => name === 'stdout').map(([, v]) => v.text).join(''), 'o\n');
	assert.equal(calls.filter(([name]) => name === 'stderr').map(([, v]) => v.text).join(''), 'e\n');
	assert.ok(calls.every(([name, v]) => !name.startsWith('std') || typeof v.timestamp === 'number'));
	const result = calls.find(([name]) => name === 'result')[1];
	assert.deepEqual(result.json ?? JSON.parse(result.text.replaceAll("'", '"')), { a: [1, [2]] });
	assert.equal('metadata' in result, false);
	calls.length = 0;
	await interpreter.runCodeStream(context.id, 'raise ValueError("no")', 'python', { onError: callbacks.onError }, 30_000);
	assert.deepEqual([calls.length, calls[0][1].name, calls[0][1].message, Array.isArray(calls[0][1].traceback)], [1, 'ValueError', 'no', true]);
	await atRest(link);

	typed(await failure(interpreter.streamCode('nobody', '1')), 'CONTEXT_NOT_FOUND', { contextId: 'nobody' });
	typed(await failure(interpreter.runCodeStream('nobody', '1', undefined, callbacks)), 'CONTEXT_NOT_FOUND');
	typed(await failure(interpreter.runCodeStream(context.id, '1', 'javascript', callbacks)), 'CODE_EXECUTION_ERROR');
	typed(await failure(interpreter.createCodeContext({ language: 'cobol' })), 'VALIDATION_FAILED');
	assert.equal(await interpreter.deleteCodeContext(context.id), undefined);
	typed(await failure(interpreter.deleteCodeContext(context.id)), 'CONTEXT_NOT_FOUND', { contextId: context.id });
	await atRest(link);
});

test('a callback that fails fails the call, and the context lives on', async t => {
	const link = await open(t);
	const { interpreter } = link.api;
	const { id } = await interpreter.createCodeContext({});
	let called = 0;
	const error = await failure(interpreter.runCodeStream(id, 'print("a", flush=True)\nprint("b", flush=True)', undefined, { onStdout: () => { called++; throw new RangeError('too much'); } }));
	assert.deepEqual([error.message, error.name, called], ['too much', 'RangeError', 1]);
	await atRest(link);
	const texts = [];
	await interpreter.runCodeStream(id, 'print("again")', undefined, { onStdout: v => { texts.push(v.text); } });
	assert.equal(texts.join(''), 'again\n');
	await atRest(link);
});

test('a chart is part of a result', async t => {
	const link = await open(t);
	const { id } = await link.api.interpreter.createCodeContext({});
	const results = [];
	const code = `display({'application/vnd.plotly.v1+json': {'data': [{'type': 'bar', 'x': ['é'], 'y': [1]}], 'layout': {'title': {'text': 'T'}}}, 'text/html': '<b>'}, raw=True)`;
	await link.api.interpreter.runCodeStream(id, code, undefined, { onResult: v => { results.push(v); } });
	assert.equal(results[0].html, '<b>');
	assert.deepEqual([results[0].chart.type, results[0].chart.title, results[0].chart.data], ['bar', 'T', [{ type: 'bar', x: ['é'], y: [1] }]]);
	await atRest(link);
});

test('utils: ping, version, commands and sessions', async t => {
	const link = await open(t);
	const { utils } = link.api;
	assert.equal(await utils.ping(), 'healthy');
	assert.equal(await utils.getVersion(), (await link.box.api('GET', '/api/version')).body.version);
	assert.deepEqual(await utils.getCommands(), []);
	const session = await utils.createSession({ id: 'r1', env: { A: '1' }, cwd: '/tmp', commandTimeoutMs: undefined });
	is({ ...session, message: typeof session.message }, { success: true, id: 'r1', message: 'string', containerPlacementId: null, timestamp: 1 });
	typed(await failure(utils.createSession({ id: 'r1' })), 'SESSION_ALREADY_EXISTS', { sessionId: 'r1', containerPlacementId: null });
	assert.equal((await link.api.commands.execute('echo $A-$PWD', 'r1')).stdout, '1-/tmp\n');
	assert.deepEqual(await utils.listSessions(), { sessions: ['r1'] });
	is(await utils.deleteSession('r1'), { success: true, sessionId: 'r1', timestamp: 1 });
	typed(await failure(utils.deleteSession('r1')), 'INTERNAL_ERROR', { sessionId: 'r1' });
	await atRest(link);
});

test('backup methods answer as their routes do', async t => {
	const link = await open(t);
	const { backup } = link.api;
	const route = await link.box.api('POST', '/api/backup/create', { dir: '/etc', archivePath: '/var/backups/a.sqsh' });
	typed(await failure(backup.createArchive('/etc', '/var/backups/a.sqsh', SID, { excludes: ['a'], gitignore: false, compression: { format: 'lz4', threads: 1 } })), route.body.code);
	const restore = await link.box.api('POST', '/api/backup/restore', { dir: '/etc', archivePath: '/var/backups/a.sqsh' });
	typed(await failure(backup.restoreArchive('/etc', '/var/backups/a.sqsh', SID)), restore.body.code);
	const upload = await link.box.api('POST', '/api/backup/upload-parts', { archivePath: '/x', parts: [] });
	typed(await failure(backup.uploadParts({ archivePath: '/x', parts: [] })), upload.body.code);
	await atRest(link);
});

test('watch.watch is established when it answers, anywhere; a missing path rejects', async t => {
	const link = await open(t);
	for (const [path, file] of [['src', '/workspace/src/a.txt'], ['/tmp/w', '/tmp/w/a.txt']]) {
		await link.box.out(`mkdir -p ${file.slice(0, file.lastIndexOf('/'))}`);
		const events = eventsOf(await link.api.watch.watch({ path, recursive: true, include: ['*.txt'], sessionId: SID }));
		await link.box.out(`echo x > ${file}`, { sessionId: 'other' });
		const first = (await events.next()).value;
		assert.deepEqual([first.type, first.path], ['watching', file.slice(0, file.lastIndexOf('/'))]);
		const next = (await events.next()).value;
		assert.deepEqual([next.type, next.path], ['event', file]);
		await events.return();
	}
	typed(await failure(link.api.watch.watch({ path: '/nope' })), 'FILE_NOT_FOUND', { path: '/nope' });
	typed(await failure(link.api.watch.watch({ path: '' })), 'VALIDATION_FAILED');
	const check = await link.api.watch.checkChanges({ path: '/tmp/w', recursive: true, since: undefined });
	is({ ...check, version: typeof check.version }, { success: true, status: 'unchanged', version: 'string', timestamp: 1 });
	await link.box.out('echo y > /tmp/w/b.txt');
	await until('the change is seen', async () => (await link.api.watch.checkChanges({ path: '/tmp/w', recursive: true, since: check.version })).status === 'changed');
	typed(await failure(link.api.watch.checkChanges({ path: '/tmp/w', since: 'x' })), 'VALIDATION_FAILED', { since: 'x' });
	await atRest(link);
});

test('tunnels are typed as not available', async t => {
	const link = await open(t);
	const { tunnels } = link.api;
	assert.deepEqual(await tunnels.listTunnels(), []);
	typed(await failure(tunnels.runQuickTunnel('t1', 8080)), 'CLOUDFLARED_NOT_FOUND', { tunnelId: 't1', port: 8080, binary: 'cloudflared' });
	const named = await failure(tunnels.runNamedTunnel('t1', 'secret-token', 8080));
	typed(named, 'CLOUDFLARED_NOT_FOUND', { tunnelId: 't1', port: 8080 });
	assert.equal(JSON.stringify(named.details).includes('secret-token'), false);
	typed(await failure(tunnels.ensureTunnelRun({ tunnelId: 't1', runId: 'r', mode: 'quick', port: 8080 })), 'CLOUDFLARED_NOT_FOUND', { tunnelId: 't1', port: 8080 });
	typed(await failure(tunnels.destroyTunnel('t1')), 'TUNNEL_NOT_FOUND', { tunnelId: 't1' });
	assert.deepEqual(await tunnels.stopTunnelRun({ tunnelId: 't1', runId: 'r' }), { stopped: false });
	await atRest(link);
});

test('what is no method is a TypeError, and the connection goes on', async t => {
	const link = await open(t);
	const error = await failure(link.api.commands.nope('x'));
	assert.deepEqual([error.name, error.message], ['TypeError', "'commands.nope' is not a function."]);
	assert.equal((await failure(link.api.nope.execute())).name, 'TypeError');
	assert.equal((await failure(link.api.commands)).name, 'TypeError');
	const pong = link.api.utils.ping();
	assert.equal((await failure(pong.length)).name, 'TypeError');
	pong[Symbol.dispose]();
	assert.equal(await link.api.utils.ping(), 'healthy');
	await atRest(link);
});
