// SPDX-License-Identifier: Apache-2.0
// Speaks to the engine socket and to sidecars as workerd does: one connection per request, chunked empty bodies, CONNECT without a Host.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { within } from './wait.mjs';

const ANSWER_MS = 120_000;

/** Bytes of a whole connection: sends, half-closes if asked to, reads to the end. */
export function raw(target, bytes, { end = false } = {}) {
	return within(ANSWER_MS, 'raw answer', new Promise((resolve, reject) => {
		const got = [];
		const socket = net.connect(target, () => (end ? socket.end(bytes) : socket.write(bytes)));
		socket.on('data', piece => got.push(piece)).on('error', reject).on('close', () => resolve(Buffer.concat(got)));
	}));
}

/** Where the traffic of containers goes, as of a workerd that lives: a sidecar that nobody listens for is removed. */
let listener;
function listening() {
	listener ??= new Promise(resolve => {
		const server = net.createServer(socket => socket.destroy()).listen(0, '127.0.0.1', () => resolve(server.address().port));
		server.unref();
	});
	return listener;
}

export class Engine {
	constructor(daemon) {
		this.socket = path.join(daemon.run, 'engine.sock');
		this.daemon = daemon;
	}

	/** body: an object (JSON), bytes, or undefined: as workerd then, a chunked body that ends at once, except for GET and HEAD. */
	ask(method, url, body, { headers = {}, signal, deadline = ANSWER_MS } = {}) {
		const bytes = body === undefined || Buffer.isBuffer(body) || typeof body === 'string' ? body : JSON.stringify(body);
		const has = !['GET', 'HEAD'].includes(method);
		const fields = { host: 'localhost', connection: 'close', ...headers };
		if (bytes !== undefined)
			Object.assign(fields, { 'content-length': Buffer.byteLength(bytes), 'content-type': headers['content-type'] ?? 'application/json' });
		else if (has)
			fields['transfer-encoding'] = 'chunked';
		const answer = new Promise((resolve, reject) => {
			const request = http.request({ socketPath: this.socket, method, path: url, headers: fields, signal, agent: false }, response => {
				const pieces = [];
				response.on('data', piece => pieces.push(piece)).on('error', reject).on('end', () => {
					const all = Buffer.concat(pieces);
					let json;
					try {
						json = JSON.parse(all.toString());
					} catch {}
					resolve({ status: response.statusCode, headers: response.headers, raw: all, json });
				});
			});
			request.on('error', reject);
			request.end(bytes);
		});
		return within(deadline, `${method} ${url}`, answer);
	}

	async expect(status, method, url, body, options) {
		const answer = await this.ask(method, url, body, options);
		assert.equal(answer.status, status, `${method} ${url}: ${answer.raw}`);
		return answer.json;
	}

	/** A sidecar that runs, and its port. */
	async sidecar(t, name, { egress } = {}) {
		egress ??= await listening();
		await this.expect(201, 'POST', `/containers/create?name=${encodeURIComponent(name)}`, {
			ExposedPorts: { '39001/tcp': {} },
			Cmd: ['--http-egress-port', String(egress), '--http-ingress-address', '0.0.0.0:39001', '--docker-gateway-cidr', '172.17.0.0/16', '--dns-enabled', '--tls-intercept', '--disable-ipv6'],
			Image: 'sidecar', StopTimeout: 10,
			HostConfig: { PublishAllPorts: true, Dns: ['1.1.1.1', '8.8.8.8'], CapAdd: ['NET_ADMIN'], NetworkMode: 'bridge', ExtraHosts: ['host.docker.internal:host-gateway'] },
		});
		t?.after(() => this.ask('DELETE', `/containers/${encodeURIComponent(name)}?force=true`));
		await this.expect(204, 'POST', `/containers/${encodeURIComponent(name)}/start`, '');
		return this.port(name);
	}

	async port(name) {
		const found = await this.expect(200, 'GET', `/containers/${encodeURIComponent(name)}/json`);
		assert.equal(found.State.Status, 'running');
		assert.equal(typeof found.NetworkSettings.Ports['39001/tcp'][0].HostPort, 'string');
		return Number(found.NetworkSettings.Ports['39001/tcp'][0].HostPort);
	}

