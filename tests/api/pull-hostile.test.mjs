// SPDX-License-Identifier: Apache-2.0
// Registries that lie, hang and lead astray; what the program that talks to them sees and reaches; what is left when a pull is broken off.
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import { gzipSync } from 'node:zlib';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { refused } from '../lib/expect.mjs';
import { pids, processesOf } from '../lib/host.mjs';
import { HOST, NETWORK } from '../lib/internet.mjs';
import { notPulled, pulled } from '../lib/pull.mjs';
import { image, LIAR, OPEN, Registries, root, USER } from '../lib/registries.mjs';
import { silt } from '../lib/silt.mjs';
import { until } from '../lib/wait.mjs';

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
let registries, daemon, honest;
before(async () => {
	registries = await Registries.start();
	daemon = await startDaemon({ images: false, flags: { ...NETWORK.flags, image: 'none', 'images.authorities': registries.authority, 'images.pull_max': '64M' } });
	honest = image([root(), [{ name: 'hello', data: 'hello\n' }]]);
	registries.push(OPEN, 'honest', honest);
	await pulled(daemon, { reference: `${OPEN}/honest` });
});
after(async () => {
	try {
		await daemon?.stop();
	} finally {
		await registries?.stop();
	}
});

const base64 = bytes => Buffer.from(bytes).toString('base64');
const sandboxes = async () => (await daemon.api('GET', '/v1/sandboxes')).body.sandboxes.map(s => s.id);
const images = async () => (await daemon.api('GET', '/v1/images')).body.images.map(i => i.name);
const pulling = async () => (await sandboxes()).find(id => id.startsWith('pull-'));

/** Nothing of a pull stays: no sandbox, no image but the honest one. */
async function nothingLeft() {
	await until('no sandbox is left', async () => (await sandboxes()).length === 0);
	assert.deepEqual(await images(), [`${OPEN}/honest`]);
}

/** The answers of an honest registry for the image `x:1`. */
function answers(content = honest) {
	const manifest = { status: 200, headers: { 'content-type': MANIFEST, 'docker-content-digest': content.digest }, body: base64(content.manifest) };
	return {
		'/v2/x/manifests/1': manifest, [`/v2/x/manifests/${content.digest}`]: manifest,
		...Object.fromEntries([...content.blobs].map(([digest, bytes]) => [`/v2/x/blobs/${digest}`, { status: 200, headers: { 'content-length': String(bytes.length) }, body: base64(bytes) }])),
	};
}

/** With the last layer's answer replaced. */
function withLayer(answer, content = honest) {
	const all = answers(content);
	return { ...all, [Object.keys(all).at(-1)]: answer };
}

const x = { reference: `${LIAR}/x:1` };

test('the liar is believed while it tells the truth', async () => {
	await registries.lie(answers());
	const { done } = await pulled(daemon, x);
	assert.equal((await daemon.api('DELETE', `/v1/images/${encodeURIComponent(done.name)}`)).body.deleted, true);
	await nothingLeft();
});

test('a layer, a configuration and a manifest that are not what their digest says are refused', async () => {
	const forged = image([root(), [{ name: 'hello', data: 'forged\n' }]]);
	const layer = [...forged.blobs.values()].at(-1);
	await registries.lie(withLayer({ status: 200, body: base64(layer) }));
	assert.match((await notPulled(daemon, x)).message, /digest|does not match|size/i);
	const all = answers();
	const config = Object.keys(all).find(url => url.includes('/blobs/'));
	await registries.lie({ ...all, [config]: { status: 200, body: base64('{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]}}') } });
	assert.match((await notPulled(daemon, x)).message, /digest|does not match|size/i);
	const pinned = `sha256:${'1'.repeat(64)}`;
	await registries.lie({ ...all, [`/v2/x/manifests/${pinned}`]: all['/v2/x/manifests/1'] });
	assert.match((await notPulled(daemon, { reference: `${LIAR}/x@${pinned}` })).message, /digest|does not match/i);
	await nothingLeft();
});

test('sizes that are lies, a layer that never ends and one that is cut off are refused', async () => {
	const short = structuredClone(JSON.parse(honest.manifest));
	short.layers.at(-1).size = 7;
	await registries.lie({ ...answers(), '/v2/x/manifests/1': { status: 200, headers: { 'content-type': MANIFEST }, body: base64(JSON.stringify(short)) } });
	assert.ok(await notPulled(daemon, x));
	await registries.lie(withLayer({ status: 200, headers: { 'content-length': '1000000' }, body: base64('abc'), cut: true }));
	assert.ok(await notPulled(daemon, x));
	for (const body of [Buffer.alloc(1 << 20), gzipSync(randomBytes(1 << 20))]) {
		await registries.lie(withLayer({ status: 200, body: base64(body), endless: true }));
		const { code, message } = await notPulled(daemon, x);
		assert.ok(['DISK_FULL', 'LIMIT_REACHED'].includes(code), message);
	}
	await nothingLeft();
});

