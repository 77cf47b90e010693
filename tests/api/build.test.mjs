// SPDX-License-Identifier: Apache-2.0
// Images from Dockerfiles: what each instruction does, what is remembered, what fails and what is left then.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { build, built, context, failed } from '../lib/build.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { refused } from '../lib/expect.mjs';
import { namesIn } from '../lib/host.mjs';
import { tar } from '../lib/tar.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const remove = name => daemon.api('DELETE', `/v1/images/${name.split('/').join('%2F')}`);
const layers = () => namesIn(path.join(daemon.state, 'pool', 'l'), daemon.pid);
const sandboxes = async () => (await daemon.api('GET', '/v1/sandboxes?limit=1000')).body.sandboxes.map(s => s.id);

/** Builds, runs a command in a sandbox of the image, answers its output. */
async function output(t, files, command, options = {}) {
	const name = `out-${Math.random().toString(36).slice(2)}`;
	const result = await built(daemon, files, { ...options, names: [name] });
	const box = await daemon.box(t, { image: name });
	const text = await box.out(command);
	await box.destroy();
	const image = (await daemon.api('GET', `/v1/images/${name}`)).body;
	await remove(name);
	return { text, image, result };
}

async function nothingLeft() {
	await daemon.api('POST', '/v1/images/prune');
	await until('no sandbox of a build is left', async () => (await sandboxes()).every(id => !id.startsWith('build-')));
	await until('no layer is left', () => layers().length === 0);
}

test('RUN, COPY, ENV and WORKDIR make an image', async t => {
	const { text, image, result } = await output(t, {
		Dockerfile: 'FROM base\nENV GREETING=hello\nWORKDIR /app\nCOPY app.txt .\nRUN echo "$GREETING $(cat app.txt)" > out && pwd\nLABEL who=me\nEXPOSE 8080 53/udp\nCMD ["cat", "out"]\n',
		'app.txt': 'world',
	}, 'cat /app/out; pwd; echo $GREETING');
	assert.equal(text, 'hello world\n/app\nhello\n');
	assert.equal(result.output, '/app\n');
	assert.deepEqual(result.steps.map(s => [s.step, s.total, s.text.split(' ')[0], s.cached]), [[1, 8, 'FROM', false], [2, 8, 'ENV', false], [3, 8, 'WORKDIR', false], [4, 8, 'COPY', false], [5, 8, 'RUN', false], [6, 8, 'LABEL', false], [7, 8, 'EXPOSE', false], [8, 8, 'CMD', false]]);
	assert.equal(image.config.WorkingDir, '/app');
	assert.equal(image.config.Labels.who, 'me');
	assert.equal(image.config.Labels['silt.control'], 'builtin', 'inherited');
	assert.deepEqual(Object.keys(image.config.ExposedPorts), ['8080/tcp', '53/udp']);
	assert.deepEqual(image.config.Cmd, ['cat', 'out']);
	assert.equal(result.done.names.length, 1);
	assert.match(result.done.id, /^sha256:[0-9a-f]{64}$/);
	await nothingLeft();
});

test('a large context comes whole, and goes on whole from stage to stage', async t => {
	const big = Buffer.alloc(12 << 20);
	for (let i = 0; i < big.length; i += 4)
		big.writeUInt32LE(Math.imul(i, 2_654_435_761) >>> 0, i);
	const many = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`many/${i}`, `${i}\n`.repeat(i)]));
	const { text } = await output(t, { Dockerfile: 'FROM base AS one\nCOPY . /in\nFROM base\nCOPY --from=one /in /out\n', ...many, big }, 'sha256sum < /out/big; ls /out/many | wc -l; wc -l < /out/many/199');
	assert.equal(text, `${createHash('sha256').update(big).digest('hex')}  -\n200\n199\n`);
	await nothingLeft();
});

