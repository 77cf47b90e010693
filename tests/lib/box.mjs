// SPDX-License-Identifier: Apache-2.0
// One sandbox, driven through the public API.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { compile } from './compile.mjs';
import * as host from './host.mjs';
import { events } from './sse.mjs';

export const SESSIONLESS = '__DISABLE_SESSION__';

export class Box {
	constructor(daemon, id) {
		this.daemon = daemon;
		this.id = id;
	}

	/** A request below /sandboxes/{id}. */
	api(method, path, body, options) {
		return this.daemon.api(method, `/sandboxes/${this.id}${path}`, body, options);
	}

	/** POST /api/execute, the whole answer. fields: sessionId, cwd, env, timeoutMs... */
	exec(command, fields = {}, options) {
		return this.api('POST', '/api/execute', { command, ...fields }, options);
	}

	/** A command that must answer 200: its body. */
	async run(command, fields, options) {
		const answer = await this.exec(command, fields, options);
		assert.equal(answer.status, 200, answer.raw.toString().slice(0, 2000));
		return answer.body;
	}

	/** A command that must succeed: its standard output. */
	async out(command, fields, options) {
		const body = await this.run(command, fields, options);
		assert.equal(body.exitCode, 0, `${command.slice(0, 200)}: ${body.exitCode} ${body.stderr.slice(0, 2000)}`);
		return body.stdout;
	}

	/** POST /api/execute/stream: an async iterator of {event, data}. */
	async *stream(command, fields = {}) {
		yield* events(await this.open(command, fields));
	}

	/** The same as a bare response, for tests that read slowly, or leave. */
	async open(command, fields = {}) {
		const response = await this.daemon.client.open('POST', `/sandboxes/${this.id}/api/execute/stream`, { command, ...fields });
		assert.equal(response.statusCode, 200);
		return response;
	}

	/** GET /v1/sandboxes/{id} */
	async info() {
		const answer = await this.daemon.api('GET', `/v1/sandboxes/${this.id}`);
		assert.equal(answer.status, 200, answer.raw.toString());
		return answer.body;
	}

	/** POST /v1/sandboxes/{id}/<change>: stop, start, restart, pause or resume. */
	async change(name) {
		const answer = await this.daemon.api('POST', `/v1/sandboxes/${this.id}/${name}`, undefined, { deadline: 60_000 });
		assert.equal(answer.status, 200, answer.raw.toString());
		return answer.body;
	}

	async stop() {
		assert.equal((await this.change('stop')).state, 'stopped');
	}

	/** PATCH /v1/sandboxes/{id} */
	async update(fields) {
		const answer = await this.daemon.api('PATCH', `/v1/sandboxes/${this.id}`, fields);
		assert.equal(answer.status, 200, answer.raw.toString());
		return answer.body;
	}

	async destroy() {
		const answer = await this.daemon.api('DELETE', `/v1/sandboxes/${this.id}`);
		assert.equal(answer.status, 200, answer.raw.toString());
		return answer.body;
	}

	/** Puts bytes into the sandbox as an executable file. */
	async put(file, bytes) {
		const text = bytes.toString('base64');
		for (let at = 0; at < text.length; at += 262_144)
			await this.out(`printf %s '${text.slice(at, at + 262_144)}' >> ${file}.b64`, { sessionId: 'put' });
		await this.out(`base64 -d ${file}.b64 > ${file} && rm ${file}.b64 && chmod 755 ${file}`, { sessionId: 'put' });
		return file;
	}

	/** Compiles tests/escape/attacks/<name>.c on the machine and puts the program into the sandbox. */
	async install(name) {
		return this.put(`/tmp/${name}`, fs.readFileSync(compile(name)));
	}

	/** The pid, seen from outside, of this sandbox's silt-init. */
	async init() {
		const namespace = (await this.out('readlink /proc/self/ns/pid', { sessionId: SESSIONLESS })).trim();
		const found = host.processesOf(this.daemon.instance).find(p => p.pidNamespace === namespace && p.nsPids.at(-1) === 1);
		assert.ok(found, `silt-init of ${this.id} is visible from outside`);
		return found.pid;
	}
}
