// SPDX-License-Identifier: Apache-2.0
// Registries in the world of the network tests: Debian's docker-registry, open and with a password, and one of our own that lies (liar.mjs); images to push to them.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import zlib from 'node:zlib';
import { Services, SITES } from './services.mjs';
import { tar } from './tar.mjs';
import { until } from './wait.mjs';

export const OPEN = 'www.example.test:5000';
export const LOCKED = 'git.example.test:5000';
export const PLAIN = 'other.test:5000'; // speaks no TLS
export const LIAR = 'deb.example.test:5000';
export const USER = { username: 'reader', password: 'correct horse "battery" $staple' };

const digest = bytes => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** A program of this machine with its libraries, as entries of a tar. */
function program(name) {
	const found = spawnSync('ldd', [name], { encoding: 'utf8' }).stdout.match(/\/[^ )]+/g);
	const files = [name, ...found].map(file => ({ name: file.slice(1), data: fs.readFileSync(file), mode: 0o755 }));
	return files;
}

/** The root of a small image with bash. */
export function root(more = []) {
	const programs = ['/bin/bash', '/bin/cat', '/bin/ls'].flatMap(program);
	const files = new Map(programs.map(entry => [entry.name, entry]));
	return [
		...['bin', 'dev', 'etc', 'lib', 'lib64', 'lib/x86_64-linux-gnu', 'proc', 'sys', 'tmp', 'run', 'root', 'usr', 'workspace'].map(name => ({ name, type: 'dir' })),
		{ name: 'bin/sh', type: 'symlink', target: 'bash' },
		{ name: 'etc/passwd', data: 'root:x:0:0:root:/root:/bin/bash\n' },
		{ name: 'etc/group', data: 'root:x:0:\n' },
		...files.values(), ...more,
	];
}

/** An OCI image: {manifest, config, layers} as bytes. layers: lists of entries of tar.mjs. */
export function image(layers, config = {}) {
	const tars = layers.map(entries => tar(entries));
	const blobs = tars.map(bytes => zlib.gzipSync(bytes, { level: 1 }));
	const text = Buffer.from(JSON.stringify({ architecture: 'amd64', os: 'linux', config, rootfs: { type: 'layers', diff_ids: tars.map(digest) } }));
	const descriptor = (mediaType, bytes) => ({ mediaType, digest: digest(bytes), size: bytes.length });
	const manifest = Buffer.from(JSON.stringify({
		schemaVersion: 2, mediaType: 'application/vnd.oci.image.manifest.v1+json',
		config: descriptor('application/vnd.oci.image.config.v1+json', text),
		layers: blobs.map(bytes => descriptor('application/vnd.oci.image.layer.v1.tar+gzip', bytes)),
	}));
	return { manifest, digest: digest(manifest), blobs: new Map([text, ...blobs].map(bytes => [digest(bytes), bytes])) };
}

function layout({ manifest, blobs }) {
	const all = [...blobs.entries(), [digest(manifest), manifest]];
	return tar([
		{ name: 'oci-layout', data: '{"imageLayoutVersion":"1.0.0"}' },
		{ name: 'index.json', data: JSON.stringify({ schemaVersion: 2, manifests: [{ mediaType: 'application/vnd.oci.image.manifest.v1+json', digest: digest(manifest), size: manifest.length }] }) },
		{ name: 'blobs', type: 'dir' }, { name: 'blobs/sha256', type: 'dir' },
		...all.map(([name, data]) => ({ name: `blobs/sha256/${name.slice(7)}`, data })),
	]);
}

const addressOf = registry => `${SITES[registry.split(':')[0]][4]}:5000`;

export class Registries {
	#children = [];
	#said = '';

	static async start() {
		const registries = new Registries();
		registries.services = await Services.start();
		try {
			await registries.#start();
		} catch (error) {
			await registries.stop();
			throw error;
		}
		return registries;
	}

	get authority() {
		return this.services.file('ca.pem');
	}

	/** What all of them have said: the access log, too. */
	get said() {
		return this.#said;
	}

