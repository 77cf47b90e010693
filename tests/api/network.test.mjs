// SPDX-License-Identifier: Apache-2.0
// Out to the world, under control: the whole daemon in a network of the test's own.
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { BUILD, startDaemon } from '../lib/daemon.mjs';
import { HOST, Internet, NETWORK, PUBLIC, get, ip } from '../lib/internet.mjs';
import { REFUSED_MS, until, within } from '../lib/wait.mjs';

const FLAGS = NETWORK.flags;
let internet, daemon;
before(async () => {
	internet = await Internet.start();
	daemon = await startDaemon({ flags: FLAGS });
});
after(async () => {
	await daemon?.stop();
	internet?.stop();
});

const tables = () => spawnSync('nft', ['list', 'tables'], { encoding: 'utf8' }).stdout;
const forwarding = name => fs.readFileSync(`/proc/sys/net/ipv4/conf/${name}/forwarding`, 'utf8').trim();

async function killAndWait(name, pid) {
	process.kill(pid, 'SIGKILL');
	await until(`another ${name}`, () => daemon.programs(name).some(p => p !== pid) && !daemon.programs(name).includes(pid));
	await daemon.healthy();
}

test('a sandbox reaches the internet by the address of the host', async t => {
	const box = await daemon.box(t);
	assert.match(await box.out(get(PUBLIC[4])), new RegExp(`world ::ffff:${HOST[4]} x`));
	assert.match(await box.out(get(PUBLIC[6])), new RegExp(`world ${HOST[6]} x`));
});

test('host, private networks and metadata are refused at once', async t => {
	const box = await daemon.box(t);
	const api = daemon.address.split(':').at(-1);
	for (const [address, port] of [[HOST[4], 80], [HOST[4], api], [HOST[6], 80], ['169.254.169.254', 80], ['10.1.2.3', 80], ['192.168.7.7', 80], ['fd00:ec2::254', 80], ['::ffff:169.254.169.254', 80]]) {
		assert.notEqual((await within(REFUSED_MS, `${address} is refused`, box.run(`(${get(address, port)})`))).exitCode, 0, address);
	}
});

test('curl, pings and datagrams larger than a packet get through', async t => {
	const box = await daemon.box(t);
	assert.match(await box.out('curl -sS -m 20 http://www.example.test/'), /world .* www\.example\.test/);
	const script = `
import os, socket
for family, address, protocol in ((socket.AF_INET, "${PUBLIC[4]}", socket.IPPROTO_ICMP), (socket.AF_INET6, "${PUBLIC[6]}", socket.IPPROTO_ICMPV6)):
    ping = socket.socket(family, socket.SOCK_DGRAM, protocol); ping.settimeout(20)
    ping.sendto(bytes([8 if family == socket.AF_INET else 128, 0, 0, 0, 0, 0, 0, 1]) + b"hello", (address, 0))
    print(ping.recv(100)[8:] == b"hello")
    big = os.urandom(9000)
    udp = socket.socket(family, socket.SOCK_DGRAM); udp.settimeout(20); udp.connect((address, 7))
    udp.send(big); print(udp.recv(20000) == big)
`;
	assert.equal(await box.out(`python3 -c '${script}'`), 'True\n'.repeat(4));
});

test('names are resolved as on any machine', async t => {
	const box = await daemon.box(t);
	assert.match(await box.out('getent ahostsv4 www.example.test'), new RegExp(`^${PUBLIC[4]} `));
	assert.match(await box.out('getent ahostsv6 www.example.test'), new RegExp(`^${PUBLIC[6]} `));
	assert.match(await box.out('getent ahosts four.example.test'), new RegExp(`^${PUBLIC[4]} `));
	assert.match(await box.out(get('www.example.test')), /world/);
	assert.match(await box.out('getent ahosts localhost'), /^(127\.0\.0\.1|::1) /);
	assert.equal((await box.run('getent ahosts missing.example.test')).exitCode, 2);
	assert.equal(new Set((await box.out('getent ahostsv4 long.example.test')).match(/^\S+/gm)).size, 100, 'by TCP, because it does not fit into a datagram');
});

test('many questions at once are all answered', async t => {
	const box = await daemon.box(t);
	assert.equal(await box.out('for i in $(seq 50); do getent ahostsv4 www.example.test > /tmp/a$i & done; wait; cat /tmp/a* | grep -c STREAM'), '50\n');
});

