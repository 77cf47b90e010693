// SPDX-License-Identifier: Apache-2.0
// E12: words that a shell would obey, in every field that a caller chooses: each is taken as it is, or refused, and none is run.
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const PIECES = ['$(touch /tmp/pwned)', '`touch /tmp/pwned`', ';touch /tmp/pwned;', '|touch /tmp/pwned', '&touch /tmp/pwned', '\ntouch /tmp/pwned\n', "'", '"', '\\', '$', '{a,b}', '*', '~', '!!', '#', ' ', '\t', '\r', '-', '--', '=', '%s', '\u001b[2J', '\u00e9', '😀', '<x', '>/tmp/pwned', '${IFS}', 'a', 'B', '0'];
const ROUNDS = 60;

const word = () => Array.from({ length: 1 + randomInt(6) }, () => PIECES[randomInt(PIECES.length)]).join('');

/** Requests with the word in one place; what must come back when they are taken. */
const PLACES = {
	'a value of a variable': async (box, text) => {
		const answer = await box.exec('printf %s "$V" | base64 -w0', { env: { V: text } });
		return answer.status === 200 && assert.equal(Buffer.from(answer.body.stdout, 'base64').toString(), text);
	},
	'a name of a variable': async (box, text) => assert.notEqual((await box.exec('true', { env: { [text]: 'x' } })).status, 500),
	'a directory': async (box, text) => {
		const made = await box.api('POST', '/api/mkdir', { path: `/workspace/d/${text}`, recursive: true });
		const answer = await box.exec('pwd | base64 -w0', { cwd: `/workspace/d/${text}`, sessionId: '__DISABLE_SESSION__' });
		if (made.status === 200 && answer.status === 200 && answer.body.exitCode === 0)
			assert.equal(Buffer.from(answer.body.stdout, 'base64').toString(), `/workspace/d/${text.replace(/\/+$/, '').replace(/\/+/g, '/')}\n`);
	},
	'a file': async (box, text) => {
		const path = `/workspace/${text.replaceAll('/', '_')}`;
		const written = await box.api('POST', '/api/write', { path, content: 'mine' });
		if (written.status === 200)
			assert.equal((await box.api('POST', '/api/read', { path })).body.content, 'mine');
	},
	'a session': async (box, text) => box.exec('true', { sessionId: text }),
	'a process': async (box, text) => box.api('POST', '/api/process/start', { command: 'true', processId: text }),
	'a query': async box => daemon.api('GET', `/v1/sandboxes/${box.id}/processes/${encodeURIComponent(word())}/logs`),
	'a pattern of a search': async (box, text) => daemon.api('POST', `/v1/sandboxes/${box.id}/files/search`, { path: '/workspace/d', text, glob: text }),
	'a pattern of a watch': async (box, text) => box.api('POST', '/api/watch/check', { path: `/workspace/d`, include: [text] }),
	'a branch': async (box, text) => box.api('POST', '/api/git/checkout', { repoUrl: 'https://127.0.0.1:1/x.git', branch: text, targetDir: `/workspace/${text}` }),
	'a sandbox': async (box, text) => assert.ok((await daemon.api('GET', `/sandboxes/${encodeURIComponent(text)}/api/ping`)).status < 500),
	'a name of an image': async (box, text) => assert.equal((await daemon.api('POST', '/v1/sandboxes', { id: 'nobody', image: text })).status >= 400, true),
};

test('E12 words that a shell would obey are only words, wherever they stand', async t => {
	const box = await daemon.box(t, {});
	await box.out('mkdir -p /workspace/d');
	const tried = [];
	for (let round = 0; round < ROUNDS; round++) {
		const names = Object.keys(PLACES);
		const name = names[round % names.length];
		const text = word();
		tried.push([name, text]);
		await PLACES[name](box, text);
	}
	assert.equal(await box.out('ls -d /tmp/pwned /workspace/pwned 2>/dev/null || true', { sessionId: 'look' }), '', JSON.stringify(tried));
	assert.equal((await box.out('echo alive', { sessionId: 'look' })), 'alive\n');
});
