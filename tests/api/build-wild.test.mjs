// SPDX-License-Identifier: Apache-2.0
// Dockerfiles as they are found in the wild, and what Docker's reference says that they do.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { built, failed } from '../lib/build.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { tar } from '../lib/tar.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

/** Builds; answers what its commands have printed, its configuration, its notices. */
async function make(text, files = {}, options = {}) {
	const { output, done, notices } = await built(daemon, { Dockerfile: text, ...files }, options);
	return { output, notices, config: (await daemon.api('GET', `/v1/images/${done.id}`)).body.config };
}

test('a Node app: lock files that may be missing, a user of its own, a directory that is theirs', async () => {
	const { output, config } = await make(`# syntax=docker/dockerfile:1
ARG NODE_VERSION=20
FROM base AS base
RUN groupadd --gid 1500 nodejs && useradd --uid 1501 --gid nodejs --create-home app

FROM base AS deps
USER app
WORKDIR /srv/app/new
WORKDIR /srv/app
# whichever package manager it is
COPY --chown=app:nodejs package.json yarn.lock* package-lock.json* pnpm-lock.yaml* .npmrc* ./
RUN --mount=type=cache,target=/root/.npm \\
    if [ -f yarn.lock ]; then echo yarn; \\
    elif [ -f package-lock.json ]; then echo npm ci; mkdir node_modules; \\
    else echo "Lockfile not found." && exit 1; \\
    fi
RUN stat -c '%U:%G %n' /srv . new package.json node_modules && ls -A

FROM base AS runner
WORKDIR /app
ENV NODE_ENV=production PORT=3000
COPY --from=deps --chown=1501:1500 /srv/app/node_modules ./node_modules
COPY . .
USER app:nodejs
RUN touch /app/x 2>/dev/null || echo root\\'s; id -un; id -Gn
EXPOSE 3000
HEALTHCHECK --interval=30s --timeout=3s \\
  CMD node health.js || exit 1
CMD ["node", "server.js"]
`, { 'package.json': '{}', 'package-lock.json': '{}', 'server.js': '' });
	assert.equal(output, "npm ci\nroot:root /srv\napp:nodejs .\napp:nodejs new\napp:nodejs package.json\napp:nodejs node_modules\nnew\nnode_modules\npackage-lock.json\npackage.json\nroot's\napp\nnodejs\n");
	assert.equal(config.User, 'app:nodejs');
	assert.deepEqual(config.Cmd, ['node', 'server.js']);
	assert.deepEqual(config.Env.filter(e => !e.startsWith('PATH=')), ['NODE_ENV=production', 'PORT=3000']);
});

test('a Python app: quoted arguments, long lines with comments in them, a virtual environment in PATH', async () => {
	const { output } = await make(`FROM base
ARG GREETING="hello   world" NAME='a b'
ENV PYTHONDONTWRITEBYTECODE=1 \\
    # comments may stand here
    VIRTUAL_ENV=/opt/venv \\

    MOTTO="say \\"hi\\"" PLAIN=a\\ b
ENV PATH="$VIRTUAL_ENV/bin:$PATH"
RUN mkdir -p /opt/venv/bin && printf '#!/bin/sh\\necho tool\\n' > /opt/venv/bin/tool && chmod +x /opt/venv/bin/tool
WORKDIR /first
WORKDIR sub
COPY requirements.txt .
RUN set -e \\
 # one
 && tool \\
    # two
 && echo "$GREETING|$NAME|$MOTTO|$PLAIN"  2>&1 \\
 && cat requirements.txt && pwd
`, { 'requirements.txt': 'flask\n' });
	assert.equal(output, 'tool\nhello   world|a b|say "hi"|a b\nflask\n/first/sub\n');
	assert.equal((await make('FROM base\nARG A B=two\nARG C=x"y z"\\ w\nRUN echo "$A|$B|$C"\n', {}, { query: { buildargs: '{"A":"g i v e n"}' } })).output, 'g i v e n|two|xy z w\n');
});

