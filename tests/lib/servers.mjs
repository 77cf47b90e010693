// SPDX-License-Identifier: Apache-2.0
// Servers that run inside sandboxes: vite and ws from npm, nginx of the machine.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { BUILD } from './daemon.mjs';

/** A file as our users write it: through the API. */
export async function write(box, file, content) {
	const answer = await box.api('POST', '/api/write', { path: file, content });
	assert.equal(answer.status, 200, answer.raw.toString());
}

/** The packages of tests/servers below this directory of the sandbox, which needs no network for it. */
export async function putPackages(box, directory) {
	const tar = execFileSync(path.join(import.meta.dirname, '../servers/packages'), { env: { ...process.env, BUILD }, encoding: 'utf8' }).trim();
	await box.out(`mkdir -p ${directory}`);
	const answer = await box.daemon.api('PUT', `/v1/sandboxes/${box.id}/files?path=${encodeURIComponent(directory)}`, fs.readFileSync(tar), { headers: { 'content-type': 'application/x-tar' }, deadline: 120_000 });
	assert.equal(answer.status, 200, answer.raw.toString());
}

/** Starts a program that goes on; nobody waits for it. */
export async function launch(box, command, session) {
	await box.run(`${command} > /tmp/${session}.log 2>&1`, { background: true, sessionId: session });
}

/** nginx on this port, which says what it was asked for and notes each request in /tmp/nginx/requests. */
export async function startNginx(box, port) {
	const directories = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(name => `${name}_temp_path /tmp/nginx/${name};`).join(' ');
	await box.out('mkdir -p /tmp/nginx');
	await write(box, '/tmp/nginx/conf', `user root; worker_processes 1; pid /tmp/nginx/pid; error_log /tmp/nginx/errors;
events { worker_connections 256; }
http { ${directories} log_format line escape=json '$request_method $request_uri'; access_log /tmp/nginx/requests line; keepalive_requests 100000;
server { listen 127.0.0.1:${port}; large_client_header_buffers 8 32k; location / { return 200 "hello from $request_uri"; } } }
`);
	await box.out('nginx -e /tmp/nginx/errors -c /tmp/nginx/conf');
}
