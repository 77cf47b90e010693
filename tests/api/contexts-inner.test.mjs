// SPDX-License-Identifier: Apache-2.0
// Python contexts in images with packages of their own: the first is started, the next are forked from a warm Python inside,
// which is never in anybody's way and never older than the files.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { built } from '../lib/build.mjs';
import { context, run } from '../lib/code.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { until } from '../lib/wait.mjs';

const PACKAGES = '/usr/lib/python3/dist-packages';
let daemon;
before(async () => {
	daemon = await startDaemon({ warm: true, flags: { 'pool.sandboxes': 0 } });
	await built(daemon, { Dockerfile: `FROM base\nRUN echo "mine = 1" >> ${PACKAGES}/pandas/core/frame.py\n` }, { names: ['own'] });
});
after(() => daemon?.stop());

/** Python kernels: {pid: whether it is a warm one that can be forked}; only such a one is the first to go when memory is short. */
async function kernels(box) {
	const text = await box.out('for p in /proc/[0-9]*; do tr "\\0" " " <$p/cmdline 2>/dev/null | grep -q "^python3 -I .*python/kernel" && echo ${p#/proc/} $(cat $p/oom_score_adj); done; true');
	return Object.fromEntries(text.split('\n').filter(Boolean).map(line => line.split(' ')).map(([pid, score]) => [pid, score === '1000']));
}
/** The process id of the sandbox's warm Python, once it can be forked. */
const warm = (box, but = '') => until('a warm Python', async () => Object.entries(await kernels(box)).find(([pid, ready]) => ready && pid !== but)?.[0], 90_000);

/** A cold kernel has not imported what nobody has asked for. */
async function look(box, options = {}, code = '0') {
	const id = await context(box, options);
	const answer = await run(box, id, `import os, sys\nforked = "pandas" in sys.modules\n[forked, os.getpid(), os.getppid(), ${code}]`);
	assert.equal(answer.error, null, JSON.stringify(answer.error));
	const [forked, pid, parent, value] = answer.results[0].json;
	return { id, forked, pid: String(pid), parent, value };
}

async function boxWithWarm(t, options = {}) {
	const box = await daemon.box(t, { image: 'own', ...options });
	const first = await look(box, {}, '__import__("pandas").core.frame.mine');
	assert.deepEqual([first.forked, first.value], [false, 1]);
	return { box, first, warm: await warm(box) };
}

test('from the second context on they are forked inside, and are as one that is started', async t => {
	const { box, first, warm: parent } = await boxWithWarm(t);
	const rights = '[[l.split() for l in open("/proc/self/status") if l.startswith(("CapBnd", "CapEff", "Seccomp:", "NoNewPrivs", "Groups"))], os.getresuid(), os.getcwd(), sorted(os.environ), open("/proc/self/oom_score_adj").read(), sys.dont_write_bytecode, os.getsid(0) == os.getpid(), open("/proc/self/cmdline").read()]';
	const cold = await run(box, first.id, rights);
	const held = (await box.out(`for f in /proc/${parent}/fd/*; do readlink $f; done`)).split('\n').filter(Boolean).map(name => name.replace(/:.*/, '')).sort();
	assert.deepEqual(held, ['/dev/null', 'pipe', 'pipe', 'pipe', 'pipe', 'socket'], 'nothing of the first process');
	const before = JSON.stringify(await kernels(box));
	assert.equal(Object.keys(JSON.parse(before)).length, 2, 'the context and the warm one');
	const seen = [];
	for (let i = 0; i < 3; i++) {
		const next = await look(box, {}, `[__import__("pandas").core.frame.mine, __import__("random").random(), ${rights}]`);
		assert.equal(next.forked, true);
		assert.notEqual(next.pid, parent);
		assert.equal(next.parent, 1, 'the child of the first process, who is told of its end');
		assert.equal(next.value[0], 1);
		seen.push(next.value[1]);
		assert.deepEqual(next.value[2], cold.results[0].json);
		assert.equal((await box.api('DELETE', `/api/contexts/${next.id}`)).status, 200);
	}
	assert.equal(new Set(seen).size, 3);
	await until('all as before', async () => JSON.stringify(await kernels(box)) === before);
	assert.equal((await box.api('GET', '/api/contexts')).body.contexts.length, 1);
});

test('in an image that names a user they are that user\'s, as one that is started', async t => {
	const people = 'RUN echo worker:x:1234:1235::/home/worker:/bin/bash >> /etc/passwd && echo crew:x:1300:worker >> /etc/group && mkdir -p /home/worker && chown 1234 /home/worker';
	await built(daemon, { Dockerfile: `FROM own\n${people}\nUSER worker\n` }, { names: ['people'] });
	const { box, first, warm: parent } = await boxWithWarm(t, { image: 'people' });
	const who = '[os.getresuid(), os.getresgid(), sorted(os.getgroups()), [l.split() for l in open("/proc/self/status") if l.startswith(("Cap", "Seccomp:", "NoNewPrivs"))], sorted(os.environ.items()), open("/proc/self/oom_score_adj").read(), os.access("/etc/shadow", os.R_OK), os.stat("/proc/self/status").st_uid]';
	const cold = (await run(box, first.id, who)).results[0].json;
	assert.deepEqual(cold.slice(0, 3), [[1234, 1234, 1234], [1235, 1235, 1235], [1235, 1300]]);
	const several = await Promise.all([1, 2, 3].map(() => look(box, {}, `[${who}, __import__("subprocess").Popen(["sleep", "1000"], start_new_session=True).pid]`)));
	for (const { forked, parent: itsParent, pid, value } of several) {
		assert.deepEqual([forked, itsParent, pid === parent], [true, 1, false]);
		assert.deepEqual(value[0], cold);
	}
	assert.equal((await box.api('DELETE', `/api/contexts/${several[0].id}`)).status, 200);
	assert.equal((await box.out(`test -e /proc/${several[0].value[1]} || echo gone; test -e /proc/${several[1].value[1]} && echo here`)).trim(), 'gone\nhere');
	const ended = await run(box, several[1].id, 'sys.exit(3)');
	assert.deepEqual([ended.error?.cause, ended.error?.exitCode], ['exit', 3]);
});