test('without a setting names are asked of the resolvers in resolv.conf', async t => {
	const { 'network.resolvers': resolvers, ...flags } = FLAGS;
	const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-resolv-'));
	t.after(() => fs.rmSync(directory, { recursive: true }));
	fs.chmodSync(directory, 0o755);
	fs.writeFileSync(`${directory}/resolv.conf`, resolvers.split(',').map(address => `nameserver ${address}\n`).join(''));
	const preset = await startDaemon({ flags, through: ['unshare', '--mount', 'sh', '-c', `mount --bind ${directory}/resolv.conf /etc/resolv.conf && exec "$0" "$@"`] });
	t.after(() => preset.stop());
	const box = await preset.box();
	assert.match(await box.out('getent ahostsv4 www.example.test'), new RegExp(`^${PUBLIC[4]} `));
});

test('a killed silt-proxy comes back and names are resolved again', async t => {
	const box = await daemon.box(t);
	await killAndWait('silt-proxy', daemon.programs('silt-proxy')[0]);
	assert.match(await box.out('getent ahostsv4 www.example.test'), new RegExp(`^${PUBLIC[4]} `));
});

test('silt-proxy has a user of its own and no rights', () => {
	const status = fs.readFileSync(`/proc/${daemon.programs('silt-proxy')[0]}/status`, 'utf8');
	assert.match(status, /^Uid:\t64997\t64997\t64997\t64997$/m);
	assert.match(status, /^Groups:\t *$/m);
	for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
		assert.match(status, new RegExp(`^${set}:\\t0+$`, 'm'));
	assert.match(status, /^NoNewPrivs:\t1$/m);
	assert.match(status, /^Seccomp:\t2$/m);
});

test('whoever holds keys or tokens leaves none of them in a core file', () => {
	for (const pid of ['siltd', 'silt-proxy', 'silt-preview'].flatMap(name => daemon.programs(name)))
		assert.equal(fs.statSync(`/proc/${pid}/environ`).uid, 0, `${pid} is not its user's to look at`);
});

test('the programs that talk to strangers have an end of memory', () => {
	const sanitized = fs.readFileSync(`${BUILD}/silt-proxy`).includes('__asan_init'); // needs more addresses than there are
	for (const pid of ['silt-proxy', 'silt-dial', 'silt-preview'].flatMap(name => daemon.programs(name)))
		assert.match(fs.readFileSync(`/proc/${pid}/limits`, 'utf8'), sanitized ? /^Max data size +unlimited/m : /^Max data size +1073741824 +1073741824 /m);
});

test('questions of names take no place of a connection', async t => {
	const own = await startDaemon({ flags: { ...NETWORK.flags, 'network.connections': 20 } });
	t.after(() => own.stop());
	const box = await own.box();
	const questions = async () => (await own.api('GET', `/v1/sandboxes/${box.id}/network`)).body.counters.dnsQuestions;
	await until('silt-proxy has heard of the sandbox, and counts', async () => { // from its first moment on, or a little later
		await box.out('getent ahostsv4 www.example.test');
		return await questions() > 0;
	});
	const before = await questions();
	assert.equal(await box.out('for i in $(seq 60); do getent ahostsv4 www.example.test >/dev/null || echo $i; done'), '');
	assert.equal(await box.out(`n=0; for i in $(seq 30); do { exec {fd}<>/dev/tcp/${PUBLIC[4]}/7; } 2>/dev/null && n=$((n + 1)); done; echo $n`), '20\n');
	const after = await questions();
	assert.ok(after >= before + 60, `${after - before} questions`);
});

const network = (box, method = 'GET', body = undefined) => daemon.api(method, `/v1/sandboxes/${box.id}/network`, body);

