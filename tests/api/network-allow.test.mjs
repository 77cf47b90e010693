// SPDX-License-Identifier: Apache-2.0
// Mode allow: policies as callers send them, how they come into force and how long they last.
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, before, test } from 'node:test';
import { Box } from '../lib/box.mjs';
import { BUILD, startDaemon } from '../lib/daemon.mjs';
import { Internet, NETWORK, PUBLIC, addresses, get } from '../lib/internet.mjs';
import { REFUSED_MS, until, within } from '../lib/wait.mjs';

const FLAGS = NETWORK.flags;
const ECHO = `${PUBLIC[4]}:7`; // a line server
let internet, daemon;
before(async () => {
	internet = await Internet.start();
	daemon = await startDaemon({ flags: FLAGS });
});
after(async () => {
	await daemon?.stop();
	internet?.stop();
});

const network = (box, method = 'GET', body = undefined) => box.daemon.api(method, `/v1/sandboxes/${box.id}/network`, body);
const web = name => `curl -sS -m 20 http://${name}/`;

async function put(box, ...allow) {
	const answer = await network(box, 'PUT', { mode: 'allow', allow });
	assert.equal(answer.status, 200, answer.raw.toString());
	return answer.body;
}

const allowing = (t, ...allow) => daemon.box(t, { network: { mode: 'allow', allow } });

async function refuses(box, command, label = command) {
	assert.notEqual((await within(REFUSED_MS, `${label} is refused`, box.run(`(${command})`))).exitCode, 0, label);
}

/** silt-proxy is two processes: both. */
async function killAndWait(name, d = daemon) {
	const old = d.programs(name);
	for (const pid of old)
		process.kill(pid, 'SIGKILL');
	await until(`another ${name}`, () => d.programs(name).filter(pid => !old.includes(pid)).length === old.length);
	await d.healthy();
}

test('what the rules name is reached, everything else is refused at once and told', async t => {
	const box = await allowing(t, '*.example.test');
	assert.match(await box.out(web('www.example.test')), /world .* www\.example\.test/);
	await refuses(box, 'getent ahosts www.other.test');
	await refuses(box, 'getent ahosts example.test');
	await refuses(box, get(PUBLIC[4], 7));
	const { refused, counters } = await until('what was refused', async () => {
		const { body } = await network(box);
		return body.refused.some(r => r.name === 'www.other.test') && body.refused.some(r => r.port === 7) && body;
	});
	const dns = refused.find(r => r.name === 'www.other.test');
	assert.deepEqual([dns.protocol, dns.reason, dns.destination], ['dns', 'name_not_allowed', null]);
	const tcp = refused.find(r => r.port === 7);
	assert.deepEqual([tcp.protocol, tcp.destination], ['tcp', PUBLIC[4]]);
	assert.ok(['address_not_allowed', 'port_not_allowed'].includes(tcp.reason), tcp.reason);
	assert.ok(Date.parse(tcp.firstAt) <= Date.parse(tcp.lastAt) && tcp.count >= 1);
	const told = (await daemon.api('GET', `/v1/events?follow=false&cursor=0&types=denied&sandbox=${box.id}`)).raw.toString();
	assert.match(told, /"type":"denied".*"protocol":"dns","name":"www\.other\.test","reason":"name_not_allowed"/);
	assert.match(told, new RegExp(`"destination":"${PUBLIC[4].replaceAll('.', '\\.')}","port":7,"protocol":"tcp"`));
	for (const name of ['connections', 'requests', 'dnsQuestions', 'refused'])
		assert.ok(counters[name] > 0, `${name}: ${counters[name]}`);
});

test('a WebSocket works in the clear, and nothing else goes that way', async t => {
	const box = await allowing(t, '*.example.test');
	const begin = (protocol, more) => `exec 3<>/dev/tcp/www.example.test/80; printf 'GET / HTTP/1.1\\r\\nHost: www.example.test\\r\\nConnection: Upgrade\\r\\nUpgrade: ${protocol}\\r\\n\\r\\n${more}' >&3`;
	const head = `while read -r line <&3 && [ "$line" != $'\\r' ]; do :; done`;
	const late = `printf '\\x81\\x04late' >&3; timeout 20 head -c 13 <&3 | tr -d '\\201\\004\\005'`;
	assert.equal(await box.out(`${begin('websocket', '\\x81\\x05early')}; ${head}; ${late}`), 'earlylate');
	await box.run(`${begin('other', '\\x81\\x05early')}; timeout 20 cat <&3`);
	const told = await until('what was refused', async () => (await network(box)).body.refused.find(r => r.port === 80));
	assert.equal(told.reason, 'unknown_protocol');
});

