// SPDX-License-Identifier: Apache-2.0
// The TypeScript library beside its cases: streams over connections that break, errors, the operations it covers, its package.
import './lib/fetched.mjs';
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { packages as clients } from '../client/lib/workerd.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { until } from '../lib/wait.mjs';
import { bundle } from './lib/worker.mjs';
import { makeProject, packed, run, SOURCE } from './lib/project.mjs';

const CUTS = 50;
const BUNDLE_MAX = 40 * 1024;

let daemon, home, library;
before(async () => {
	const ends = [];
	home = makeProject({ after: end => ends.push(end) });
	after(() => ends.forEach(end => end()));
	library = await import(path.join(home, 'node_modules/silt-sandbox/dist/index.js'));
	daemon = await startDaemon();
});
after(() => daemon?.stop());

const settings = () => ({ url: daemon.address, token: daemon.token });

/** Passes connections on and, once it has a limit, breaks each one that has had so many bytes since. */
async function startCutter(t) {
	const cutter = { cuts: 0, limit: Infinity };
	const [host, port] = daemon.address.split(':');
	const server = net.createServer(client => {
		const upstream = net.connect({ host, port: Number(port) });
		let left = Infinity;
		client.on('error', () => {}).pipe(upstream.on('error', () => {}));
		upstream.on('data', bytes => {
			if (left === Infinity)
				left = cutter.limit;
			if (bytes.length < left) {
				left -= bytes.length;
				client.write(bytes);
				return;
			}
			client.write(bytes.subarray(0, left), () => client.resetAndDestroy());
			upstream.destroy();
			cutter.cuts++;
		});
		upstream.on('close', () => client.end());
		client.on('close', () => upstream.destroy());
	});
	await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
	t.after(() => server.close());
	cutter.url = `http://127.0.0.1:${server.address().port}`;
	return cutter;
}

test('a stream whose connection is cut 50 times loses and repeats no byte', async t => {
	const cutter = await startCutter(t);
	const direct = library.getSandbox('cut', settings());
	t.after(() => direct.destroy());
	const sandbox = library.getSandbox('cut', { ...settings(), url: cutter.url });
	await sandbox.exec('true');
	const expected = (await direct.exec('i=0; while [ $i -lt 4000 ]; do echo "$i ä€😀"; i=$((i+1)); done')).stdout;
	const stream = await sandbox.execStream('i=0; while [ $i -lt 4000 ]; do echo "$i ä€😀"; i=$((i+1)); [ $((i % 40)) -ne 0 ] || sleep 0.01; done; exit 7');
	let text = '';
	let last;
	for await (const event of stream.events()) {
		cutter.limit = 2001; // an odd number: frames and characters are cut in two
		if (event.type === 'stdout')
			text += event.data;
		last = event;
	}
	assert.equal(createHash('sha256').update(text).digest('hex'), createHash('sha256').update(expected).digest('hex'), `${text.length} of ${expected.length} characters`);
	assert.deepEqual([last.type, last.exitCode], ['complete', 7]);
	assert.ok(cutter.cuts >= CUTS, `${cutter.cuts} cuts`);
});

test('code whose connection is cut gives each event once', async t => {
	const cutter = await startCutter(t);
	const direct = library.getSandbox('cut-code', settings());
	t.after(() => direct.destroy());
	const sandbox = library.getSandbox('cut-code', { ...settings(), url: cutter.url });
	await sandbox.runCode('0');
	let run;
	const stream = await sandbox.runCodeStream('import time\nfor n in range(600): print(n, flush=True); time.sleep(0.001)\n7', { onStart: started => { run = started; } });
	const seen = [];
	for await (const event of stream.events()) {
		cutter.limit = 2001;
		seen.push(event);
	}
	assert.equal(seen.filter(event => event.type === 'stdout').map(event => event.text).join(''), Array.from({ length: 600 }, (_, n) => `${n}\n`).join(''));
	assert.deepEqual(seen.slice(-2).map(event => event.text ?? event.type), ['7', 'execution_complete']);
	assert.ok(cutter.cuts >= 5, `${cutter.cuts} cuts`);
	const again = [];
	for await (const event of (await direct.resumeCodeStream(run.contextId, run.runId, { cursor: seen[9].cursor })).events())
		again.push(event);
	assert.deepEqual(again, seen.slice(10));
});

