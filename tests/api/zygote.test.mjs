// SPDX-License-Identifier: Apache-2.0
// Python contexts that are forked from a warm Python: fast, and not to be told from any other command in the sandbox.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { context, run } from '../lib/code.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import * as host from '../lib/host.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon({ warm: true }); });
after(() => daemon?.stop());

const isOutside = pid => host.processInfo(pid).pidNamespace === fs.readlinkSync('/proc/self/ns/pid');
const nursery = () => daemon.programs('silt-priv:warm')[0];

/** A forked context's parent is outside of the sandbox. */
const isForked = async (box, id) => (await run(box, id, 'import os; os.getppid()')).results[0].text === '0';
const value = async (box, id, code) => {
	const answer = await run(box, id, code);
	assert.equal(answer.error, null, JSON.stringify(answer.error));
	return answer.results.at(-1).json ?? answer.results.at(-1).text;
};

// What a process can know of itself; run by a context and, as a plain command, by python3.
const PORTRAIT = `
import ctypes, json, os, re, resource
libc = ctypes.CDLL(None)
def read(name):
    with open(name, errors="replace") as f: return f.read()
def status(*names):
    return {n: v.strip() for n, v in (l.split(":", 1) for l in read("/proc/self/status").splitlines()) if n in names}
def link(name):
    try: return os.readlink(name)
    except OSError as e: return e.errno
portrait = {
    "status": status("Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters", "SigBlk", "SigPnd", "ShdPnd", "Umask", "Threads", "Cpus_allowed", "Mems_allowed", "THP_enabled", "Speculation_Store_Bypass", "SpeculationIndirectBranch"),
    "prctl": {n: libc.prctl(o, 0, 0, 0, 0) for n, o in {"dumpable": 3, "keepcaps": 7, "seccomp": 21, "securebits": 27, "timerslack": 30, "no_new_privs": 39, "thp": 42}.items()},
    "scheduler": [os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)],
    "others": {n: read("/proc/self/" + n) for n in ("loginuid", "sessionid", "coredump_filter", "uid_map", "gid_map", "setgroups") if os.path.exists("/proc/self/" + n)},
    "mounts": read("/proc/self/mountinfo"),
    "keys": [libc.syscall(250, 0, -3, 0), ctypes.get_errno()],
    "namespaces": {n: link("/proc/self/ns/" + n) for n in sorted(os.listdir("/proc/self/ns"))},
    "groups": re.sub(r"/h\\d+", "/h", read("/proc/self/cgroup")),
    "limits": read("/proc/self/limits"),
    "root": link("/proc/self/root"),
    "nice": os.nice(0), "oom": read("/proc/self/oom_score_adj"),
    "owner": os.stat("/proc/self/status").st_uid,
    "dumpable": os.access("/proc/self/environ", os.R_OK),
    "session": os.getsid(0) == os.getpid() and os.getpgid(0) == os.getpid(),
    "affinity": sorted(os.sched_getaffinity(0)),
    "timer_slack": read("/proc/self/timerslack_ns"),
    "core": resource.getrlimit(resource.RLIMIT_CORE),
    "uptime": int(float(read("/proc/uptime").split()[0])) < 3600,
}
`;

test('a forked context is to the kernel what a plain command in that sandbox is', async t => {
	const box = await daemon.box(t);
	const id = await context(box);
	assert.ok(await isForked(box, id));
	const forked = await value(box, id, `${PORTRAIT}\nportrait`);
	assert.equal(forked.prctl.no_new_privs, 1);
	const command = JSON.parse(await box.out(`setsid python3 - <<'END'\n${PORTRAIT}\nprint(json.dumps(portrait))\nEND`));
	assert.deepEqual(forked, command);
	assert.equal(forked.status.Seccomp, '2');
	assert.deepEqual(await value(box, id, 'import time; [abs(time.time() - time.clock_gettime(time.CLOCK_REALTIME)) < 1, time.monotonic() < 3600]'), [true, true]);
});

