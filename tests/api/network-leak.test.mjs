// SPDX-License-Identifier: Apache-2.0
// A thousand sandboxes with open connections leave nothing, neither in the routing namespace nor on the machine, whichever of our processes is killed meanwhile.
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { Internet, NETWORK, PUBLIC, gate, ip } from '../lib/internet.mjs';
import { until } from '../lib/wait.mjs';

const SANDBOXES = process.env.SILT_SANITIZED ? 200 : 1_000;
const SIDE_BY_SIDE = 10;

let internet, daemon;
before(async () => {
	internet = await Internet.start();
	daemon = await startDaemon({ flags: NETWORK.flags });
});
after(async () => {
	await daemon?.stop();
	internet?.stop();
});

const own = path => spawnSync('cat', [path], { encoding: 'utf8' }).stdout;
const lines = text => text.split('\n').length;

/** Connections of sandboxes that the machine itself tracks. */
const tracked = () => own('/proc/net/nf_conntrack').match(/src=(198\.18\.\d+\.1|fd73:696c:7401:\S+) .*dport=7 /g)?.length ?? 0;

const network = () => ({
	links: gate(daemon, 'ip', '-brief', 'link').match(/^v\d+@/gm)?.length ?? 0,
	routes: lines(gate(daemon, 'ip', 'route')) + lines(gate(daemon, 'ip', '-6', 'route')),
	connections: Number(gate(daemon, 'cat', '/proc/sys/net/netfilter/nf_conntrack_count')),
	counted: gate(daemon, 'nft', 'list', 'ruleset').match(/"v\d+"(?= ct count)/g)?.length ?? 0,
	rules: lines(gate(daemon, 'nft', '-t', 'list', 'ruleset')),
	host: { links: ip('-brief', 'link').match(/^\S+/gm), routes: lines(ip('route')) + lines(ip('-6', 'route')), rules: lines(spawnSync('nft', ['list', 'ruleset'], { encoding: 'utf8' }).stdout), tracked: tracked() },
});

async function live(n, body) {
	const box = await daemon.box(null, body);
	await box.out(`exec 5<>/dev/tcp/${PUBLIC[n % 2 ? 4 : 6]}/7; echo one >&5; read -t 30 line <&5; getent hosts www.example.test`);
	await box.destroy();
}

async function many(count) {
	let next = 0;
	await Promise.all(Array.from({ length: SIDE_BY_SIDE }, async () => {
		while (next < count)
			await live(next++);
	}));
}

async function killed(name, pid) {
	process.kill(pid, 'SIGKILL');
	await until(`the end of ${name} ${pid}`, () => !daemon.programs(name).includes(pid));
	await until(`another ${name}`, () => daemon.programs(name).length > 0);
	await daemon.healthy();
}

let atRest, networkAtRest;
const isAtRest = async () => {
	await daemon.settles(atRest);
	let now;
	await until('the network as before', () => JSON.stringify(now = network()) === JSON.stringify(networkAtRest), 60_000).catch(() => assert.deepEqual(now, networkAtRest));
};

test(`${SANDBOXES} sandboxes with open connections leave nothing`, async () => {
	await many(20);
	atRest = await daemon.atRest();
	await until('the network at rest', () => network().connections + network().counted + network().host.tracked === 0, 60_000);
	networkAtRest = network();
	await many(SANDBOXES);
	await isAtRest();
});

test('nor when any of our processes is killed meanwhile', async () => {
	const roles = ['siltd', 'silt-proxy', ...daemon.programs('silt-priv').map((_, i) => `silt-priv ${i}`)];
	for (const role of roles) {
		const [name, i = 0] = role.split(' ');
		const lives = Promise.allSettled(Array.from({ length: SIDE_BY_SIDE }, (_, n) => live(n)));
		await killed(name, daemon.programs(name)[i]);
		await lives;
		for (const { id } of (await daemon.api('GET', '/v1/sandboxes')).body.sandboxes)
			await daemon.api('DELETE', `/v1/sandboxes/${id}`);
	}
	await live(0);
	await isAtRest();
});

test('a machine whose instance was killed, or has ended, remembers none of its connections', async () => {
	const open = async one => (await one.box()).out(`exec 5<>/dev/tcp/${PUBLIC[4]}/7; echo one >&5; read -t 30 line <&5; exec 6<>/dev/tcp/${PUBLIC[6]}/7; echo one >&6; read -t 30 line <&6`);
	const first = await startDaemon({ flags: { ...NETWORK.flags, instance: 'tlost' } });
	await open(first);
	assert.equal(tracked(), 2);
	process.kill(first.pid, 'SIGKILL');
	await until('its link goes', () => !ip('-brief', 'link').includes('tlost-up'));
	const second = await startDaemon({ home: first.home });
	assert.equal(tracked(), 0);
	await open(second);
	assert.equal(tracked(), 2);
	await second.stop();
	assert.equal(tracked(), 0);
	assert.ok(!fs.existsSync(`${second.run}/forwarding`));
});
