// SPDX-License-Identifier: Apache-2.0
// The OpenAPI document, the router and the answers agree: every route is called, every answer checked against its schema.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { layout } from '../lib/oci.mjs';
import { OPEN, ROUTES } from '../lib/routes.mjs';
import { Schemas } from '../lib/schema.mjs';
import { skeletonTar } from '../lib/tar.mjs';

let daemon;
let families;
before(async () => {
	daemon = await startDaemon({ images: false });
	// Two documents, one for each family of routes; the tests look at both.
	const documents = await Promise.all(['/v1/openapi.json', '/v1/openapi-compat.json'].map(async url => (await daemon.api('GET', url, undefined, { token: false })).body));
	families = documents.map(each => ({ document: each, schemas: new Schemas(each) }));
	const answer = await daemon.api('PUT', '/v1/images/host?kind=host', skeletonTar(), { headers: { 'content-type': 'application/x-tar' } });
	assert.equal(answer.status, 201, answer.raw.toString());
});
after(() => daemon?.stop());

const METHODS = ['get', 'put', 'post', 'delete', 'patch', 'head', 'options', 'trace'];

const paths = () => families.flatMap(family => Object.keys(family.document.paths));
const family = path => families.find(each => path in each.document.paths);
const itemOf = path => family(path).document.paths[path];
const operation = (method, path) => itemOf(path)[method.toLowerCase()];

function operations() {
	return paths().flatMap(path => METHODS.filter(method => method in itemOf(path)).map(method => [method.toUpperCase(), path, itemOf(path)[method]]));
}

/** The answer's status, content type and body are what the document promises. */
function conforms(method, path, answer) {
	const where = `${method} ${path} -> ${answer.status}`;
	const { schemas } = family(path);
	const response = operation(method, path).responses[answer.status] ?? operation(method, path).responses.default;
	assert.ok(response, `${where} is documented: ${answer.raw.toString().slice(0, 300)}`);
	const { content } = schemas.resolve(response);
	if (!content)
		return assert.equal(answer.raw.length, 0, `${where} has no body`);
	const type = (answer.headers['content-type'] ?? '').split(';')[0];
	assert.ok(content[type], `${where}: ${type} is documented`);
	if (type === 'application/json')
		assert.deepEqual(schemas.check(content[type].schema, answer.body), [], where);
	if (content[type]['x-silt-stream'] === 'sse') {
		const events = answer.raw.toString().split('\n').filter(line => line.startsWith('data: ')).map(line => JSON.parse(line.slice(6)));
		assert.ok(events.length > 0, `${where}: events`);
		for (const event of events)
			assert.deepEqual(schemas.check(content[type].schema, event), [], `${where}: ${event.type}`);
	}
}

test('the documents are OpenAPI 3.1 with a title and a version', () => {
	for (const { document } of families) {
		assert.equal(document.openapi, '3.1.0');
		assert.ok(document.info.title && document.info.version);
	}
});

test('one document has /v1 and the daemon itself, the other the compatible routes', () => {
	const [own, compatible] = families.map(each => Object.keys(each.document.paths));
	assert.deepEqual(own.filter(path => !path.startsWith('/v1/')), ['/healthz', '/metrics', '/', '/docs/api']);
	assert.deepEqual(compatible.filter(path => !path.startsWith('/sandboxes/')), ['/assets/{file}']);
});

test('the documents list exactly the routes of the router', () => {
	const listed = operations().map(([method, path]) => `${method} ${path}`).sort();
	assert.deepEqual(listed, ROUTES.map(([method, path]) => `${method} ${path}`).sort());
});

test('every listed route exists: a wrong method on its path is 405, never 404', async () => {
	for (const path of paths()) {
		const real = path.replace(/\{\w+\}/g, 'probe');
		if (/\/(ports|proxy|previews)\/\{port\}\/./.test(path))
			continue; // any method is for the service inside
		const answer = await daemon.api(['patch', 'put', 'post', 'delete'].find(method => !(method in itemOf(path))).toUpperCase(), real);
		assert.equal(answer.status, 405, path);
		const allowed = (answer.headers.allow ?? '').split(/,\s*/).filter(method => !['HEAD', 'OPTIONS'].includes(method)).sort();
		const fitting = paths().filter(other => new RegExp(`^${other.replace(/\{\w+\}/g, '[^/]+')}$`).test(real)); // .../process/list is one of .../process/{process}
		assert.deepEqual(allowed, METHODS.filter(method => fitting.some(other => method in itemOf(other))).map(m => m.toUpperCase()).sort(), path);
	}
});