test('manifests without end, of a million layers, of another kind, and deep ones are refused', async () => {
	const digest = `sha256:${'2'.repeat(64)}`;
	const layers = Array.from({ length: 1_000 }, () => ({ mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip', digest, size: 1 }));
	const big = Buffer.from(`{"schemaVersion":2,"mediaType":"${MANIFEST}","config":${JSON.stringify(JSON.parse(honest.manifest).config)},"layers":[${Array(40).fill(JSON.stringify(layers).slice(1, -1)).join(',')}]}`);
	for (const [type, body] of [[MANIFEST, big], [MANIFEST, `${'['.repeat(100_000)}`], [MANIFEST, 'null'], ['application/vnd.docker.distribution.manifest.v1+prettyjws', '{}'], ['text/html', '<html>']]) {
		await registries.lie({ '/v2/x/manifests/1': { status: 200, headers: { 'content-type': type }, body: base64(body) } });
		assert.ok(await notPulled(daemon, x));
	}
	await registries.lie({ '/v2/x/manifests/1': { status: 200, headers: { 'content-type': MANIFEST }, body: base64(Buffer.alloc(1 << 20, ' ')), endless: true } });
	assert.ok(await notPulled(daemon, x));
	await nothingLeft();
});

test('layers of strangers are unpacked as an archive of a stranger is', async () => {
	for (const bad of [{ name: '../escape', data: 'x' }, { name: '/absolute', data: 'x' }]) {
		await registries.lie(answers(image([root(), [bad]])));
		assert.match((await notPulled(daemon, x)).message, /unpack image/);
	}
	await registries.lie(answers());
	assert.ok(await pulled(daemon, { ...x, name: `${OPEN}/honest` }), 'the same files, honestly');
	await nothingLeft();
});

test('redirects to this machine, private networks and metadata lead nowhere', async () => {
	const seen = () => fs.readFileSync(registries.services.file('access.log'), 'utf8');
	const before = seen();
	for (const to of ['http://127.0.0.1/', 'http://169.254.169.254/latest/meta-data/', 'http://10.1.2.3/', 'http://192.168.7.7/', 'http://[fd00:ec2::254]/', `http://${daemon.address}/v1/sandboxes`, `http://${HOST[4]}:${daemon.address.split(':')[1]}/`]) {
		await registries.lie(withLayer({ status: 307, headers: { location: to } }));
		assert.ok(await notPulled(daemon, x), to);
		await registries.lie({ ...answers(), '/v2/': { status: 401, headers: { 'www-authenticate': `Bearer realm="${to}",service="x"` } }, '/v2/x/manifests/1': { status: 401, headers: { 'www-authenticate': `Bearer realm="${to}",service="x"` } } });
		assert.ok(await notPulled(daemon, { ...x, ...USER }), `a token from ${to}`);
	}
	assert.equal(seen(), before, 'nobody there was asked');
	await nothingLeft();
});

/** A pull that does not come forward; resolves when the registry was asked for the layer. */
async function hang(start) {
	await registries.lie(withLayer({ status: 200, body: base64('abc'), hang: true }));
	const asked = registries.said.split('/blobs/').length;
	const running = start();
	await until('the layer is asked for', () => registries.said.split('/blobs/').length > asked);
	return { running, id: await until('the sandbox', pulling) };
}

const skopeo = () => processesOf(daemon.instance).filter(p => p.name === 'skopeo');

test('who talks to the registry is nobody, sees an empty root and reaches nobody but the public; the password is seen nowhere', async () => {
	let response;
	const user = { username: 'reader', password: `secret of this test $ "${randomBytes(8).toString('hex')}"` }; // other tests show theirs to the whole machine
	const { id } = await hang(async () => { response = await daemon.client.open('POST', '/v1/images/pull', { ...x, ...user }); });
	const { pid } = await until('skopeo', () => skopeo()[0]);
	const status = fs.readFileSync(`/proc/${pid}/status`, 'utf8');
	const field = name => new RegExp(`^${name}:\\s*(\\S+)`, 'm').exec(status)[1];
	assert.match(field('CapEff'), /^0+$/);
	assert.match(field('CapPrm'), /^0+$/);
	assert.equal(field('NoNewPrivs'), '1');
	assert.equal(field('Seccomp'), '2');
	assert.ok(Number(field('Uid')) > 65536, 'not a user of this machine');
	assert.equal(Number(field('Uid')) % 65536, 65534);
	assert.deepEqual(fs.readdirSync(`/proc/${pid}/root`).sort(), ['bin', 'dev', 'etc', 'lib', 'lib64', 'proc', 'root', 'run', 'sbin', 'sys', 'tmp', 'usr']);
	assert.deepEqual(fs.readdirSync(`/proc/${pid}/root/etc`).sort(), ['group', 'hosts', 'passwd', 'resolv.conf']);
	const limits = (await daemon.api('GET', `/v1/sandboxes/${id}`)).body.limits;
	assert.deepEqual(limits, { cpu: 2, memoryMiB: 1024, pids: 256, diskMiB: 64 });
	const words = [user.password, base64(`${user.username}:${user.password}`)];
	for (const other of pids())
		for (const file of ['cmdline', 'environ']) {
			let text = '';
			try {
				text = fs.readFileSync(`/proc/${other}/${file}`, 'latin1');
			} catch {} // it has ended
			if (other !== process.pid)
				assert.ok(!words.some(word => text.includes(word)), `/proc/${other}/${file}`);
		}
	assert.ok(!words.some(word => daemon.log().includes(word)), 'no log has it');
	for (const name of fs.readdirSync(`${daemon.state}/db`))
		assert.ok(!words.some(word => fs.readFileSync(`${daemon.state}/db/${name}`, 'latin1').includes(word)), name);
	response.destroy();
	await until('skopeo has ended', () => skopeo().length === 0);
	await nothingLeft();
});

test('who leaves ends the pull, and nothing of it stays', async () => {
	const before = await daemon.atRest();
	let response;
	await hang(async () => { response = await daemon.client.open('POST', '/v1/images/pull', x); });
	response.destroy();
	await nothingLeft();
	await daemon.settles(before);
});

test('Ctrl-C ends a pull of the command line, and nothing of it stays', async () => {
	let child;
	const { running } = await hang(() => silt(daemon, ['image', 'pull', x.reference], { onStart: c => { child = c; } }));
	child.kill('SIGINT');
	assert.notEqual((await running).code, 0);
	await nothingLeft();
});

test('a registry that hangs, or is too slow, is given up after the time that the operator allows', async () => {
	for (const setting of ['images.pull_silence', 'images.pull_timeout']) {
		const hasty = await startDaemon({ images: false, flags: { ...NETWORK.flags, image: 'none', 'images.authorities': registries.authority, [setting]: '2' } });
		try {
			await registries.lie(withLayer({ status: 200, body: base64('abc'), hang: true }));
			const { code, message } = await notPulled(hasty, x);
			assert.equal(code, 'OPERATION_TIMEOUT', message);
			assert.ok(message.includes(setting), message);
			await until('no sandbox is left', async () => (await hasty.api('GET', '/v1/sandboxes')).body.sandboxes.length === 0);
		} finally {
			await hasty.stop();
		}
	}
});

test('a pull whose sandbox is destroyed by somebody else fails', async () => {
	let error;
	const { running, id } = await hang(async () => { error = await notPulled(daemon, x); });
	assert.equal((await daemon.api('DELETE', `/v1/sandboxes/${id}`)).status, 200);
	await running;
	assert.ok(error.message.length > 0);
	await nothingLeft();
});

test('kill -9 of siltd in the middle of a pull leaves nothing', async () => {
	const before = await daemon.atRest();
	await hang(() => daemon.client.open('POST', '/v1/images/pull', x));
	const old = daemon.siltd();
	process.kill(old, 'SIGKILL');
	await until('another siltd', () => daemon.programs('siltd').some(pid => pid !== old));
	await daemon.healthy();
	await until('skopeo has ended', () => skopeo().length === 0);
	await nothingLeft();
	const { processes, mounts, cgroups, layers } = await daemon.atRest();
	assert.deepEqual({ processes, mounts, cgroups, layers }, { processes: before.processes, mounts: before.mounts, cgroups: before.cgroups, layers: before.layers });
	await registries.lie(answers());
	const { done } = await pulled(daemon, x);
	await daemon.api('DELETE', `/v1/images/${encodeURIComponent(done.name)}`);
	await nothingLeft();
});

test('what a registry says is shown in one line that no terminal obeys', async () => {
	refused(await daemon.api('POST', '/v1/images/pull', { reference: `${LIAR}/${'x'.repeat(300)}` }), 400, 'VALIDATION_FAILED');
	await registries.lie({ '/v2/x/manifests/1': { status: 404, headers: { 'content-type': 'application/json' }, body: base64(JSON.stringify({ errors: [{ code: 'MANIFEST_UNKNOWN', message: `\u001b]0;owned\u0007\u001b[31m${'y'.repeat(100_000)}` }] })) } });
	const shown = await silt(daemon, ['image', 'pull', x.reference]);
	assert.notEqual(shown.code, 0);
	assert.ok(shown.stderr.length < 4096 && !/[\u0000-\u0009\u000b-\u001f\u007f]/.test(shown.stderr), JSON.stringify(shown.stderr.slice(0, 500)));
	await nothingLeft();
});
