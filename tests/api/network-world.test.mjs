// SPDX-License-Identifier: Apache-2.0
// What people do with a network: curl, git, pip, npm, apt-get, against real servers in a world of the test's own.
import '../lib/registry.mjs';
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { NETWORK } from '../lib/internet.mjs';
import { ended, look, start } from '../lib/process.mjs';
import { HELLO, SITES, Services, TRUST } from '../lib/services.mjs';
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

const run = (box, command) => box.run(command, { env: TRUST }, { deadline: 60_000 });
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

/** What a connection to each of these (name or address) says, and after how long: the words of the system, not a time-out. */
const KNOCK = String.raw`
import errno, socket, sys, time
for word in sys.argv[1:]:
    host, port = word.rsplit('/', 1)
    begun = time.monotonic()
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
        end = 'connected'
    except socket.gaierror as error:
        end = 'name'
    except OSError as error:
        end = errno.errorcode.get(error.errno, str(error))
    print(word, end, int((time.monotonic() - begun) * 1000))
`;

async function knock(box, ...words) {
	const text = await box.out(`python3 -c "$KNOCK" ${words.join(' ')}`, { env: { KNOCK } });
	return text.trim().split('\n').map(line => line.split(' ')).map(([to, end, ms]) => ({ to, end, ms: Number(ms) }));
}

/** Each is refused in a way that programs understand, within a second. */
async function refuses(box, words, ends) {
	for (const { to, end, ms } of await knock(box, ...words)) {
		assert.ok(ends.includes(end), `${to}: ${end}`);
		assert.ok(ms < 1_000, `${to} was refused after ${ms} ms`);
	}
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
		assert.deepEqual([answer.status, answer.body.code], [502, 'GIT_NETWORK_ERROR'], answer.raw.toString());
	});
}

const SAYS = {
	curl: /Could not resolve host|Connection refused|Couldn't connect/,
	git: /Could not resolve host|Connection refused|Couldn't connect/,
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

const network = box => daemon.api('GET', `/v1/sandboxes/${box.id}/network`).then(answer => answer.body);
const received = async box => (await network(box)).counters.receivedBytes;

/** A slow download that runs in the background; resolves when bytes come. */
async function download(box) {
	const { processId } = await start(box, 'curl -sS -m 60 -o /tmp/slow -w "%{http_code} %{exitcode} %{size_download}" https://www.example.test/slow', { env: TRUST });
	await until('bytes of the download', async () => Number(await box.out('stat -c %s /tmp/slow 2>/dev/null || echo 0')) > 0);
	return processId;
}

/** The download goes on: more bytes come after now. */
async function goesOn(box) {
	const size = async () => Number(await box.out('stat -c %s /tmp/slow'));
	const before = await size();
	await until('more bytes of the download', async () => await size() > before);
}

async function killAndWait(name) {
	const [pid] = daemon.programs(name);
	process.kill(pid, 'SIGKILL');
	await until(`another ${name}`, () => daemon.programs(name).some(p => p !== pid) && !daemon.programs(name).includes(pid), 15_000);
	await daemon.healthy();
}

test('a download that runs ends when the mode becomes none', async t => {
	const box = await boxOf(t);
	const id = await download(box);
	const begun = Date.now();
	assert.equal((await policy(box, { mode: 'none' })).status, 200);
	const { exitCode } = await ended(box, id);
	assert.ok(Date.now() - begun < 1_000, `curl ended after ${Date.now() - begun} ms`);
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

test('questions that are under way when silt-proxy is killed are answered by the next one', async t => {
	const box = await boxOf(t);
	const loop = 'for i in $(seq 200); do getent ahostsv4 www.example.test | grep -c STREAM; done | sort | uniq -c';
	const asking = box.out(loop, { sessionId: 'asks' }, { deadline: 60_000 });
	await until('questions', () => services.asked().length > 0);
	await killAndWait('silt-proxy');
	assert.equal((await asking).trim(), '200 1');
});

test('resolv.conf names the gateway, localhost is the sandbox itself', async t => {
	const box = await boxOf(t);
	const servers = (await box.out('cat /etc/resolv.conf')).match(/^nameserver \S+$/gm);
	const gateway = (await box.out("ip route show default | cut -d' ' -f3")).trim();
	assert.deepEqual(servers, [`nameserver ${gateway}`]);
	await start(box, 'cd /tmp && exec python3 -m http.server --bind :: 8000');
	const answer = await daemon.api('POST', `/v1/sandboxes/${box.id}/ports/wait`, { port: 8000, mode: 'tcp', timeoutMs: 20_000 });
	assert.equal(answer.body.reached, true);
	for (const address of ['localhost', '127.0.0.1', '[::1]'])
		assert.equal(await box.out(`curl -sS -o /dev/null -w '%{http_code}' http://${address}:8000/`), '200', address);
	assert.equal(services.asked().filter(name => /localhost/.test(name)).length, 0, 'nobody outside is asked for it');
});

test('localhost works in mode none', async t => {
	const box = await boxOf(t, { network: { mode: 'none' } });
	await start(box, 'cd /tmp && exec python3 -m http.server --bind :: 8000');
	assert.equal((await daemon.api('POST', `/v1/sandboxes/${box.id}/ports/wait`, { port: 8000, mode: 'tcp', timeoutMs: 20_000 })).body.reached, true);
	assert.equal(await box.out("curl -sS -o /dev/null -w '%{http_code}' http://localhost:8000/"), '200');
});
