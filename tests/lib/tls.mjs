// SPDX-License-Identifier: Apache-2.0
// Certificates of a development authority, and clients that trust it.

import { execFile, execFileSync } from 'node:child_process';
import fs from 'node:fs';
import https from 'node:https';
import path from 'node:path';
import tls from 'node:tls';
import { BUILD } from './daemon.mjs';
import { within } from './wait.mjs';

const DEADLINE_MS = 120_000;

/** A directory with settings that name a certificate, made as a developer does it: {directory, settings, ca}. options: domain (with a port). */
export function makeAuthority(directory, { domain } = {}) {
	fs.mkdirSync(directory, { recursive: true });
	const settings = path.join(directory, 'silt.conf');
	fs.writeFileSync(settings, domain ? `[preview]\ndomain = ${domain}\n` : '');
	return { directory: path.join(directory, 'tls'), settings, said: renew(settings), ca: fs.readFileSync(path.join(directory, 'tls/ca.pem')) };
}

/** `silt tls dev` with these settings; what it says. */
export function renew(settings, ...words) {
	return execFileSync(path.join(BUILD, 'silt'), ['tls', 'dev', ...words], { env: { PATH: process.env.PATH, SILT_CONFIG: settings }, encoding: 'utf8' });
}

/** A visitor of `url` that trusts `ca`; names of localhost are this machine. */
export class Visitor {
	constructor(url, ca, options = {}) {
		this.url = new URL(url);
		this.options = { host: '127.0.0.1', port: this.url.port, servername: this.url.hostname, ca, ...options };
		this.agent = new https.Agent({ keepAlive: true, ...this.options });
	}

	/** As Client.open, by https. */
	open(method, where, body, { headers, agent = this.agent } = {}) {
		const request = https.request({ ...this.options, agent, method, path: where, headers: { host: this.url.host, ...headers } });
		const head = new Promise((resolve, reject) => request.on('response', resolve).on('error', reject));
		request.end(body);
		return within(DEADLINE_MS, `head of ${method} ${where}`, head);
	}

	async api(method, where, body, options) {
		const response = await this.open(method, where, body, options);
		const certificate = response.socket.getPeerCertificate();
		const pieces = [];
		await within(DEADLINE_MS, `answer of ${method} ${where}`, (async () => {
			for await (const piece of response)
				pieces.push(piece);
		})());
		const text = Buffer.concat(pieces).toString();
		const json = /json/.test(response.headers['content-type'] ?? '');
		return { status: response.statusCode, headers: response.headers, text, body: json ? JSON.parse(text) : text, serial: certificate.serialNumber };
	}

	get(where, options) {
		return this.api('GET', where, undefined, options);
	}

	/** A connection whose handshake is over: {socket, text()}. */
	async connect(options) {
		const socket = tls.connect({ ...this.options, ...options });
		const pieces = [];
		socket.on('data', piece => pieces.push(piece));
		socket.gone = new Promise(resolve => socket.once('close', resolve));
		await within(DEADLINE_MS, 'handshake', new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject)));
		socket.on('error', () => {});
		return { socket, text: () => Buffer.concat(pieces).toString() };
	}

	close() {
		this.agent.destroy();
	}
}

/** curl, which ends well or says why: {code, out, error}. */
export function curl(url, ca, ...words) {
	const { hostname, port } = new URL(url);
	return new Promise(resolve => {
		execFile('curl', ['-sS', '--max-time', '120', '--cacert', ca, '--resolve', `${hostname}:${port}:127.0.0.1`, ...words, url], { maxBuffer: 1 << 26 }, (error, out, text) => {
			resolve({ code: error?.code ?? 0, out, error: text });
		});
	});
}