test('the log of a process goes on over broken connections, and a file where it broke', async t => {
	const cutter = await startCutter(t);
	const direct = library.getSandbox('cut-more', settings());
	t.after(() => direct.destroy());
	const bytes = new Uint8Array(1 << 20).map((_, i) => i * 7 + (i >> 8));
	await direct.writeFile('/workspace/large.bin', bytes);
	const sandbox = library.getSandbox('cut-more', { ...settings(), url: cutter.url });
	await sandbox.exec('true');
	cutter.limit = 100_001;
	const hash = createHash('sha256');
	for await (const piece of await sandbox.download('/workspace/large.bin'))
		hash.update(piece);
	assert.equal(hash.digest('hex'), createHash('sha256').update(bytes).digest('hex'));
	assert.ok(cutter.cuts >= 9, `${cutter.cuts} cuts`);
	cutter.limit = Infinity;
	const process = await direct.startProcess('for i in $(seq 1 300); do seq $((i * 10 - 9)) $((i * 10)); sleep 0.001; done; printf "\\303\\244"; exit 3', { processId: 'log' });
	await process.waitForExit(30_000);
	cutter.limit = 3001;
	let text = '';
	let exit;
	for await (const event of (await sandbox.streamProcessLogs('log')).events())
		if (event.type === 'stdout')
			text += event.data;
		else if (event.type === 'exit')
			exit = event.exitCode;
	assert.equal(text, Array.from({ length: 3000 }, (_, i) => `${i + 1}\n`).join('') + 'ä');
	assert.equal(exit, 3);
});

test('a stream is given up by a signal and by leaving the loop; a command whose connection breaks is done once', async t => {
	const sandbox = library.getSandbox('leave', settings());
	t.after(() => sandbox.destroy());
	const stop = new AbortController();
	const stream = await sandbox.execStream('while :; do echo x; sleep 0.05; done', { signal: stop.signal });
	await assert.rejects(async () => {
		for await (const event of stream.events())
			if (event.type === 'stdout')
				stop.abort();
	}, /Operation was aborted/);
	await assert.rejects(sandbox.exec('true', { signal: AbortSignal.abort() }), /Operation was aborted/);
	const cutter = await startCutter(t);
	const cut = library.getSandbox('leave', { ...settings(), url: cutter.url });
	cutter.limit = 1;
	await assert.rejects(cut.exec('echo once >> /workspace/times'), error => error.name === 'RPCTransportError' && error.code === 'RPC_TRANSPORT_ERROR' && error.kind === 'peer_closed');
	assert.ok(cutter.cuts > 2, 'it was sent again');
	assert.equal((await sandbox.readFile('/workspace/times')).content, 'once\n');
	cutter.cuts = 0;
	cutter.limit = 300;
	const twice = await cut.exec('echo again >> /workspace/times; head -c 250 /dev/zero | tr "\\0" x', { onComplete: () => { cutter.limit = Infinity; } }).catch(error => error);
	assert.equal(twice.name, 'RPCTransportError');
	cutter.limit = 1;
	cutter.cuts = 0;
	await assert.rejects(cut.mkdir('/workspace/made'), { code: 'RPC_TRANSPORT_ERROR' });
	assert.ok(cutter.cuts <= 1, 'without a key it was sent once');
	assert.equal((await sandbox.readFile('/workspace/times')).content, 'once\nagain\n');
	await assert.rejects(library.getSandbox('none', { url: 'http://127.0.0.1:1', token: 'x' }).exec('true'), error => error.name === 'ContainerUnavailableError' && /nothing answers/.test(error.message));
});

test('sandboxes are created, found, listed and destroyed', async t => {
	let id;
	{
		await using sandbox = await library.Sandbox.create({ ...settings(), labels: { mine: 'yes' } });
		({ id } = sandbox);
		assert.equal((await sandbox.exec('echo in')).stdout, 'in\n');
		const found = [];
		for await (const info of library.Sandbox.list({ ...settings(), labels: { mine: 'yes' } }))
			found.push(info.id);
		assert.deepEqual(found, [id]);
		await using other = await library.Sandbox.connect(id, settings());
		assert.equal((await other.getInfo()).id, id);
	}
	await assert.rejects(library.Sandbox.connect(id, settings()), { code: 'SANDBOX_NOT_FOUND' });
	assert.equal(await library.Sandbox.destroy(id, settings()), false);
	assert.throws(() => new library.Sandbox(), TypeError);
	assert.throws(() => library.getSandbox('-x', settings()), { name: 'SandboxSecurityError', code: 'INVALID_SANDBOX_ID_HYPHENS' });
	const prefixed = library.getSandbox('p', { ...settings(), prefix: 'team-' });
	await prefixed.exec('true');
	assert.equal(await library.Sandbox.destroy('team-p', settings()), true);
	const typed = await prefixed.exec('true').then(() => library.Sandbox.destroy('p', { ...settings(), prefix: 'team-' }));
	assert.equal(typed, true);
});