test('several at once, each with its own directory and variables, and what one starts ends with it', async t => {
	const { box } = await boxWithWarm(t);
	const all = await Promise.all([1, 2, 3, 4].map(i => look(box, { cwd: '/tmp', env_vars: { N: `${i}`, LANG: 'C.UTF-8' } }, '[os.environ["N"], os.getcwd(), __import__("subprocess").Popen(["sleep", "1000"], start_new_session=True).pid]')));
	assert.deepEqual(all.map(one => [one.forked, ...one.value.slice(0, 2)]), [1, 2, 3, 4].map(i => [true, `${i}`, '/tmp']));
	assert.equal((await box.api('DELETE', `/api/contexts/${all[0].id}`)).status, 200);
	assert.equal((await box.out(`kill -0 ${all[0].value[2]} 2>/dev/null || echo gone; kill -0 ${all[1].value[2]} && echo here`)).trim(), 'gone\nhere');
	const stopped = await run(box, all[1].id, 'sys.exit(3)');
	assert.deepEqual([stopped.error?.cause, stopped.error?.exitCode], ['exit', 3]);
	const interrupted = await run(box, all[2].id, 'while True: pass', { timeout_ms: 1000 });
	assert.equal(interrupted.error.ename, 'TimeoutError');
});

test('a file that changed in place is what the next context has, and there is a new warm one', async t => {
	const { box, warm: old } = await boxWithWarm(t);
	assert.equal((await look(box)).forked, true);
	const file = `${PACKAGES}/pandas/core/frame.py`; // the size and the time that it shows stay, and what Python would go by is gone
	await box.out(`touch -r ${file} /tmp/t && sed -i 's/^mine = 1$/mine = 2/' ${file} && touch -r /tmp/t ${file} && rm -f ${PACKAGES}/pandas/core/__pycache__/frame.*`);
	const changed = await look(box, {}, '__import__("pandas").core.frame.mine');
	assert.deepEqual([changed.forked, changed.value], [false, 2]);
	const next = await warm(box, old);
	assert.notEqual(next, old);
	const again = await look(box, {}, '__import__("pandas").core.frame.mine');
	assert.deepEqual([again.forked, again.value], [true, 2]);
	await box.out(`printf 3 | dd of=${file} bs=1 seek=$(($(stat -c %s ${file}) - 2)) conv=notrunc status=none`); // no directory shows it
	const written = await look(box, {}, '__import__("pandas").core.frame.mine');
	assert.deepEqual([written.forked, written.value], [false, 3]);
});

test('variables that are read once, and packages that come first, are honoured', async t => {
	const { box } = await boxWithWarm(t);
	const path = await look(box, { env_vars: { LD_LIBRARY_PATH: '/opt/lib' } }, 'os.environ["LD_LIBRARY_PATH"]');
	assert.deepEqual([path.forked, path.value], [false, '/opt/lib']);
	await box.out('mkdir -p /opt/m && echo "mine = 9" > /opt/m/pandas.py');
	const own = await look(box, { env_vars: { PYTHONPATH: '/opt/m' } }, '__import__("pandas").mine');
	assert.deepEqual([own.forked, own.value], [false, 9]);
});

test('a warm one that is killed or stopped is not missed', async t => {
	const { box, warm: first } = await boxWithWarm(t);
	await box.out(`kill -9 ${first}`);
	assert.equal((await look(box)).forked, false);
	const second = await warm(box, first);
	assert.equal((await look(box)).forked, true);
	await box.out(`kill -STOP ${second}`);
	assert.equal((await look(box)).forked, false);
	const third = await warm(box, second);
	assert.equal((await look(box)).forked, true);
	await box.out(`kill -9 ${third}`);
	assert.equal((await run(box, (await look(box)).id, '1 + 1')).results[0].text, '2');
});

test('it goes with a siltd that dies, and forked contexts stay', async t => {
	const { box, warm: old } = await boxWithWarm(t);
	const forked = await look(box, {}, 'globals().__setitem__("kept", 7)');
	assert.equal(forked.forked, true);
	const pid = daemon.siltd();
	process.kill(pid, 'SIGKILL');
	await until('another siltd', () => daemon.programs('siltd').some(p => p !== pid));
	await daemon.healthy();
	assert.equal((await run(box, forked.id, 'kept')).results[0].text, '7');
	await until('its end', async () => !(old in await kernels(box)));
	const ended = await run(box, forked.id, 'import os; os._exit(3)');
	assert.match(JSON.stringify(ended), /exit|ended|status 3/i);
});

