// SPDX-License-Identifier: Apache-2.0
// Real servers in the world of the network tests: nginx with TLS of a private authority, dnsmasq, git over HTTPS, an npm registry (verdaccio), a pip index and
// an apt repository. Each name has an address of its own, as in the real world, IPv4 and IPv6.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import dgram from 'node:dgram';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { CLOSED, Internet, WORLD } from './internet.mjs';
import { until } from './wait.mjs';

const START_MS = 90_000;

/** Names and their addresses. */
export const SITES = Object.fromEntries(['www.example.test', 'git.example.test', 'registry.npm.test', 'pypi.example.test', 'deb.example.test', 'other.test', 'sub.www.example.test']
	.map((name, i) => [name, { 4: `93.184.216.${34 + i}`, 6: `2606:2800:220:1::${34 + i}` }]));
export const DNS_ELSEWHERE = { 4: '8.8.8.8', 6: '2001:4860:4860::8888' }; // a resolver that is not the host's

export const HELLO = 'hello from the world\n';
export const INSIDE = 'this is inside\n'; // what private addresses say
export const BIG = 64 * 2 ** 20; // bytes of http://www.example.test/big

function run(words, options) {
	const done = spawnSync(words[0], words.slice(1), { encoding: 'utf8', ...options });
	assert.equal(done.status, 0, `${words.join(' ')}: ${done.error ?? done.stderr}`);
	return done.stdout;
}

/** Environment of a sandbox whose programs trust the private authority. */
export const TRUST = {
	CURL_CA_BUNDLE: '/tmp/ca.pem',
	GIT_SSL_CAINFO: '/tmp/ca.pem',
	PIP_CERT: '/tmp/ca.pem',
	NODE_EXTRA_CA_CERTS: '/tmp/ca.pem',
	SSL_CERT_FILE: '/tmp/ca.pem',
};

export class Services {
	#children = [];
	#dns;
	#output = new Map();

	/** wanted: names of services beside nginx and dnsmasq: git, npm, pip, apt; tunnels (tunnels.mjs at www.example.test). */
	static async start(wanted = []) {
		const services = new Services();
		const addresses = [...Object.values(SITES), DNS_ELSEWHERE].flatMap(Object.values);
		services.internet = await Internet.start({ addresses, servers: false });
		services.home = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-world-'));
		try {
			fs.chmodSync(services.home, 0o755);
			services.#makeAuthority();
			services.#makeFiles(wanted);
			await services.#startAll(wanted);
		} catch (error) {
			await services.stop();
			throw error;
		}
		return services;
	}

	/** What a service has said so far. */
	said(name) {
		return this.#output.get(name) ?? '';
	}

	/** The names that the world's DNS was asked for so far. */
	asked() {
		return [...this.said('dnsmasq').matchAll(/query\[\w+\] (\S+) from/g)].map(([, name]) => name);
	}

	/** Lets a name lead somewhere else, from now on. */
	async point(name, ...addresses) {
		const read = () => this.said('dnsmasq').split(`read ${this.file('hosts')}`).length;
		const before = read();
		this.#write('hosts', addresses.map(address => `${address} ${name}\n`).join(''));
		this.#dns.kill('SIGHUP');
		await until('dnsmasq reads', () => read() > before);
	}

	async stop() {
		const ends = this.#children.filter(child => child.exitCode === null && child.signalCode === null).map(child => new Promise(resolve => child.once('exit', resolve)));
		for (const child of this.#children)
			child.kill('SIGKILL');
		await Promise.all(ends);
		this.internet?.stop();
		fs.rmSync(this.home, { recursive: true, force: true });
	}

	file(...names) {
		return path.join(this.home, ...names);
	}

	#write(name, text) {
		fs.mkdirSync(path.dirname(this.file(name)), { recursive: true });
		fs.writeFileSync(this.file(name), text);
	}

