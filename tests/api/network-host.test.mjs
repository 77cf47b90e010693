// SPDX-License-Identifier: Apache-2.0
// The machine's own network: what the daemon needs of it, how it takes changes of it, and what it leaves.
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { BUILD, startDaemon } from '../lib/daemon.mjs';
import { HOST, Internet, NETWORK, PUBLIC, WORLD, get, ip } from '../lib/internet.mjs';
import { REFUSED_MS, until, within } from '../lib/wait.mjs';

let internet;
before(async () => {
	internet = await Internet.start();
});
after(() => internet?.stop());

const conf = (family, name, leaf) => `/proc/sys/net/ipv${family}/conf/${name}/${leaf}`;
const read = path => fs.readFileSync(path, 'utf8').trim();
const tables = () => spawnSync('nft', ['list', 'tables'], { encoding: 'utf8' }).stdout;

async function start(t, options = {}) {
	const daemon = await startDaemon({ flags: NETWORK.flags, ...options });
	t?.after(() => daemon.stop());
	return daemon;
}

test('where IPv6 is disabled IPv4 works, and IPv6 is refused at once', async t => {
	fs.writeFileSync(conf(6, 'default', 'disable_ipv6'), '1');
	t.after(() => fs.writeFileSync(conf(6, 'default', 'disable_ipv6'), '0'));
	const daemon = await start(t);
	const box = await daemon.box();
	assert.match(await box.out(get(PUBLIC[4])), /world/);
	assert.match(await box.out('curl -sS -m 20 http://www.example.test/'), /world/);
	assert.notEqual((await within(REFUSED_MS, 'it is refused', box.run(`(${get(PUBLIC[6])})`))).exitCode, 0);
});

test('a machine that somebody makes a router meanwhile stays one', async () => {
	const daemon = await start();
	assert.equal(read(conf(4, 'eth0', 'forwarding')), '1');
	fs.writeFileSync('/proc/sys/net/ipv4/ip_forward', '1');
	await daemon.stop();
	assert.equal(read(conf(4, 'eth0', 'forwarding')), '1');
	fs.writeFileSync('/proc/sys/net/ipv4/ip_forward', '0');
	assert.equal(read(conf(4, 'eth0', 'forwarding')), '0');
});

test('what a killed instance left goes also when the next one has no network', async () => {
	const first = await start(null, { flags: { ...NETWORK.flags, instance: 'toff' } });
	process.kill(first.pid, 'SIGKILL');
	await until('its link goes', () => !ip('-brief', 'link').includes('toff-up'));
	assert.match(tables(), /silt_toff/);
	assert.equal(read(conf(4, 'eth0', 'forwarding')), '1');
	const second = await startDaemon({ home: first.home, flags: { network: 'off' } });
	assert.doesNotMatch(tables(), /silt_toff/);
	assert.equal(read(conf(4, 'eth0', 'forwarding')), '0');
	await second.stop();
});

/** Another interface of the host, also to the world. */
function secondDevice(name) {
	const there = `${name}w`;
	ip('link', 'add', name, 'type', 'veth', 'peer', 'name', there, 'netns', String(internet.pid));
	ip('link', 'set', name, 'up');
	internet.world('ip', 'link', 'set', there, 'up');
	ip('address', 'add', '203.0.113.2/24', 'dev', name);
	internet.world('ip', 'address', 'add', '203.0.113.1/24', 'dev', there);
	ip('address', 'add', '2001:db8:2::2/64', 'dev', name, 'nodad');
	internet.world('ip', 'address', 'add', '2001:db8:2::1/64', 'dev', there, 'nodad');
}
const lead = (to4, to6) => {
	ip('route', 'replace', 'default', 'via', to4);
	ip('-6', 'route', 'replace', 'default', 'via', to6);
};
const leads = name => until(`forwarding of ${name}`, () => read(conf(4, name, 'forwarding')) === '1');

test('the uplink follows the default route to another interface and back, and to one that is made anew', async t => {
	const daemon = await start(t);
	t.after(() => {
		spawnSync('ip', ['link', 'delete', 'eth1']);
		lead(WORLD[4], WORLD[6]);
	});
	const box = await daemon.box();
	const reaches = async by => {
		assert.match(await box.out(get(PUBLIC[4])), new RegExp(`world ::ffff:${by[4]} `));
		assert.match(await box.out(get(PUBLIC[6])), new RegExp(`world ${by[6]} `));
	};
	await reaches(HOST);
	for (let round = 0; round < 2; round++) {
		secondDevice('eth1');
		lead('203.0.113.1', '2001:db8:2::1');
		await leads('eth1');
		await until('the old one is as before', () => read(conf(4, 'eth0', 'forwarding')) === '0');
		await reaches({ 4: '203.0.113.2', 6: '2001:db8:2::2' });
		assert.match(fs.readFileSync(`${daemon.run}/forwarding`, 'utf8'), /^\/proc\/sys\/net\/ipv4\/conf\/eth1\/forwarding$/m);
		ip('link', 'delete', 'eth1'); // and its routes with it
		lead(WORLD[4], WORLD[6]);
		await leads('eth0');
		await reaches(HOST);
	}
	assert.doesNotMatch(fs.readFileSync(`${daemon.run}/forwarding`, 'utf8'), /eth1/);
});

