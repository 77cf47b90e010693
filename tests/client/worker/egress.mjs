// SPDX-License-Identifier: Apache-2.0
// What leaves a sandbox goes to the Worker that owns it: handlers by host, lists, HTTPS. The class is Guarded, in index.mjs.

import assert from 'node:assert/strict';
import { getSandbox } from '@cloudflare/sandbox';

/** Runs with a sandbox of that class and a function that fetches inside it: [status, text]. */
async function guarded({ env, id, transport }, run) {
	const sandbox = getSandbox(env.Guarded, `${id}-g`, { transport });
	const get = async (url, more = '') => {
		const { stdout, stderr, exitCode } = await sandbox.exec(`curl -sS --max-time 30 -w '\\n%{http_code}' ${more} ${url}`);
		assert.equal(exitCode, 0, `${url}: ${stderr}`);
		const lines = stdout.split('\n');
		return [Number(lines.pop()), lines.join('\n')];
	};
	try {
		await run(sandbox, get);
	} finally {
		await sandbox.destroy();
	}
}

const DISALLOWED = [520, 'Origin is disallowed'];

export const egressOfTheClass = (_, where) => guarded(where, async (sandbox, get) => {
	assert.deepEqual(await get('http://shop.example/a?b', '-d body'), [200, 'shop POST http://shop.example/a?b body']);
	assert.deepEqual(await get('http://any.glob.example/'), [200, 'glob http://any.glob.example/']);
	assert.deepEqual(await get('http://other.example/'), [200, 'all http://other.example/']);
	assert.deepEqual(await get('http://11.22.33.44/'), [200, 'all http://11.22.33.44/']);
});

// An address that carries an IPv4 address (mapped, NAT64, 6to4) counts as that one.
const OFFERED = ['192.0.2.7', '[111::]', '[4000::1]', '[64:ff9b::808:808]', '[2002:808:808::1]', '[::ffff:808:808]'];
const REFUSED = ['10.1.2.3', '169.254.169.254', '[fd00::2]', '[fd00:ec2::254]', '[64:ff9b::a01:203]', '[64:ff9b::a9fe:a9fe]', '[2002:c0a8:101::1]', '[::ffff:a01:203]'];
const BROKEN = [7, 35, 52, 55, 56]; // of curl: the connection was reset, at one moment or another

/** Every address of the internet reaches the handler, also one that nobody has; private ones and those of the machine do not. */
export const egressOfEveryAddress = (_, where) => guarded(where, async (sandbox, get) => {
	for (const address of OFFERED)
		assert.deepEqual(await get(`'http://${address}/'`, '-g'), [200, `all http://${address}/`]);
	for (const address of REFUSED) {
		const { exitCode, stdout, stderr } = await sandbox.exec(`curl -gsS --max-time 30 'http://${address}/'`);
		assert.ok(BROKEN.includes(exitCode), `${address}: ${exitCode} ${stdout}${stderr}`);
	}
});

export const egressAtRunTime = (_, where) => guarded(where, async (sandbox, get) => {
	await sandbox.setOutboundByHost('late.example', 'tagged', { tag: 'one' });
	assert.deepEqual(await get('http://late.example/'), [200, 'tagged one Guarded']);
	await sandbox.setOutboundByHosts({ 'b.example': { method: 'tagged', params: { tag: 'two' } } });
	assert.deepEqual(await get('http://b.example/'), [200, 'tagged two Guarded']);
	await sandbox.removeOutboundByHost('b.example');
	assert.deepEqual(await get('http://b.example/'), [200, 'all http://b.example/']);
	await sandbox.setOutboundHandler('tagged', { tag: 'every' });
	assert.deepEqual(await get('http://other.example/'), [200, 'tagged every Guarded']);
	assert.deepEqual(await get('http://shop.example/'), [200, 'shop GET http://shop.example/ ']);
	await assert.rejects(sandbox.setOutboundHandler('nobody'));
});

export const egressLists = (_, where) => guarded(where, async (sandbox, get) => {
	await sandbox.setDeniedHosts(['shop.example']);
	assert.deepEqual(await get('http://shop.example/'), DISALLOWED);
	await sandbox.denyHost('*.glob.example');
	assert.deepEqual(await get('http://x.glob.example/'), DISALLOWED);
	await sandbox.removeDeniedHost('*.glob.example');
	assert.equal((await get('http://x.glob.example/'))[0], 200);
	await sandbox.setAllowedHosts(['x.glob.example']);
	assert.deepEqual(await get('http://other.example/'), DISALLOWED);
	await sandbox.allowHost('other.example');
	assert.equal((await get('http://other.example/'))[0], 200);
	await sandbox.removeAllowedHost('other.example');
	assert.deepEqual(await get('http://other.example/'), DISALLOWED);
});

/** Programs trust the certificate without being told. */
export const egressHttps = (_, where) => guarded(where, async (sandbox, get) => {
	assert.deepEqual(await get('https://shop.example/vault'), [200, 'shop GET https://shop.example/vault ']);
	const node = await sandbox.exec(`node -e "fetch('https://other.example/n').then(r => r.text()).then(console.log)"`);
	assert.equal(node.stdout, 'all https://other.example/n\n', node.stderr);
	const python = await sandbox.exec(`python3 -c "import urllib.request as u; print(u.urlopen('https://other.example/p').read().decode())"`);
	assert.equal(python.stdout, 'all https://other.example/p\n', python.stderr);
	const process = await sandbox.startProcess('curl -sS --max-time 30 https://other.example/c');
	await process.waitForExit(40_000);
	assert.equal((await process.getLogs()).stdout, 'all https://other.example/c');
});

/** The class Sandbox: nothing is intercepted, the world is there, private networks are not. */
export async function egressToTheWorld(sandbox) {
	assert.match((await sandbox.exec('curl -sS --max-time 30 http://www.example.test/')).stdout, /^world .* www\.example\.test\n$/);
	assert.notEqual((await sandbox.exec('curl -sS --max-time 30 http://metadata.example.test/')).exitCode, 0);
	assert.notEqual((await sandbox.exec('curl -sS --max-time 30 http://none.example.test/')).exitCode, 0);
}