test('a destination that is refused again is counted, not listed again', async t => {
	const box = await allowing(t, 'www.example.test');
	await box.run('for i in 1 2 3; do getent ahostsv4 again.other.test; done');
	await until('all of them', async () => {
		const same = (await network(box)).body.refused.filter(r => r.name === 'again.other.test');
		assert.ok(same.length <= 1);
		return same[0]?.count >= 3;
	});
});

test('rules are shown in the one way to write them', async t => {
	const box = await allowing(t);
	const body = await put(box, 'example.com', { host: '*.example.com', port: 443 }, { host: '2606:4700::/32', port: '8000-9000' }, '8.8.8.8/32', { host: 'a.example', port: null });
	assert.deepEqual(body.allow, ['example.com', '*.example.com:443', '[2606:4700::]/32:8000-9000', '8.8.8.8', 'a.example']);
	assert.deepEqual((await network(box)).body.allow, body.allow);
	assert.equal((await network(box, 'PUT', { mode: 'public' })).body.allow, undefined);
});

const BROKEN = [
	['*', /mode public/], ['*.', /no name/], ['*.com', /top-level/], ['Example.com', /lower case/], ['bücher.example', /xn--/], ['example.com.', /leave it out/],
	['a..b', /empty part/], ['*.*.example.com', /whole first part/], ['example.com:0', /1 to 65535/], ['example.com:65536', /1 to 65535/], ['example.com:90-80', /end before/],
	['example.com:http', /1 to 65535/], ['8.8.8.8/16', /8\.8\.0\.0\/16/], ['8.8.8.8/33', /0 to 32/], ['0x8.8.8.8', /no IPv4/], ['2130706433', /no IPv4/], ['[2606:4700::1', /\[2001:db8::1\]:443/],
	['https://example.com', /host alone/], ['example.com/x', /path/], ['', /no name/], ['a b', /no name has/], ['a\u0000b', /NUL/], [`${'a'.repeat(64)}.com`, /63/], [`${'a.'.repeat(200)}com`, /253/],
	[7, /string/], [null, /string/], [['example.com'], /string/], [{}, /host and port only/], [{ host: 7 }, /host and port only/], [{ host: 'example.com', ports: [1] }, /did you mean port/, 'allow[1].ports', 'UNKNOWN_FIELD'],
	[{ host: 'example.com', port: true }, /number or a range/], [{ host: 'example.com', port: 0 }, /1 to 65535/], [{ host: 'example.com', port: -1 }, /1 to 65535/], [{ host: 'example.com:443' }, /./], [{ host: '[2606:4700::1]', port: 1 }, /./],
];

test('each broken rule is refused by its place with a way out, and the old policy stays in force', async t => {
	const box = await allowing(t, 'www.example.test');
	for (const [rule, why, field = 'allow[1]', code = 'INVALID_RULE'] of BROKEN) {
		const answer = await network(box, 'PUT', { mode: 'allow', allow: ['other.example', rule] });
		assert.equal(answer.status, 400, JSON.stringify(rule));
		assert.equal(answer.body.code, 'VALIDATION_FAILED');
		const [error] = answer.body.context.validationErrors;
		assert.deepEqual([error.field, error.code], [field, code], JSON.stringify(rule));
		assert.match(error.message, why, JSON.stringify(rule));
	}
	assert.deepEqual((await network(box)).body.allow, ['www.example.test']);
	assert.match(await box.out(web('www.example.test')), /world/);
	for (const [rule] of BROKEN.slice(0, 5))
		assert.equal((await daemon.api('POST', '/v1/sandboxes', { id: 'never', network: { mode: 'allow', allow: [rule] } })).body.context.validationErrors[0].field, 'network.allow[0]');
	assert.equal((await daemon.api('GET', '/v1/sandboxes/never')).status, 404);
});

