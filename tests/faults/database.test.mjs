// SPDX-License-Identifier: Apache-2.0
// siltd's database is deleted or damaged: the next start finds every sandbox again from the records beside its files.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { Box } from '../lib/box.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { until } from '../lib/wait.mjs';

const database = daemon => path.join(daemon.state, 'db/silt.db');
const forEachFile = (daemon, work) => ['', '-wal', '-shm'].map(suffix => database(daemon) + suffix).filter(file => fs.existsSync(file)).forEach(work);
const remove = daemon => forEachFile(daemon, file => fs.rmSync(file));

/** Runs work(daemon) with an instance that is ended by it or here, and again with one on the same files. */
async function twice(first, between, second, options = {}) {
	let daemon = await startDaemon(options);
	const home = daemon.home;
	try {
		const kept = await first(daemon);
		await daemon[kept?.crash ? 'crash' : 'stop']({ keep: true });
		await between(daemon);
		daemon = await startDaemon({ ...options, home });
		await second(daemon, kept);
	} finally {
		await daemon.stop();
	}
}

const chosen = {
	labels: { team: 'a b', 'ünï': '☂' },
	env: { SECRET: 'x=y\nz', EMPTY: '' },
	limits: { memoryMiB: 300, diskMiB: 700, cpu: 0.5, pids: 200 },
	sleepAfter: 3600,
};
const stays = info => ({ labels: info.labels, limits: info.limits, image: info.image, createdAt: info.createdAt, sleepAfter: info.sleepAfter, network: info.network });

async function fill(daemon) {
	const box = await daemon.box(undefined, { id: 'full', ...chosen });
	await box.out('echo content > /workspace/file; chown 5:6 /workspace/file');
	await daemon.api('POST', '/v1/sandboxes/full/ports', { port: 8080, name: 'web server' });
	await daemon.api('POST', '/v1/sandboxes/full/ports', { port: 9000, private: true });
	const plain = new Box(daemon, 'plain');
	await plain.out('echo plain > /workspace/file');
	assert.equal((await daemon.api('POST', '/v1/sandboxes/full/snapshots', { name: 'kept', ttl: '1h' })).status, 201);
	return { before: stays(await box.info()), exposed: await ports(daemon), images: await images(daemon), kept: await snapshots(daemon) };
}

const snapshots = async daemon => (await daemon.api('GET', '/v1/snapshots')).body.snapshots;

const ports = async daemon => (await daemon.api('GET', '/v1/sandboxes/full/ports')).body.ports.map(({ port, name, token, private: locked }) => ({ port, name, token, locked }));
const images = async daemon => (await daemon.api('GET', '/v1/images')).body;

async function check(daemon, { before, exposed, images: known, kept }) {
	const box = new Box(daemon, 'full');
	assert.deepEqual(stays(await box.info()), before);
	assert.equal(await box.out('cat /workspace/file; stat -c "%u %g" /workspace/file; printf %s "$SECRET"'), 'content\n5 6\nx=y\nz');
	assert.equal(await new Box(daemon, 'plain').out('cat /workspace/file'), 'plain\n');
	assert.equal(exposed.length, 2);
	assert.deepEqual(await ports(daemon), exposed);
	assert.deepEqual(await images(daemon), known);
	assert.equal(kept.length, 1);
	assert.deepEqual(await snapshots(daemon), kept);
	const ids = (await daemon.api('GET', '/v1/sandboxes')).body.sandboxes.map(s => s.id);
	assert.deepEqual(ids, ['full', 'plain']);
	assert.match(daemon.log(), /recovery\.restored sandboxes=2/);
}

test('a deleted database: sandboxes, files, labels, limits, variables, ports and images are there', () => twice(fill, remove, check));

test('a database with garbage in its middle is set aside, and everything is there', () => twice(fill, daemon => {
	const file = database(daemon);
	const { size } = fs.statSync(file);
	const fd = fs.openSync(file, 'r+');
	fs.writeSync(fd, Buffer.alloc(size - 8192, 0x5a), 0, size - 8192, 4096);
	fs.closeSync(fd);
}, async (daemon, kept) => {
	await check(daemon, kept);
	assert.match(daemon.log(), /store\.damaged/);
	assert.equal(fs.readdirSync(path.dirname(database(daemon))).filter(name => /^silt\.db\.damaged-\d{8}T\d{6}Z$/.test(name)).length, 1);
}));