test('variables with choices and patterns', async () => {
	const { config } = await make(`ARG TAG=v1.2.3
ARG BASE=base
FROM \${BASE:-nothing} AS one
ARG TAG
ENV EMPTY= FILE=/srv/lib/app.tar.gz
ENV A=\${TAG#v} B=\${TAG%.*} C=\${TAG%%.*} D=\${FILE##*/} E=\${FILE#*/} F=\${FILE/lib/bin} G=\${FILE//a/A} H=\${TAG:-no} I=\${NONE:-yes} J=\${EMPTY:-x} K=\${EMPTY-x} L=\${TAG:+set} M=\${NONE:+set} N="\${TAG#?1}" O=\${TAG#x} P=\\\${TAG} Q=\${FILE%.gz}/\${TAG/v/} R=\${FILE//\\//-} S=\${NONE#v}
LABEL "com.example.vendor"="ACME \${TAG}" version=\${TAG#v} \\
      description="two \\
lines"
`);
	const env = config.Env.filter(e => /^[A-S]=/.test(e));
	assert.deepEqual(env, ['A=1.2.3', 'B=v1.2', 'C=v1', 'D=app.tar.gz', 'E=srv/lib/app.tar.gz', 'F=/srv/bin/app.tar.gz', 'G=/srv/lib/App.tAr.gz', 'H=v1.2.3', 'I=yes', 'J=x', 'K=', 'L=set', 'M=', 'N=.2.3', 'O=v1.2.3',
		'P=${TAG}', 'Q=/srv/lib/app.tar/1.2.3', 'R=-srv-lib-app.tar.gz', 'S=']);
	assert.equal(config.Labels['com.example.vendor'], 'ACME v1.2.3');
	assert.equal(config.Labels.version, '1.2.3');
	assert.equal(config.Labels.description, 'two lines');
});

test('heredocs: scripts, scripts with an interpreter of their own, files', async () => {
	const { output } = await make(`# syntax=docker/dockerfile:1.4
FROM base
ARG WHO=world
RUN <<EOF
set -e
echo "hello $WHO"
cat > /made <<INNER
nested $WHO
INNER
EOF
RUN <<EOF
#!/usr/bin/env python3
import os
print("python", os.environ["WHO"], 1 + 1)
EOF
RUN python3 <<'EOF'
print("$WHO")
EOF
RUN cat <<ONE; cat <<-TWO
one
ONE
	two
TWO
COPY --chmod=755 <<-"EOF" /usr/local/bin/start
	#!/bin/sh
	echo "started $1"
	EOF
COPY <<EOF /etc/app/config.ini
who=$WHO
cost=\\$5
EOF
COPY <<a.txt <<b.txt /files/
A
a.txt
B
b.txt
USER nobody
RUN <<EOF
#!/bin/sh
start now
id -un
exit 0
EOF
RUN cat /made /etc/app/config.ini /files/a.txt /files/b.txt; ls -A /dev/shm
`);
	assert.equal(output, 'hello world\npython world 2\n$WHO\none\ntwo\nstarted now\nnobody\nnested world\nwho=world\ncost=$5\nA\nB\n');
	assert.match((await failed(daemon, { Dockerfile: 'FROM base\nRUN <<EOF\n#!/bin/sh\nexit 9\nEOF\n' })).error.message, /code 9/);
});

test('parser directives, line ends of another system, a byte order mark', async () => {
	const text = '\ufeff# escape=`\r\n# syntax=docker/dockerfile:1\r\n\r\nFROM base\r\nENV WHERE=C:\\dir\\ `\r\n    B=2\r\nRUN echo one `\r\n    # between\r\n    two "$WHERE"\r\nRUN <<EOF\r\necho three\r\nEOF\r\n';
	assert.equal((await make(text)).output, 'one two C:\\dir\\\nthree\n');
	assert.equal((await make('# a comment = with a sign\n# escape=`\nFROM base\nRUN echo one \\\n  two\n')).output, 'one two\n', 'behind a comment it is one, too');
});

test('COPY and ADD: modes by letters, globs that fit nothing, archives, names', async () => {
	const archive = tar([{ name: 'inner/x', data: 'x', uid: 7, gid: 8 }]);
	const { output } = await make(`FROM base
WORKDIR /w
COPY --link --chmod=u=rwx,go=rx src/tool /bin/
COPY --chmod=0640 --chown=7 src/[ab].txt conf?/*.ini ./
COPY src/none* docs*/ /empty/
ADD a.tar /unpacked/
ADD --chown=5:6 src/a.txt /added
COPY a.tar kept.tar
COPY ["src/with space.txt", "/spaced/"]
COPY src/dir/ /dir
RUN stat -c '%a %u:%g %n' /bin/tool a.txt b.txt c.ini && ls -A /empty && cat /unpacked/inner/x && stat -c ' %u %n' /unpacked/inner/x /added kept.tar && ls /spaced /dir
`, { 'src/tool': '#!/bin/sh\n', 'src/a.txt': '', 'src/b.txt': '', 'conf1/c.ini': '', 'src/with space.txt': '', 'src/dir/one': '', 'a.tar': archive });
	assert.equal(output, '755 0:0 /bin/tool\n640 7:7 a.txt\n640 7:7 b.txt\n640 7:7 c.ini\nx 7 /unpacked/inner/x\n 5 /added\n 0 kept.tar\n/dir:\none\n\n/spaced:\nwith space.txt\n');
	assert.match((await failed(daemon, { Dockerfile: 'FROM base\nCOPY --chmod=u+q x /x', x: '' })).error.message, /chmod/);
	assert.match((await failed(daemon, { Dockerfile: 'FROM base\nCOPY x? none /x/', x1: '' })).error.message, /none/);
});