test('stages give each other files, and those nobody needs are not built', async t => {
	const files = {
		Dockerfile: `ARG BASE=base
FROM \${BASE} AS make
RUN mkdir /out && echo made > /out/a && echo b > /out/.hidden && ln -s a /out/link && chmod 750 /out/a
FROM base AS unused
RUN exit 7
FROM make AS more
RUN echo more >> /out/a
FROM base
COPY --from=make /out /first
COPY --from=more --chown=33:44 --chmod=600 /out/a /second/
COPY --from=0 /out/a /third
COPY --from=base /etc/passwd /theirs`,
	};
	const { text, result } = await output(t, files, "cat /first/a /first/.hidden; readlink /first/link; stat -c '%a %u' /first/a; cat /second/a; stat -c '%a %u %g' /second/a; cat /third; cmp /theirs /etc/passwd; test -e /out || echo none");
	assert.equal(text, 'made\nb\na\n750 0\nmade\nmore\n600 33 44\nmade\nnone\n');
	assert.equal(result.steps.length, 9);
	const target = await output(t, files, 'cat /out/a', { query: { target: 'more' } });
	assert.equal(target.text, 'made\nmore\n');
	assert.match((await failed(daemon, files, { query: { target: 'nope' } })).error.message, /nope/);
	await nothingLeft();
});

test('all of an image is copied without what is mounted in its sandbox, also over another', async t => {
	const lean = 'rm -rf /usr/local /usr/share /usr/include /usr/lib/gcc /usr/lib/python3* && find /usr/lib /usr/bin -type f -size +400k ! -name "lib[cm].so*" ! -name "libcrypto*" ! -name "libpcre2*" ! -name bash ! -name tar -delete';
	const Dockerfile = `FROM base AS one\nRUN ${lean}; mkdir -p /data/proc; echo one > /data/proc/x; echo hi > /hi\nFROM base\nCOPY --from=one / /all\nCOPY --from=one / /\nCOPY --from=one /sys /none\n`;
	const { text } = await output(t, { Dockerfile }, 'cat /all/hi /hi /all/data/proc/x /data/proc/x; ls -d /all/proc /all/dev; ls -A /all/proc /all/dev /all/sys /none | grep -v :');
	assert.equal(text.trim(), 'hi\nhi\none\none\n/all/dev\n/all/proc');
	await nothingLeft();
});

test('ARG has scopes, defaults and values that are given', async t => {
	const { text, result } = await output(t, {
		Dockerfile: `ARG A=global
ARG B=two
FROM base
ARG A
ARG B=inner
ARG C=\${A}-\${D:-none}\${B:+!}
ARG E
ENV FROM_ARG=$C
RUN echo "$A $B $C [$E] \${D-unset}" > /args
ENV A=env
RUN echo "$A" >> /args`,
	}, 'cat /args; echo $FROM_ARG; echo "$B"', { query: { buildargs: JSON.stringify({ E: 'given', UNUSED: 'x' }) } });
	assert.equal(text, 'global inner global-none! [given] unset\nenv\nglobal-none!\n\n');
	assert.ok(result.notices.some(n => n.includes('UNUSED')), result.notices.join());
	await nothingLeft();
});

test('USER, SHELL, quotes, continued lines and heredocs mean what they mean elsewhere', async t => {
	const { text, image } = await output(t, {
		Dockerfile: `# escape=\\
FROM base
ENV A="a b" B=c\\ d \\
    # a comment in between
    C='$A' D=$B
ENV OLD some   value
RUN echo "[$A][$B][$C][$D][$OLD]" \\

    > /vars
SHELL ["/bin/bash", "-c"]
RUN [[ x == x ]] && echo bash >> /vars
RUN ["/bin/sh", "-c", "echo exec $A >> /vars"]
RUN <<EOF
echo one >> /vars
echo two >> /vars
EOF
RUN cat <<'X' >> /vars && echo after >> /vars
$literal
X
COPY <<END /etc/heredoc
A is $A
END
COPY --chmod=755 <<'one' <<two /etc/many/
$A
one
$A
two
RUN echo worker:x:1234:1234::/home/worker:/bin/bash >> /etc/passwd
USER worker
RUN id -u > /tmp/who; echo $HOME >> /tmp/who
USER 0:0
RUN cat /tmp/who >> /vars
USER worker
WORKDIR rel
ENTRYPOINT echo entry
`,
	}, 'cat /vars /etc/heredoc /etc/many/one /etc/many/two; stat -c %a /etc/many/one');
	assert.equal(text, '[a b][c d][$A][][some   value]\nbash\nexec a b\none\ntwo\n$literal\nafter\n1234\n/home/worker\nA is a b\n$A\na b\n755\n');
	assert.deepEqual(image.config.Entrypoint, ['/bin/bash', '-c', 'echo entry']);
	assert.equal(image.config.User, 'worker');
	assert.equal(image.config.WorkingDir, '/rel');
	await nothingLeft();
});