test('the mode changes while it runs: none cuts what is open, public opens again', async t => {
	const box = await daemon.box(t);
	await box.out(`exec 5<>/dev/tcp/${PUBLIC[4]}/7; echo one >&5; read line <&5; [ $line = one ]`);
	assert.equal((await network(box)).body.mode, 'public');
	const waits = box.run('read -t 30 line <&5; echo "$? $line"');
	const changed = await network(box, 'PUT', { mode: 'none' });
	assert.deepEqual([changed.status, changed.body.mode, changed.body.connected], [200, 'none', true]);
	assert.match((await waits).stdout, /^1 /, 'a reader that only waited has noticed');
	for (const command of [get(PUBLIC[4]), get(PUBLIC[6]), 'timeout 5 getent ahosts www.example.test']) {
		assert.notEqual((await within(REFUSED_MS, command, box.run(`(${command})`))).exitCode, 0, command);
	}
	assert.equal((await network(box, 'PUT', { mode: 'public' })).body.mode, 'public');
	assert.match(await box.out(get(PUBLIC[4])), /world/);
});

test('a sandbox can be created without a network and keeps that over restarts', async t => {
	const box = await daemon.box(t, { network: { mode: 'none' } });
	const closed = async () => assert.notEqual((await box.run(`(${get(PUBLIC[4])})`)).exitCode, 0);
	await closed();
	await killAndWait('siltd', daemon.siltd());
	await closed();
	process.kill(await box.init(), 'SIGKILL'); // the next use starts a new incarnation
	await until('its end', async () => (await box.info()).state === 'stopped');
	const { refused, ...rest } = (await network(box)).body;
	assert.deepEqual(rest, { mode: 'none', connected: false, counters: null });
	assert.ok(refused.every(one => one.reason === 'mode' && one.destination === PUBLIC[4]));
	await closed();
	assert.equal((await network(box)).body.mode, 'none');
});

test('the mode of a stopped sandbox is in force when it starts', async t => {
	const box = await daemon.box(t);
	process.kill(await box.init(), 'SIGKILL');
	await until('its end', async () => (await box.info()).state === 'stopped');
	assert.equal((await network(box, 'PUT', { mode: 'none' })).status, 200);
	assert.notEqual((await box.run(`(${get(PUBLIC[4])})`)).exitCode, 0);
});

test('traffic is counted', async t => {
	const box = await daemon.box(t, {});
	const { counters: before } = (await network(box)).body;
	await box.out(`(${get(PUBLIC[4])})`);
	const { counters: after } = (await network(box)).body;
	for (const name of ['sentBytes', 'sentPackets', 'receivedBytes', 'receivedPackets'])
		assert.ok(after[name] > before[name], name);
});

test('the command line shows and changes it', async t => {
	const box = await daemon.box(t, {});
	const silt = (...words) => spawnSync(`${BUILD}/silt`, [...words, '--server', `http://${daemon.address}`, '--token-file', `${daemon.home}/token`], { encoding: 'utf8' });
	await box.out(`(${get(PUBLIC[4])})`);
	assert.match(silt('net', box.id).stdout, /^mode +public\nsent +\S+ \S+ in \d+ packets\nreceived +\S+ \S+ in \d+ packets\n/);
	assert.match(silt('net', box.id, '--mode', 'none').stdout, /^mode +none$/m);
	assert.notEqual((await box.run(`(${get(PUBLIC[4])})`)).exitCode, 0);
	assert.equal(JSON.parse(silt('net', box.id, '--json').stdout).mode, 'none');
	const wrong = silt('net', box.id, '--mode', 'x');
	assert.equal(wrong.status, 125);
	assert.match(wrong.stderr, /must be one of none, public, allow/);
});

test('bad policies are refused and the old one stays', async t => {
	const box = await daemon.box(t, { network: { mode: 'none' } });
	for (const body of [{}, { mode: 'open' }, { mode: 7 }, { mode: null }, { mode: 'PUBLIC' }, [], { mode: ['public'] }]) {
		const answer = await network(box, 'PUT', body);
		assert.equal(answer.status, 400, JSON.stringify(body));
		assert.equal(answer.body.code, 'VALIDATION_FAILED');
	}
	assert.equal((await network(box)).body.mode, 'none');
	assert.equal((await daemon.api('PUT', '/v1/sandboxes/nobody/network', { mode: 'none' })).status, 404);
	assert.equal((await daemon.api('GET', '/v1/sandboxes/nobody/network')).status, 404);
	assert.equal((await daemon.api('POST', '/v1/sandboxes', { id: 'never', network: { mode: 'x' } })).status, 400);
});

