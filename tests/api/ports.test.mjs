// SPDX-License-Identifier: Apache-2.0
// Exposed ports: their URLs, what keeps them and what ends them, and every refusal.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { refused } from '../lib/expect.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon({ flags: { 'preview.domain': 'previews.localhost:7459' } }); });
after(() => daemon?.stop());

const ports = (box, method, rest = '', body) => box.daemon.api(method, `/v1/sandboxes/${box.id}/ports${rest}`, body);

async function expose(box, body) {
	const answer = await ports(box, 'POST', '', body);
	assert.ok([200, 201].includes(answer.status), answer.raw.toString());
	return answer.body;
}

async function list(box) {
	const answer = await ports(box, 'GET');
	assert.equal(answer.status, 200, answer.raw.toString());
	assert.equal(answer.body.count, answer.body.ports.length);
	return answer.body.ports;
}

async function killAndWait(name, pid) {
	process.kill(pid, 'SIGKILL');
	await until(`another ${name}`, () => daemon.programs(name).some(p => p !== pid) && !daemon.programs(name).includes(pid));
	await daemon.healthy();
}

test('an exposed port has a URL of port, id and token', async t => {
	const box = await daemon.box(t, {});
	const made = await expose(box, { port: 8000, name: 'web' });
	assert.match(made.token, /^[a-z0-9]{16}$/);
	assert.equal(made.url, `http://8000-${box.id}-${made.token}.previews.localhost:7459/`);
	assert.deepEqual(made, { port: 8000, name: 'web', token: made.token, url: made.url, private: false });
	assert.deepEqual(await list(box), [made]);
});

test('exposing twice gives the same URL, and what is given anew changes', async t => {
	const box = await daemon.box(t, {});
	const first = await expose(box, { port: 8000 });
	assert.equal(first.name, null);
	assert.deepEqual(await expose(box, { port: 8000 }), first);
	assert.deepEqual(await expose(box, { port: 8000, name: 'named' }), { ...first, name: 'named' });
	const other = await expose(box, { port: 8000, token: 'chosen01' });
	assert.equal(other.url, `http://8000-${box.id}-chosen01.previews.localhost:7459/`);
	assert.equal(other.name, 'named');
	assert.equal((await expose(box, { port: 8000, private: true })).private, true);
	assert.equal((await expose(box, { port: 8000 })).private, true);
	assert.equal((await list(box)).length, 1);
});

test('the list is in the order of ports, and says nothing about other sandboxes', async t => {
	const [one, two] = [await daemon.box(t, {}), await daemon.box(t, {})];
	for (const port of [9000, 1024, 65535, 3001])
		await expose(one, { port });
	assert.deepEqual((await list(one)).map(p => p.port), [1024, 3001, 9000, 65535]);
	assert.deepEqual(await list(two), []);
});

test('ports that cannot be exposed are refused with their own codes', async t => {
	const box = await daemon.box(t, {});
	for (const port of [0, -1, 80, 1023, 65536, 2 ** 40, 8000.5, '8000', null, undefined, true, [8000]]) {
		const answer = await ports(box, 'POST', '', { port });
		refused(answer, 400, 'INVALID_PORT_NUMBER');
		assert.match(answer.body.message, /Invalid port/, String(port));
	}
	const reserved = await ports(box, 'POST', '', { port: 3000 });
	refused(reserved, 400, 'INVALID_PORT');
	assert.match(reserved.body.message, /Invalid port.*reserved/);
	assert.deepEqual(await list(box), []);
});

test('tokens and names are checked', async t => {
	const box = await daemon.box(t, {});
	for (const token of ['', 'short', 'a'.repeat(17), 'UPPERCASE', 'with-dash', 'with.dot', 'under_score', 'ümlaut00', 'nul\0nul00', 5])
		refused(await ports(box, 'POST', '', { port: 8000, token }), 400, 'VALIDATION_FAILED');
	for (const name of ['a'.repeat(129), 'line\nline', 7])
		refused(await ports(box, 'POST', '', { port: 8000, name }), 400, 'VALIDATION_FAILED');
	refused(await ports(box, 'POST', '', { port: 8000, private: 'yes' }), 400, 'VALIDATION_FAILED');
	await expose(box, { port: 8000, token: 'sametoken' });
	const taken = await ports(box, 'POST', '', { port: 8001, token: 'sametoken' });
	refused(taken, 409, 'PORT_IN_USE');
	assert.match(taken.body.message, /8000/);
	await expose(box, { port: 8000, token: 'sametoken' });
	const other = await daemon.box(t, {});
	assert.equal((await expose(other, { port: 8001, token: 'sametoken' })).token, 'sametoken', 'another sandbox may have it');
	assert.equal((await expose(box, { port: 9000, name: 'a "name" – with ümlauts' })).name, 'a "name" – with ümlauts');
});

test('an unknown sandbox is 404 and is not made', async () => {
	for (const [method, rest, body] of [['GET', ''], ['POST', '', { port: 8000 }], ['DELETE', '/8000'], ['POST', '/8000/sign', {}]]) {
		const answer = await daemon.api(method, `/v1/sandboxes/never-made/ports${rest}`, body);
		refused(answer, 404, 'SANDBOX_NOT_FOUND');
	}
	assert.equal((await daemon.api('GET', '/v1/sandboxes/never-made')).status, 404);
});