test('PATH is there to be lengthened, also where the image says nothing about it', async t => {
	const { text, image } = await output(t, { Dockerfile: 'FROM base\nENV PATH="/opt/tools/bin:$PATH"\nCOPY --chmod=755 tool /opt/tools/bin/\nRUN tool && ls / > /dev/null\nENV PATH=/first:${PATH}\n', tool: '#!/bin/sh\necho tool\n' }, 'tool; ls -d /usr; echo $PATH');
	const path = '/first:/opt/tools/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
	assert.equal(text, `tool\n/usr\n${path}\n`);
	assert.deepEqual(image.config.Env, [`PATH=${path}`]);
	await nothingLeft();
});

test('an image that is pinned by the digest of a registry is what is here under its name, and that is told', async t => {
	const digest = `sha256:${'0'.repeat(64)}`;
	const { result } = await output(t, { Dockerfile: `FROM base@${digest}\nCOPY --from=base:latest@${digest} /etc/passwd /theirs\n` }, 'cmp /theirs /etc/passwd');
	assert.equal(result.notices.filter(n => n.includes(digest)).length, 2, result.notices.join());
	assert.match((await failed(daemon, { Dockerfile: 'FROM base@nonsense' })).error.message, /not here/);
	await nothingLeft();
});

test('COPY and ADD find files as they do elsewhere', async t => {
	const files = {
		Dockerfile: `FROM base
RUN mkdir /exists && echo owner:x:1500:1501::/:/bin/sh >> /etc/passwd && echo owner:x:1501: >> /etc/group
COPY one.txt /exists
COPY one.txt /renamed.txt
COPY *.txt /all/
COPY dir /dir
COPY dir/ /dir2/
COPY ["with space.md", "/spaced/"]
COPY l?nk /followed
COPY --chown=owner:owner dir /owned
COPY . /everything
ADD archive.tar.gz /unpacked/
ADD one.txt /added/
COPY archive.tar.gz /kept.tar.gz
COPY bin /bin/`,
		'one.txt': 'one', 'two.txt': 'two', 'with space.md': 'space', 'dir/a': 'a', 'dir/.b': 'b', 'dir/sub/c': { data: 'c', mode: 0o755 },
		link: { type: 'symlink', target: 'one.txt' }, 'dir/inner': { type: 'symlink', target: '/etc/passwd' },
		'archive.tar.gz': execFileSync('gzip', ['-nc'], { input: tar([{ name: 'x/y', data: 'packed', uid: 7, gid: 8 }]) }), 'bin/mytool': { data: '#!/bin/sh\necho tool\n', mode: 0o755 },
	};
	const { text } = await output(t, files, 'cd /; cat exists/one.txt renamed.txt; ls -A /all /dir /dir2; cat /spaced/*; cat /followed; stat -c %u:%g /owned /owned/a; ls -A /everything | wc -l; cat /unpacked/x/y; stat -c %u:%g /unpacked/x/y; cat /added/one.txt; test -f /kept.tar.gz && echo kept; readlink /dir/inner; stat -c %a /dir/sub/c; test -L /bin && echo link; mytool');
	assert.equal(text, 'oneone/all:\none.txt\ntwo.txt\n\n/dir:\n.b\na\ninner\nsub\n\n/dir2:\n.b\na\ninner\nsub\nspaceone1500:1501\n1500:1501\n8\npacked7:8\nonekept\n/etc/passwd\n755\nlink\ntool\n');
	await nothingLeft();
});