test('COPY --parents keeps the directories of what is copied, from a pivot on', async () => {
	const files = { 'package.json': '1', 'packages/a/package.json': '2', 'packages/a/src/x.js': '3', 'packages/b/package.json': '4', 'packages/b/node_modules/c/package.json': '5', 'out': { type: 'symlink', target: '/etc' } };
	const { output } = await make(`FROM base AS one
WORKDIR /w
COPY --parents --exclude=**/node_modules package.json packages/*/package.json **/package.json ./
RUN find . -type f | LC_ALL=C sort
COPY --parents --chown=7:8 packages/./a /pivot/
RUN find /pivot | LC_ALL=C sort; stat -c %u /pivot/a/src/x.js
FROM base
COPY --parents --from=one /w/packages/./a/package.json /w/none* /got
RUN find /got -type f
COPY --parents=false packages/a/package.json /plain/
RUN ls /plain
`, files);
	assert.equal(output, './package.json\n./packages/a/package.json\n./packages/b/package.json\n/pivot\n/pivot/a\n/pivot/a/package.json\n/pivot/a/src\n/pivot/a/src/x.js\n7\n/got/a/package.json\npackage.json\n');
	assert.match((await failed(daemon, { Dockerfile: 'FROM base\nCOPY --parents out/passwd /x/', ...files })).error.message, /out of the context/);
	assert.match((await failed(daemon, { Dockerfile: 'FROM base\nCOPY --parents ../../etc/passwd /x/', ...files })).error.message, /out of the context/);
});

test('what an image says: ports in ranges, shells, signals, and what has no effect', async () => {
	const { config, notices, output } = await make(`FROM base
MAINTAINER Somebody <some@example.com>
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
RUN [[ a == a ]] && echo bash
EXPOSE 80 443/tcp 8000-8002 53/UDP
VOLUME ["/data"]
VOLUME /log /tmp/x
ONBUILD RUN echo later
STOPSIGNAL SIGQUIT
HEALTHCHECK NONE
USER 1000:1000
ENTRYPOINT exec top -b
CMD ["--flag"]
`);
	assert.equal(output, 'bash\n');
	assert.deepEqual(Object.keys(config.ExposedPorts), ['80/tcp', '443/tcp', '8000/tcp', '8001/tcp', '8002/tcp', '53/udp']);
	assert.equal(config.StopSignal, 'SIGQUIT');
	assert.deepEqual(config.Entrypoint, ['/bin/bash', '-o', 'pipefail', '-c', 'exec top -b']);
	assert.deepEqual(config.Cmd, ['--flag']);
	assert.deepEqual(notices.map(n => n.split(' ')[2]), ['VOLUME', 'VOLUME', 'ONBUILD', 'HEALTHCHECK']);
	for (const ports of ['8002-8000', '0-5', '1-99999', 'x', '1-', '1-5000'])
		assert.match((await failed(daemon, { Dockerfile: `FROM base\nEXPOSE ${ports}` })).error.message, /EXPOSE|remember/, ports);
});

test('stages of a compiled program: the platform, binds over the working directory, a target by number', async () => {
	const text = `# syntax=docker/dockerfile:1
FROM --platform=$BUILDPLATFORM base AS build
ARG TARGETOS TARGETARCH
WORKDIR /src
RUN --mount=type=cache,target=/go/pkg/mod/ \\
    --mount=type=bind,source=go.sum,target=go.sum \\
    --mount=type=bind,source=go.mod,target=go.mod \\
    cat go.mod go.sum
RUN --mount=type=bind,target=. \\
    cat main.go > /bin/server && echo "$TARGETOS/$TARGETARCH"
RUN ls -A

FROM base AS final
ARG UID=10001
RUN useradd \\
    --home-dir "/nonexistent" \\
    --shell "/sbin/nologin" \\
    --no-create-home \\
    --uid "\${UID}" \\
    appuser
USER appuser
COPY --from=build /bin/server /bin/
RUN id -un && cat /bin/server
ENTRYPOINT [ "/bin/server" ]
`;
	const files = { 'go.mod': 'mod\n', 'go.sum': 'sum\n', 'main.go': 'main\n' };
	assert.equal((await make(text, files)).output, 'mod\nsum\nlinux/amd64\nappuser\nmain\n');
	assert.equal((await make(text, files, { query: { target: '0' } })).config.WorkingDir, '/src');
});