test('an unexposed port is gone, and exposed again it has another token', async t => {
	const box = await daemon.box(t, {});
	const first = await expose(box, { port: 8000 });
	const gone = await ports(box, 'DELETE', '/8000');
	assert.deepEqual([gone.status, gone.body], [200, { port: 8000 }]);
	assert.deepEqual(await list(box), []);
	refused(await ports(box, 'DELETE', '/8000'), 404, 'PORT_NOT_EXPOSED');
	refused(await ports(box, 'POST', '/8000/sign', {}), 404, 'PORT_NOT_EXPOSED');
	for (const port of ['08000', '+8000', '8000%00', 'x', '65536', '0', '8000.0'])
		refused(await ports(box, 'DELETE', `/${port}`), 400, 'INVALID_PORT_NUMBER');
	assert.notEqual((await expose(box, { port: 8000 })).token, first.token);
});

test('ports outlive sleep, kill -9 of siltd and a restart of the instance', async t => {
	const box = await daemon.box(t, {});
	const odd = await daemon.box(t, { id: `Odd_Id.${box.id}` });
	const made = [await expose(box, { port: 8000, name: 'web', token: 'keepthis1' }), await expose(box, { port: 8001, private: true })];
	const aliased = await expose(odd, { port: 8002 });
	await box.out('true');
	await box.stop();
	assert.deepEqual(await list(box), made);
	assert.equal((await box.info()).state, 'stopped', 'neither the list ...');
	assert.deepEqual(await expose(box, { port: 8000 }), made[0]);
	assert.equal((await box.info()).state, 'stopped', '... nor exposing wakes it');
	await killAndWait('siltd', daemon.siltd());
	assert.deepEqual(await list(box), made);
	assert.deepEqual(await list(odd), [aliased]);
	await daemon.stop({ keep: true });
	daemon = await startDaemon({ home: daemon.home });
	box.daemon = odd.daemon = daemon;
	assert.deepEqual(await list(box), made);
	assert.deepEqual(await list(odd), [aliased]);
	assert.equal((await expose(odd, { port: 8003 })).url.split('-')[1], aliased.url.split('-')[1], 'the alias stays');
});

test('ports go with their sandbox: the next one of that id has none', async t => {
	const box = await daemon.box(t, {});
	const first = await expose(box, { port: 8000 });
	await box.destroy();
	refused(await ports(box, 'GET'), 404, 'SANDBOX_NOT_FOUND');
	await box.out('true');
	assert.deepEqual(await list(box), []);
	assert.notEqual((await expose(box, { port: 8000 })).url, first.url);
});

test('an alias stands for an id that a host name cannot hold', async t => {
	const label = url => new URL(url).host.split('.')[0];
	const long = 'a'.repeat(42);
	for (const id of ['Upper', 'under_score', 'dotted.name', 'x'.repeat(128), long]) {
		const box = await daemon.box(t, { id });
		const { url, token } = await expose(box, { port: 8000, token: 'sixteenletters01' });
		assert.match(label(url), /^8000-s[a-z2-7]{12}-sixteenletters01$/, id.slice(0, 20));
		assert.ok(label(url).length <= 63 && token === 'sixteenletters01');
		const [, alias] = label(url).split('-');
		assert.match(label((await expose(box, { port: 65535 })).url), new RegExp(`^65535-${alias}-`), 'one for all ports');
	}
	const fits = await daemon.box(t, { id: 'b'.repeat(41) });
	assert.equal(label((await expose(fits, { port: 8000, token: 'sixteenletters01' })).url), `8000-${fits.id}-sixteenletters01`, 'of 63 bytes');
	assert.match(label((await expose(fits, { port: 10_000 })).url), /^10000-s[a-z2-7]{12}-/, 'one more is too many');
});

test('signed URLs carry a proof and say when it ends', async t => {
	const box = await daemon.box(t, {});
	const made = await expose(box, { port: 8000, private: true });
	const sign = async body => (await ports(box, 'POST', '/8000/sign', body)).body;
	const begun = Date.now();
	const { url, expiresAt } = await sign({ expiresIn: 60 });
	assert.ok(url.startsWith(`${made.url}?silt-proof=`), url);
	assert.match(new URL(url).searchParams.get('silt-proof'), /^\d+\.[0-9a-f]{64}$/);
	const lasts = Date.parse(expiresAt) - begun;
	assert.ok(lasts > 50_000 && lasts < 180_000, `${lasts} ms`);
	assert.ok(Date.parse((await sign(undefined)).expiresAt) - Date.now() > 3_000_000, 'an hour when not said');
	assert.notEqual((await sign({ expiresIn: 61 })).url, (await sign({ expiresIn: 3600 })).url);
	for (const expiresIn of [0, -1, 1.5, '60', 2_592_001, true])
		refused(await ports(box, 'POST', '/8000/sign', { expiresIn }), 400, 'VALIDATION_FAILED');
});

test('a sandbox has a largest number of ports', async t => {
	const box = await daemon.box(t, {});
	for (let port = 10_000; port < 10_256; port++)
		await expose(box, { port });
	refused(await ports(box, 'POST', '', { port: 10_256 }), 429, 'LIMIT_REACHED');
	await expose(box, { port: 10_000 });
	assert.equal((await list(box)).length, 256);
});

test('without previews nothing is exposed, and short tokens and https are settings', async () => {
	const off = await startDaemon({ flags: { 'preview.listen': 'off' } });
	try {
		const box = await off.box(null, {});
		refused(await ports(box, 'POST', '', { port: 8000 }), 500, 'PORT_OPERATION_ERROR');
	} finally {
		await off.stop();
	}
	const other = await startDaemon({ flags: { 'preview.short_tokens': 'on', 'preview.domain': 'previews.example.com', 'preview.paths': 'on' } });
	try {
		const box = await other.box(null, {});
		const made = await expose(box, { port: 8000, token: 'a' });
		assert.equal(made.url, `https://8000-${box.id}-a.previews.example.com/`);
		assert.equal(made.pathUrl, `https://previews.example.com/preview/${box.id}/8000/a/`);
	} finally {
		await other.stop();
	}
});