test('COPY leaves out what --exclude names, in directories and of files, and is not remembered by it', async t => {
	const files = secret => ({
		Dockerfile: `FROM base
ARG KIND=md
COPY --exclude=node_modules --exclude=**/*.log --exclude=!**/keep.log --exclude=sub/[xy] . /all
COPY --exclude=*.txt --exclude=*.$KIND ho* /some/
COPY --exclude=home.txt home.txt /none/
FROM base AS other
COPY --from=0 --exclude=proc --exclude=a.log /all /again
ADD --exclude=sub/* . /added
`,
		'a.log': 'a', 'a.js': 'a', 'node_modules/m/index.js': secret, 'sub/x': 'x', 'sub/z': 'z', 'sub/deep/b.log': 'b', 'sub/deep/keep.log': 'k', 'sub/node_modules/n': 'n',
		'home.txt': 'h', 'home.md': 'h', 'home.js': 'h', 'hole/in.txt': 'i', 'hole/in.js': 'i',
	});
	const list = 'cd /; find all some none again added ! -name Dockerfile 2>/dev/null | LC_ALL=C sort';
	const first = await output(t, files('1'), list, { query: { target: '0' } });
	const all = ['all', 'all/a.js', 'all/hole', 'all/hole/in.js', 'all/hole/in.txt', 'all/home.js', 'all/home.md', 'all/home.txt', 'all/sub', 'all/sub/deep', 'all/sub/deep/keep.log', 'all/sub/node_modules', 'all/sub/node_modules/n', 'all/sub/z'];
	assert.deepEqual(first.text.trim().split('\n'), [...all, 'none', 'some', 'some/home.js', 'some/in.js']);
	assert.deepEqual((await output(t, files('2'), list, { query: { target: '0' } })).result.steps.filter(s => /^COPY/.test(s.text)).map(s => s.cached), [true, true, true], 'what is left out has changed');
	const other = (await output(t, files('1'), list)).text.trim().split('\n');
	assert.deepEqual(other.filter(name => name.startsWith('again')), all.map(name => name.replace('all', 'again')));
	assert.ok(other.includes('added/sub') && !other.includes('added/sub/z') && other.includes('added/node_modules/m/index.js'));
	assert.match((await failed(daemon, { Dockerfile: 'FROM base\nCOPY --exclude=/ . /x' })).error.message, /pattern/);
	await nothingLeft();
});

test('a step that was done before is not done again, until something it depends on changes', async t => {
	const files = (content, last = 'echo end') => ({
		Dockerfile: `FROM base\nRUN date +%N > /first\nCOPY file other /in/\nRUN date +%N > /second\nENV X=1\nRUN ${last}\nARG V\nRUN date +%N > /third`,
		file: content, other: { data: 'o', mtime: 1_600_000_000 + content.length },
	});
	const cached = result => result.steps.filter(s => /^(RUN|COPY)/.test(s.text)).map(s => s.cached);
	const first = await output(t, files('1'), 'cat /first /second /third');
	assert.deepEqual(cached(first.result), [false, false, false, false, false]);
	const again = await output(t, files('1'), 'cat /first /second /third');
	assert.deepEqual(cached(again.result), [true, true, true, true, true]);
	assert.equal(again.text, first.text);
	assert.equal(again.result.done.id, first.result.done.id);
	const other = await output(t, files('2'), 'cat /first /in/file');
	assert.deepEqual(cached(other.result), [true, false, false, false, false]);
	assert.equal(other.text, `${first.text.split('\n')[0]}\n2`);
	const late = await output(t, files('1', 'echo other'), 'cat /first /second');
	assert.deepEqual(cached(late.result), [true, true, true, false, false]);
	assert.equal(late.text, `${first.text.split('\n').slice(0, 2).join('\n')}\n`);
	assert.deepEqual(cached((await output(t, files('1'), 'true', { query: { buildargs: '{"V":"1"}' } })).result), [true, true, true, true, false]);
	assert.deepEqual(cached((await output(t, files('1'), 'true', { query: { nocache: 1 } })).result), [false, false, false, false, false]);
	await nothingLeft();
});

