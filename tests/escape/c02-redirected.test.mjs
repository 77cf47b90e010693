// SPDX-License-Identifier: Apache-2.0
// C2: a public address of the host: its own services there, and a port that it redirects to something behind it (as Docker publishes ports).
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import { after } from 'node:test';
import { bothWays } from '../lib/escape.mjs';
import { Internet, NETWORK, get, ip } from '../lib/internet.mjs';
import { REFUSED_MS, until, within } from '../lib/wait.mjs';

export const without = ['net_host'];

const OWN = { 4: '93.184.216.50', 6: '2606:4700::50' };
const SERVE = `import socket, threading
def serve(s):
    while True:
        c = s.accept()[0]; c.recv(100); c.send(b"behind the host\\n"); c.close()
for family in (socket.AF_INET, socket.AF_INET6):
    s = socket.create_server(("", 8088), family=family)
    threading.Thread(target=serve, args=(s,)).start()
print("ready", flush=True)`;

const internet = await Internet.start();
const behind = spawn('unshare', ['--net', 'python3', '-c', `import sys; sys.stdin.readline()\n${SERVE}`], { stdio: ['pipe', 'pipe', 'inherit'] });
after(() => {
	behind.kill('SIGKILL');
	internet.stop();
});
const own = fs.readlinkSync('/proc/self/ns/net');
await until('a namespace behind the host', () => fs.readlinkSync(`/proc/${behind.pid}/ns/net`) !== own);
const inside = (...words) => spawnSync('nsenter', ['--target', String(behind.pid), '--net', 'ip', ...words]);
ip('link', 'add', 'dock0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(behind.pid));
ip('link', 'set', 'dock0', 'up');
inside('link', 'set', 'eth0', 'up');
for (const [family, near, far, bits] of [[4, '172.17.0.1', '172.17.0.2', 16], [6, 'fd17::1', 'fd17::2', 64]]) {
	const flags = family === 4 ? [] : ['nodad'];
	ip('address', 'add', `${near}/${bits}`, 'dev', 'dock0', ...flags);
	inside('address', 'add', `${far}/${bits}`, 'dev', 'eth0', ...flags);
	inside(`-${family}`, 'route', 'add', 'default', 'via', near);
	ip('address', 'add', OWN[family], 'dev', 'lo');
}
fs.writeFileSync('/proc/sys/net/ipv4/conf/dock0/forwarding', '1');
if (fs.existsSync('/proc/sys/net/ipv6/conf/dock0/force_forwarding'))
	fs.writeFileSync('/proc/sys/net/ipv6/conf/dock0/force_forwarding', '1');
const rules = spawnSync('nft', ['-f', '-'], { encoding: 'utf8', input: `add table inet publish
add chain inet publish pre { type nat hook prerouting priority dstnat; }
add rule inet publish pre ip daddr ${OWN[4]} tcp dport 8099 dnat ip to 172.17.0.2:8088
add rule inet publish pre ip6 daddr ${OWN[6]} tcp dport 8099 dnat ip6 to [fd17::2]:8088
` });
assert.equal(rules.status, 0, rules.stderr);
behind.stdin.write('go\n');
await new Promise(resolve => behind.stdout.once('data', resolve));

const attackAt = port => async (box, daemon, t) => {
	const victim = net.createServer(socket => socket.end('of the host\n')).listen(8088, '::');
	t.after(() => victim.close());
	const reached = [];
	for (const address of Object.values(OWN)) {
		const reaches = async () => /of the host|behind the host/.test((await box.run(`(${get(address, port)}) 2>&1`)).stdout);
		if (await within(REFUSED_MS, `${address} is refused or reached`, reaches()))
			reached.push(address);
	}
	return { succeeded: reached.length > 0, reached };
};

bothWays('C2 reaching services of the host by a public address', { without, attack: attackAt(8088), daemon: NETWORK });
bothWays('C2 reaching what the host publishes', { without, attack: attackAt(8099), daemon: NETWORK });
