// SPDX-License-Identifier: Apache-2.0
// Python contexts in images that were built on one with a warm Python: forked from it where nothing that it has loaded is
// another there, and the image's own files, variables, user and directory count.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { built } from '../lib/build.mjs';
import { context, run } from '../lib/code.mjs';
import { startDaemon } from '../lib/daemon.mjs';

let daemon;
before(async () => { daemon = await startDaemon({ warm: true, flags: { 'pool.sandboxes': 0 } }); });
after(() => daemon?.stop());

const PACKAGES = '/usr/lib/python3/dist-packages';
let images = 0;

/** A sandbox of an image with these steps on `base`; what it answers, and whether it was forked: then its parent is outside. */
async function look(t, { steps, files = {}, options = {} }, code = '0') {
	const name = `derived-${++images}`;
	await built(daemon, { Dockerfile: `FROM base\n${steps}\n`, ...files }, { names: [name] });
	const box = await daemon.box(t, { image: name });
	const id = await context(box, options);
	const answer = await run(box, id, `import os\n[os.getppid() == 0, ${code}]`);
	assert.equal(answer.error, null, JSON.stringify(answer.error));
	const [forked, value] = answer.results[0].json;
	return { box, id, forked, value };
}

const ORDINARY = `COPY app.py /app/app.py
ENV GREETING="hello there" LANG=C.UTF-8 LC_ALL=C.UTF-8 LANGUAGE=en PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 MPLBACKEND=agg
RUN mkdir -p ${PACKAGES.replace('/usr', '/usr/local').replace('python3/', 'python3.11/')} /srv/data && echo "word = 7" > ${PACKAGES}/of_the_image.py
WORKDIR /app
EXPOSE 8080
CMD ["python3", "app.py"]`;

test('files, variables, a directory and a command do not keep a context from being forked, and are seen in it', async t => {
	const { forked, value } = await look(t, { steps: ORDINARY, files: { 'app.py': 'name = "app"' } },
		'[os.environ["GREETING"], os.environ["LANG"], os.environ["PYTHONUNBUFFERED"], os.getcwd(), __import__("app").name, __import__("of_the_image").word, __import__("locale").setlocale(0), os.getuid()]');
	assert.deepEqual(value, ['hello there', 'C.UTF-8', '1', '/app', 'app', 7, 'C.UTF-8', 0]);
	assert.equal(forked, true);
});

test('it is the user\'s whom the image names', async t => {
	const people = 'RUN echo worker:x:1234:1235::/home/worker:/bin/bash >> /etc/passwd && echo crew:x:1300:a,worker >> /etc/group && mkdir -p /home/worker && chown 1234 /home/worker';
	const code = '[os.getresuid(), os.getresgid(), os.getgroups(), os.environ.get("HOME"), os.environ.get("USER"), os.environ.get("LOGNAME"), os.path.expanduser("~"), [l.split()[1] for l in open("/proc/self/status") if l.startswith(("CapPrm", "CapEff", "CapAmb", "NoNewPrivs", "Seccomp:"))], os.access("/proc/self/environ", os.R_OK), os.stat("/proc/self/status").st_uid]';
	const expected = {
		worker: [[1234, 1234, 1234], [1235, 1235, 1235], [1235, 1300], '/home/worker', 'worker', 'worker', '/home/worker'],
		'4321:77': [[4321, 4321, 4321], [77, 77, 77], [], '/', null, null, '/'],
		'1234:crew': [[1234, 1234, 1234], [1300, 1300, 1300], [], '/home/worker', 'worker', 'worker', '/home/worker'],
	};
	for (const [user, who] of Object.entries(expected)) {
		const { box, id, forked, value } = await look(t, { steps: `${people}\nWORKDIR /srv\nUSER ${user}` }, code);
		assert.equal(forked, true, user);
		assert.deepEqual(value.slice(0, 7), who);
		assert.deepEqual(value.slice(7), [['0000000000000000', '0000000000000000', '0000000000000000', '1', '2'], true, who[0][0]]);
		const back = await run(box, id, 'try: os.setuid(0)\nexcept OSError as e: found = e.errno\n[found, os.access("/etc/shadow", os.R_OK)]');
		assert.deepEqual(back.results[0].json, [1, false], 'there is no way back');
		const started = await context(box, { env_vars: { LANG: 'C' } }); // which no warm one has
		const cold = await run(box, started, `import os\n[os.getppid() == 0, ${code}]`);
		assert.deepEqual(cold.results[0].json, [false, value], 'as one that is started');
	}
});