test('a database that is cut off, or is no database, is set aside, and everything is there', async () => {
	for (const size of [5000, 100, 0])
		await twice(fill, daemon => fs.truncateSync(database(daemon), size), check);
});

test('a sandbox whose creation was answered is found again, whatever dies and is lost in that moment', () => twice(async daemon => {
	const answer = await daemon.api('POST', '/v1/sandboxes', { id: 'fresh', labels: { a: 'b' } });
	process.kill(daemon.siltd(), 'SIGKILL');
	assert.equal(answer.status, 201);
	return { crash: true };
}, remove, async daemon => {
	const box = new Box(daemon, 'fresh');
	assert.deepEqual((await box.info()).labels, { a: 'b' });
	await box.out('true');
}));

test('a database that is lost under a running instance: a new siltd has the running sandboxes, sessions included', async () => {
	const daemon = await startDaemon();
	try {
		const box = await daemon.box(undefined, { id: 'runs', labels: { a: 'b' } });
		await box.out('X=1; sleep 1000.77 &', { sessionId: 'one' });
		const [init, siltd] = [await box.init(), daemon.siltd()];
		remove(daemon);
		process.kill(siltd, 'SIGKILL');
		await until('another siltd', () => daemon.programs('siltd').some(pid => pid !== siltd));
		await daemon.healthy();
		assert.equal(await box.out('echo $X; jobs -r | wc -l', { sessionId: 'one' }), '1\n1\n');
		assert.equal(await box.init(), init);
		assert.deepEqual((await box.info()).labels, { a: 'b' });
		await new Box(daemon, 'another').out('true');
	} finally {
		await daemon.stop();
	}
});

test('a record that is damaged, too long, missing, doubled or without files has a defined outcome', async () => {
	const slots = {};
	await twice(async daemon => {
		const records = `/proc/${daemon.pid}/root${path.join(daemon.state, 'pool/r')}`;
		await until('silt-priv has opened the pool', () => fs.existsSync(records));
		for (const id of ['good', 'damaged', 'swollen', 'missing', 'double', 'empty']) {
			const known = new Set(fs.readdirSync(records).filter(name => fs.readFileSync(path.join(records, name), 'latin1').includes('\nid ')));
			await new Box(daemon, id).out(`echo ${id} > /workspace/file`);
			slots[id] = fs.readdirSync(records).find(name => !known.has(name) && fs.readFileSync(path.join(records, name), 'latin1').includes(`\n${id}\n`));
		}
		const at = id => path.join(records, slots[id]);
		const bytes = fs.readFileSync(at('damaged'));
		bytes[bytes.length - 3] ^= 1;
		fs.writeFileSync(at('damaged'), bytes);
		fs.truncateSync(at('swollen'), 1 << 30); // longer than any that we write
		fs.rmSync(at('missing'));
		fs.copyFileSync(at('good'), at('double'));
		fs.copyFileSync(at('empty'), path.join(records, '200'));
		fs.renameSync(at('empty'), path.join(records, '201'));
		fs.copyFileSync(path.join(records, '200'), at('empty'));
	}, remove, async daemon => {
		const ids = (await daemon.api('GET', '/v1/sandboxes')).body.sandboxes.map(s => s.id);
		assert.equal(ids.length, 6);
		assert.ok(ids.includes('empty') && ids.includes('good'));
		for (const id of ['damaged', 'swollen', 'missing'])
			assert.equal(await new Box(daemon, `recovered-${slots[id]}`).out('cat /workspace/file'), `${id}\n`);
		const doubled = ids.find(id => [`recovered-${slots.good}`, `recovered-${slots.double}`].includes(id));
		const files = await Promise.all(['good', doubled].map(id => new Box(daemon, id).out('cat /workspace/file')));
		assert.deepEqual(files.toSorted(), ['double\n', 'good\n']);
		assert.match(daemon.log(), /recovery\.skip slot=200/);
		assert.match(daemon.log(), /recovery\.skip slot=201/);
	});
});
