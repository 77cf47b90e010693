// SPDX-License-Identifier: Apache-2.0
// silt login, context and https: a daemon behind a front with TLS, used from an account without any of its files.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import tls from 'node:tls';
import { startDaemon } from '../lib/daemon.mjs';
import { silt as runSilt } from '../lib/silt.mjs';

let daemon, front, scratch, url, ca;
before(async () => {
	daemon = await startDaemon();
	scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-login-'));
	ca = path.join(scratch, 'ca.pem');
	execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', path.join(scratch, 'key.pem'), '-out', ca,
		'-days', '2', '-subj', '/CN=front', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'], { stdio: 'ignore' });
	const [host, port] = daemon.address.split(':');
	front = tls.createServer({ key: fs.readFileSync(path.join(scratch, 'key.pem')), cert: fs.readFileSync(ca) }, socket => {
		const inner = net.connect(port, host);
		socket.pipe(inner).pipe(socket);
		socket.on('error', () => inner.destroy()).on('close', () => inner.destroy());
		inner.on('error', () => socket.destroy());
	});
	front.on('tlsClientError', () => {});
	await new Promise(resolve => front.listen(0, '127.0.0.1', resolve));
	url = `https://localhost:${front.address().port}`;
});
after(async () => {
	front?.close();
	fs.rmSync(scratch, { recursive: true, force: true });
	await daemon?.stop();
});

/** silt without the daemon's address and token in its environment. */
const bare = (home, args, options = {}) => runSilt({ address: '', token: '' }, args, { ...options, env: { HOME: home, SILT_RUN: '/nonexistent', SILT_TOKEN_FILE: '/nonexistent', ...options.env } });
const newHome = () => fs.mkdtempSync(path.join(scratch, 'home-'));

test('login stores what works, for its owner only, and commands go there', async () => {
	const home = newHome();
	const file = path.join(home, '.config/silt/contexts.json');
	const wrong = await bare(home, ['login', url, '--ca', ca], { input: 'not-the-token-at-all\n' });
	assert.equal(wrong.code, 125);
	assert.match(wrong.stderr, /log in to https.*no valid API token/);
	assert.ok(!fs.existsSync(file), 'nothing is stored');
	const end = await bare(home, ['login', url, '--ca', ca, '--name', 'prod'], { input: `${daemon.token}\n` });
	assert.deepEqual([end.code, end.stdout, end.stderr], [0, '', `silt: commands now go to ${url} (context prod)\n`]);
	assert.equal(fs.statSync(file).mode & 0o777, 0o600);
	assert.equal(fs.statSync(path.dirname(file)).mode & 0o777, 0o700);
	const id = `login-${process.pid}`;
	const bytes = crypto.randomBytes(3_000_000);
	assert.ok((await bare(home, ['exec', id, 'cat'], { input: bytes })).raw.equals(bytes), 'both ways at once, encrypted');
	fs.writeFileSync(path.join(home, 'big'), bytes);
	assert.equal((await bare(home, ['cp', path.join(home, 'big'), `${id}:/tmp/big`])).code, 0);
	assert.equal((await bare(home, ['exec', id, '--', 'wc -c < /tmp/big'])).stdout, '3000000\n');
	assert.match((await bare(home, ['exec', '-t', id, '--', 'tty'], { terminal: true })).stdout, /\/dev\/pts/);
	assert.ok((await bare(home, ['ls', '-q'])).stdout.includes(id));
	assert.equal((await bare(home, ['rm', id])).code, 0);
	fs.chmodSync(file, 0o644);
	const open = await bare(home, ['ls']);
	assert.deepEqual([open.code, open.stderr], [125, `silt: ${file} holds tokens and others may read it\nTry: chmod 600 ${file}\n`]);
});

test('contexts are chosen, listed and forgotten; a stored token goes nowhere else', async () => {
	const home = newHome();
	const plain = `http://${daemon.address}`;
	assert.equal((await bare(home, ['login', plain, '--name', 'plain'], { input: daemon.token })).code, 0);
	assert.equal((await bare(home, ['login', url, '--ca', ca, '--name', 'prod'], { input: daemon.token })).code, 0);
	assert.match((await bare(home, ['context', 'ls'])).stdout, new RegExp(`^ {2}plain +${plain}\n\\* prod +${url}\n`, 'm'));
	assert.equal((await bare(home, ['context', 'use', 'plain'])).code, 0);
	assert.equal((await bare(home, ['ls', '-q'])).code, 0);
	assert.equal((await bare(home, ['ls', '-q', '--context', 'prod'])).code, 0);
	assert.equal((await bare(home, ['--context', 'prod', 'ls', '-q'])).code, 0);
	assert.equal((await bare(home, ['ls', '-q'], { env: { SILT_CONTEXT: 'prod' } })).code, 0);
	const other = await bare(home, ['ls', '--server', daemon.address]);
	assert.match(other.stderr, /no valid API token/, 'the stored token is not sent to an address that was given');
	assert.match((await bare(home, ['ls', '--context', 'nope'])).stderr, /no context nope/);
	assert.equal((await bare(home, ['context', 'rm', 'plain'])).code, 0);
	assert.doesNotMatch((await bare(home, ['context', 'ls'])).stdout, /plain/);
	assert.equal((await bare(home, ['context', 'rm', 'plain'])).code, 125);
	for (const bad of ['{', '[]', '{"contexts":[]}', '{"contexts":{"a":1}}', '{"contexts":{"a/b":{}}}']) {
		fs.writeFileSync(path.join(home, '.config/silt/contexts.json'), bad);
		assert.equal((await bare(home, ['ls'])).code, 125, bad);
	}
});

test('a server that is not who it should be is refused before the token is sent', async () => {
	const env = { SILT_TOKEN: daemon.token };
	const unknown = await bare(newHome(), ['ls', '--server', url], { env });
	assert.equal(unknown.code, 125);
	assert.match(unknown.stderr, /https of localhost: self.signed certificate/);
	const known = await bare(newHome(), ['ls', '-q', '--server', url], { env: { ...env, SILT_CA: ca } });
	assert.deepEqual([known.code, known.stderr], [0, '']);
	const named = await bare(newHome(), ['ls', '--server', url.replace('localhost', 'ip6-localhost')], { env: { ...env, SILT_CA: ca } });
	assert.equal(named.code, 125);
	const none = await bare(newHome(), ['ls', '--server', `https://${daemon.address}`], { env });
	assert.match(none.stderr, /does not speak TLS/);
});