test('what is remembered is so after a restart, too', async t => {
	const files = { Dockerfile: 'FROM base\nRUN date +%N > /first\nRUN echo two' };
	const first = await output(t, files, 'cat /first');
	const pid = daemon.siltd();
	process.kill(pid, 'SIGKILL');
	await until('another siltd', () => daemon.programs('siltd').some(other => other !== pid));
	await daemon.healthy();
	const again = await output(t, files, 'cat /first');
	assert.equal(again.text, first.text);
	await nothingLeft();
});

test('a command that fails ends the build, with its code and what it said, and nothing is left', async () => {
	const result = await failed(daemon, { Dockerfile: 'FROM base\nRUN echo before\nRUN echo loud; echo complaint >&2; exit 42\nRUN echo never' }, { names: ['never-made'] });
	assert.equal(result.error.code, 'BUILD_FAILED');
	assert.equal(result.error.step, 3);
	assert.match(result.error.message, /code 42: complaint/);
	assert.equal(result.output.replace('complaint\n', ''), 'before\nloud\n');
	refused(await daemon.api('GET', '/v1/images/never-made'), 404, 'IMAGE_NOT_FOUND');
	await nothingLeft();
});

test('of many complaints the last are told, by whole lines; that there is no network, too', async () => {
	const result = await failed(daemon, { Dockerfile: 'FROM base\nRUN for i in $(seq 100 199); do echo "complaint number $i" >&2; done; exit 3' });
	assert.match(result.error.message, /code 3: complaint number 1\d\d\n(complaint number 1\d\d\n)+complaint number 199$/);
	assert.ok(result.error.message.length < 400);
	assert.ok(result.notices.some(text => /no network/.test(text)), JSON.stringify(result.notices));
});