	#makeAuthority() {
		const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
		run(['openssl', 'req', '-x509', ...key, '-keyout', this.file('ca.key'), '-out', this.file('ca.pem'), '-days', '2', '-subj', '/CN=Authority of the tests',
			'-addext', 'basicConstraints=critical,CA:TRUE', '-addext', 'keyUsage=critical,keyCertSign']);
		run(['openssl', 'req', ...key, '-keyout', this.file('server.key'), '-out', this.file('server.csr'), '-subj', '/CN=www.example.test']);
		this.#write('names', `subjectAltName=${Object.keys(SITES).map(name => `DNS:${name}`).join(',')}\n`);
		run(['openssl', 'x509', '-req', '-in', this.file('server.csr'), '-CA', this.file('ca.pem'), '-CAkey', this.file('ca.key'), '-CAcreateserial', '-days', '2',
			'-extfile', this.file('names'), '-out', this.file('server.pem')]);
		this.authority = fs.readFileSync(this.file('ca.pem'));
	}

	#makeFiles(wanted) {
		for (const name of Object.keys(SITES))
			this.#write(`www/${name}/index.html`, name === 'www.example.test' ? HELLO : `this is ${name}\n`);
		this.#write('www/inside/index.html', INSIDE);
		this.#write('www/www.example.test/big', '');
		fs.truncateSync(this.file('www/www.example.test/big'), BIG);
		const makers = { git: () => this.#makeRepository(), pip: () => this.#makeIndex(), apt: () => this.#makePackage() };
		for (const name of wanted)
			makers[name]?.();
	}

	#makeRepository() {
		this.repository('repo', { main: { file: 'from a repository\n' } });
	}

	/** A repository at http://git.example.test/NAME.git; branches: {branch: {file: text}}, each begun from the one before it. */
	repository(name, branches) {
		const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1', HOME: this.home, GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@b', GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@b' };
		const work = this.file('work', name);
		const git = (...words) => run(['git', '-C', work, ...words], { env });
		const [first, ...others] = Object.keys(branches);
		fs.mkdirSync(work, { recursive: true });
		git('init', '-q', '-b', first);
		for (const branch of [first, ...others]) {
			if (branch !== first)
				git('checkout', '-q', '-b', branch);
			for (const [file, text] of Object.entries(branches[branch]))
				this.#write(`work/${name}/${file}`, text);
			git('add', '-A');
			git('commit', '-q', '-m', `on ${branch}`);
		}
		git('checkout', '-q', first);
		run(['git', 'clone', '-q', '--bare', work, this.file('git', `${name}.git`)], { env });
	}

	#makeIndex() {
		const wheel = 'silthello-1.0-py3-none-any.whl';
		this.#write(`www/pypi.example.test/simple/silthello/index.html`, `<!DOCTYPE html><html><body><a href="/files/${wheel}">${wheel}</a></body></html>\n`);
		fs.mkdirSync(this.file('www/pypi.example.test/files'));
		const script = `import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as z:
    z.writestr('silthello.py', 'def greet():\\n    return "hello from a wheel"\\n')
    z.writestr('silthello-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: silthello\\nVersion: 1.0\\n')
    z.writestr('silthello-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: hand\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    z.writestr('silthello-1.0.dist-info/RECORD', '')`;
		run(['python3', '-c', script, this.file('www/pypi.example.test/files', wheel)]);
	}

	#makePackage() {
		this.#write('deb/DEBIAN/control', 'Package: silt-hello\nVersion: 1.0\nArchitecture: all\nMaintainer: Nobody <nobody@example.org>\nDescription: a greeting\n');
		this.#write('deb/usr/bin/silt-hello', '#!/bin/sh\necho hello from a package\n');
		fs.chmodSync(this.file('deb/usr/bin/silt-hello'), 0o755);
		run(['dpkg-deb', '--root-owner-group', '--build', this.file('deb'), this.file('silt-hello_1.0_all.deb')]);
		this.#write('www/deb.example.test/Packages', '');
		this.package(this.file('silt-hello_1.0_all.deb'));
	}

	/** One more package of http://deb.example.test. */
	package(file) {
		const name = path.basename(file).replaceAll('%3a', '_');
		const target = this.file('www/deb.example.test', name);
		fs.copyFileSync(file, target);
		const bytes = fs.readFileSync(target);
		const control = run(['dpkg-deb', '-f', target]);
		fs.appendFileSync(this.file('www/deb.example.test/Packages'), `${control}Filename: ./${name}\nSize: ${bytes.length}\nSHA256: ${createHash('sha256').update(bytes).digest('hex')}\n\n`);
	}

	#configure(wanted) {
		const listen = (name, port, rest = '') => `listen ${SITES[name][4]}:${port}${rest}; listen [${SITES[name][6]}]:${port}${rest};`;
		const behind = socket => `location / { proxy_pass http://unix:${this.file(socket)}; proxy_set_header Host $host; proxy_set_header X-Forwarded-Proto $scheme; proxy_http_version 1.1; client_max_body_size 0; }`;
		const where = name => ({ 'git.example.test': wanted.includes('git') && behind('git.sock'), 'registry.npm.test': wanted.includes('npm') && behind('npm.sock') })[name] || `root ${this.file('www', name)}; location = /slow { alias ${this.file('www/www.example.test/big')}; limit_rate 64k; }`;
		const servers = Object.keys(SITES).map(name => `server { server_name ${name}; ${listen(name, 80)} ${listen(name, 443, ' ssl')} ${where(name)} }`);
		// A name that is not the site's own: like a content network, each address answers for all of them.
		const fronts = Object.keys(SITES).flatMap(name => Object.keys(SITES).filter(other => other !== name).map(other =>
			`server { server_name ${other}; ${listen(name, 80)} ${listen(name, 443, ' ssl')} root ${this.file('www', other)}; }`));
		this.#write('nginx.conf', `daemon off; master_process off; pid ${this.file('nginx.pid')}; error_log stderr; events { worker_connections 4096; }
