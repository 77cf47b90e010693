// SPDX-License-Identifier: Apache-2.0
// What people do with a network: curl, git, pip, npm, apt-get, against real servers in a world of the test's own.
import '../lib/registry.mjs';
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { NETWORK } from '../lib/internet.mjs';
import { ended, look, start } from '../lib/process.mjs';
import { HELLO, SITES, Services, TRUST } from '../lib/services.mjs';
import { ask, nameserver } from '../lib/talk.mjs';
import { until } from '../lib/wait.mjs';

let services, daemon;
before(async () => {
	services = await Services.start(['git', 'npm', 'pip', 'apt']);
	daemon = await startDaemon({ flags: { ...NETWORK.flags, image: 'base' } });
});
after(async () => {
	await daemon?.stop();
	await services?.stop();
});

const CURL_TIMED_OUT = 28;
const APT = "apt-get -o Dir::Etc::sourcelist=/tmp/world.list -o Dir::Etc::sourceparts=- -o Acquire::Retries=0 -y";

/** What people do: command, what it prints at its end. */
const WAYS = {
	'curl by http': ['curl -sS http://www.example.test/', HELLO],
	'curl by https': ['curl -sS https://www.example.test/', HELLO],
	'curl by https and IPv6': ['curl -6 -sS https://www.example.test/', HELLO],
	'git clone': ['git clone -q https://git.example.test/repo.git /tmp/cloned && cat /tmp/cloned/file', 'from a repository\n'],
	'pip install': ['pip install -q --disable-pip-version-check --root-user-action ignore --retries 0 --index-url https://pypi.example.test/simple silthello && python3 -c "import silthello; print(silthello.greet())"', 'hello from a wheel\n'],
	'npm install': ['mkdir -p /tmp/n && cd /tmp/n && npm install --no-audit --fetch-retries=0 --registry https://registry.npm.test/ silt-hello >/dev/null && node -e "console.log(require(\'silt-hello\')())"', 'hello from a module\n'],
	'apt-get install': [`echo 'deb [trusted=yes] http://deb.example.test ./' > /tmp/world.list && ${APT} -qq update && ${APT} install -qq silt-hello >/dev/null && silt-hello`, 'hello from a package\n'],
};

/** A sandbox whose programs trust the world's authority. */
async function boxOf(t, options = {}) {
	const box = await daemon.box(t, options);
	await box.put('/tmp/ca.pem', services.authority);
	return box;
}

const run = (box, command) => box.run(command, { env: TRUST }, { deadline: 180_000 });
const policy = (box, body) => daemon.api('PUT', `/v1/sandboxes/${box.id}/network`, body);

/** git/checkout through the API, in a session whose git trusts the authority. */
async function checkout(box, targetDir) {
	await box.api('POST', '/api/session/create', { id: 'git', env: TRUST });
	return box.api('POST', '/api/git/checkout', { repoUrl: 'https://git.example.test/repo.git', targetDir, sessionId: 'git' });
}

/** Everything people do works. */
async function works(t, box) {
	for (const [name, [command, output]] of Object.entries(WAYS))
		await t.test(name, async () => {
			const { stdout, stderr, exitCode } = await run(box, command);
			assert.deepEqual({ stdout, exitCode }, { stdout: output, exitCode: 0 }, stderr);
		});
	await t.test('git/checkout', async () => {
		const answer = await checkout(box, '/workspace/by-api');
		assert.equal(answer.status, 200, answer.raw.toString());
		assert.equal(await box.out('cat /workspace/by-api/file'), 'from a repository\n');
	});
}

/** How a connection to each of these (name or address), which says nothing, ends, and after how long: by the words of the system, not by a time-out. */
const KNOCK = String.raw`
import errno, socket, sys, time
for word in sys.argv[1:]:
    host, port = word.rsplit('/', 1)
    begun = time.monotonic()
    try:
        end = 'connected' if socket.create_connection((host, int(port)), timeout=3).recv(1) else 'closed'
    except TimeoutError:
        end = 'connected'
    except socket.gaierror as error:
        end = 'name'
    except OSError as error:
        end = errno.errorcode.get(error.errno, str(error))
    print(word, end, int((time.monotonic() - begun) * 1000))
`;

async function knock(box, ...words) {
	const text = await box.out(`python3 -c "$KNOCK" ${words.join(' ')}`, { env: { KNOCK } }, { deadline: 180_000 });
	return text.trim().split('\n').map(line => line.split(' ')).map(([to, end, ms]) => ({ to, end, ms: Number(ms) }));
}

