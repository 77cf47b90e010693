// SPDX-License-Identifier: Apache-2.0
// What people do as root in their computer must work with the capabilities it has. Needs the image `base`.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';

let daemon;
before(async () => { daemon = await startDaemon({ flags: { image: 'base' } }); });
after(() => daemon?.stop());

const MAKE_REPOSITORY = `set -u
mkdir -p /tmp/hello/DEBIAN /tmp/hello/usr/bin /tmp/repo
printf 'Package: silt-hello\\nVersion: 1.0\\nArchitecture: all\\nMaintainer: Nobody <nobody@example.org>\\nDescription: a greeting\\n' > /tmp/hello/DEBIAN/control
printf '#!/bin/sh\\necho hello from a package\\n' > /tmp/hello/usr/bin/silt-hello
printf '#!/bin/sh\\nset -e\\nuseradd --system --user-group greeter\\nchown greeter:greeter /usr/bin/silt-hello\\n' > /tmp/hello/DEBIAN/postinst
chmod 755 /tmp/hello/DEBIAN/postinst /tmp/hello/usr/bin/silt-hello
dpkg-deb --build /tmp/hello /tmp/repo/silt-hello_1.0_all.deb
{ dpkg-deb -f /tmp/repo/silt-hello_1.0_all.deb
  echo "Filename: ./silt-hello_1.0_all.deb"
  echo "Size: $(stat -c %s /tmp/repo/silt-hello_1.0_all.deb)"
  echo "SHA256: $(sha256sum /tmp/repo/silt-hello_1.0_all.deb | cut -d' ' -f1)"; } > /tmp/repo/Packages
chmod -R a+rX /tmp/repo
echo 'deb [trusted=yes] file:/tmp/repo ./' > /tmp/local.list`;

test('apt-get installs from a local repository', async t => {
	const box = await daemon.box(t);
	await box.out(MAKE_REPOSITORY, { sessionId: 'make' });
	const apt = 'apt-get -o Dir::Etc::sourcelist=/tmp/local.list -o Dir::Etc::sourceparts=- -y';
	await box.out(`${apt} update && ${apt} install silt-hello`, {}, { deadline: 400_000 });
	assert.equal(await box.out('silt-hello; stat -c %U /usr/bin/silt-hello'), 'hello from a package\ngreeter\n');
	await box.out(`${apt} remove silt-hello`, {}, { deadline: 400_000 });
	assert.equal((await box.run('silt-hello')).exitCode, 127);
});

const MAKE_WHEEL = `python3 - <<'EOF'
import zipfile
with zipfile.ZipFile('/tmp/silthello-1.0-py3-none-any.whl', 'w') as z:
    z.writestr('silthello.py', 'def greet():\\n    return "hello from a wheel"\\n')
    z.writestr('silthello-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: silthello\\nVersion: 1.0\\n')
    z.writestr('silthello-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: hand\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    z.writestr('silthello-1.0.dist-info/RECORD', '')
EOF`;

test('pip installs a local wheel without being told about managed environments', async t => {
	const box = await daemon.box(t);
	await box.out(MAKE_WHEEL);
	await box.out('pip install --no-index /tmp/silthello-1.0-py3-none-any.whl', {}, { deadline: 400_000 });
	assert.equal(await box.out('python -c "import silthello; print(silthello.greet())"'), 'hello from a wheel\n');
});

test('a virtual environment works', async t => {
	const box = await daemon.box(t);
	await box.out(MAKE_WHEEL);
	await box.out('python3 -m venv /workspace/venv && /workspace/venv/bin/pip install --no-index /tmp/silthello-1.0-py3-none-any.whl', {}, { deadline: 400_000 });
	assert.equal(await box.out('/workspace/venv/bin/python -c "import silthello; print(silthello.greet())"'), 'hello from a wheel\n');
});

test('su and sudo as root become another user', async t => {
	const box = await daemon.box(t);
	await box.out('useradd --create-home probe');
	assert.equal(await box.out('su -s /bin/sh probe -c "id -un; touch ~/mine"; stat -c %U /home/probe/mine'), 'probe\nprobe\n');
	assert.equal(await box.out('sudo -u probe id -un'), 'probe\n');
	assert.equal(await box.out('sudo id -un'), 'root\n');
});

test('root may own, chown and give capabilities to files', async t => {
	const box = await daemon.box(t);
	await box.out('install -o 1000 -g 1000 -m 640 /etc/passwd /opt/owned; chown 33:33 /opt/owned');
	assert.equal(await box.out('stat -c "%u %g %a" /opt/owned'), '33 33 640\n');
	assert.equal(await box.out('cp /bin/true /opt/true; chmod 4755 /opt/true; stat -c %a /opt/true'), '4755\n');
});

test('low ports and ping work without capabilities', async t => {
	const box = await daemon.box(t);
	assert.equal(await box.out('python3 -c "import socket; s = socket.socket(); s.bind((\'127.0.0.1\', 80)); print(s.getsockname()[1])"'), '80\n');
	assert.match(await box.out('ping -c 1 -W 5 127.0.0.1'), /1 received/);
});

test('the promised programs are there', async t => {
	const box = await daemon.box(t);
	const programs = 'bash python python3 pip pip3 ipython3 node npm bun git gcc make pkg-config vim nano htop ps curl wget jq ping dig netstat zip unzip file'.split(' ');
	assert.equal(await box.out(`for p in ${programs.join(' ')}; do command -v $p > /dev/null || echo missing $p; done; echo looked`), 'looked\n');
	assert.match(await box.out('node --version; python --version'), /^v24\.\d+\.\d+\nPython 3\.11\.\d+\n$/);
	assert.equal(await box.out('python -c "import IPython, numpy, pandas, matplotlib, jinja2; print(1)"', {}, { deadline: 60_000 }), '1\n');
	await box.out('test -s /etc/ssl/certs/ca-certificates.crt');
});

test('gcc makes a program that runs', async t => {
	const box = await daemon.box(t);
	assert.equal(await box.out('printf \'#include <stdio.h>\\nint main(void) { puts("compiled"); }\\n\' > a.c && gcc a.c -o a && ./a'), 'compiled\n');
});