// What is in the image is what counts: [steps, code, its value].
const OTHERS = {
	'a module that was replaced': [`RUN echo "mine = 1" >> ${PACKAGES}/pandas/__init__.py`, '__import__("pandas").mine', 1],
	'a module deep in a package': [`RUN echo "mine = 2" >> ${PACKAGES}/pandas/core/frame.py`, '__import__("pandas").core.frame.mine', 2],
	'a module of Python itself': ['RUN echo "mine = 3" >> /usr/lib/python3.11/json/decoder.py', '__import__("json").decoder.mine', 3],
	'a package that comes first': ['RUN mkdir -p /usr/local/lib/python3.11/dist-packages/numpy && echo "mine = 4" > /usr/local/lib/python3.11/dist-packages/numpy/__init__.py', '__import__("numpy").mine', 4],
	'a package instead of a module': [`RUN mkdir ${PACKAGES}/six && cp ${PACKAGES}/six.py ${PACKAGES}/six/__init__.py && echo "mine = 5" >> ${PACKAGES}/six/__init__.py`, '__import__("six").mine', 5],
	'a module that runs at the start': [`RUN echo "import os; os.environ['X']='x'; mine = 6" > ${PACKAGES}/usercustomize.py && rm -f /usr/lib/python3.11/sitecustomize.py && echo "mine = 6" > ${PACKAGES}/sitecustomize.py`, '__import__("sys").modules["sitecustomize"].mine', 6],
	'a package that others look for': ['RUN mkdir -p /usr/local/lib/python3.11/dist-packages && echo "__version__ = \'0.0.1\'" > /usr/local/lib/python3.11/dist-packages/numexpr.py', '__import__("numexpr").__version__', '0.0.1'],
	'directories behind a link': [`RUN cp -a ${PACKAGES}/pandas /opt/pandas && echo "mine = 7" >> /opt/pandas/core/series.py && rm -r ${PACKAGES}/pandas && ln -s /opt/pandas ${PACKAGES}/pandas`, '__import__("pandas").core.series.mine', 7],
	'a module that is gone': [`RUN rm -r ${PACKAGES}/pandas`, 'bool(__import__("importlib.util").util.find_spec("pandas"))', false],
	'another python3': ['RUN mkdir -p /opt/bin && printf "#!/bin/sh\\nMINE=8 exec /usr/bin/python3 \\"\\$@\\"\\n" > /opt/bin/python3 && chmod +x /opt/bin/python3\nENV PATH=/opt/bin:/usr/bin:/bin', '"8" in open("/proc/self/environ").read()', true],
	'a path of modules': ['RUN mkdir /opt/m && echo "mine = 9" > /opt/m/pandas.py\nENV PYTHONPATH=/opt/m', '__import__("pandas").mine', 9],
	'settings of matplotlib': ['RUN mkdir -p /root/.config/matplotlib && echo "lines.linewidth: 7" > /root/.config/matplotlib/matplotlibrc', '__import__("matplotlib").rcParams["lines.linewidth"]', 7],
	'a library that is preloaded': ['RUN echo > /etc/ld.so.preload', 'os.path.exists("/etc/ld.so.preload")', true],
	'a path of libraries': ['ENV LD_LIBRARY_PATH=/opt/lib', 'os.environ["LD_LIBRARY_PATH"]', '/opt/lib'],
	'a locale that is not UTF-8': ['ENV LC_ALL=C', '__import__("locale").setlocale(0)', 'C'],
};

for (const [what, [steps, code, expected]] of Object.entries(OTHERS))
	test(`${what} is what the context has`, async t => {
		const { forked, value } = await look(t, { steps }, code);
		assert.deepEqual(value, expected);
		assert.equal(forked, false);
	});