test('duplicates are refused, also in disguise', async t => {
	const box = await allowing(t, 'www.example.test');
	for (const pair of [['a.example', 'a.example'], ['a.example:443', { host: 'a.example', port: 443 }], ['8.8.8.8', '8.8.8.8/32'], ['2606:4700::1', '[2606:4700:0:0::1]']]) {
		const answer = await network(box, 'PUT', { mode: 'allow', allow: ['first.example', ...pair] });
		assert.equal(answer.status, 400, JSON.stringify(pair));
		assert.deepEqual(answer.body.context.validationErrors.map(e => [e.field, e.code]), [['allow[2]', 'DUPLICATE_RULE']]);
		assert.match(answer.body.message, /entry 1/);
	}
	assert.deepEqual((await network(box)).body.allow, ['www.example.test']);
});

test('closed networks cannot be allowed by a caller, however they are written', async t => {
	const box = await allowing(t, 'www.example.test');
	for (const rule of ['10.0.0.0/8', '10.1.2.3:80', '127.0.0.1', '169.254.169.254', '192.168.0.0/16:22', '100.64.0.0/10', '168.63.129.16', '224.0.0.0/3', '::1', 'fe80::/10', '[fd00:ec2::254]:80', '::ffff:8.8.8.8', '64:ff9b::/96', { host: '172.16.0.0/12', port: 1 }]) {
		const answer = await network(box, 'PUT', { mode: 'allow', allow: [rule] });
		assert.equal(answer.status, 400, JSON.stringify(rule));
		assert.equal(answer.body.context.validationErrors[0].code, 'CLOSED_NETWORK', JSON.stringify(rule));
		assert.match(answer.body.message, /network\.open/);
	}
	await put(box, '0.0.0.0/0', '::/0');
	assert.match(await box.out(get(PUBLIC[4])), /world/);
	for (const address of ['10.1.2.3', '169.254.169.254', 'fd00:ec2::254'])
		await refuses(box, get(address));
});

test('what the operator opened can be allowed, and is reached', async t => {
	const open = await startDaemon({ flags: { ...FLAGS, 'network.open': '10.1.0.0/16, fd20:ce::/64' } });
	t.after(() => open.stop());
	const box = await open.box(null, { network: { mode: 'allow', allow: ['10.1.2.0/24:80'] } });
	assert.match(await box.out(get('10.1.2.3')), /world/);
	await refuses(box, get('fd20:ce::254'), 'opened, but not allowed');
	assert.equal((await network(box, 'PUT', { mode: 'allow', allow: ['10.0.0.0/8'] })).status, 400, 'more than was opened');
	await put(box, 'fd20:ce::254');
	assert.match(await box.out(get('fd20:ce::254')), /world/);
	await refuses(box, get('10.1.2.3'));
});

test('1,024 rules are taken, more are not, and a million change nothing', async t => {
	const box = await allowing(t, 'www.example.test');
	const rules = n => Array.from({ length: n }, (_, i) => `h${i}.example.test`);
	for (const n of [1_025, 1_000_000]) {
		const answer = await network(box, 'PUT', { mode: 'allow', allow: rules(n) });
		assert.ok([400, 413].includes(answer.status), `${n}: ${answer.status}`);
		assert.ok(answer.body.code);
	}
	assert.deepEqual((await network(box)).body.allow, ['www.example.test']);
	assert.match(await box.out(web('www.example.test')), /world/);
	assert.equal((await put(box, ...rules(1_023), 'www.example.test')).allow.length, 1_024);
	assert.match(await box.out(web('www.example.test')), /world/);
});

test('a policy that is not one is refused and the old one stays', async t => {
	const box = await allowing(t, 'www.example.test');
	for (const body of [{ mode: 'allow' }, { mode: 'allow', allow: null }, { mode: 'allow', allow: 'a.example' }, { mode: 'allow', allow: {} }, { mode: 'public', allow: [] }, { mode: 'none', allow: ['a.example'] },
		{ mode: 'allow', alow: ['a.example'] }, { mode: 'public', deny: [] }, { allow: ['a.example'] }, { mode: 'ALLOW', allow: [] }]) {
		const answer = await network(box, 'PUT', body);
		assert.deepEqual([answer.status, answer.body.code], [400, 'VALIDATION_FAILED'], JSON.stringify(body));
	}
	assert.deepEqual((await network(box)).body.allow, ['www.example.test']);
	assert.match(await box.out(web('www.example.test')), /world/);
});

