// SPDX-License-Identifier: Apache-2.0
// Servers in front of previews, with the very configuration that docs/https.md tells people to use: only names, ports and files are others.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { until, within } from './wait.mjs';

const PAGE = fs.readFileSync(path.join(import.meta.dirname, '../../docs/https.md'), 'utf8');
const START_MS = 60_000;

/** The block of this language; the one that has `word`, where there are several. */
export function documented(language, word = '') {
	const blocks = [...PAGE.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms'))].map(match => match[1]).filter(text => text.includes(word));
	assert.equal(blocks.length, 1, `docs/https.md has one block of ${language} with ${word}`);
	return blocks[0];
}

/** text with each word of `table` replaced, which must be there. */
function replaced(text, table) {
	for (const [from, to] of Object.entries(table)) {
		assert.ok(text.includes(from), `${from} is in the documented configuration`);
		text = text.replaceAll(from, to);
	}
	return text;
}

/** What both need: {port, daemon, certificates (directory), home (an empty directory)}. */
const files = ({ certificates }) => ({
	'/etc/ssl/silt/cert.pem': path.join(certificates, 'preview.pem'),
	'/etc/ssl/silt/key.pem': path.join(certificates, 'preview.key'),
});

const fronts = {
	nginx(place) {
		const sites = replaced(documented('nginx'), {
			'listen 443 ssl': `listen 127.0.0.1:${place.port} ssl`,
			'*.previews.example.com': '*.silt.localhost',
			'silt.example.com': 'localhost',
			'127.0.0.1:7459': place.daemon.previews,
			'127.0.0.1:7458': place.daemon.address,
			...files(place),
		});
		const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(name => `${name}_temp_path ${place.home}/${name};`).join('\n');
		fs.writeFileSync(path.join(place.home, 'nginx.conf'), `pid ${place.home}/pid;\nerror_log stderr;\ndaemon off;\nworker_processes 1;\nevents {}\nhttp {\naccess_log off;\n${temporary}\n${sites}}\n`);
		return ['/usr/sbin/nginx', ['-e', 'stderr', '-c', path.join(place.home, 'nginx.conf')]];
	},
	caddy(place) {
		const sites = replaced(documented('caddyfile'), {
			'*.previews.example.com': `https://*.silt.localhost:${place.port}`,
			'silt.example.com': `https://localhost:${place.port}`,
			'127.0.0.1:7459': place.daemon.previews,
			'127.0.0.1:7458': place.daemon.address,
			...files(place),
		});
		fs.writeFileSync(path.join(place.home, 'Caddyfile'), `{\n\tadmin off\n\tauto_https disable_redirects\n\tdefault_bind 127.0.0.1\n\tskip_install_trust\n}\n\n${sites}`);
		return ['/usr/bin/caddy', ['run', '--config', path.join(place.home, 'Caddyfile'), '--adapter', 'caddyfile']];
	},
};

/** Starts the server; {stop(), log()}. */
export async function startFront(name, place) {
	const [program, words] = fronts[name](place);
	const file = path.join(place.home, 'log');
	const log = fs.openSync(file, 'w');
	const child = spawn(program, words, { stdio: ['ignore', log, log], env: { PATH: process.env.PATH, HOME: place.home, XDG_DATA_HOME: place.home, XDG_CONFIG_HOME: place.home } });
	fs.closeSync(log);
	const ended = new Promise(resolve => child.once('exit', resolve).once('error', resolve));
	const front = {
		log: () => fs.readFileSync(file, 'utf8'),
		async stop() {
			child.kill('SIGTERM');
			await within(60_000, `end of ${name}`, ended).catch(() => child.kill('SIGKILL'));
			await ended;
		},
	};
	const listens = () => new Promise(resolve => {
		const socket = net.connect(place.port, '127.0.0.1', () => { socket.destroy(); resolve(true); }).on('error', () => resolve(false));
	});
	await until(`${name} listens`, async () => {
		assert.equal(child.exitCode, null, front.log());
		return listens();
	}, START_MS).catch(async error => {
		await front.stop();
		throw new Error(`${error.message}\n${front.log()}`);
	});
	return front;
}