test('every operation has an id of its own, a summary, a security rule and documented errors', () => {
	const ids = new Map(families.map(each => [each, new Set()]));
	for (const [method, path, op] of operations()) {
		const where = `${method} ${path}`;
		assert.ok(op.operationId && !ids.get(family(path)).has(op.operationId), where);
		ids.get(family(path)).add(op.operationId);
		assert.ok(op.summary, where);
		assert.equal(op.tags?.length, 1, where);
		assert.ok(family(path).document.tags.some(tag => tag.name === op.tags[0]), where);
		assert.ok(Object.keys(op.responses).some(status => /^(2|3|101)/.test(status)), where);
		const open = Array.isArray(op.security) && op.security.length === 0;
		assert.equal(open, OPEN.includes(path), `${where}: only few are open`);
		for (const name of path.match(/(?<=\{)\w+(?=\})/g) ?? []) {
			const parameters = [...(itemOf(path).parameters ?? []), ...(op.parameters ?? [])].map(p => family(path).schemas.resolve(p));
			assert.ok(parameters.some(p => p.in === 'path' && p.name === name && p.required), `${where}: ${name}`);
		}
	}
});

const SCRIPT = [
	['GET', '/'],
	['GET', '/docs/api'],
	['GET', '/healthz'],
	['GET', '/v1/version'],
	['GET', '/metrics'],
	['GET', '/v1/openapi.json'],
	['GET', '/v1/openapi-compat.json'],
	['GET', '/v1/images'],
	['PUT', '/v1/images/{name}', { path: '/v1/images/second?kind=host', raw: skeletonTar }],
	['PUT', '/v1/images/{name}', { path: '/v1/images/broken', raw: () => Buffer.from('no tar') }],
	['GET', '/v1/images/{name}', { path: '/v1/images/second' }],
	['GET', '/v1/images/{name}', { path: '/v1/images/never-there' }],
	['POST', '/v1/images/build', { path: '/v1/images/build?t=Bad', raw: () => Buffer.from('no tar') }],
	['PUT', '/v1/images/{name}', { path: '/v1/images/leaving', raw: skeletonTar }],
	['GET', '/v1/images/{name}/export', { path: '/v1/images/leaving/export' }],
	['GET', '/v1/images/{name}/export', { path: '/v1/images/never-there/export' }],
	['GET', '/v1/images/{name}/export', { path: '/v1/images/leaving/export?format=zip' }],
	['DELETE', '/v1/images/{name}', { path: '/v1/images/leaving' }],
	['POST', '/v1/images/import', { path: '/v1/images/import?kind=host', raw: () => layout({ ref: 'fourth:1' }) }],
	['POST', '/v1/images/import', { path: '/v1/images/import', raw: skeletonTar }],
	['DELETE', '/v1/images/{name}', { path: '/v1/images/fourth:1' }],
	['POST', '/v1/images/pull', { body: { reference: 'localhost:5000/never' } }],
	['POST', '/v1/images/pull', { body: { reference: 'example.test/never' } }],
	['POST', '/v1/images/prune'],
	['POST', '/v1/images/{name}/tag', { path: '/v1/images/second/tag?name=third' }],
	['POST', '/v1/images/{name}/tag', { path: '/v1/images/never-there/tag?name=third' }],
	['POST', '/v1/images/{name}/tag', { path: '/v1/images/second/tag?name=Bad' }],
	['DELETE', '/v1/images/{name}', { path: '/v1/images/third' }],
	['DELETE', '/v1/images/{name}', { path: '/v1/images/second' }],
	['DELETE', '/v1/images/{name}', { path: '/v1/images/never-there' }],
	['POST', '/v1/sandboxes', { body: { id: 'probe', image: 'host', labels: { a: 'b' }, env: { A: '1' }, sleepAfter: '1h', limits: { memoryMiB: 256 } } }],
	['POST', '/v1/sandboxes', { body: { id: 'probe', image: 'host' } }],
	['POST', '/v1/sandboxes', { body: { id: '..' } }],
	['GET', '/v1/events', { path: '/v1/events?follow=false&cursor=0' }],
	['GET', '/v1/events', { path: '/v1/events?cursor=x' }],
	['GET', '/v1/sandboxes'],
	['GET', '/v1/sandboxes', { path: '/v1/sandboxes?limit=1&label=a%3Db&after=a' }],
	['GET', '/v1/sandboxes', { path: '/v1/sandboxes?limit=x' }],
	['GET', '/v1/sandboxes/{id}'],
	['GET', '/v1/sandboxes/{id}', { path: '/v1/sandboxes/unknown' }],
	['PATCH', '/v1/sandboxes/{id}', { body: { labels: { a: null }, env: { A: '2' }, sleepAfter: '1h', stopAfter: 7200, ttl: '1h', keepAlive: true, keepProcesses: true, removeAfterStop: false, limits: { memoryMiB: 300 } } }],
	['PATCH', '/v1/sandboxes/{id}', { body: { ttl: null, unknown: 1 } }],
	['PATCH', '/v1/sandboxes/{id}', { path: '/v1/sandboxes/unknown', body: {} }],
	['PATCH', '/v1/sandboxes/{id}', { body: { ttl: null } }],
	['PUT', '/v1/sandboxes/{id}', { body: { labels: { c: 'd' } } }],
	['PUT', '/v1/sandboxes/{id}', { body: { ephemeral: true } }],
	['PUT', '/v1/sandboxes/{id}', { path: '/v1/sandboxes/second', body: { image: 'host' } }],
	['DELETE', '/v1/sandboxes/{id}', { path: '/v1/sandboxes/second' }],
	['POST', '/v1/sandboxes/{id}/pause'],
	['POST', '/v1/sandboxes/{id}/resume'],
	['POST', '/v1/sandboxes/{id}/stop'],
	['POST', '/v1/sandboxes/{id}/pause'],
	['POST', '/v1/sandboxes/{id}/snapshots', { body: { name: 'kept', ttl: '1h' } }],
	['POST', '/v1/sandboxes/{id}/snapshots', { body: { ttl: 0 } }],
	['POST', '/v1/sandboxes/{id}/snapshots', { path: '/v1/sandboxes/unknown/snapshots' }],
	['GET', '/v1/sandboxes/{id}/snapshots'],
	['POST', '/v1/sandboxes/{id}/fork', { body: { ids: ['probe-fork'] } }],
	['POST', '/v1/sandboxes/{id}/fork', { body: { ids: ['probe-fork'] } }],
	['POST', '/v1/sandboxes/{id}/fork', { body: { count: 0 } }],
	['PATCH', '/v1/sandboxes/{id}', { body: { autoSnapshot: 'command' } }],
	['POST', '/v1/sandboxes/{id}/exec', { body: { command: 'echo undone > /workspace/undone' } }],
	['GET', '/v1/sandboxes/{id}/history'],
	['GET', '/v1/sandboxes/{id}/history', { path: '/v1/sandboxes/unknown/history' }],
	['PATCH', '/v1/sandboxes/{id}', { body: { autoSnapshot: 'off' } }],
	['POST', '/v1/sandboxes/{id}/undo', { body: { steps: 1 } }],
	['POST', '/v1/sandboxes/{id}/undo', { body: { steps: 1 } }],
	['POST', '/v1/sandboxes/{id}/undo', { body: { steps: 0 } }],
	['POST', '/v1/sandboxes/{id}/rollback', { body: { snapshot: 'unknown' } }],
	['POST', '/v1/sandboxes/{id}/rollback', { body: {} }],
	['POST', '/v1/sandboxes/{id}/rollback', { path: '/v1/sandboxes/unknown/rollback', body: { snapshot: 'unknown' } }],
	['POST', '/v1/sandboxes/{id}/fork', { path: '/v1/sandboxes/unknown/fork', body: { count: 1 } }],
	['GET', '/v1/snapshots'],
	['GET', '/v1/snapshots/{snapshot}', { path: '/v1/snapshots/unknown' }],
	['DELETE', '/v1/snapshots/{snapshot}', { path: '/v1/snapshots/unknown' }],
	['POST', '/v1/sandboxes/{id}/start'],
	['POST', '/v1/sandboxes/{id}/restart'],
	['POST', '/v1/sandboxes/{id}/restart', { path: '/v1/sandboxes/unknown/restart' }],
	['POST', '/v1/sandboxes/{id}/image', { body: { name: 'sealed', config: { Env: ['A=1'] } } }],
	['POST', '/v1/sandboxes/{id}/image', { body: { name: 'Bad' } }],
	['POST', '/v1/sandboxes/{id}/image', { path: '/v1/sandboxes/unknown/image', body: { name: 'sealed' } }],
	['DELETE', '/v1/images/{name}', { path: '/v1/images/sealed' }],
	['POST', '/v1/sandboxes/{id}/exec', { body: { command: 'echo hi; echo err >&2', sessionId: 's1', cwd: '/tmp', env: { A: 'x', B: null }, timeoutMs: 10_000 } }],
	['POST', '/v1/sandboxes/{id}/exec', { body: { argv: ['cat'], stdin: 'aGk=', stdinEncoding: 'base64', user: 'root', sessionId: null } }],
	['POST', '/v1/sandboxes/{id}/exec', { body: { command: 'echo hi; exit 3', sessionId: null }, accept: 'text/event-stream' }],
	['POST', '/v1/sandboxes/{id}/exec', { body: { command: '  ' } }],
	['POST', '/v1/sandboxes/{id}/exec', { body: { command: 'sleep 10', sessionId: null, timeoutMs: 50 } }],
	['POST', '/v1/sandboxes/{id}/exec', { path: '/v1/sandboxes/unknown/exec', body: { command: 'true' } }],
	['POST', '/v1/sandboxes/{id}/sessions', { body: { id: 's2', cwd: '/tmp', env: { A: 'x' }, commandTimeoutMs: 60_000 } }],
	['POST', '/v1/sandboxes/{id}/sessions', { body: { id: 's2' } }],
	['GET', '/v1/sandboxes/{id}/sessions'],
	['GET', '/v1/sandboxes/{id}/sessions/{session}', { path: '/v1/sandboxes/probe/sessions/s2' }],
	['GET', '/v1/sandboxes/{id}/sessions/{session}', { path: '/v1/sandboxes/probe/sessions/none' }],
	['PATCH', '/v1/sandboxes/{id}/sessions/{session}', { path: '/v1/sandboxes/probe/sessions/s2', body: { env: { A: null, B: 'y' } } }],
	['PATCH', '/v1/sandboxes/{id}/sessions/{session}', { path: '/v1/sandboxes/probe/sessions/s2', body: { env: 5 } }],
	['DELETE', '/v1/sandboxes/{id}/sessions/{session}', { path: '/v1/sandboxes/probe/sessions/s2' }],
	['DELETE', '/v1/sandboxes/{id}/sessions/{session}', { path: '/v1/sandboxes/probe/sessions/s2' }],
	['GET', '/v1/sandboxes/{id}/languages'],
	['POST', '/v1/sandboxes/{id}/run', { body: { code: '1', language: 'python' } }],
	['POST', '/v1/sandboxes/{id}/run', { body: { code: '1', language: 'cobol' } }],
	['GET', '/v1/sandboxes/{id}/terminal', { path: '/v1/sandboxes/probe/terminal?sessionId=s1' }],
	['DELETE', '/v1/sandboxes/{id}/terminal', { path: '/v1/sandboxes/probe/terminal?sessionId=s1' }],
	['DELETE', '/v1/sandboxes/{id}/terminal'],
	['GET', '/sandboxes/{id}/'],
	['GET', '/sandboxes/{id}/api/ping'],
	['GET', '/sandboxes/{id}/api/version'],
	['GET', '/sandboxes/{id}/api/commands'],
	['POST', '/sandboxes/{id}/api/session/create', { body: { id: 's', cwd: '/tmp', env: { A: 'x' } } }],
	['POST', '/sandboxes/{id}/api/session/create', { body: { id: 's' } }],
	['POST', '/sandboxes/{id}/api/session/create', { body: { id: 5 } }],
	['GET', '/sandboxes/{id}/api/session/list'],
	['POST', '/sandboxes/{id}/api/execute', { body: { command: 'echo hi' } }],
	['POST', '/sandboxes/{id}/api/execute', { body: { command: 'echo hi; false', sessionId: 's', cwd: '/', env: { B: null } } }],
	['POST', '/sandboxes/{id}/api/execute', { body: { command: 'exit 3' } }],
	['POST', '/sandboxes/{id}/api/execute', { body: { command: 'sleep 10', timeoutMs: 100 } }],
	['POST', '/sandboxes/{id}/api/execute', { body: { command: 5 } }],
	['POST', '/sandboxes/{id}/api/execute/stream', { body: { command: 'echo hi' } }],
	['POST', '/sandboxes/{id}/api/execute/stream', { body: { command: '' } }],
	['POST', '/sandboxes/{id}/api/backup/create', { body: { dir: '/workspace', archivePath: '/var/backups/a' } }],
	['POST', '/sandboxes/{id}/api/backup/create', { body: { dir: '/etc', archivePath: '/var/backups/a' } }],
	['POST', '/sandboxes/{id}/api/backup/restore', { body: { dir: '/workspace', archivePath: '/var/backups/none' } }],
	['POST', '/sandboxes/{id}/api/backup/restore', { body: {} }],
	['POST', '/sandboxes/{id}/api/backup/upload-parts', { body: { archivePath: '/var/backups/none', parts: [{ partNumber: 1, url: 'https://localhost/', offset: 0, size: 1 }] } }],
	['POST', '/sandboxes/{id}/api/backup/upload-parts', { body: { archivePath: '/var/backups/none', parts: [] } }],
	['POST', '/sandboxes/{id}/api/git/checkout', { body: { repoUrl: 'http://127.0.0.1:9/x.git' } }],
	['POST', '/sandboxes/{id}/api/git/checkout', { body: { repoUrl: 'ext::x' } }],
	['POST', '/v1/sandboxes/{id}/git/clone', { body: { repoUrl: 'http://127.0.0.1:9/x.git' } }],
	['POST', '/v1/sandboxes/{id}/git/clone', { body: {} }],
	['POST', '/v1/sandboxes/{id}/git/clone', { body: { repoUrl: 'http://127.0.0.1:9/x.git' }, accept: 'application/json' }],
	['GET', '/sandboxes/{id}/ws'],
	['GET', '/sandboxes/{id}/rpc'],
	['GET', '/sandboxes/{id}/api/ws'],
	['GET', '/sandboxes/{id}/ws/pty'],
	['GET', '/sandboxes/{id}/terminal'],
	['POST', '/sandboxes/{id}/terminal', { raw: () => Buffer.from('token=x') }],
	['GET', '/assets/{file}', { path: '/assets/terminal.css' }],
	['GET', '/assets/{file}', { path: '/assets/docs.js' }],
	['GET', '/assets/{file}', { path: '/assets/none' }],
	['POST', '/sandboxes/{id}/api/port-watch', { body: { port: 'x' } }],
	['POST', '/sandboxes/{id}/api/port-watch', { body: { port: 9, processId: 'never-there' } }],
	['GET', '/v1/sandboxes/{id}/network', {}],
	['PUT', '/v1/sandboxes/{id}/network', { body: { mode: 'none' } }],
	['PUT', '/v1/sandboxes/{id}/network', { body: { mode: 'public' } }],
	['PUT', '/v1/sandboxes/{id}/network', { body: { mode: 'x' } }],
	['POST', '/v1/sandboxes/{id}/ports/wait', { body: { port: 9, timeoutMs: 20 } }],
	['POST', '/v1/sandboxes/{id}/ports/wait', { body: { port: 9, processId: 'never-there' } }],
	['POST', '/v1/sandboxes/{id}/ports/wait', { body: {} }],
	['POST', '/v1/sandboxes/{id}/ports', { body: { port: 8000, name: 'web', token: 'abcdefgh' } }],
	['POST', '/v1/sandboxes/{id}/ports', { body: { port: 8001, token: 'abcdefgh' } }],
	['POST', '/v1/sandboxes/{id}/ports', { body: { port: 3000 } }],
	['POST', '/v1/sandboxes/{id}/ports', { body: { port: 80 } }],
	['GET', '/v1/sandboxes/{id}/ports'],
	['GET', '/v1/sandboxes/{id}/ports/{port}', { path: '/v1/sandboxes/probe/ports/8000' }],
	['GET', '/v1/sandboxes/{id}/ports/{port}', { path: '/v1/sandboxes/probe/ports/8001' }],
	['GET', '/v1/sandboxes/{id}/ports', { path: '/v1/sandboxes/unknown/ports' }],
	['POST', '/v1/sandboxes/{id}/ports/{port}/sign', { path: '/v1/sandboxes/probe/ports/8000/sign', body: { expiresIn: 60 } }],
	['POST', '/v1/sandboxes/{id}/ports/{port}/sign', { path: '/v1/sandboxes/probe/ports/8001/sign', body: {} }],
	['DELETE', '/v1/sandboxes/{id}/ports/{port}', { path: '/v1/sandboxes/probe/ports/8000' }],
	['DELETE', '/v1/sandboxes/{id}/ports/{port}', { path: '/v1/sandboxes/probe/ports/8000' }],
	['DELETE', '/v1/sandboxes/{id}/ports/{port}', { path: '/v1/sandboxes/probe/ports/x' }],
	['GET', '/v1/sandboxes/{id}/ports/{port}/{path}', { path: '/v1/sandboxes/probe/ports/08000/' }],
	['PUT', '/v1/sandboxes/{id}/ports/{port}/{path}', { path: '/v1/sandboxes/unknown/ports/8000/x', bytes: 'text' }],
	['POST', '/v1/sandboxes/{id}/ports/{port}/{path}', { path: '/v1/sandboxes/probe/ports/65536/x', bytes: 'text' }],
	['DELETE', '/v1/sandboxes/{id}/ports/{port}/{path}', { path: '/v1/sandboxes/unknown/ports/8000/x' }],
	['PATCH', '/v1/sandboxes/{id}/ports/{port}/{path}', { path: '/v1/sandboxes/probe/ports/0/x', bytes: 'text' }],
	['GET', '/v1/sandboxes/{id}/proxy/{port}/{path}', { path: '/v1/sandboxes/probe/proxy/08000/' }],
	['PUT', '/v1/sandboxes/{id}/proxy/{port}/{path}', { path: '/v1/sandboxes/unknown/proxy/8000/x', bytes: 'text' }],
	['POST', '/v1/sandboxes/{id}/proxy/{port}/{path}', { path: '/v1/sandboxes/probe/proxy/65536/x', bytes: 'text' }],
	['DELETE', '/v1/sandboxes/{id}/proxy/{port}/{path}', { path: '/v1/sandboxes/unknown/proxy/8000/x' }],
	['PATCH', '/v1/sandboxes/{id}/proxy/{port}/{path}', { path: '/v1/sandboxes/probe/proxy/0/x', bytes: 'text' }],
	...['GET', 'PUT', 'POST', 'DELETE', 'PATCH'].map(method => [method, '/v1/previews/{port}/{id}/{token}/{path}', { path: '/v1/previews/8000/probe/wrongtoken/x' }]),
	['POST', '/v1/sandboxes/{id}/ports/wait', { body: { port: 9, timeoutMs: 20 }, accept: 'text/event-stream' }],
	['POST', '/v1/sandboxes/{id}/watch/check', { body: { path: '/tmp' } }],
	['POST', '/v1/sandboxes/{id}/watch/check', { body: { path: '/tmp', since: 'x' } }],
	['POST', '/sandboxes/{id}/api/watch', { body: { path: 'never-there' } }],
	['POST', '/sandboxes/{id}/api/watch', { body: { path: '/etc' } }],
	['POST', '/sandboxes/{id}/api/watch', { body: { path: '.', include: ['['] } }],
	['POST', '/sandboxes/{id}/api/watch/check', { body: { path: '.' } }],
	['POST', '/sandboxes/{id}/api/watch/check', { body: { path: '.', since: 'watch-1-1:1' } }],
	['POST', '/sandboxes/{id}/api/watch/check', { body: { path: '.', since: '' } }],
	['POST', '/v1/sandboxes/{id}/watch', { body: { path: '/never-there' } }],
	['POST', '/sandboxes/{id}/api/process/start', { body: { command: 'echo hi; sleep 100', processId: 'p1', sessionId: 's', env: { B: 'x' }, cwd: '/', autoCleanup: true } }],
	['POST', '/sandboxes/{id}/api/process/start', { body: { command: 'true', processId: 'p1' } }],
	['POST', '/sandboxes/{id}/api/process/start', { body: { command: 'true', processId: 'list' } }],
	['POST', '/sandboxes/{id}/api/process/start', { body: { command: 'true' } }],
	['GET', '/sandboxes/{id}/api/process/list'],
	['GET', '/sandboxes/{id}/api/process/{process}', { path: '/sandboxes/probe/api/process/p1' }],
	['GET', '/sandboxes/{id}/api/process/{process}', { path: '/sandboxes/probe/api/process/unknown' }],
	['DELETE', '/sandboxes/{id}/api/process/{process}', { path: '/sandboxes/probe/api/process/p1' }],
	['DELETE', '/sandboxes/{id}/api/process/{process}', { path: '/sandboxes/probe/api/process/p1?signal=SIGINT' }],
	['GET', '/sandboxes/{id}/api/process/{process}/logs', { path: '/sandboxes/probe/api/process/p1/logs' }],
	['GET', '/sandboxes/{id}/api/process/{process}/stream', { path: '/sandboxes/probe/api/process/p1/stream' }],
	['GET', '/sandboxes/{id}/api/process/{process}/stream', { path: '/sandboxes/probe/api/process/p1/stream?cursor=7' }],
	['DELETE', '/sandboxes/{id}/api/process/kill-all'],
	['POST', '/v1/sandboxes/{id}/processes', { body: { argv: ['cat'], cwd: '/', env: { A: 'x' }, processId: 'n1', stdin: true, timeoutMs: 60_000, autoCleanup: false } }],
	['POST', '/v1/sandboxes/{id}/processes', { body: { command: 'true', sessionId: 's' } }],
	['POST', '/v1/sandboxes/{id}/processes', { body: { command: 'true', processId: 'n1' } }],
	['POST', '/v1/sandboxes/{id}/processes', { path: '/v1/sandboxes/unknown/processes', body: { command: 'true' } }],
	['GET', '/v1/sandboxes/{id}/processes'],
	['GET', '/v1/sandboxes/{id}/processes', { path: '/v1/sandboxes/unknown/processes' }],
	['GET', '/v1/sandboxes/{id}/processes/{process}', { path: '/v1/sandboxes/probe/processes/n1' }],
	['GET', '/v1/sandboxes/{id}/processes/{process}', { path: '/v1/sandboxes/probe/processes/unknown' }],
	['PUT', '/v1/sandboxes/{id}/processes/{process}/stdin', { path: '/v1/sandboxes/probe/processes/n1/stdin', raw: () => Buffer.from('hello\n') }],
	['GET', '/v1/sandboxes/{id}/processes/{process}/wait', { path: '/v1/sandboxes/probe/processes/n1/wait?for=line&text=hello' }],
	['GET', '/v1/sandboxes/{id}/processes/{process}/wait', { path: '/v1/sandboxes/probe/processes/n1/wait?for=exit&timeoutMs=1' }],
	['GET', '/v1/sandboxes/{id}/processes/{process}/wait', { path: '/v1/sandboxes/probe/processes/n1/wait?for=nothing' }],
	['GET', '/v1/sandboxes/{id}/processes/{process}/wait', { path: '/v1/sandboxes/probe/processes/n1/wait?for=port&port=9&timeoutMs=1' }],
	['GET', '/v1/sandboxes/{id}/processes/{process}/logs', { path: '/v1/sandboxes/probe/processes/n1/logs?stream=stdout' }],
	['POST', '/v1/sandboxes/{id}/processes/{process}/signal', { path: '/v1/sandboxes/probe/processes/n1/signal', body: { signal: 'SIGCONT' } }],
	['POST', '/sandboxes/{id}/api/execute', { body: { command: 'nohup sleep 1000 >/dev/null 2>&1 &' } }],
	['GET', '/v1/sandboxes/{id}/processes', { path: '/v1/sandboxes/probe/processes?status=running' }],
	['DELETE', '/v1/sandboxes/{id}/processes', { path: '/v1/sandboxes/probe/processes?graceMs=100' }],
	['DELETE', '/v1/sandboxes/{id}/processes', { path: '/v1/sandboxes/probe/processes?state=some' }],
	['DELETE', '/v1/sandboxes/{id}/processes', { path: '/v1/sandboxes/unknown/processes' }],
	['DELETE', '/v1/sandboxes/{id}/processes/{process}', { path: '/v1/sandboxes/probe/processes/n1?graceMs=100' }],
	['GET', '/v1/sandboxes/{id}/processes/{process}/stream', { path: '/v1/sandboxes/probe/processes/n1/stream' }],
	['DELETE', '/v1/sandboxes/{id}/processes/{process}', { path: '/v1/sandboxes/probe/processes/n1' }],
	['POST', '/sandboxes/{id}/api/session/delete', { body: { sessionId: 's' } }],
	['POST', '/sandboxes/{id}/api/session/delete', { body: { sessionId: 's' } }],
	['POST', '/sandboxes/{id}/api/session/delete', { body: {} }],
	['POST', '/sandboxes/{id}/api/write', { body: { path: 'a.txt', content: 'text' } }],
	['POST', '/sandboxes/{id}/api/write', { body: { path: 'a.txt', content: '?', encoding: 'base64' } }],
	['POST', '/sandboxes/{id}/api/read', { body: { path: 'a.txt' } }],
	['POST', '/sandboxes/{id}/api/read', { body: { path: 'none' } }],
	['POST', '/sandboxes/{id}/api/read/stream', { body: { path: 'a.txt' } }],
	['POST', '/sandboxes/{id}/api/mkdir', { body: { path: 'd' } }],
	['POST', '/sandboxes/{id}/api/mkdir', { body: { path: 'd' } }],
	['POST', '/sandboxes/{id}/api/rename', { body: { oldPath: 'a.txt', newPath: 'b.txt' } }],
	['POST', '/sandboxes/{id}/api/move', { body: { sourcePath: 'b.txt', destinationPath: 'd' } }],
	['POST', '/sandboxes/{id}/api/list-files', { body: { path: '.', options: { recursive: true } } }],
	['POST', '/sandboxes/{id}/api/list-files', { body: { path: 'none' } }],
	['POST', '/sandboxes/{id}/api/delete', { body: { path: 'd/b.txt' } }],
	['POST', '/sandboxes/{id}/api/delete', { body: { path: 'd' } }],
	['POST', '/sandboxes/{id}/api/exists', { body: { path: 'd' } }],
	['POST', '/sandboxes/{id}/api/exists', { body: { path: '' } }],
	['PUT', '/v1/sandboxes/{id}/files', { path: '/v1/sandboxes/probe/files?path=up', bytes: 'text' }],
	['PUT', '/v1/sandboxes/{id}/files', { path: '/v1/sandboxes/probe/files?path=directory', raw: skeletonTar }],
	['PUT', '/v1/sandboxes/{id}/files', { path: '/v1/sandboxes/probe/files', bytes: 'text' }],
	['GET', '/v1/sandboxes/{id}/files', { path: '/v1/sandboxes/probe/files?path=up' }],
	['GET', '/v1/sandboxes/{id}/files', { path: '/v1/sandboxes/probe/files?path=directory&format=tar' }],
	['GET', '/v1/sandboxes/{id}/files', { path: '/v1/sandboxes/probe/files?path=none' }],
	['POST', '/v1/sandboxes/{id}/files/stat', { body: { path: 'up' } }],
	['POST', '/v1/sandboxes/{id}/files/stat', { body: { path: 'none' } }],
	['POST', '/v1/sandboxes/{id}/files/list', { body: { path: '.', recursive: true } }],
	['POST', '/v1/sandboxes/{id}/files/mkdir', { body: { path: 'made', mode: '0700' } }],
	['POST', '/v1/sandboxes/{id}/files/mkdir', { body: { path: 'made' } }],
	['POST', '/v1/sandboxes/{id}/files/move', { body: { path: 'up', to: 'made' } }],
	['POST', '/v1/sandboxes/{id}/files/chmod', { body: { path: 'made/up', mode: 420 } }],
	['POST', '/v1/sandboxes/{id}/files/chown', { body: { path: 'made/up', uid: 1 } }],
	['POST', '/v1/sandboxes/{id}/files/symlink', { body: { path: 'link', target: 'made/up' } }],
	['POST', '/v1/sandboxes/{id}/files/readlink', { body: { path: 'link' } }],
	['POST', '/v1/sandboxes/{id}/files/truncate', { body: { path: 'made/up', size: 2 } }],
	['POST', '/v1/sandboxes/{id}/files/sign', { body: { path: 'up', expiresIn: 60 } }],
	['POST', '/v1/sandboxes/{id}/files/sign', { body: { path: 'up', method: 'POST' } }],
	['POST', '/v1/sandboxes/{id}/files/search', { body: { path: '.', text: 'te' } }],
	['DELETE', '/v1/sandboxes/{id}/files', { path: '/v1/sandboxes/probe/files?path=made&recursive=true' }],
	['DELETE', '/v1/sandboxes/{id}/files', { path: '/v1/sandboxes/probe/files?path=made' }],
	['GET', '/sandboxes/{id}/api/interpreter/health'],
	['POST', '/sandboxes/{id}/api/contexts', { body: { language: 'python', cwd: '/tmp', env_vars: { A: 'x' }, timeout: 60_000 } }],
	['POST', '/sandboxes/{id}/api/contexts', { body: { language: 'cobol' } }],
	['POST', '/sandboxes/{id}/api/contexts', { body: { cwd: '/no/such/directory' } }],
	['GET', '/sandboxes/{id}/api/contexts'],
	['POST', '/sandboxes/{id}/api/execute/code', { body: { code: '1+1', language: 'python' } }],
	['POST', '/sandboxes/{id}/api/execute/code', { body: { code: '1', context_id: 'unknown' } }],
	['POST', '/sandboxes/{id}/api/execute/code', { body: {} }],
	['POST', '/v1/sandboxes/{id}/contexts', { body: { language: 'python' } }],
	['GET', '/v1/sandboxes/{id}/contexts'],
	['GET', '/v1/sandboxes/{id}/contexts/{context}', { path: '/v1/sandboxes/probe/contexts/python' }],
	['GET', '/v1/sandboxes/{id}/contexts/{context}', { path: '/v1/sandboxes/probe/contexts/unknown' }],
	['POST', '/v1/sandboxes/{id}/contexts/{context}/run', { path: '/v1/sandboxes/probe/contexts/python/run', body: { code: 'print(1)\n2' } }],
	['POST', '/v1/sandboxes/{id}/contexts/{context}/run', { path: '/v1/sandboxes/probe/contexts/python/run', body: { code: '1/0' } }],
	['GET', '/v1/sandboxes/{id}/contexts/{context}/runs/{run}/stream', { path: '/v1/sandboxes/probe/contexts/python/runs/none/stream' }],
	['POST', '/v1/sandboxes/{id}/contexts/{context}/interrupt', { path: '/v1/sandboxes/probe/contexts/python/interrupt' }],
	['POST', '/v1/sandboxes/{id}/contexts/{context}/input', { path: '/v1/sandboxes/probe/contexts/python/input', body: { text: 'x' } }],
	['POST', '/v1/sandboxes/{id}/contexts/{context}/restart', { path: '/v1/sandboxes/probe/contexts/python/restart' }],
	['DELETE', '/v1/sandboxes/{id}/contexts/{context}', { path: '/v1/sandboxes/probe/contexts/unknown' }],
	['DELETE', '/sandboxes/{id}/api/contexts/{context}', { path: '/sandboxes/probe/api/contexts/unknown' }],
	['DELETE', '/v1/sandboxes/{id}'],
	['DELETE', '/v1/sandboxes/{id}'],
	['DELETE', '/v1/images/{name}', { path: '/v1/images/host' }],
];