test('the first command of a new sandbox meets its policy, never a refusal or an open network', async t => {
	await Promise.all(Array.from({ length: 12 }, async (_, i) => {
		const box = await daemon.box(t, { network: { mode: 'allow', allow: ['www.example.test', ECHO] }, ephemeral: i % 2 === 0 }); // ephemeral ones are never ready beforehand
		assert.match(await box.out(`${web('www.example.test')} && (${get('four.example.test')} && echo OPEN || true)`), /^world [^\n]*\n$/);
		process.kill(await box.init(), 'SIGKILL');
		await until('its end', async () => (await box.info()).state === 'stopped');
		assert.match(await box.out(web('www.example.test')), /world/, 'a new incarnation');
	}));
});

test('a policy outlives siltd, the sandbox\'s processes and the whole daemon', async t => {
	const own = await startDaemon({ flags: FLAGS });
	const box = await own.box(null, { network: { mode: 'allow', allow: ['www.example.test', ECHO] } });
	const holds = async b => {
		assert.deepEqual((await network(b)).body.allow, ['www.example.test', ECHO]);
		assert.match(await b.out(web('www.example.test')), /world/);
		await refuses(b, 'getent ahosts four.example.test');
	};
	await holds(box);
	await killAndWait('siltd', own);
	await holds(box);
	await own.stop({ keep: true });
	const again = await startDaemon({ home: own.home });
	t.after(() => again.stop());
	await holds(new Box(again, box.id));
});

test('the policy of a stopped sandbox is in force when it starts', async t => {
	const box = await allowing(t, 'www.example.test');
	process.kill(await box.init(), 'SIGKILL');
	await until('its end', async () => (await box.info()).state === 'stopped');
	await put(box, 'four.example.test');
	assert.deepEqual((await network(box)).body.connected, false);
	assert.match(await box.out(web('four.example.test')), /world/);
	await refuses(box, web('www.example.test'));
});

const dial = fd => `exec ${fd}<>/dev/tcp/${PUBLIC[4]}/7`;
const talk = (fd, word) => `echo ${word} >&${fd}; read -t 30 line <&${fd}; echo $line`;

test('a change cuts what it forbids and nothing else', async t => {
	const box = await allowing(t, ECHO);
	await box.out(dial(5));
	assert.equal(await box.out(talk(5, 'one')), 'one\n');
	await put(box, ECHO, 'www.example.test');
	assert.equal(await box.out(talk(5, 'two')), 'two\n', 'it is still allowed');
	const waits = box.run('read -t 30 line <&5; echo "$? $line"');
	await put(box, 'www.example.test');
	assert.match((await waits).stdout, /^1 /, 'a reader that only waited has noticed');
	await refuses(box, get(PUBLIC[4], 7));
});

test('an allowed connection outlives kill -9 of siltd and of silt-priv', async t => {
	const box = await allowing(t, ECHO);
	await box.out(dial(5));
	for (const name of ['siltd', 'silt-priv']) {
		await killAndWait(name);
		assert.equal(await box.out(talk(5, name)), `${name}\n`);
	}
	assert.deepEqual((await network(box)).body.allow, [ECHO]);
});

test('a new silt-proxy gets all policies again', async t => {
	const boxes = await Promise.all([1, 2, 3].map(() => allowing(t, 'www.example.test')));
	await killAndWait('silt-proxy');
	for (const box of boxes) {
		await until('it is allowed again', async () => (await box.run(web('www.example.test'))).exitCode === 0);
		await refuses(box, 'getent ahosts four.example.test');
	}
	const fresh = await allowing(t, 'www.example.test');
	assert.match(await fresh.out(web('www.example.test')), /world/);
});

