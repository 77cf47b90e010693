// SPDX-License-Identifier: Apache-2.0
// The machine's own network: what the daemon needs of it, how it takes changes of it, and what it leaves.
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { Internet, NETWORK, PUBLIC, get, ip } from '../lib/internet.mjs';
import { until } from '../lib/wait.mjs';

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
	assert.match(await box.out('curl -sS -m 5 http://www.example.test/'), /world/);
	const begun = Date.now();
	assert.notEqual((await box.run(`(${get(PUBLIC[6])})`)).exitCode, 0);
	assert.ok(Date.now() - begun < 1_000, `refused after ${Date.now() - begun} ms`);
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
	await until('its link goes', () => !ip('-brief', 'link').includes('toff-up'), 10_000);
	assert.match(tables(), /silt_toff/);
	assert.equal(read(conf(4, 'eth0', 'forwarding')), '1');
	const second = await startDaemon({ home: first.home, flags: { network: 'off' } });
	assert.doesNotMatch(tables(), /silt_toff/);
	assert.equal(read(conf(4, 'eth0', 'forwarding')), '0');
	await second.stop();
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
	assert.ok(Date.now() - begun < 2_000, `answered after ${Date.now() - begun} ms`);
	assert.equal(await box.out('wait; cat /tmp/out'), 'ready\ncut 103\n900\n');
});
