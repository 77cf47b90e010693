// SPDX-License-Identifier: Apache-2.0
// Exposed ports, as visitors see them, and the server of service.cjs behind them.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { Client } from './http.mjs';

const SERVICE = fs.readFileSync(path.join(import.meta.dirname, 'service.cjs'));

/** Starts the server inside; nobody waits until it listens: visitors do. loose: as no command of ours, so that the sandbox may fall asleep. */
export async function serve(box, port, { address = '127.0.0.1', delay = 0, name = box.id, loose = false } = {}) {
	await box.put('/tmp/service.cjs', SERVICE);
	const command = `NAME=${name} ${loose ? 'setsid ' : ''}node /tmp/service.cjs ${port} ${address} ${delay} > /tmp/service-${port}.log 2>&1`;
	await box.run(loose ? `${command} &` : command, { background: !loose, sessionId: `service-${port}` });
}

export async function expose(box, port, fields = {}) {
	const answer = await box.daemon.api('POST', `/v1/sandboxes/${box.id}/ports`, { port, ...fields });
	assert.ok([200, 201].includes(answer.status), answer.raw.toString());
	return new Preview(box.daemon, answer.body.url, answer.body);
}

export class Preview {
	constructor(daemon, url, body) {
		this.url = new URL(url);
		this.host = this.url.host;
		this.body = body;
		this.client = new Client(daemon.previews, false);
	}

	/** As Client.api, on this preview's host. */
	api(method, where, body, options = {}) {
		return this.client.api(method, where, body, { ...options, headers: { host: this.host, ...options.headers } });
	}

	get(where, options) {
		return this.api('GET', where, undefined, options);
	}

	open(method, where, body, options = {}) {
		return this.client.open(method, where, body, { ...options, headers: { host: this.host, ...options.headers } });
	}

	/** A connection that said this line and fields. */
	async raw(line, fields = '') {
		const raw = await this.client.raw();
		if (line)
			raw.send(`${line} HTTP/1.1\r\nHost: ${this.host}\r\n${fields}\r\n`);
		return raw;
	}

	close() {
		this.client.close();
	}
}