test('snapshots outlive their sandbox, copies are made, and events tell of it', async t => {
	const stop = new AbortController();
	const heard = [];
	const listening = (async () => {
		for await (const event of library.Sandbox.events({ ...settings(), cursor: '0', signal: stop.signal }))
			heard.push(event.type);
	})().catch(error => error);
	const source = await library.Sandbox.create(settings());
	await source.writeFile('/workspace/a.txt', 'kept');
	const snapshot = await source.createSnapshot({ name: 'first' });
	assert.deepEqual((await source.listSnapshots()).map(({ id }) => id), [snapshot.id]);
	const [copy] = await source.fork({ count: 1 });
	await source.destroy();
	assert.equal((await copy.readFile('/workspace/a.txt')).content, 'kept');
	await copy.destroy();
	const snapshots = library.Sandbox.snapshots(settings());
	assert.equal((await snapshots.get(snapshot.id)).name, 'first');
	await using restored = await library.Sandbox.create({ ...settings(), from: { snapshot: snapshot.id } });
	assert.equal((await restored.readFile('/workspace/a.txt')).content, 'kept');
	await restored.destroy();
	await snapshots.delete(snapshot.id);
	await until('the events', () => heard.includes('snapshot') && heard.includes('forked') && heard.includes('destroyed'), 20_000);
	stop.abort();
	assert.match((await listening).message, /aborted/);
	assert.equal((await library.Sandbox.version(settings())).api, 'v1');
});

test('a terminal is opened, sized and left', async t => {
	const sandbox = library.getSandbox('tty', settings());
	t.after(() => sandbox.destroy());
	const terminal = await sandbox.openTerminal({ cols: 97, rows: 27 });
	await terminal.ready;
	terminal.resize(61, 11);
	terminal.write('stty size; exit 3\n');
	assert.deepEqual(await terminal.exited, { code: 3 });
	let shown = '';
	for await (const bytes of terminal)
		shown += new TextDecoder().decode(bytes);
	assert.match(shown, /11 61/);
	await sandbox.startProcess('exec python3 -m http.server 8123');
	await sandbox.waitForPort(8123, { timeout: 30_000 });
	await assert.rejects(sandbox.connectPort(8123, '/none'), { code: 'RPC_TRANSPORT_ERROR' });
});

test('all 49 classes of errors exist, and each code of them makes its own', () => {
	const classes = Object.entries(library).filter(([name, value]) => /^[A-Z].*Error$/.test(name) && typeof value === 'function');
	assert.equal(classes.length, 49, classes.map(([name]) => name).join(' '));
	for (const [code, type] of Object.entries(library.ERROR_CLASSES)) {
		const error = library.errorFrom({ code, message: 'm', httpStatus: 418, context: { path: '/p' }, suggestion: 's', timestamp: 't' });
		assert.ok(error instanceof type && error instanceof library.SandboxError, code);
		assert.deepEqual([error.name, error.code, error.status, error.httpStatus, error.context.path, error.hint, error.suggestion, error.message], [type.name, code, 418, 418, '/p', 's', 's', 'm']);
		assert.equal(error.toJSON().code, code);
	}
	assert.equal(library.errorFrom({ code: 'NEW_ONE', message: 'm' }).name, 'SandboxError');
});

/** Operations that are no calls of a program. */
const NOT_METHODS = new Set(['GET /v1/openapi.json', 'GET /v1/openapi-compat.json']);