	/** Pushes an image (of image() above) under REGISTRY/NAME, by the real client. */
	push(registry, name, content, { docker = false } = {}) {
		const file = this.services.file(`push-${this.#children.length}-${Math.random().toString(16).slice(2)}.tar`);
		fs.writeFileSync(file, layout(content));
		const login = registry === LOCKED ? [`--dest-creds=${USER.username}:${USER.password}`] : [];
		this.services.internet.world('skopeo', '--insecure-policy', 'copy', '--quiet', '--dest-tls-verify=false', ...login, ...(docker ? ['--format=v2s2'] : []), `oci-archive:${file}`, `docker://${addressOf(registry)}/${name}`);
		fs.rmSync(file);
	}

	/** A manifest as it is. */
	put(registry, name, tag, type, content) {
		const file = this.services.file(`put-${Math.random().toString(16).slice(2)}.json`);
		fs.writeFileSync(file, JSON.stringify(content));
		this.services.internet.world('curl', '-sSfk', '-X', 'PUT', '-H', `content-type: ${type}`, '--data-binary', `@${file}`, `https://${addressOf(registry)}/v2/${name}/manifests/${tag}`);
	}

	async stop() {
		const ends = this.#children.filter(child => child.exitCode === null && child.signalCode === null).map(child => new Promise(resolve => child.once('exit', resolve)));
		for (const child of this.#children)
			child.kill('SIGKILL');
		await Promise.all(ends); // they write in the directory that goes now
		await this.services?.stop();
	}

	#serve(words) {
		const child = this.services.internet.spawn(words, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, OTEL_TRACES_EXPORTER: 'none' } });
		this.#children.push(child);
		for (const stream of [child.stdout, child.stderr])
			stream.setEncoding('utf8').on('data', text => { this.#said += text; });
		return child;
	}

	async #start() {
		const { services } = this;
		const hash = spawnSync('python3', ['-W', 'ignore', '-c', 'import crypt,sys; print(crypt.crypt(sys.argv[1], "$2b$05$abcdefghijklmnopqrstuu"))', USER.password], { encoding: 'utf8' }).stdout.trim();
		assert.match(hash, /^\$2b\$/);
		fs.writeFileSync(services.file('htpasswd'), `${USER.username}:${hash}\n`);
		const tls = `  tls: { certificate: ${services.file('server.pem')}, key: ${services.file('server.key')} }\n`;
		const auth = `auth: { htpasswd: { realm: silt, path: ${services.file('htpasswd')} } }\n`;
		for (const [registry, more, secure] of [[OPEN, '', true], [LOCKED, auth, true], [PLAIN, '', false]]) {
			const config = services.file(`registry-${registry.split('.')[0]}.yml`);
			fs.writeFileSync(config, `version: 0.1\nlog: { level: info }\nstorage: { filesystem: { rootdirectory: ${services.file(`storage-${registry.split('.')[0]}`)} } }\nhttp:\n  addr: ${addressOf(registry)}\n${secure ? tls : ''}${more}`);
			this.#serve(['docker-registry', 'serve', config]);
		}
		this.liar = this.#serve([process.execPath, path.join(import.meta.dirname, 'liar.mjs'), addressOf(LIAR).split(':')[0], services.file('server.pem'), services.file('server.key')]);
		for (const registry of [OPEN, LOCKED, PLAIN, LIAR])
			await until(`registry ${registry}`, () => this.#connects(registry), 90_000);
	}

	#connects(registry) {
		const [host, port] = addressOf(registry).split(':');
		return new Promise(resolve => {
			const socket = net.connect(Number(port), host, () => { socket.destroy(); resolve(true); }).once('error', () => resolve(false));
		});
	}

	/** What the liar answers from now on: {path: {status, headers, body (base64), hang (bytes sent before it is silent)}}. */
	async lie(answers) {
		const before = this.#said.split('learned').length;
		this.liar.stdin.write(`${JSON.stringify(answers)}\n`);
		await until('the liar has learned', () => this.#said.split('learned').length > before);
	}
}
