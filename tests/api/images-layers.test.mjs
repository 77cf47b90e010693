// SPDX-License-Identifier: Apache-2.0
// Sandboxes become images: their layer is sealed, others are made on top of it.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { refused } from '../lib/expect.mjs';
import { namesIn } from '../lib/host.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const seal = (box, name, config) => daemon.api('POST', `/v1/sandboxes/${box.id}/image`, { name, config }, { deadline: 60_000 });
const remove = name => daemon.api('DELETE', `/v1/images/${name}`);
const layers = () => namesIn(path.join(daemon.state, 'pool', 'l'), daemon.pid);
const images = async () => (await daemon.api('GET', '/v1/images?all=1')).body.images;

async function sealed(box, name, config) {
	const answer = await seal(box, name, config);
	assert.equal(answer.status, 201, answer.raw.toString());
	return answer.body;
}

async function gone(...names) {
	for (const name of names)
		assert.equal((await remove(name)).body.deleted, true, name);
	await until('no layer is left', () => layers().length === 0);
	assert.ok((await images()).every(i => i.name !== null), 'no image without a name is left');
}

test('what a sandbox has written is what sandboxes of its image begin with', async t => {
	const writer = await daemon.box(t, {});
	await writer.out(`cd /; echo new > /opt/new; mkdir -p /opt/deep/er; echo x > /opt/deep/er/file; ln -s /opt/new /opt/link; rm -rf /srv; rm /etc/debian_version;
		chown 1234:56 /opt/new; chmod 4751 /opt/new; mv /var/cache /var/moved; rm -rf /home; mkdir /home; touch -d @1000000000 /opt/deep; ln /opt/new /opt/hard`);
	const image = await sealed(writer, 'written', { Env: ['A=1'], WorkingDir: '/opt' });
	assert.match(image.digest, /^sha256:[0-9a-f]{64}$/);
	assert.equal(image.name, 'written');
	assert.deepEqual(image.config, { Env: ['A=1'], WorkingDir: '/opt' });
	await writer.out('echo later > /opt/new; touch /opt/later');
	const look = "pwd; cat /opt/new; cat /opt/link; stat -c '%u %g %a %h' /opt/new; stat -c %Y /opt/deep; cat /opt/deep/er/file; for f in /srv /etc/debian_version /var/cache /opt/later; do test -e $f && echo $f; done; ls -A /home; test -d /var/moved && echo moved; echo $A";
	const want = '/opt\nnew\nnew\n1234 56 4751 2\n1000000000\nx\nmoved\n1\n';
	for (let i = 0; i < 2; i++) {
		const reader = await daemon.box(t, { image: 'written' });
		assert.equal(await reader.out(look), want);
		await reader.out('echo mine > /opt/new; rm -rf /opt/deep; touch /home/a /var/moved/b');
		await reader.destroy();
	}
	await writer.destroy();
	const reader = await daemon.box(t, { image: 'written' });
	assert.equal(await reader.out(look), want, 'also after its writer is gone');
	await reader.destroy();
	await gone('written');
});

test('layers lie on layers, and each shows what is below it', async t => {
	const depth = 20; // more than one option of a mount can name
	let box = await daemon.box(t, {});
	for (let i = 1; i <= depth; i++) {
		await box.out(`echo ${i} > /opt/${i}; echo ${i} > /opt/last; rm -f /opt/${i - 3}; mkdir -p /opt/dir; mv /opt/dir /opt/dir2; mkdir /opt/dir; echo ${i} > /opt/dir/in; rm -rf /opt/dir2`);
		await sealed(box, `deep:${i}`);
		await box.destroy();
		if (i < depth) {
			box = await daemon.box(t, { image: `deep:${i}` });
			refused(await remove(`deep:${i}`), 409, 'RESOURCE_BUSY');
		}
	}
	box = await daemon.box(t, { image: `deep:${depth}` });
	assert.equal(await box.out('cat /opt/last /opt/dir/in; ls /opt | sort -n | tail -3'), `${depth}\n${depth}\n${depth - 2}\n${depth - 1}\n${depth}\n`);
	// Linux before 6.5 knows no other way to name them.
	assert.match((await box.out('cat /proc/mounts')).split('\n').find(line => line.includes(' / ')), new RegExp(`lowerdir=\\d+(:\\d+){${depth}},`));
	await box.destroy();
	for (let i = 1; i < depth; i++)
		await remove(`deep:${i}`);
	assert.equal(layers().length, depth, 'the last one needs them all');
	const top = await daemon.box(t, { image: `deep:${depth}` });
	assert.equal(await top.out('cat /opt/last'), `${depth}\n`);
	await top.destroy();
	await gone(`deep:${depth}`);
});

