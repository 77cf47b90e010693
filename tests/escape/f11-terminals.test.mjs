// SPDX-License-Identifier: Apache-2.0
// F11: what guests and callers name things must not command the terminal of whoever lists them, nor forge lines of the daemon's log. (What programs
// print is passed on as it is by exec, logs and shell: that is what these are for.)
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { Engine } from '../lib/engine.mjs';
import { silt as runSilt } from '../lib/silt.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon({ flags: { 'log.level': 'debug' } }); });
after(() => daemon?.stop());

const EVIL = '\u001b[2J\u001b]0;owned\u0007\u009b31m\rforged\u0008\u007f';
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/u;

const silt = async (...args) => {
	const end = await runSilt(daemon, args);
	assert.doesNotMatch(end.stdout, CONTROL, `silt ${JSON.stringify(args)} on its output`);
	assert.doesNotMatch(end.stderr, CONTROL, `silt ${JSON.stringify(args)} as a complaint`);
	return end;
};

test('F11 no name that a guest or a caller chose commands a terminal or forges a line of the log', async t => {
	const box = await daemon.box(t, { labels: { note: EVIL } });
	await box.api('POST', '/api/mkdir', { path: `/workspace/${EVIL}`, recursive: true });
	await box.api('POST', '/api/write', { path: `/workspace/${EVIL}/x`, content: 'x' });
	await box.api('POST', '/api/process/start', { command: `sleep 300 # ${EVIL}`, processId: 'evil' });
	await box.exec('true', { sessionId: EVIL });
	await box.exec('true', { cwd: `/no/${EVIL}` });
	await box.api('POST', '/api/git/checkout', { repoUrl: `https://127.0.0.1:1/${encodeURIComponent(EVIL)}`, branch: EVIL });
	await daemon.api('GET', `/v1/sandboxes/${encodeURIComponent(EVIL)}`);
	await daemon.api('POST', '/v1/sandboxes', { id: EVIL, image: EVIL });
	await silt('ls');
	assert.match((await silt('info', box.id)).stdout, /forged/, 'the label is shown');
	assert.match((await silt('ps', box.id)).stdout, /forged/, 'the command is shown');
	await silt('cp', `${box.id}:/workspace/${EVIL}/no`, '/dev/null');
	await silt('cp', `${box.id}:/workspace/${EVIL}`, `${daemon.home}/file/no`);
	await silt('git-clone', box.id, `https://127.0.0.1:1/${EVIL}`);
	await silt('create', '--image', EVIL);
	await silt('kill', box.id, EVIL);
	await silt('expose', box.id, '8000', '--name', EVIL);
	await silt('ports', box.id);
	await silt('net', box.id, '--mode', 'allow', '--allow', EVIL);
	const watched = await runSilt(daemon, ['watch', box.id, '/workspace'], {
		onError: (text, child) => { if (/watching/.test(text) && !child.begun) { child.begun = true; void box.api('POST', '/api/write', { path: `/workspace/new${EVIL}`, content: 'x' }); } },
		onOutput: (text, child) => { if (/new/.test(text)) child.kill('SIGINT'); },
	});
	assert.match(watched.stdout, /forged/, 'the path is shown');
	assert.doesNotMatch(watched.stdout, CONTROL, 'silt watch');
	assert.doesNotMatch(daemon.log(), CONTROL, 'the log of the daemon');
	assert.doesNotMatch(daemon.log(), /^forged/m);
});

test('F11 the last words of a container that cannot start command no terminal and forge no line of the log', async t => {
	const engine = new Engine(daemon);
	for (const cmd of [['sh', '-c', 'echo "$1"; exit 4', 'sh', EVIL], ['sh', '-c', 'printf "%s\\233\\n" "$1" >&2; exit 3', 'sh', EVIL], [`/no/such/${EVIL}`]]) {
		const before = daemon.log().length;
		const { id } = await engine.app(t, { cmd });
		await until('the failure', () => / container\.failed .*forged/.test(daemon.log().slice(before)));
		assert.doesNotMatch(daemon.log().slice(before), CONTROL, JSON.stringify(cmd));
		assert.doesNotMatch(daemon.log().slice(before), /\ufffd/, 'bytes that are no text');
		assert.doesNotMatch((await engine.expect(200, 'GET', `/containers/${id}/json`)).State.Error, CONTROL);
	}
});
