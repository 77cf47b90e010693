// SPDX-License-Identifier: Apache-2.0
// A11: device nodes, made inside, found in /dev, or brought by an image.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { bothWays, daemonWithout } from '../lib/escape.mjs';
import { skeletonTar } from '../lib/tar.mjs';

export const without = ['devices'];

/** The machine's disks and other nodes nobody inside may have: type, name, major, minor. */
const disks = fs.readdirSync('/sys/block').filter(name => !/^(loop|ram)/.test(name)).slice(0, 4)
	.map(name => ['b', name, ...fs.readFileSync(`/sys/block/${name}/dev`, 'utf8').trim().split(':')]);
const NODES = [['c', 'mem', 1, 1], ['c', 'kmem', 1, 2], ['c', 'port', 1, 4], ['c', 'kmsg', 1, 11], ['c', 'fuse', 10, 229], ['c', 'kvm', 10, 232], ['c', 'loop-control', 10, 237], ['c', 'net-tun', 10, 200], ['b', 'loop0', 7, 0], ...disks];

export async function attack(box) {
	const lines = async command => (await box.out(command)).split('\n').filter(Boolean);
	const make = NODES.map(([type, name, major, minor]) => `mknod /tmp/${name} ${type} ${major} ${minor}; mknod /dev/${name} ${type} ${major} ${minor};`).join(' ');
	const names = NODES.map(node => node[1]).join(' ');
	const found = {
		made: await lines(`{ ${make} } 2>/dev/null; for n in ${names}; do [ -e /tmp/$n ] && echo $n; done; true`),
		opened: await lines(`for n in ${names}; do for d in /dev /tmp; do ( : < $d/$n ) 2>/dev/null && echo $d/$n; ( : >> $d/$n ) 2>/dev/null && [ -c $d/$n -o -b $d/$n ] && echo $d/$n; done; done; true`),
	};
	await box.out(`cd /tmp && rm -rf ${names}`);
	return { succeeded: found.opened.some(name => name.startsWith('/dev/')) || found.made.length > 0, ...found };
}

bothWays('A11 device nodes', {
	context: true,
	without,
	attack,
	async repelled(evidence, box) {
		const allowed = ['console', 'core', 'fd', 'full', 'mqueue', 'null', 'ptmx', 'pts', 'random', 'shm', 'silt', 'silt-kernel', 'stderr', 'stdin', 'stdout', 'tty', 'urandom', 'zero'];
		const present = (await box.out('ls /dev')).split('\n').filter(Boolean);
		assert.deepEqual(present.filter(name => !allowed.includes(name)), [], '/dev is minimal');
		assert.equal(await box.out('find /dev/silt-kernel ! -type f ! -type d; touch /dev/silt-kernel/x 2>&1 | grep -c "Read-only"'), '1\n', 'the interpreters are plain files that nobody can change');
		assert.equal(await box.out('echo x > /dev/null; head -c 3 /dev/zero | od -An -tx1; head -c 100 /dev/urandom | wc -c'), ' 00 00 00\n100\n');
	},
});

test('A11 an image with device nodes gives none that works', async t => {
	const daemon = await daemonWithout([], { images: false });
	const nodes = NODES.map(([type, name, major, minor]) => ({ name: `opt/${name}`, type: type === 'c' ? 'char' : 'block', mode: 0o666, major: Number(major), minor: Number(minor) }));
	const answer = await daemon.api('PUT', '/v1/images/nodes?kind=host', skeletonTar(Object.fromEntries(nodes.map(node => [node.name, node]))), { headers: { 'content-type': 'application/x-tar' } });
	if (answer.status !== 201)
		return assert.ok(answer.status >= 400 && answer.status < 500, `${answer.status}`);
	const box = await daemon.box(t, { image: 'nodes' });
	assert.equal(await box.out('for n in /opt/*; do [ -b $n -o -c $n ] && ( : < $n ) 2>/dev/null && echo $n; done; true'), '');
});