test('more layers than a mount takes are refused', async t => {
	let box = await daemon.box(t, {});
	let count = 0;
	for (; count < 40; count++) {
		await box.out(`echo ${count} > /opt/n`);
		const answer = await seal(box, `tower:${count}`);
		await box.destroy();
		if (answer.status !== 201) {
			refused(answer, 429, 'LIMIT_REACHED');
			break;
		}
		box = await daemon.box(t, { image: `tower:${count}` });
	}
	assert.equal(count, 32);
	await gone(...Array.from({ length: count }, (_, i) => `tower:${i}`));
});

test('a running sandbox is sealed as it is at that moment', async t => {
	const box = await daemon.box(t, {});
	await box.out('(i=0; while :; do i=$((i+1)); echo $i > /opt/tmp && mv /opt/tmp /opt/count; echo $i >> /opt/lines; done) >/dev/null 2>&1 & head -c 3000000 /dev/zero > /opt/big; until test -s /opt/lines; do sleep 0.05; done', { sessionId: 'writer' });
	await sealed(box, 'moment');
	const reader = await daemon.box(t, { image: 'moment' });
	assert.equal(await reader.out('stat -c %s /opt/big; tail -n 1 /opt/lines | grep -c . ; grep -c . /opt/count'), '3000000\n1\n1\n');
	assert.equal(await reader.out('awk \'NR != $1 { print "torn at", NR; exit }\' /opt/lines'), '');
	await reader.destroy();
	await box.destroy();
	await gone('moment');
});

test('a stopped sandbox is sealed, too', async t => {
	const box = await daemon.box(t, {});
	await box.out('echo slept > /opt/file');
	await box.stop();
	await sealed(box, 'slept');
	assert.equal((await box.info()).state, 'stopped');
	const reader = await daemon.box(t, { image: 'slept' });
	assert.equal(await reader.out('cat /opt/file'), 'slept\n');
	await reader.destroy();
	await box.destroy();
	await gone('slept');
});

test('the image of a sandbox says what its parent said, unless told otherwise', async t => {
	const box = await daemon.box(t, {});
	const own = (await daemon.api('GET', `/v1/images/${(await box.info()).image.name}`)).body;
	const image = await sealed(box, 'inherits');
	assert.deepEqual(image.config, own.config);
	assert.equal(image.parent, own.digest);
	await box.destroy();
	await gone('inherits');
});

const TRICKS = `
import os
for name, value in (('user.overlay.opaque', b'y'), ('user.overlay.redirect', b'/etc'), ('trusted.overlay.opaque', b'y'), ('trusted.overlay.redirect', b'/../../../etc')):
    for where in ('/opt/a', '/', '/opt'):
        try:
            os.setxattr(where, name, value)
            print(name.split('.')[0])
        except OSError: pass
try:
    os.mknod('/opt/whiteout', 0o20000, os.makedev(0, 0))
    print('whiteout')
except OSError: pass
`;

