// SPDX-License-Identifier: Apache-2.0
// RUN steps that install software from the internet: apt-get, pip and npm against real servers in a world of the test's own.
import '../lib/registry.mjs';
import '../lib/inside.mjs';
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { built, failed } from '../lib/build.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { NETWORK } from '../lib/internet.mjs';
import { Services, TRUST } from '../lib/services.mjs';

let services, daemon;
before(async () => {
	services = await Services.start(['npm', 'pip', 'apt']);
	daemon = await startDaemon({ flags: { ...NETWORK.flags, image: 'base' } });
});
after(async () => {
	await daemon?.stop();
	await services?.stop();
});

const FILE = () => `FROM docker.io/cloudflare/sandbox:0.12.10
COPY ca.pem /tmp/ca.pem
ENV ${Object.entries(TRUST).map(([name, value]) => `${name}=${value}`).join(' ')}
RUN echo 'deb [trusted=yes] http://deb.example.test ./' > /etc/apt/sources.list && rm -rf /etc/apt/sources.list.d && \\
    apt-get -o Acquire::Retries=0 -qq update && apt-get -qq install -y silt-hello >/dev/null && rm -rf /var/lib/apt/lists/*
RUN pip install -q --disable-pip-version-check --root-user-action ignore --retries 0 --index-url https://pypi.example.test/simple silthello
WORKDIR /app
COPY package.json .
RUN npm install --no-audit --fetch-retries=0 --registry https://registry.npm.test/
COPY . .
CMD ["node", "index.js"]
`;

const files = () => ({
	Dockerfile: FILE(), 'ca.pem': services.authority,
	'package.json': JSON.stringify({ name: 'app', dependencies: { 'silt-hello': '*' } }),
	'index.js': "console.log(require('silt-hello')())",
});

test('a Dockerfile installs with apt-get, pip and npm, and the image has it all', async t => {
	const { output, notices } = await built(daemon, files(), { names: ['world'], deadline: 280_000 });
	assert.ok(notices.some(text => text.includes('base')), output);
	const box = await daemon.box(t, { image: 'world', network: { mode: 'none' } });
	assert.equal(await box.out('silt-hello; python3 -c "import silthello; print(silthello.greet())"; node index.js; pwd'), 'hello from a package\nhello from a wheel\nhello from a module\n/app\n');
	await box.destroy();
	const again = await built(daemon, { ...files(), 'index.js': "console.log('changed', require('silt-hello')())" }, { names: ['world'], deadline: 280_000 });
	assert.deepEqual(again.steps.filter(s => /^(RUN|COPY|WORKDIR)/.test(s.text)).map(s => s.cached), [true, true, true, true, true, true, false]);
	const changed = await daemon.box(t, { image: 'world', network: { mode: 'none' } });
	assert.equal(await changed.out('node index.js'), 'changed hello from a module\n');
	await changed.destroy();
	await daemon.api('DELETE', '/v1/images/world');
});

test('commands of a build reach the internet, and nothing with --network none', async () => {
	const file = { Dockerfile: 'FROM base\nRUN curl -sS --max-time 30 http://www.example.test/ > /page' };
	await built(daemon, file);
	const { error } = await failed(daemon, file, { query: { network: 'none' } });
	assert.match(error.message, /resolve host|Couldn't connect|refused/);
});

test('RUN --network=none has no network, and the next command has it again', async () => {
	const get = 'curl -sS --max-time 30 -o /dev/null http://www.example.test/';
	const { output } = await built(daemon, { Dockerfile: `FROM base
RUN --network=none ls /sys/class/net; ${get} 2>/dev/null || echo alone
RUN ${get} && echo reached
RUN --network=none ${get} 2>/dev/null || echo alone again
RUN --network=default ${get} && echo reached again
` });
	assert.match(output, /alone\nreached\nalone again\nreached again\n$/);
	const all = await built(daemon, { Dockerfile: `FROM base\nRUN --network=default ${get} 2>/dev/null || echo alone\n` }, { query: { network: 'none' } });
	assert.equal(all.output, 'alone\n', 'the build as a whole has none');
});