test('nothing of the machine and of silt-priv is in a forked context', async t => {
	const box = await daemon.box(t);
	const id = await context(box, { env_vars: { MINE: 'yes' } });
	assert.ok(await isForked(box, id));
	assert.deepEqual(await value(box, id, 'open("/proc/self/cmdline").read().split("\\0")'), ['python3', '-I', '/dev/silt-kernel/python/kernel', '']);
	const environ = await value(box, id, '[v for v in open("/proc/self/environ").read().split("\\0") if v]');
	for (const line of environ)
		assert.match(line, /^(PATH|HOME|USER|LOGNAME|SHELL|SANDBOX_VERSION)=/);
	const maps = await value(box, id, 'sorted({l.split(maxsplit=5)[5].strip() for l in open("/proc/self/maps") if len(l.split(maxsplit=5)) > 5})');
	for (const name of maps)
		assert.match(name, /^(\/(usr|lib|lib64|dev\/silt-kernel)\/|\[)/, name);
	const fds = await value(box, id, 'import os\n{n: os.readlink("/proc/self/fd/" + n) for n in os.listdir("/proc/self/fd") if os.path.lexists("/proc/self/fd/" + n)}');
	for (const [number, target] of Object.entries(fds))
		assert.match(target, /^(\/dev\/null|pipe:|anon_inode:|\/proc\/)/, `${number} is ${target}`);
	assert.deepEqual(await value(box, id, 'import os; [os.environ["MINE"], os.environ["PATH"], os.getcwd(), os.path.exists("/workspace")]'),
		['yes', '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', '/workspace', true]);
	const written = await run(box, id, 'open("/proc/self/exe", "r+b")');
	assert.match(written.error.ename, /OSError|PermissionError/);
});

test('a forked context has the names and the modules of one that was started', async t => {
	const box = await daemon.box(t);
	const names = 'sorted(vars(__import__("sys").modules["__main__"]))';
	const forked = await context(box);
	assert.ok(await isForked(box, forked));
	const started = await context(box, { env_vars: { LANG: 'C' } }); // no warm one has that
	assert.equal(await isForked(box, started), false);
	assert.deepEqual(await value(box, forked, names), await value(box, started, names));
	assert.deepEqual(await value(box, forked, 'import multiprocessing\nwith multiprocessing.get_context("spawn").Pool(1) as p: found = p.map(abs, [-1, -2])\nfound'), [1, 2]);
});

test('two contexts have different random numbers', async t => {
	const box = await daemon.box(t);
	const code = 'import random, numpy as np, tempfile, uuid\n[random.random(), float(np.random.rand()), tempfile.mktemp(), str(uuid.uuid4())]';
	const [one, two] = await Promise.all([context(box), context(box)].map(async id => value(box, await id, code)));
	for (let i = 0; i < one.length; i++)
		assert.notEqual(one[i], two[i]);
});

test('a package that the sandbox has installed itself is the one that is used', async t => {
	const box = await daemon.box(t);
	await box.out('mkdir -p /root/.local/lib/python3.11/site-packages/pandas && echo "mine = 1" > /root/.local/lib/python3.11/site-packages/pandas/__init__.py');
	const id = await context(box);
	assert.equal(await isForked(box, id), false);
	assert.deepEqual(await value(box, id, 'import pandas; [pandas.mine]'), [1]);
});

test('how a forked context ends is told', async t => {
	const box = await daemon.box(t);
	for (const [code, end] of [['import os; os._exit(7)', /status 7/], ['import os, signal; os.kill(os.getpid(), signal.SIGSEGV)', /signal 11/]]) {
		const id = await context(box);
		assert.ok(await isForked(box, id));
		const answer = await run(box, id, code);
		assert.match(answer.error.evalue, end);
	}
	const left = await run(box, await context(box), 'exit(5)');
	assert.deepEqual([left.error.exitCode, left.stderr], [5, '']);
	const id = await context(box);
	const stopped = await run(box, id, 'while True: pass', { timeout_ms: 200 });
	assert.equal(stopped.error.ename, 'TimeoutError');
	assert.equal(await value(box, id, '1 + 1'), '2', 'an interrupt leaves it alive');
	await run(box, id, 'import subprocess; p = subprocess.Popen(["sleep", "12345"])');
	assert.equal((await box.api('DELETE', `/api/contexts/${id}`)).status, 200);
	assert.equal(daemon.marked('12345').length, 0, 'what it started is gone with it');
});

test('500 contexts that come and go leave nothing', async t => {
	const box = await daemon.box(t);
	const first = await context(box);
	await box.api('DELETE', `/api/contexts/${first}`);
	await daemon.atRest(); // the pool has its next sandbox
	const groups = () => host.cgroupsOf(daemon.instance).length;
	const before = { groups: groups(), processes: host.processesOf(daemon.instance).length, descriptors: [nursery(), daemon.siltd()].map(host.descriptors) };
	const rounds = process.env.SILT_SANITIZED ? 10 : 46;
	for (let i = 0; i < rounds; i++) {
		const ids = await Promise.all(Array.from({ length: 10 }, () => context(box)));
		if (i === 0 || i === rounds - 1)
			assert.ok((await Promise.all(ids.map(id => isForked(box, id)))).every(Boolean));
		await Promise.all(ids.map(id => box.api('DELETE', `/api/contexts/${id}`)));
	}
	const other = await daemon.box(); // its Node goes with it: one would stay, for the next context
	for (let i = 0; i < 5; i++) {
		const ids = await Promise.all(Array.from({ length: 8 }, () => context(other, { language: 'javascript' })));
		await Promise.all(ids.map(id => other.api('DELETE', `/api/contexts/${id}`)));
	}
	await other.destroy();
	daemon.client.close();
	let now;
	await until('everything as before', () => {
		now = { groups: groups(), processes: host.processesOf(daemon.instance).length, descriptors: [nursery(), daemon.siltd()].map(host.descriptors) };
		return now.groups <= before.groups && now.processes <= before.processes && now.descriptors.every((n, i) => n <= before.descriptors[i]);
	}, 120_000).catch(() => assert.deepEqual(now, before));
});

test('contexts outlive the zygote, the nursery, silt-priv and siltd, and the next one comes', async t => {
	const box = await daemon.box(t);
	const id = await context(box);
	assert.ok(await isForked(box, id));
	await run(box, id, 'x = 41');
	const kills = {
		zygote: () => host.children(nursery()).find(pid => host.processInfo(pid).name === 'python3' && isOutside(pid)),
		nursery,
		siltd: () => daemon.siltd(),
		'silt-priv': () => daemon.programs('silt-priv')[0],
	};
	for (const [name, find] of Object.entries(kills)) {
		const pid = find();
		assert.ok(pid, name);
		process.kill(pid, 'SIGKILL');
		await until(`${name} is gone`, () => !fs.existsSync(`/proc/${pid}`) || host.processInfo(pid).state === 'Z');
		if (name === 'siltd')
			await daemon.healthy();
		assert.equal(await value(box, id, 'x + 1'), '42', `after the end of ${name}`);
		const next = await context(box);
		assert.equal(await value(box, next, '1 + 1'), '2');
		assert.equal((await box.api('DELETE', `/api/contexts/${next}`)).status, 200);
	}
	assert.equal((await box.api('DELETE', `/api/contexts/${id}`)).status, 200);
	const again = await daemon.box(t);
	await until('a warm one again', async () => {
		const one = await context(again);
		const forked = await isForked(again, one);
		await again.api('DELETE', `/api/contexts/${one}`);
		return forked;
	}, 90_000);
});

test('a zygote is replaced after so many contexts, while contexts go on', async t => {
	const other = await startDaemon({ warm: true, flags: { 'interpreter.renew': 3 } });
	t.after(() => other.stop());
	const box = await other.box();
	const zygotes = () => host.children(other.programs('silt-priv:warm')[0]).filter(pid => host.processInfo(pid).name === 'python3' && isOutside(pid));
	const old = zygotes();
	const first = await context(box);
	await run(box, first, 'x = 41');
	for (let i = 0; i < 2; i++)
		await box.api('DELETE', `/api/contexts/${await context(box)}`);
	await other.warm(2);
	await until('the old one is gone', () => old.some(pid => !zygotes().includes(pid)));
	assert.equal(await value(box, first, 'x + 1'), '42');
	assert.ok(await isForked(box, await context(box)));
});

test('without zygotes contexts start as ever', async t => {
	const other = await startDaemon({ flags: { 'interpreter.zygotes': 0 } });
	t.after(() => other.stop());
	const box = await other.box();
	const id = await context(box);
	assert.equal(await isForked(box, id), false);
	assert.deepEqual(other.programs('silt-priv:warm'), []);
});