test('what a guest makes of its layer harms only itself', async t => {
	const box = await daemon.box(t, {});
	await box.out("cd /opt; ln -s /etc/shadow upper; ln -s ../../.. out; mkdir -p a/b; ln -sfn /etc /work; ln -sfn /etc /state; ln -sfn /etc/passwd /note; touch $'/opt/a/\\x01\\xff name\\n'; rm -rf /mnt; ln -s / /mnt; rm -rf /media; ln -s ../../../../.. /media");
	const tricks = await box.out(`command -v python3 >/dev/null || exit 0; python3 -c "${TRICKS.replaceAll('"', '\\"')}"`);
	assert.doesNotMatch(tricks, /trusted|whiteout/);
	await sealed(box, 'hostile');
	const reader = await daemon.box(t, { image: 'hostile' });
	assert.equal(await reader.out('ls -d /opt/a/b; readlink /opt/upper /work /note /mnt; test -e /etc/passwd && echo there; ls -A /opt/a | wc -l; test -d /opt && test -d /usr && echo whole'), '/opt/a/b\n/etc/shadow\n/etc\n/etc/passwd\n/\nthere\n3\nwhole\n');
	const other = await daemon.box(t, {});
	assert.equal(await other.out('test -e /opt/a || test -L /note || echo clean'), 'clean\n');
	for (const one of [box, reader, other])
		await one.destroy();
	await gone('hostile');
});

test('silt-priv or siltd killed while sandboxes are sealed leave nothing half', async t => {
	for (const name of ['silt-priv', 'siltd']) {
		const box = await daemon.box(t, {});
		await box.out('for i in $(seq 300); do echo $i > /opt/$i; done');
		const before = daemon.programs(name);
		const tries = Array.from({ length: 6 }, (_, i) => seal(box, `killed:${i}`).catch(() => undefined));
		await until('one of them is there', () => layers().length > 0);
		for (const pid of before)
			process.kill(pid, 'SIGKILL');
		const answers = await Promise.all(tries);
		await until(`another ${name}`, () => daemon.programs(name).length > 0 && daemon.programs(name).every(pid => !before.includes(pid)));
		await daemon.healthy();
		const there = (await images()).filter(i => i.name?.startsWith('killed:'));
		for (const [i, answer] of answers.entries())
			assert.ok(answer?.status !== 201 || there.some(image => image.name === `killed:${i}`), `killed:${i}`);
		for (const image of there) {
			const reader = await daemon.box(t, { image: image.name });
			assert.equal(await reader.out('ls /opt | wc -l'), '300\n');
			await reader.destroy();
		}
		await sealed(box, 'again');
		await box.destroy();
		for (const image of [...there, { name: 'again' }])
			await remove(image.name);
		await until('no layer is left', () => layers().length === 0);
		assert.ok((await images()).every(i => i.name !== null), 'no image without a name is left');
	}
});

test('bad requests are refused', async t => {
	const box = await daemon.box(t, {});
	for (const body of [{}, { name: 'Bad' }, { name: 5 }, { name: 'x', config: [] }, { name: 'x', config: { Env: ['A'] } }])
		refused(await daemon.api('POST', `/v1/sandboxes/${box.id}/image`, body), 400, 'VALIDATION_FAILED');
	refused(await daemon.api('POST', '/v1/sandboxes/nobody/image', { name: 'x' }), 404, 'SANDBOX_NOT_FOUND');
	await box.destroy();
	assert.equal(layers().length, 0);
});

test('a hundred images made and removed leave nothing', async t => {
	const box = await daemon.box(t, {});
	await box.out('echo x > /opt/x');
	await sealed(box, 'leak');
	await remove('leak');
	const before = await daemon.atRest();
	for (let i = 0; i < 100; i += 5)
		await Promise.all(Array.from({ length: 5 }, (_, k) => sealed(box, `leak:${i + k}`)));
	assert.equal(layers().length, 100);
	for (let i = 0; i < 100; i++)
		await remove(`leak:${i}`);
	await until('no layer is left', () => layers().length === 0);
	await daemon.settles(before);
	await box.destroy();
});