test('every answer of every route fits its schema', async () => {
	for (const [method, route, { path, body, bytes, raw, accept } = {}] of SCRIPT) {
		const headers = { ...(raw && { 'content-type': 'application/x-tar' }), ...(accept && { accept }) };
		const answer = await daemon.api(method, path ?? route.replace('{id}', 'probe'), body ?? bytes ?? raw?.(), { headers });
		conforms(method, route, answer);
	}
	const called = new Set(SCRIPT.map(([method, route]) => `${method} ${route}`));
	assert.deepEqual(operations().map(([method, path]) => `${method} ${path}`).filter(name => !called.has(name)), [], 'no route was left out');
});

test('below /v1 streams name the schema of their events, and bodies have an example that fits', () => {
	for (const [method, path, op] of operations().filter(([, path]) => path.startsWith('/v1/'))) {
		const { schemas } = family(path);
		for (const response of Object.values(op.responses)) {
			const stream = schemas.resolve(response).content?.['text/event-stream'];
			assert.ok(!stream || (stream['x-silt-stream'] === 'sse' && stream.schema.$ref), `${method} ${path}`);
		}
		const body = op.requestBody && schemas.resolve(op.requestBody).content['application/json'];
		if (body)
			assert.deepEqual(schemas.check(body.schema, body.example), [], `${method} ${path}`);
	}
});

test('answers without a token fit their schema', async () => {
	for (const [method, route] of ROUTES) {
		if (!OPEN.includes(route))
			conforms(method, route, await daemon.api(method, route.replace(/\{\w+\}/g, 'probe'), method === 'GET' || method === 'DELETE' ? undefined : {}, { token: false }));
	}
});

test('request bodies of the document accept what the tests send', () => {
	for (const [method, route, { body } = {}] of SCRIPT) {
		if (!body)
			continue;
		const { content } = family(route).schemas.resolve(operation(method, route).requestBody);
		assert.ok(content['application/json'].schema, `${method} ${route}`);
	}
});