test('every operation below /v1 has a method', () => {
	const source = fs.readdirSync(path.join(SOURCE, 'src')).map(name => fs.readFileSync(path.join(SOURCE, 'src', name), 'utf8')).join('\n');
	const sent = new Set([...source.matchAll(/'(GET|POST|PUT|PATCH|DELETE|HEAD)', [`'](\/v1\/[^`'?]*?)(?=[`'?]|\$\{(?:url|labels)\b)/g)].map(([, method, template]) => `${method} ${template}`));
	const covered = operation => sent.has(operation) || [...sent].some(one => one.includes('${verb}') && /\/(stop|start|restart|pause|resume)$/.test(operation) && operation.replace(/\w+$/, '${verb}') === one);
	const document = JSON.parse(fs.readFileSync(path.join(SOURCE, '../../docs/openapi.json'), 'utf8'));
	const operations = Object.entries(document.paths).filter(([template]) => template.startsWith('/v1/')).flatMap(([template, item]) => Object.keys(item).filter(name => item[name].responses).map(method => `${method.toUpperCase()} ${template}`));
	assert.ok(operations.length > 60);
	const passed = /\/(ports|proxy)\/\{port\}\/\{path\*?\}$|^\w+ \/v1\/previews\//; // any method: containerFetch, connectPort, proxyToSandbox
	assert.deepEqual(operations.filter(operation => !NOT_METHODS.has(operation) && !passed.test(operation) && !covered(operation)), []);
});

test('the package installs without a network into an empty project and works', async t => {
	const project = makeProject(t);
	fs.rmSync(path.join(project, 'node_modules'), { recursive: true });
	fs.writeFileSync(path.join(project, 'package.json'), '{"name":"empty","version":"1.0.0","type":"module"}\n');
	for (const words of [[packed()], [`@cloudflare/sandbox@file:${packed()}`]]) {
		const installed = await run(['npm', 'install', '--offline', '--no-audit', '--no-fund', ...words], { cwd: project });
		assert.equal(installed.code, 0, installed.stderr);
	}
	fs.writeFileSync(path.join(project, 'main.mjs'), `import { getSandbox } from 'silt-sandbox';
import { getSandbox as aliased, SandboxError } from '@cloudflare/sandbox';
const sandbox = getSandbox('smoke');
console.log((await sandbox.exec('echo packed')).stdout.trim(), (await aliased('smoke').exec('echo aliased')).stdout.trim());
await sandbox.destroy();
`);
	const ended = await run([process.execPath, 'main.mjs'], { cwd: project, env: { SILT_URL: daemon.address, SILT_TOKEN: daemon.token } });
	assert.deepEqual([ended.code, ended.stdout.trim()], [0, 'packed aliased'], ended.stderr);
	const listed = JSON.parse(fs.readFileSync(path.join(project, 'node_modules/silt-sandbox/package.json'), 'utf8'));
	assert.equal(listed.dependencies, undefined);
});

test('for workerd it is at most 40 KiB compressed', t => {
	const project = makeProject(t, { 'worker.mjs': 'export * from \'silt-sandbox\';\n' });
	bundle(path.join(project, 'worker.mjs'), path.join(project, 'bundle.js'), { minify: true });
	const size = gzipSync(fs.readFileSync(path.join(project, 'bundle.js')), { level: 9 }).length;
	t.diagnostic(`${(size / 1024).toFixed(1)} KiB`);
	assert.ok(size <= BUNDLE_MAX, `${size} bytes`);
});

test('its types fit a strict program', t => {
	const project = makeProject(t, {
		'program.ts': `import { getSandbox, Sandbox, type ExecEvent, type Process, FileNotFoundError } from 'silt-sandbox';
const sandbox: Sandbox = getSandbox('types');
const { stdout, exitCode }: { stdout: string; exitCode: number } = await sandbox.exec('true', { cwd: '/', env: { A: '1' } });
for await (const event of (await sandbox.execStream('true')).events()) { const one: ExecEvent = event; console.log(one.type, stdout, exitCode); }
const process: Process = await sandbox.startProcess('true');
await process.waitForPort(8080, { mode: 'tcp' });
const result = await sandbox.runCode('1');
console.log(result.results[0]?.text, result.outputs['png']);
await using mine = await Sandbox.create({ image: 'base', limits: { memoryMiB: 512 } });
try { await mine.readFile('/x'); } catch (error) { if (error instanceof FileNotFoundError) console.log(error.path, error.code); }
// @ts-expect-error no such option
await sandbox.exec('true', { cwdd: '/' });
`, 'tsconfig.json': JSON.stringify({ compilerOptions: { target: 'es2022', module: 'nodenext', lib: ['es2024', 'esnext.disposable', 'dom', 'dom.iterable', 'dom.asynciterable'], types: [], strict: true, noEmit: true, skipLibCheck: false, exactOptionalPropertyTypes: true }, include: ['program.ts'] }) });
	try {
		execFileSync(path.join(clients(), 'node_modules/.bin/tsc'), ['-p', project], { encoding: 'utf8' });
	} catch (error) {
		assert.fail(error.stdout);
	}
});