test('a change that silt-proxy does not take is an error, and the old policy stays', async t => {
	const box = await allowing(t, 'www.example.test');
	const signal = name => daemon.programs('silt-proxy').forEach(pid => process.kill(pid, name));
	signal('SIGSTOP');
	try {
		const late = await network(box, 'PUT', { mode: 'allow', allow: ['four.example.test'] });
		assert.deepEqual([late.status, late.body.code], [503, 'NETWORK_UNAVAILABLE']);
		assert.match(late.body.message, /old policy is in force/);
	} finally {
		signal('SIGCONT');
	}
	assert.deepEqual((await network(box)).body.allow, ['www.example.test']);
	await until('the old policy', async () => (await box.run(web('www.example.test'))).exitCode === 0);
	await refuses(box, 'getent ahosts four.example.test');
});

test('from mode to mode: public, allow, none, allow, public', async t => {
	const box = await daemon.box(t, {});
	assert.match(await box.out(web('four.example.test')), /world/);
	await put(box, 'www.example.test');
	assert.match(await box.out(web('www.example.test')), /world/);
	await refuses(box, web('four.example.test'));
	await network(box, 'PUT', { mode: 'none' });
	await refuses(box, web('www.example.test'));
	await put(box, 'four.example.test');
	assert.match(await box.out(web('four.example.test')), /world/);
	await network(box, 'PUT', { mode: 'public' });
	assert.match(await box.out(`${web('www.example.test')}; ${get(PUBLIC[4])}`), /world[^]*world/);
});

test('from allow to none every connection breaks off', async t => {
	const box = await allowing(t, ECHO);
	await box.out(dial(5));
	const waits = box.run('read -t 30 line <&5; echo "$? $line"');
	await network(box, 'PUT', { mode: 'none' });
	assert.match((await waits).stdout, /^1 /);
});

test('without silt-proxy a sandbox starts closed after some seconds, and is raised when there is one', async t => {
	const signal = name => daemon.programs('silt-proxy').forEach(pid => process.kill(pid, name));
	signal('SIGSTOP');
	let box;
	try {
		box = await allowing(t, ECHO);
		await refuses(box, `timeout 0.5 bash -c "${get(PUBLIC[4], 7)}"`);
	} finally {
		signal('SIGCONT');
	}
	await until('it is raised', async () => (await box.run(`(${dial(5)}; ${talk(5, 'one')})`)).stdout === 'one\n');
});

test('the list of what was refused has an end', async t => {
	const box = await allowing(t, 'www.example.test');
	await box.run('for i in $(seq 300); do getent ahostsv4 h$i.other.test; done', { timeoutMs: 240_000 }, { deadline: 240_000 });
	const { refused } = await until('all are counted', async () => {
		const { body } = await network(box);
		return body.counters.refused >= 300 && body;
	});
	assert.ok(refused.length <= 256, `${refused.length}`);
	assert.ok(refused.every((r, i) => i === 0 || Date.parse(r.lastAt) <= Date.parse(refused[i - 1].lastAt)), 'the latest first');
});

test('many changes at once end in one of them, whole', async t => {
	const box = await allowing(t);
	const policies = [{ mode: 'none' }, { mode: 'public' }, { mode: 'allow', allow: ['www.example.test'] }, { mode: 'allow', allow: ['four.example.test'] }];
	const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => network(box, 'PUT', policies[i % 4])));
	assert.deepEqual(answers.map(a => a.status), Array(40).fill(200));
	const { mode, allow = [] } = (await network(box)).body;
	for (const name of ['www.example.test', 'four.example.test'])
		assert.equal((await box.run(web(name))).exitCode === 0, mode === 'public' || allow.includes(name), `${name} in ${mode} ${allow}`);
});

test('the next owner of a link\'s number inherits nothing', async t => {
	const small = await startDaemon({ flags: { ...FLAGS, 'network.ipv4': '10.210.7.0/24', workers: 1, 'pool.sandboxes': 0 } });
	t.after(() => small.stop());
	const first = await small.box(null, { network: { mode: 'allow', allow: [ECHO, 'www.example.test'] } });
	await first.out(`getent ahostsv4 www.example.test; getent ahosts stale.other.test; ${dial(5)}; echo left >&5`);
	const [address] = addresses(await first.init());
	await first.destroy();
	for (let i = 0; i < 600; i++) {
		const box = await small.box(null, { network: { mode: 'allow', allow: ['four.example.test:443'] } });
		if (addresses(await box.init())[0] !== address) {
			await box.destroy();
			continue;
		}
		const { refused, counters } = (await network(box)).body;
		assert.deepEqual(refused, []);
		assert.deepEqual([counters.connections, counters.refused, counters.dnsQuestions], [0, 0, 0]);
		await refuses(box, get(PUBLIC[4], 7), 'the former one\'s network');
		await refuses(box, web('www.example.test'), 'the former one\'s name');
		assert.ok(!(await network(box)).body.refused.some(r => r.name === 'stale.other.test'));
		return;
	}
	assert.fail('the number never came back');
});