/** Each is refused in a way that programs understand, within a second; who was slow is tried again: other work on the machine slows down this one or that, never always. */
async function refuses(box, words, ends) {
	let late = [];
	for (let tries = 0; tries < 10 && words.length > 0; tries++) {
		const said = await knock(box, ...words);
		late = said.filter(({ end, ms }) => end === 'connected' || ms >= 1_000);
		for (const { to, end } of said.filter(one => !late.includes(one)))
			assert.ok(ends.includes(end), `${to}: ${end}`);
		words = late.map(({ to }) => to);
	}
	assert.deepEqual(late, [], 'refused within a second');
}

/** Nothing people do works, and every program says why. */
async function fails(t, box) {
	for (const [name, [command, output]] of Object.entries(WAYS))
		await t.test(name, async () => {
			const { stdout, stderr, exitCode } = await run(box, command);
			assert.notEqual(exitCode, 0);
			assert.ok(!stdout.includes(output));
			assert.match(stdout + stderr, SAYS[name.split(' ')[0]]);
		});
	await t.test('git/checkout', async () => {
		const answer = await checkout(box, '/workspace/by-api');
		assert.deepEqual([answer.status, answer.body.code], [500, 'GIT_OPERATION_FAILED'], answer.raw.toString());
	});
}

const SAYS = {
	curl: /Could not resolve host|Connection refused|Couldn't connect|reset by peer/,
	git: /Could not resolve host|Connection refused|Couldn't connect|reset by peer/,
	pip: /No matching distribution found/,
	npm: /EAI_AGAIN|ENOTFOUND|ECONNREFUSED/,
	'apt-get': /Could not resolve|resolving|Connection refused|Could not connect/,
};

const everySite = Object.entries(SITES).flatMap(([name, at]) => [`${name}/443`, `${at[4]}/80`, `${at[6]}/443`]);

test('curl, git, pip, npm and apt-get work in mode public', async t => {
	await works(t, await boxOf(t));
});

test('curl, git, pip, npm and apt-get are refused in mode none', async t => {
	const box = await boxOf(t, { network: { mode: 'none' } });
	await refuses(box, everySite, ['name', 'ECONNREFUSED']);
	await fails(t, box);
});

const ALLOW = ['www.example.test', 'git.example.test:443', '*.npm.test:443', 'pypi.example.test', 'deb.example.test:80'];

test('curl, git, pip, npm and apt-get work in a mode allow that names their servers', async t => {
	await works(t, await boxOf(t, { network: { mode: 'allow', allow: ALLOW } }));
});

test('curl, git, pip, npm and apt-get are refused in a mode allow that names others', async t => {
	const box = await boxOf(t, { network: { mode: 'allow', allow: ['example.org', '*.www.example.test', '8.8.4.0/24', 'git.example.test:22'] } });
	await refuses(box, everySite.filter(to => !/^(sub\.www|git)\.example\.test/.test(to)), ['name', 'ECONNREFUSED', 'ECONNRESET']);
	await fails(t, box);
});

test('names, ports and networks of an allow list are what is reached, and nothing else', async t => {
	const box = await boxOf(t, { network: { mode: 'allow', allow: ['www.example.test:443', '*.www.example.test:80', '93.184.216.38/31:80', `[${SITES['other.test'][6]}]:443`] } });
	const curl = async (url, ...words) => {
		const { stdout, exitCode } = await run(box, `curl -sS -m 20 ${words.join(' ')} '${url}' 2>/dev/null`);
		assert.notEqual(exitCode, CURL_TIMED_OUT, url);
		return exitCode === 0 ? stdout.trim() : 'refused at once';
	};
	assert.equal(await curl('https://www.example.test/'), HELLO.trim());
	assert.equal(await curl('http://www.example.test/'), 'refused at once');
	assert.equal(await curl('http://sub.www.example.test/'), 'this is sub.www.example.test');
	assert.equal(await curl('https://sub.www.example.test/'), 'refused at once');
	assert.equal(await curl('http://other.test/'), 'refused at once', 'a network does not name what is in it');
	assert.equal(await curl(`http://${SITES['other.test'][4]}/`), 'this is other.test');
	assert.equal(await curl(`http://[${SITES['other.test'][6]}]/`), 'refused at once');
	assert.equal(await curl(`https://[${SITES['other.test'][6]}]/`, '-k'), 'this is other.test');
	assert.equal(await curl('https://git.example.test/'), 'refused at once');
});