const WRONG = {
	'no FROM': ['RUN true', /FROM/],
	'an unknown instruction': ['FROM base\nFLY away', /line 2.*FLY/],
	'an image that is not here': ['FROM nowhere/image:1', /nowhere\/image:1.*not here/],
	'a file that is not there': ['FROM base\nCOPY missing /x', /missing/],
	'a file outside of the context': ['FROM base\nCOPY ../../etc/passwd /x', /out of the context|no such/],
	'a link that leads out of the context': ['FROM base\nCOPY out /x', /out of the context/],
	'a remote file': ['FROM base\nADD https://example.com/x /x', /context only/],
	'a heredoc without an end': ['FROM base\nRUN <<EOF\necho', /heredoc/],
	'a command in the machine\'s own network': ['FROM base\nRUN --network=host true', /none or default: this machine's own/],
	'an unknown flag': ['FROM base\nRUN --device=x cat /x', /device/],
	'an unknown owner': ['FROM base\nCOPY --chown=nobody-knows file /x', /chown/],
	'another platform': ['FROM --platform=linux/arm64 base', /arm64/],
	'a variable that is unclear': ['FROM base\nENV A=${B!}', /variable/],
	'a user of more bytes than a sandbox takes': [`FROM base\nUSER ${'u'.repeat(200)}`, /User/],
	'nothing in it': ['', /FROM/],
};
for (const [name, [text, message]] of Object.entries(WRONG))
	test(`a Dockerfile with ${name} is refused with a sentence`, async () => {
		const result = await failed(daemon, { Dockerfile: text, file: 'x', out: { type: 'symlink', target: '/etc/passwd' } });
		assert.match(result.error.message, message);
	});

test('without a Dockerfile, or with bad options, there is an answer, too', async () => {
	assert.match((await failed(daemon, { file: 'x' })).error.message, /Dockerfile/);
	assert.match((await failed(daemon, Buffer.from('this is no tar'.repeat(100)))).error.message, /context/);
	for (const query of [{ network: 'host' }, { buildargs: '[]' }, { buildargs: '{"A":1}' }])
		refused((await build(daemon, { Dockerfile: 'FROM base' }, { query })).answer, 400, 'VALIDATION_FAILED');
	refused((await build(daemon, { Dockerfile: 'FROM base' }, { names: ['Bad'] })).answer, 400, 'VALIDATION_FAILED');
	const { done } = await built(daemon, { 'sub/My.Dockerfile': 'FROM base\nENV A=1' }, { query: { dockerfile: 'sub/My.Dockerfile' }, names: ['elsewhere'] });
	assert.deepEqual(done.names, ['elsewhere']);
	await remove('elsewhere');
	const nameless = await built(daemon, { Dockerfile: 'FROM base\nENV NAMELESS=1' });
	assert.deepEqual(nameless.done.names, []);
	assert.deepEqual((await daemon.api('GET', `/v1/images/${nameless.done.id}`)).body.config.Env, ['NAMELESS=1']);
	await nothingLeft();
	refused(await daemon.api('GET', `/v1/images/${nameless.done.id}`), 404, 'IMAGE_NOT_FOUND');
});

test('names of the official images stand for base, and that is told; the version in their tag is what clients hear', async t => {
	for (const [name, version] of [['docker.io/cloudflare/sandbox:0.12.10', '0.12.10'], ['cloudflare/sandbox:0.12.9-python', '0.12.9'], ['ghostwriternr/cloudflare-sandbox:0.0.5', '0.0.5'], ['cloudflare/sandbox:latest'], ['cloudflare/sandbox:1.2.3x'],
		[`cloudflare/sandbox:0.12.8@sha256:${'0'.repeat(64)}`, '0.12.8'], [`cloudflare/sandbox@sha256:${'0'.repeat(64)}`]]) {
		const { notices, done } = await built(daemon, { Dockerfile: `FROM ${name} AS first\nFROM first\nENV A=1` }, { names: ['official'] });
		assert.ok(notices.some(n => n.includes('base')), notices.join());
		assert.ok(done);
		const { Env } = (await daemon.api('GET', '/v1/images/official')).body.config;
		assert.deepEqual(Env, [...(version ? [`SANDBOX_VERSION=${version}`] : []), 'A=1']);
		const box = await daemon.box(t, { image: 'official' });
		const told = (await box.api('GET', '/api/version')).body.version;
		assert.equal(await box.out('echo $SANDBOX_VERSION'), `${told}\n`);
		if (version)
			assert.equal(told, version);
		await box.destroy();
	}
	assert.equal((await daemon.api('GET', '/v1/images/official')).body.config.Labels['silt.control'], 'builtin');
	await remove('official');
	await nothingLeft();
});

test('RUN --network is fine without any network, too, and is part of what a step is remembered by', async () => {
	const file = flag => ({ Dockerfile: `FROM base\nRUN ${flag} date +%N\nRUN --network=none echo two\nRUN echo three` });
	const cached = result => result.steps.slice(1).map(s => s.cached);
	const first = await built(daemon, file('--network=default'));
	assert.match(first.output, /^\d+\ntwo\nthree\n$/);
	assert.deepEqual(cached(await built(daemon, file(''))), [true, true, true]);
	assert.deepEqual(cached(await built(daemon, file('--network=none'))), [false, false, false]);
	await nothingLeft();
});

test('what a command leaves running does not reach the next one', async t => {
	const { text } = await output(t, { Dockerfile: 'FROM base\nRUN (setsid sleep 1000.79 >/dev/null 2>&1 &); sleep 0.2\nRUN for p in /proc/[0-9]*; do tr "\\0" " " < $p/cmdline 2>/dev/null; echo; done | grep -c "sleep 1000.7[9]" > /count; true' }, 'cat /count');
	assert.equal(text, '0\n');
	await nothingLeft();
});

for (const [what, sh] of [['without a shell', ''], ['whose shell says that it has done what it was told', "printf '#!/bin/bash\\n' > /usr/bin/sh; chmod 755 /usr/bin/sh; "]])
	test(`also in an image ${what}`, async t => {
		const bash = text => `RUN ${JSON.stringify(['/bin/bash', '-c', text])}`;
		const { text } = await output(t, { Dockerfile: `FROM base\n${bash(`rm -f /bin/sh /usr/bin/sh; ${sh}(setsid sleep 1000.77 >/dev/null 2>&1 &); sleep 0.2`)}\n${bash('for p in /proc/[0-9]*; do tr "\\0" " " < $p/cmdline 2>/dev/null; echo; done | grep -c "sleep 1000.7[7]" > /count; true')}\n` }, 'cat /count; wc -c < /bin/sh || echo none');
		assert.equal(text, sh ? '0\n12\n' : '0\nnone\n');
		await nothingLeft();
	});

test('a thousand steps that need no command are done one after the other', async t => {
	const { image } = await output(t, { Dockerfile: `FROM base\n${Array.from({ length: 1000 }, (_, i) => `LABEL last=${i}`).join('\n')}\n` }, 'true');
	assert.equal(image.config.Labels.last, '999');
	await nothingLeft();
});

test('what somebody knows by its digest only is kept, also without a cache', async () => {
	const other = await startDaemon({ flags: { 'build.cache': 0 } });
	try {
		const { done } = await built(other, { Dockerfile: 'FROM base\nRUN echo x > /x\nENV A=1' });
		assert.deepEqual((await other.api('GET', `/v1/images/${done.id}`)).body.config.Env, ['A=1']);
		const again = await built(other, { Dockerfile: 'FROM base\nRUN echo x > /x\nENV B=1' });
		assert.ok(again.steps.every(s => !s.cached));
		assert.equal((await other.api('GET', `/v1/images/${done.id}`)).status, 200);
	} finally {
		await other.stop();
	}
});

test('an image that is removed while a COPY from it waits is not there any more, and nothing worse', async () => {
	const slow = '#!/bin/sh\n[ "$1" = -g ] || sleep 1000.81\necho 7\n'; // whoever asks for an owner waits
	await built(daemon, { Dockerfile: 'FROM base\nCOPY --chmod=755 id /usr/bin/id\n', id: slow }, { names: ['slow'] });
	await built(daemon, { Dockerfile: 'FROM base\nRUN echo x > /x\n' }, { names: ['victim'] });
	const running = failed(daemon, { Dockerfile: 'FROM slow\nCOPY --from=victim --chown=bob /x /y\n' });
	const [sleeper] = await until('the owner is looked up', () => { const found = daemon.marked('1000.81'); return found.length > 0 && found; });
	await remove('victim');
	await daemon.api('POST', '/v1/images/prune');
	process.kill(sleeper.pid, 'SIGKILL');
	assert.match((await running).error.message, /removed meanwhile/);
	await until('no sandbox of the build holds it', async () => (await remove('slow')).status === 200);
	await nothingLeft();
});

test('a Dockerfile with variables without end holds nobody up', async () => {
	const names = from => Array.from({ length: 1000 }, (_, i) => `v${from + i}=`).join(' ');
	const lines = Array.from({ length: 2 }, (_, i) => `ENV ${names(i * 1000)}`).join('\n');
	const { error } = await failed(daemon, { Dockerfile: `FROM base\n${lines}\nLABEL a=${'$z'.repeat(400_000)}\n` });
	assert.match(error.message, /variables/);
	await nothingLeft();
});

test('steps that are remembered go before the disk of all sandboxes is full', async () => {
	const small = await startDaemon({ flags: { 'disk.pool': '512M' } });
	try {
		for (let i = 0; i < 14; i++) // what was removed is room again a moment later
			await until(`build ${i}`, async () => (await build(small, { Dockerfile: `FROM base\nRUN head -c 40000000 /dev/urandom > /big && echo ${i}\n` }, { names: ['big'] })).done);
		const box = await small.box(undefined, { image: 'big' });
		assert.equal(await box.out('stat -c %s /big'), '40000000\n');
		await box.destroy();
	} finally {
		await small.stop();
	}
});

test('a client that leaves ends its build', async () => {
	const raw = await daemon.client.raw();
	const body = context({ Dockerfile: 'FROM base\nRUN echo started; sleep 1000.77' });
	raw.send(`POST /v1/images/build?t=left HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${daemon.token}\r\nContent-Type: application/x-tar\r\nContent-Length: ${body.length}\r\n\r\n`);
	raw.send(body);
	await until('it runs', () => daemon.marked('1000.77').length > 0);
	raw.socket.destroy();
	await until('it has ended', () => daemon.marked('1000.77').length === 0);
	refused(await daemon.api('GET', '/v1/images/left'), 404, 'IMAGE_NOT_FOUND');
	const half = await daemon.client.raw();
	half.send(`POST /v1/images/build?t=left HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${daemon.token}\r\nContent-Type: application/x-tar\r\nContent-Length: 100000\r\n\r\n`);
	half.send(body.subarray(0, 600));
	await until('its sandbox is there', async () => (await sandboxes()).some(id => id.startsWith('build-')));
	half.socket.destroy();
	await nothingLeft();
});

test('a siltd that is killed in the middle leaves nothing', async () => {
	const running = build(daemon, { Dockerfile: 'FROM base\nRUN echo x > /x\nRUN sleep 1000.78' }).catch(() => undefined);
	await until('it runs', () => daemon.marked('1000.78').length > 0);
	const pid = daemon.siltd();
	process.kill(pid, 'SIGKILL');
	await running;
	await until('another siltd', () => daemon.programs('siltd').some(other => other !== pid));
	await daemon.healthy();
	await until('it has ended', () => daemon.marked('1000.78').length === 0);
	await nothingLeft();
});

const HOSTILE = {
	'a name with ..': [{ name: '../../escaped', data: 'x' }],
	'an absolute name': [{ name: '/escaped', data: 'x' }],
	'a file through a symlink': [{ name: 'out', type: 'symlink', target: '/etc' }, { name: 'out/escaped', data: 'x' }],
	'a hard link to a file outside': [{ name: 'hard', type: 'hardlink', target: '/etc/shadow' }],
	'a device': [{ name: 'null', type: 'char', major: 1, minor: 3 }],
};
for (const [name, entries] of Object.entries(HOSTILE))
	test(`a context with ${name} harms nobody`, async t => {
		const plain = tar([{ name: 'Dockerfile', data: 'FROM base\nCOPY . /all\nRUN ls /escaped /etc/escaped 2>/dev/null || echo clean' }]);
		const result = await build(daemon, Buffer.concat([plain.subarray(0, plain.length - 1024), tar(entries)]), { query: { nocache: 1 } });
		assert.ok(result.done || result.error, 'there is an answer');
		const box = await daemon.box(t, {});
		assert.equal(await box.out('ls /escaped /etc/escaped 2>/dev/null; echo fine'), 'fine\n');
		await box.destroy();
		await nothingLeft();
	});

test('a hundred builds leave no sandbox, no layer, no descriptor', async () => {
	await built(daemon, { Dockerfile: 'FROM base\nCOPY a /a\nRUN echo x > /x', a: 'first' });
	await nothingLeft();
	const before = await daemon.atRest();
	for (let i = 0; i < 100; i += 4)
		await Promise.all(Array.from({ length: 4 }, (_, k) => built(daemon, { Dockerfile: `FROM base\nCOPY a /a\nRUN echo ${i + k} > /x`, a: `${i + k}` }, { names: [`many:${i + k}`] })));
	for (let i = 0; i < 100; i++)
		assert.equal((await remove(`many:${i}`)).body.deleted, true);
	await nothingLeft();
	await daemon.settles(before);
});