test('many changes at once end in the last one', async t => {
	const box = await daemon.box(t, {});
	const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => network(box, 'PUT', { mode: i % 2 ? 'none' : 'public' })));
	assert.deepEqual(answers.map(a => a.status), Array(40).fill(200));
	const now = (await network(box)).body.mode;
	assert.equal((await box.run(`(${get(PUBLIC[4])})`)).exitCode === 0, now === 'public', 'what is told is what is');
});

test('a connection outlives kill -9 of siltd and of silt-priv', async t => {
	const box = await daemon.box(t);
	await box.out(`exec 5<>/dev/tcp/${PUBLIC[4]}/7; echo one >&5; read line <&5; [ $line = one ]`);
	for (const name of ['siltd', 'silt-priv']) {
		await killAndWait(name, daemon.programs(name)[0]);
		assert.equal(await box.out(`echo ${name} >&5; read -t 30 line <&5; echo $line`), `${name}\n`);
	}
	const other = await daemon.box(t);
	assert.match(await other.out(get(PUBLIC[4])), /world/, 'and new sandboxes have a network too');
});

test('while it runs the host has one link, one table and one switch more, afterwards none', async () => {
	assert.match(ip('-brief', 'link'), new RegExp(`^${daemon.instance}-up`, 'm'));
	assert.equal(tables(), `table inet silt_${daemon.instance}\n`);
	assert.equal(forwarding('eth0'), '1');
	assert.equal(forwarding('all'), '0');
	await daemon.stop();
	assert.doesNotMatch(ip('-brief', 'link'), new RegExp(daemon.instance));
	assert.equal(tables(), '');
	assert.equal(forwarding('eth0'), '0');
	daemon = await startDaemon({ flags: FLAGS });
});

test('after kill -9 of silt-super the link goes by itself and the next start removes the rest', async () => {
	const flags = { ...FLAGS, instance: 'tkill' };
	const first = await startDaemon({ flags });
	const link = () => ip('-brief', 'link').includes('tkill-up');
	const box = await first.box();
	assert.match(await box.out(get(PUBLIC[4])), /world/);
	process.kill(first.pid, 'SIGKILL');
	await until('the link of a dead instance goes', () => !link());
	assert.match(tables(), /silt_tkill/);
	const second = await startDaemon({ home: first.home });
	assert.ok(link());
	await second.stop();
	assert.ok(!link());
	assert.doesNotMatch(tables(), /silt_tkill/);
});

const WITHOUT_NFT = ['unshare', '--mount', 'sh', '-c', 'mount --bind /dev/null /usr/sbin/nft && exec "$0" "$@"'];

test('without nftables sandboxes run with loopback only, and the doctor says why', async t => {
	const bare = await startDaemon({ flags: FLAGS, through: WITHOUT_NFT });
	t.after(() => bare.stop());
	assert.match(bare.log(), /super\.no_network.*nft is missing/);
	const box = await bare.box();
	assert.equal(await box.out('ls /sys/class/net'), 'lo\n');
	assert.deepEqual((await bare.api('GET', `/v1/sandboxes/${box.id}/network`)).body, { mode: 'none', connected: false, counters: null, refused: [] });
	const [first, ...rest] = WITHOUT_NFT;
	const sick = spawnSync(first, [...rest, `${BUILD}/silt`, 'doctor'], { encoding: 'utf8' }).stdout;
	assert.match(sick, /^warn +network +no program nft: .*\n +-> apt-get install nftables/m);
	assert.match(spawnSync(`${BUILD}/silt`, ['doctor'], { encoding: 'utf8' }).stdout, /^ok +network +nftables$/m);
});

test('switched off, sandboxes run with loopback only', async t => {
	const off = await startDaemon({ flags: { network: 'off' } });
	t.after(() => off.stop());
	const box = await off.box();
	await box.out('true');
	const change = mode => off.api('PUT', `/v1/sandboxes/${box.id}/network`, { mode });
	const refused = await change('public');
	assert.deepEqual([refused.status, refused.body.code], [503, 'NETWORK_UNAVAILABLE']);
	assert.match(refused.body.suggestion, /setting network not off/);
	assert.equal((await change('none')).status, 200);
	assert.equal(await box.out('ls /sys/class/net'), 'lo\n');
	assert.notEqual((await box.run(`(${get(PUBLIC[4])})`)).exitCode, 0);
});