const network = box => daemon.api('GET', `/v1/sandboxes/${box.id}/network`).then(answer => answer.body);
const received = async box => (await network(box)).counters.receivedBytes;

/** A slow download that runs in the background; resolves when bytes come. */
async function download(box) {
	await box.out('rm -f /tmp/slow');
	const { processId } = await start(box, 'curl -sS -m 900 -o /tmp/slow -w "%{http_code} %{exitcode} %{size_download}" https://www.example.test/slow', { env: TRUST });
	await until('bytes of the download', async () => Number(await box.out('stat -c %s /tmp/slow 2>/dev/null || echo 0')) > 0);
	return processId;
}

/** The download goes on: more bytes come after now. */
async function goesOn(box) {
	const size = async () => Number(await box.out('stat -c %s /tmp/slow'));
	const before = await size();
	await until('more bytes of the download', async () => await size() > before);
}

/** kill -9 of all processes of a program; resolves when as many others do their work. */
async function killAndWait(name) {
	const old = daemon.programs(name);
	for (const pid of name === 'silt-priv' ? old.slice(0, 1) : old) // its workers go with it
		process.kill(pid, 'SIGKILL');
	await until(`another ${name}`, () => {
		const now = daemon.programs(name);
		return now.length >= (name === 'silt-priv' ? 1 : old.length) && !now.some(pid => old.includes(pid));
	});
	await daemon.healthy();
}

test('a download that runs ends when the mode becomes none', async t => {
	const box = await boxOf(t);
	const id = await download(box);
	const begun = Date.now();
	assert.equal((await policy(box, { mode: 'none' })).status, 200);
	const { exitCode } = await ended(box, id);
	assert.ok(Date.now() - begun < 45_000, `curl ended after ${Date.now() - begun} ms`);
	assert.ok([18, 35, 52, 55, 56].includes(exitCode), `curl ended with ${exitCode}`); // what it says of a connection that broke
	assert.equal((await policy(box, { mode: 'public' })).status, 200);
	assert.equal((await run(box, WAYS['curl by https'][0])).stdout, HELLO);
});

test('a download goes on while its policy is set again, and over kill -9 of siltd, silt-priv and silt-proxy', async t => {
	const box = await boxOf(t);
	const id = await download(box);
	assert.equal((await policy(box, { mode: 'public' })).status, 200);
	await goesOn(box);
	for (const name of ['siltd', 'silt-priv', 'silt-proxy']) {
		await killAndWait(name);
		await goesOn(box);
	}
	assert.equal((await look(box, id)).status, 'running');
	assert.equal((await run(box, WAYS['curl by https'][0])).stdout, HELLO, 'names are resolved again');
});

test('in mode allow a download goes on over kill -9 of siltd and silt-priv, and ends with silt-proxy or its rule', async t => {
	const box = await boxOf(t, { network: { mode: 'allow', allow: ALLOW } });
	let id = await download(box);
	for (const name of ['siltd', 'silt-priv']) {
		await killAndWait(name);
		await goesOn(box);
	}
	assert.equal((await policy(box, { mode: 'allow', allow: ['www.example.test:443'] })).status, 200);
	await goesOn(box);
	assert.equal((await policy(box, { mode: 'allow', allow: ['git.example.test'] })).status, 200);
	assert.notEqual((await ended(box, id)).exitCode, 0, 'its rule has gone');
	assert.equal((await policy(box, { mode: 'allow', allow: ALLOW })).status, 200);
	id = await download(box);
	await killAndWait('silt-proxy');
	assert.notEqual((await ended(box, id)).exitCode, 0, 'who carried it has gone');
	await until('the policy in the next silt-proxy', async () => (await run(box, WAYS['curl by https'][0])).stdout === HELLO);
	assert.notEqual((await run(box, 'curl -sS -m 20 http://other.test/')).exitCode, 0, 'and nothing else is open');
});

test('a download that runs in mode public ends when an allow list does not name it', async t => {
	const box = await boxOf(t);
	const id = await download(box);
	assert.equal((await policy(box, { mode: 'allow', allow: ['git.example.test'] })).status, 200);
	assert.notEqual((await ended(box, id)).exitCode, 0);
});