http { access_log ${this.file('access.log')}; default_type text/html; server_names_hash_bucket_size 128; ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate ${this.file('server.pem')}; ssl_certificate_key ${this.file('server.key')};
client_body_temp_path ${this.file('tmp')}; proxy_temp_path ${this.file('tmp')}; fastcgi_temp_path ${this.file('tmp')}; uwsgi_temp_path ${this.file('tmp')}; scgi_temp_path ${this.file('tmp')};
server { server_name _; listen 127.0.0.1:80; ${CLOSED.map(at => `listen ${at.includes(':') ? `[${at}]` : at}:80;`).join(' ')} root ${this.file('www/inside')}; }
server { server_name _; ${Object.values(DNS_ELSEWHERE).map(at => at.includes(':') ? `[${at}]` : at).map(at => `listen ${at}:443 ssl; listen ${at}:853 ssl;`).join(' ')} root ${this.file('www/www.example.test')}; }
${[...servers, ...fronts].join('\n')} }\n`);
		this.#write('verdaccio.yaml', `storage: ${this.file('storage')}\npackages:\n  '**': { access: $all, publish: $all }\nweb: { enable: false }\nlog: { type: stdout, format: pretty, level: error }\nlisten: unix:${this.file('npm.sock')}\n`);
	}

	#start(name, words, options) {
		const child = this.internet.spawn(words, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
		this.#children.push(child);
		for (const stream of [child.stdout, child.stderr])
			stream.setEncoding('utf8').on('data', text => this.#output.set(name, this.said(name) + text));
		return child;
	}

	async #startAll(wanted) {
		this.#configure(wanted);
		const records = Object.entries(SITES).map(([name, at]) => `--host-record=${name},${at[4]},${at[6]}`);
		const listen = [WORLD, DNS_ELSEWHERE].flatMap(Object.values).map(address => `--listen-address=${address}`);
		this.#write('hosts', '');
		this.#dns = this.#start('dnsmasq', ['dnsmasq', '--keep-in-foreground', '--conf-file=/dev/null', '--no-resolv', '--no-hosts', '--user=root', '--pid-file=', '--bind-interfaces', ...listen,
			'--log-queries', '--log-facility=-', '--local=/test/',
			`--addn-hosts=${this.file('hosts')}`, ...records]);
		this.#start('nginx', ['nginx', '-p', this.home, '-c', this.file('nginx.conf')]);
		if (wanted.includes('git'))
			this.#start('git', [process.execPath, path.join(import.meta.dirname, 'githttp.mjs'), this.file('git'), this.file('git.sock')]);
		if (wanted.includes('npm'))
			this.#start('npm', [process.execPath, process.env.SILT_TEST_VERDACCIO, '--config', this.file('verdaccio.yaml')], { env: { ...process.env, HOME: this.home } });
		if (wanted.includes('tunnels'))
			this.#start('tunnels', [process.execPath, path.join(import.meta.dirname, 'tunnels.mjs'), ...Object.values(SITES['www.example.test'])]);
		await this.#ready(wanted);
	}

	async #ready(wanted) {
		const alive = () => assert.ok(this.#children.every(child => child.exitCode === null && child.signalCode === null), [...this.#output.values()].join('\n'));
		const up = (what, check) => until(what, async () => { alive(); return check(); }, START_MS);
		await up('nginx', () => connects(80, SITES['www.example.test'][4]));
		await up('dnsmasq', () => answers(WORLD[4]));
		for (const name of ['git', 'npm'].filter(name => wanted.includes(name)))
			await up(name, () => connects(this.file(`${name}.sock`)));
		if (wanted.includes('tunnels'))
			await up('tunnels', () => this.said('tunnels').includes('ready'));
		if (wanted.includes('npm'))
			await this.#publish();
	}

	/** A package, brought to the registry as npm does it. */
	async #publish() {
		const directory = this.file('package');
		this.#write('package/package.json', JSON.stringify({ name: 'silt-hello', version: '1.0.0', main: 'index.js' }));
		this.#write('package/index.js', "module.exports = () => 'hello from a module';\n");
		const file = this.file('silt-hello-1.0.0.tgz');
		run(['tar', '-czf', file, '-C', path.dirname(directory), 'package']);
		const data = fs.readFileSync(file);
		const dist = { tarball: 'https://registry.npm.test/silt-hello/-/silt-hello-1.0.0.tgz', shasum: createHash('sha1').update(data).digest('hex'), integrity: `sha512-${createHash('sha512').update(data).digest('base64')}` };
		const body = JSON.stringify({ _id: 'silt-hello', name: 'silt-hello', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': { name: 'silt-hello', version: '1.0.0', main: 'index.js', dist } },
			_attachments: { 'silt-hello-1.0.0.tgz': { content_type: 'application/octet-stream', data: data.toString('base64'), length: data.length } } });
		const answer = run(['curl', '-sS', '--unix-socket', this.file('npm.sock'), '-X', 'PUT', '-H', 'content-type: application/json', '--data-binary', '@-', 'http://registry.npm.test/silt-hello'], { input: body });
		assert.match(answer, /success|created/, answer);
	}
}

function connects(...where) {
	return new Promise(resolve => {
		const socket = net.connect(...where, () => { socket.destroy(); resolve(true); }).once('error', () => resolve(false));
	});
}

/** Does a DNS server answer? The question: the root's name. */
function answers(address) {
	return new Promise(resolve => {
		const socket = dgram.createSocket('udp4');
		const over = value => { clearTimeout(timer); socket.close(); resolve(value); };
		const timer = setTimeout(over, 200, false);
		socket.once('message', () => over(true)).once('error', () => over(false)).send(Buffer.from('0001010000010000000000000000010001', 'hex'), 53, address);
	});
}
