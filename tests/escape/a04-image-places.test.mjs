// SPDX-License-Identifier: Apache-2.0
// A4, A5, A6: what an image, or a guest before its sandbox starts again, puts where devices, procfs and sysfs will be.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { skeletonTar } from '../lib/tar.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon({ images: false }); });
after(() => daemon?.stop());

async function boxOf(t, name, entries) {
	const answer = await daemon.api('PUT', `/v1/images/${name}?kind=host`, skeletonTar(Object.fromEntries(entries.map(entry => [entry.name, entry]))), { headers: { 'content-type': 'application/x-tar' } });
	assert.equal(answer.status, 201, answer.raw.toString());
	return daemon.box(t, { image: name });
}

/** What the places must be, whatever was there. */
const LOOK = 'stat -f -c %T /proc /sys/class/net; for n in null zero full random urandom tty ptmx; do stat -c "%n %F" /dev/$n; done; readlink /dev/fd';
const WANTED = ['proc', 'sysfs', ...['null', 'zero', 'full', 'random', 'urandom', 'tty'].map(name => `/dev/${name} character special file`), '/dev/ptmx .*', '/proc/self/fd'].join('\n');

test('A4 an image whose devices are symlinks gives none of them', async t => {
	const victim = path.join(daemon.home, 'victim');
	fs.writeFileSync(victim, 'untouched');
	const targets = ['/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', victim, `../../../../../../..${victim}`];
	const names = ['null', 'zero', 'full', 'random', 'urandom', 'tty', 'ptmx', 'console', 'pts/0', 'shm', 'mqueue'];
	for (const [number, target] of targets.entries()) {
		const links = names.map(name => ({ name: `dev/${name}`, type: 'symlink', target }));
		const box = await boxOf(t, `dev-links-${number}`, [{ name: 'dev/pts', type: 'dir' }, ...links]);
		assert.match(await box.out(LOOK), new RegExp(`^${WANTED}\n$`), target);
		assert.equal(await box.out('echo evil > /dev/null; echo evil > /dev/shm/x; cat /dev/shm/x'), 'evil\n');
		assert.equal(fs.readFileSync(victim, 'utf8'), 'untouched');
	}
});

test('A6 plain files in the place of procfs and sysfs are never taken for them', async t => {
	const plain = ['proc/self/attr/exec', 'proc/self/oom_score_adj', 'proc/self/uid_map', 'proc/sys/net/ipv4/ip_forward', 'proc/1/environ', 'sys/fs/cgroup/cgroup.procs', 'sys/kernel/mm/transparent_hugepage/enabled']
		.map(name => ({ name, data: 'planted' }));
	const directories = [...new Set(plain.flatMap(({ name }) => name.split('/').slice(1, -1).map((_, i, parts) => [name.split('/')[0], ...parts.slice(0, i + 1)].join('/'))))]
		.map(name => ({ name, type: 'dir' }));
	const box = await boxOf(t, 'planted', [...directories, ...plain]);
	assert.match(await box.out(LOOK), new RegExp(`^${WANTED}\n$`));
	assert.equal(await box.out(`cat ${plain.map(({ name }) => `/${name}`).join(' ')} 2>/dev/null | tr -d '\\0' | grep -c planted || true`), '0\n');
});

test('A5 a guest cannot exchange the places that are mounted on, neither now nor for its next start', async t => {
	const box = await daemon.box(t, { image: 'planted' });
	const outside = path.join(daemon.home, 'outside');
	fs.mkdirSync(outside, { mode: 0o777 });
	const attempts = ['proc', 'sys', 'dev', 'dev/pts', 'dev/shm'].flatMap(place => [
		`mv /${place} /${place}-old && ln -s ${outside} /${place}`,
		`rmdir /${place} && ln -s ${outside} /${place}`,
		`mkdir -p /swap && ln -sfn ${outside} /swap/link && mv -T /swap/link /${place}`,
		`python3 -c 'import ctypes; exit(ctypes.CDLL(None).renameat2(-100, b"/${place}", -100, b"/swap", 2) == 0 and 0 or 1)'`,
	]);
	for (const round of [1, 2, 3]) {
		await box.run(`(${attempts.map(attempt => `(${attempt})`).join('; ')}) >/dev/null 2>&1`);
		assert.match(await box.out(LOOK), new RegExp(`^${WANTED}\n$`), `round ${round}`);
		process.kill(await box.init(), 'SIGKILL'); // what follows is a new start on the same files
		await until('it has started again', async () => (await box.exec('true')).status === 200);
		assert.match(await box.out(LOOK), new RegExp(`^${WANTED}\n$`), `round ${round}, started again`);
		assert.deepEqual(fs.readdirSync(outside), []);
	}
});