test('questions that are under way when silt-proxy is killed are answered by the next one', async t => {
	const box = await boxOf(t);
	const loop = 'for i in $(seq 200); do getent ahostsv4 www.example.test | grep -c STREAM; done | sort | uniq -c';
	const before = services.asked().length;
	const asking = box.out(loop, { sessionId: 'asks' }, { deadline: 180_000 });
	await until('questions', () => services.asked().length > before);
	await killAndWait('silt-proxy');
	assert.equal((await asking).trim(), '200 1');
});

const STALL = String.raw`
import resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
held = []
for i in range(900):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect((sys.argv[1], 80))
    s.sendall(b'GET /big HTTP/1.1\r\nHost: www.example.test\r\n\r\n')
    held.append(s)
    s.recv(1)
print('stalled', flush=True)
sys.stdin.read()
`;

test('downloads that nobody reads take little of silt-proxy, however many there are', async t => {
	const box = await boxOf(t, { network: { mode: 'allow', allow: ['www.example.test'] } });
	const memory = () => Number(fs.readFileSync(`/proc/${daemon.programs('silt-proxy')[0]}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)[1]) / 1024;
	const before = memory();
	await box.out('getent ahosts www.example.test');
	const { processId } = await start(box, `sleep 1000 | python3 -c "$STALL" ${SITES['www.example.test'][4]} > /tmp/stalled`, { env: { STALL } });
	await until('900 downloads', async () => (await box.out('cat /tmp/stalled')).includes('stalled'), 180_000);
	const after = memory();
	assert.ok(after - before < 32, `${before} MiB became ${after} MiB`);
	assert.ok((await look(box, processId)).status === 'running');
});

test('the resolver tells nothing of itself, of whole zones and of closed addresses', async t => {
	await services.point('secret-printer.test', '192.168.77.1', 'fd00:77::1');
	const reverse6 = `1.${'0.'.repeat(23)}7.7.0.0.0.0.d.f.ip6.arpa`;
	for (const network of [{ mode: 'public' }, { mode: 'allow', allow: ['servers.bind', 'version.bind', 'example.test', '*.example.test', '*.in-addr.arpa', '*.ip6.arpa'] }]) {
		const box = await daemon.box(t, { network });
		const server = await nameserver(box);
		const said = await ask(box, ['udp', 'tcp'].flatMap(way => [
			{ name: 'servers.bind', type: 16, group: 3 },
			{ name: 'version.bind', type: 16, group: 3 },
			{ name: 'example.test', type: 252 },
			{ name: '1.77.168.192.in-addr.arpa', type: 12 },
			{ name: reverse6, type: 12 },
		].map(one => ({ ...one, server, way }))));
		assert.equal(Object.keys(said).length, 10);
		for (const [question, answer] of Object.entries(said))
			assert.equal(answer, question.includes('arpa') ? 'code 3 records 0' : 'code 5 records 0', `${network.mode} ${question}`);
		assert.match(await box.out('getent ahosts www.example.test'), new RegExp(SITES['www.example.test'][4].replaceAll('.', '\\.')));
	}
});

test('resolv.conf names the gateway, localhost is the sandbox itself', async t => {
	const box = await boxOf(t);
	const servers = (await box.out('cat /etc/resolv.conf')).match(/^nameserver \S+$/gm);
	const gateway = (await box.out("ip route show default | cut -d' ' -f3")).trim();
	assert.deepEqual(servers, [`nameserver ${gateway}`]);
	await start(box, 'cd /tmp && exec python3 -m http.server --bind :: 8000');
	const answer = await daemon.api('POST', `/v1/sandboxes/${box.id}/ports/wait`, { port: 8000, mode: 'tcp', timeoutMs: 60_000 });
	assert.equal(answer.body.reached, true);
	for (const address of ['localhost', '127.0.0.1', '[::1]'])
		assert.equal(await box.out(`curl -sS -o /dev/null -w '%{http_code}' http://${address}:8000/`), '200', address);
	assert.equal(services.asked().filter(name => /localhost/.test(name)).length, 0, 'nobody outside is asked for it');
});

test('localhost works in mode none', async t => {
	const box = await boxOf(t, { network: { mode: 'none' } });
	await start(box, 'cd /tmp && exec python3 -m http.server --bind :: 8000');
	assert.equal((await daemon.api('POST', `/v1/sandboxes/${box.id}/ports/wait`, { port: 8000, mode: 'tcp', timeoutMs: 60_000 })).body.reached, true);
	assert.equal(await box.out("curl -sS -o /dev/null -w '%{http_code}' http://localhost:8000/"), '200');
});