test('a daemon that starts before the network is up has one when it is', async t => {
	ip('route', 'delete', 'default');
	ip('-6', 'route', 'delete', 'default');
	const daemon = await start(t);
	const box = await daemon.box();
	assert.equal(read(conf(4, 'eth0', 'forwarding')), '0');
	assert.notEqual((await box.run(`(${get(PUBLIC[4])})`)).exitCode, 0);
	lead(WORLD[4], WORLD[6]);
	await leads('eth0');
	assert.match(await box.out(get(PUBLIC[4])), /world/);
	assert.match(await box.out(get(PUBLIC[6])), /world/);
});

test('a default route in a table of its own and one with several paths are seen', async t => {
	secondDevice('eth1');
	t.after(() => ip('link', 'delete', 'eth1'));
	ip('route', 'add', 'default', 'via', '203.0.113.1', 'table', '77');
	const daemon = await start(t);
	assert.equal(read(conf(4, 'eth1', 'forwarding')), '1');
	ip('route', 'delete', 'default', 'table', '77');
	await until('it is as before', () => read(conf(4, 'eth1', 'forwarding')) === '0');
	ip('route', 'replace', 'default', 'nexthop', 'via', WORLD[4], 'nexthop', 'via', '203.0.113.1');
	await leads('eth1');
	assert.equal(read(conf(4, 'eth0', 'forwarding')), '1');
	lead(WORLD[4], WORLD[6]);
	assert.ok(daemon);
});

test('the doctor names a firewall that swallows what sandboxes send, and its advice helps', async t => {
	const daemon = await start(t);
	const nft = text => assert.equal(spawnSync('nft', ['-f', '-'], { input: text }).status, 0);
	const doctor = () => spawnSync(`${BUILD}/silt`, ['doctor'], { encoding: 'utf8', env: { ...process.env, SILT_INSTANCE: daemon.instance } }).stdout;
	const box = await daemon.box();
	assert.match(doctor(), /^ok +network +nftables$/m);
	nft('add table inet strict\nadd chain inet strict ahead { type filter hook forward priority 0; policy drop; }\n');
	t.after(() => nft('delete table inet strict'));
	assert.notEqual((await box.run(`timeout 1 bash -c "${get(PUBLIC[4])}"`)).exitCode, 0);
	const [, advice] = doctor().match(/^warn +network +inet strict ahead drops what sandboxes send.*\n +-> (.*)$/m);
	assert.equal(spawnSync('sh', ['-e', '-c', advice]).status, 0, advice);
	assert.match(await box.out(get(PUBLIC[4])), /world/);
	assert.match(doctor(), /^ok +network +nftables$/m);
});

test('a thousand connections are cut at once', async t => {
	const daemon = await start(t);
	const box = await daemon.box();
	const script = `import socket
tcp = socket.create_connection(("${PUBLIC[4]}", 7))
udp = [socket.socket(socket.AF_INET6 if i % 2 else socket.AF_INET, socket.SOCK_DGRAM) for i in range(900)]
for i, s in enumerate(udp): s.connect(("${PUBLIC[6]}" if i % 2 else "${PUBLIC[4]}", 7))
print("ready", flush=True)
try: tcp.settimeout(20); tcp.recv(1); print("end")
except OSError as e: print("cut", e.errno)
def woken(s):
    try: s.settimeout(20); s.recv(1)
    except OSError as e: return e.errno == 103
print(sum(1 for s in udp if woken(s)))`;
	await box.out(`cat > /tmp/many.py << 'EOF'\n${script}\nEOF\npython3 /tmp/many.py > /tmp/out 2>&1 & until grep -q ready /tmp/out; do sleep 0.02; done`);
	const begun = Date.now();
	assert.equal((await daemon.api('PUT', `/v1/sandboxes/${box.id}/network`, { mode: 'none' })).status, 200);
	assert.ok(Date.now() - begun < 15_000, `answered after ${Date.now() - begun} ms`);
	assert.equal(await box.out('wait; cat /tmp/out'), 'ready\ncut 103\n900\n');
});
