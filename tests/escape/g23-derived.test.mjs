// SPDX-License-Identifier: Apache-2.0
// An image that lies on another one wants its own files to be run by a warm Python, which is root. Warm is only what root has
// vouched for; the files of layers meet a forked child that is inside already and has no more rights than a command there.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { built } from '../lib/build.mjs';
import { context, run } from '../lib/code.mjs';
import { BUILD } from '../lib/daemon.mjs';
import { bothWays, daemonWithout } from '../lib/escape.mjs';
import * as host from '../lib/host.mjs';
import { skeletonTar } from '../lib/tar.mjs';
import { until } from '../lib/wait.mjs';

const EVIL = fs.readFileSync(path.join(BUILD, 'tests/unit/engine/evil')); // it calls itself silt-evil
const DAEMON = { images: false, flags: { 'interpreter.zygotes': 2, 'pool.sandboxes': 0 } };

const isEvil = pid => host.processInfo(pid).name === 'silt-evil';
/** What the nursery has started, as root: in this instance there is no image that root has vouched for. */
const outside = daemon => daemon.programs('silt-priv:warm').flatMap(host.children);
const inside = daemon => host.processesOf(daemon.instance).filter(({ pid }) => isEvil(pid));

bothWays('G23 a python3 of the tree below a layer, which nobody has vouched for, is to be kept warm', {
	without: ['trust_mark'],
	daemon: DAEMON,
	sandbox: null, // the attack makes its own
	attack: async (_, daemon, t) => {
		const bytes = skeletonTar({ bin: { name: 'usr/bin', type: 'dir', mode: 0o755 }, evil: { name: 'usr/bin/python3', data: EVIL, mode: 0o755 } });
		assert.equal((await daemon.api('PUT', '/v1/images/evil', bytes, { headers: { 'content-type': 'application/x-tar' } })).status, 201);
		const writer = await daemon.box(t, { image: 'evil' });
		assert.equal((await writer.api('POST', '/api/write', { path: '/file', content: 'x' })).status, 200);
		assert.ok((await daemon.api('POST', `/v1/sandboxes/${writer.id}/image`, { name: 'evil-layer' })).status < 300);
		await writer.destroy();
		const box = await daemon.box(t, { image: 'evil-layer' });
		const asked = box.api('POST', '/api/contexts', {}, { deadline: 60_000 }).catch(() => {}); // it never says that it is ready
		await until('it was started inside, because no warm one was there to be forked', () => inside(daemon).length > 0, 60_000);
		const roots = outside(daemon);
		if (roots.length > 0)
			await until('it runs outside', () => roots.some(isEvil), 60_000);
		await box.destroy();
		await asked;
		return { succeeded: roots.length > 0 };
	},
});

// What such files see of themselves when they are run: by whatever in a context, at any time.
const LOOK = `import os
with open("/proc/self/status") as f: s = dict(l.split(":\\t", 1) for l in f.read().splitlines())
with open("/tmp/seen", "a") as f: f.write(" ".join([os.readlink("/proc/self/ns/user"), s["CapBnd"], s["CapEff"], s["Seccomp"], s["NoNewPrivs"]]) + "\\n")
`;
const PACKAGES = '/usr/lib/python3/dist-packages';
const LAYERS = {
	'a replaced python3': 'RUN mv /usr/bin/python3.11 /usr/bin/real && printf "#!/usr/bin/real\\nimport os, sys\\nexec(open(\'/look.py\').read())\\nos.execv(\'/usr/bin/real\', [\'python3\', *sys.argv[1:]])\\n" > /usr/bin/python3.11 && chmod +x /usr/bin/python3.11',
	'replaced packages': `RUN for f in pandas/__init__ pandas/core/frame numpy/__init__ IPython/__init__ six; do cat /look.py >> ${PACKAGES}/$f.py; done`,
	'modules that run at the start': `RUN cp /look.py ${PACKAGES}/sitecustomize.py && rm -f /usr/lib/python3.11/sitecustomize.py && echo "exec(open('/look.py').read())" > ${PACKAGES}/evil.pth && echo "import os; exec(open('/look.py').read())" >> ${PACKAGES}/evil.pth`,
	'a path of modules': 'RUN mkdir /m && cp /look.py /m/pandas.py && cp /look.py /m/sitecustomize.py\nENV PYTHONPATH=/m LD_LIBRARY_PATH=/m',
	'links in place of directories': `RUN mv ${PACKAGES}/pandas /opt/p && cat /look.py >> /opt/p/__init__.py && ln -s /opt/p ${PACKAGES}/pandas && mv /usr/lib/python3.11/json /opt/j && cat /look.py >> /opt/j/__init__.py && ln -s /opt/j /usr/lib/python3.11/json`,
	'removed files': `RUN rm ${PACKAGES}/pandas/core/frame.py /usr/lib/python3.11/sitecustomize.py && cp /look.py ${PACKAGES}/pandas/core/frame.py`,
	'users who are pipes': 'RUN rm /etc/passwd /etc/group && mkfifo /etc/passwd /etc/group\nUSER 1234:1234',
};

test('G23 files of a layer that a context runs have the rights of a command inside, and no others', async t => {
	const daemon = await daemonWithout([], { warm: true, flags: { 'pool.sandboxes': 0 } });
	for (const [what, steps] of Object.entries(LAYERS)) {
		const name = `layer-${Object.keys(LAYERS).indexOf(what)}`;
		await built(daemon, { Dockerfile: `FROM base\nCOPY look.py /look.py\n${steps}\n`, 'look.py': LOOK }, { names: [name] });
		const box = await daemon.box(t, { image: name });
		const created = await box.api('POST', '/api/contexts', {}, { deadline: 90_000 });
		if (created.status === 200)
			await run(box, created.body.contextId, 'import json, pandas');
		const command = await box.out('echo "$(readlink /proc/self/ns/user) $(sed -n "s/^CapBnd:.//p; s/^Seccomp:.//p" /proc/self/status | tr "\\n" " ")"');
		const [space, bounding, seccomp] = command.split(' ');
		const seen = (await box.out('cat /tmp/seen 2>/dev/null || :')).split('\n').filter(Boolean);
		assert.ok(seen.length > 0 || what.startsWith('users'), `${what}: it was run`);
		for (const line of seen)
			assert.match(line, new RegExp(`^${space.replace(/[[\]]/g, '\\$&')} ${bounding} (${bounding}|0+) ${seccomp} 1$`), what);
		await box.destroy();
	}
	const fresh = await daemon.box(t);
	const answer = await run(fresh, await context(fresh), 'import os; os.getppid()');
	assert.equal(answer.results[0].text, '0', 'the warm one is as it was');
});