	/** An app container with its sidecar, both running. */
	async app(t, options = {}) {
		const name = options.name ?? newName();
		const port = await this.sidecar(t, `${name}-proxy`);
		t?.after(() => this.ask('DELETE', `/containers/${encodeURIComponent(name)}?force=true`));
		await this.create(name, options);
		await this.expect(204, 'POST', `/containers/${encodeURIComponent(name)}/start`, '');
		return { name, port, id: encodeURIComponent(name) };
	}

	async create(name, { image = 'base', cmd, env = [], ...more } = {}) {
		const made = await this.expect(201, 'POST', `/containers/create?name=${encodeURIComponent(name)}`, {
			Env: [...env, 'CLOUDFLARE_COUNTRY_A2=XX'], Image: image, ...(cmd && { Cmd: cmd }), StopTimeout: 10, PidsLimit: 0, Memory: 0,
			HostConfig: { PidMode: 'host', RestartPolicy: { Name: 'on-failure', MaximumRetryCount: 0 }, NetworkMode: `container:${encodeURIComponent(name)}-proxy`, ...more },
		});
		assert.match(made.Id, /^[0-9a-f]{64}$/);
		return made.Id;
	}

	wait(name, condition) {
		return this.ask('POST', `/containers/${encodeURIComponent(name)}/wait${condition ? `?condition=${condition}` : ''}`, undefined, { deadline: ANSWER_MS });
	}
}

export const newName = () => `workerd-app-Sandbox-${randomBytes(32).toString('hex')}`;

/** CONNECT through a sidecar: {status, socket, text}. */
export function connect(port, inside = 3000, { headers = `X-Dst-Addr: 127.0.0.1:${inside}\r\n` } = {}) {
	return within(ANSWER_MS, `CONNECT ${inside}`, new Promise((resolve, reject) => {
		const socket = net.connect(port, '127.0.0.1', () => socket.write(`CONNECT 127.0.0.1:${inside} HTTP/1.1\r\n${headers}\r\n`));
		let text = Buffer.alloc(0);
		const onData = piece => {
			text = Buffer.concat([text, piece]);
			const end = text.indexOf('\r\n\r\n');
			if (end < 0)
				return;
			socket.off('data', onData);
			socket.pause();
			const status = Number(text.toString().split(' ')[1]);
			if (status === 200 && end + 4 < text.length)
				socket.unshift(text.subarray(end + 4));
			resolve({ status, socket, text: text.toString() });
		};
		socket.on('data', onData).on('error', reject);
	}));
}

/** One HTTP request on a connection that is there already; its answer has a length. */
export function talk(socket, method, url, body) {
	const text = body ? JSON.stringify(body) : '';
	return within(ANSWER_MS, `${method} ${url}`, new Promise((resolve, reject) => {
		let got = Buffer.alloc(0);
		const over = (done, value) => {
			socket.off('data', onData).off('error', onEnd).off('close', onEnd);
			socket.pause();
			done(value);
		};
		const onEnd = error => over(reject, error instanceof Error ? error : new Error('the connection ended'));
		const onData = piece => {
			got = Buffer.concat([got, piece]);
			const end = got.indexOf('\r\n\r\n');
			const head = end < 0 ? '' : got.subarray(0, end).toString();
			const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? NaN);
			if (end < 0 || got.length < end + 4 + length)
				return;
			const raw = got.subarray(end + 4).toString();
			let json;
			try {
				json = JSON.parse(raw);
			} catch {}
			over(resolve, { status: Number(head.split(' ')[1]), raw, json });
		};
		socket.on('data', onData).on('error', onEnd).on('close', onEnd);
		socket.write(`${method} ${url} HTTP/1.1\r\nHost: container\r\nContent-Length: ${Buffer.byteLength(text)}\r\nContent-Type: application/json\r\n\r\n${text}`);
		socket.resume();
	}));
}

/** A command through port 3000 of a built-in container, behind this sidecar: its output. */
export async function execute(port, command) {
	const { status, socket } = await connect(port);
	assert.equal(status, 200);
	try {
		return (await talk(socket, 'POST', '/api/execute', { command })).json.stdout;
	} finally {
		socket.destroy();
	}
}