test('the operator chooses what sandboxes have that nobody chose for', async t => {
	const chosen = await startDaemon({ flags: { ...FLAGS, 'network.mode': 'allow', 'network.allow': 'www.example.test, 93.184.215.14:7' } });
	t.after(() => chosen.stop());
	const box = await chosen.box(null);
	assert.match(await box.out(web('www.example.test')), /world/, 'made by its first command');
	await refuses(box, 'getent ahosts four.example.test');
	assert.deepEqual((await network(box)).body.allow, ['www.example.test', ECHO]);
	const free = await chosen.box(null, { network: { mode: 'public' } });
	assert.match(await free.out(web('four.example.test')), /world/);
});

test('the operator can choose none', async t => {
	const chosen = await startDaemon({ flags: { ...FLAGS, 'network.mode': 'none' } });
	t.after(() => chosen.stop());
	const box = await chosen.box(null);
	await refuses(box, get(PUBLIC[4]));
	assert.equal((await network(box)).body.mode, 'none');
});

test('without a network, mode allow is refused by its type', async t => {
	const off = await startDaemon({ flags: { network: 'off' } });
	t.after(() => off.stop());
	const box = await off.box(null, {});
	const policy = { mode: 'allow', allow: ['www.example.test'] };
	const refused = await network(box, 'PUT', policy);
	assert.deepEqual([refused.status, refused.body.code], [503, 'NETWORK_UNAVAILABLE']);
	assert.equal((await network(box)).body.mode, 'none');
	for (const wanted of [policy, { mode: 'public' }]) {
		const made = await off.api('POST', '/v1/sandboxes', { id: 'never', network: wanted });
		assert.deepEqual([made.status, made.body.code], [503, 'NETWORK_UNAVAILABLE']);
	}
	assert.equal((await off.api('GET', '/v1/sandboxes/never')).status, 404);
	assert.equal((await off.api('POST', '/v1/sandboxes', { id: 'plain', network: { mode: 'none' } })).status, 201);
});

test('the command line allows, shows and explains', async t => {
	const box = await allowing(t);
	const silt = (...words) => spawnSync(`${BUILD}/silt`, [...words, '--server', `http://${daemon.address}`, '--token-file', `${daemon.home}/token`], { encoding: 'utf8' });
	const shown = silt('net', box.id, '--allow', 'www.example.test', '--allow', `${PUBLIC[4]}:7`);
	assert.match(shown.stdout, /^mode +allow\nallow +www\.example\.test\n +93\.184\.215\.14:7\nsent /);
	assert.match(await box.out(web('www.example.test')), /world/);
	await box.run('getent ahosts no.example.test');
	await until('what was refused', () => /dns no\.example\.test: no rule names it/.test(silt('net', box.id).stdout));
	const wrong = silt('net', box.id, '--allow', 'Example.com');
	assert.equal(wrong.status, 125);
	assert.match(wrong.stderr, /allow\[0\]: 'Example\.com' has upper case/);
	const made = JSON.parse(silt('create', '--json', '--allow', 'www.example.test').stdout);
	t.after(() => daemon.api('DELETE', `/v1/sandboxes/${made.id}`));
	assert.match(silt('net', made.id).stdout, /^mode +allow.*\nallow +www\.example\.test\n/);
	assert.match(silt('net', box.id, '--mode', 'public').stdout, /^mode +public\nsent /);
	assert.match(silt('net', box.id, '--mode', 'allow').stdout, /^mode +allow\nallow +nothing\n/);
	assert.match(silt('net', box.id, '--mode', 'none', '--allow', 'a.example').stderr, /goes with mode allow only/);
});
