// SPDX-License-Identifier: Apache-2.0
// The terminal page: its login, its rules, and a real browser in front of it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openBrowser, picture } from '../lib/browser.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { until } from '../lib/wait.mjs';
import { Socket } from '../lib/ws.mjs';

const SLOW_MS = 60_000;

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const own = () => ({ origin: `http://${daemon.address}` });
const form = token => `token=${encodeURIComponent(token)}`;

function post(box, token, headers = own()) {
	return daemon.api('POST', `/sandboxes/${box.id}/terminal`, form(token), { token: false, headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers } });
}

async function login(box) {
	const answer = await post(box, daemon.token);
	assert.equal(answer.status, 303, answer.raw.toString());
	assert.equal(answer.headers.location, `/sandboxes/${box.id}/terminal`);
	const [cookie] = answer.headers['set-cookie'];
	assert.match(cookie, /; HttpOnly/);
	assert.match(cookie, /; SameSite=Strict/);
	assert.ok(!cookie.includes(daemon.token));
	return cookie.split(';')[0];
}

test('the page asks for the token first, and has strict rules', async t => {
	const box = await daemon.box(t);
	const stranger = await daemon.api('GET', `/sandboxes/${box.id}/terminal`, undefined, { token: false });
	assert.equal(stranger.status, 401);
	assert.match(stranger.raw.toString(), /type="password"/);
	const cookie = await login(box);
	const page = await daemon.api('GET', `/sandboxes/${box.id}/terminal`, undefined, { token: false, headers: { cookie: `other=1; ${cookie}` } });
	assert.equal(page.status, 200);
	assert.match(page.raw.toString(), /id="terminal"/);
	for (const answer of [stranger, page]) {
		const policy = answer.headers['content-security-policy'];
		assert.match(policy, /default-src 'none'/);
		assert.match(policy, /script-src 'self';/);
		assert.match(policy, /frame-ancestors 'none'/);
		assert.equal(answer.headers['x-content-type-options'], 'nosniff');
		assert.equal(answer.headers['cache-control'], 'no-store');
		assert.doesNotMatch(answer.raw.toString(), /https?:\/\//, 'nothing comes from elsewhere');
	}
	for (const [file, type] of [['terminal.js', /javascript/], ['terminal.css', /css/]]) {
		const asset = await daemon.api('GET', `/assets/${file}`, undefined, { token: false });
		assert.equal(asset.status, 200);
		assert.match(asset.headers['content-type'], type);
	}
	assert.equal((await daemon.api('GET', '/assets/nothing', undefined, { token: false })).status, 404);
});

test('a login needs the token, and our own page', async t => {
	const box = await daemon.box(t);
	for (const token of ['', 'wrong', `${daemon.token}x`]) {
		const answer = await post(box, token);
		assert.equal(answer.status, 401);
		assert.equal(answer.headers['set-cookie'], undefined);
		assert.match(answer.raw.toString(), /not this server's token.*<input /s);
	}
	assert.doesNotMatch((await daemon.api('GET', `/sandboxes/${box.id}/terminal`, undefined, { token: false })).raw.toString(), /role="alert"/);
	for (const headers of [{}, { origin: 'null' }, { origin: 'http://evil.example' }, { origin: `http://${daemon.address}.evil.example` }]) {
		const answer = await post(box, daemon.token, headers);
		assert.equal(answer.status, 403);
		assert.equal(answer.headers['set-cookie'], undefined);
	}
});

test('a login leads back to where it was, however long that is', async t => {
	const box = await daemon.box(t);
	const target = `/sandboxes/${box.id}/terminal?session=${'s'.repeat(7000)}`;
	const answer = await daemon.api('POST', target, form(daemon.token), { token: false, headers: { 'content-type': 'application/x-www-form-urlencoded', ...own() } });
	assert.deepEqual([answer.status, answer.headers.location], [303, target]);
	assert.equal(answer.headers['set-cookie'].length, 1);
});

test('the cookie opens pages and WebSockets of our own pages, and nothing else', async t => {
	const box = await daemon.box(t);
	const cookie = await login(box);
	const open = (path, headers) => Socket.open(daemon, `/sandboxes/${box.id}${path}`, { token: false, headers });
	for (const path of ['/ws', '/ws/pty?sessionId=a']) {
		(await open(path, { Cookie: cookie, Origin: `http://${daemon.address}` })).destroy();
		for (const headers of [{ Cookie: cookie }, { Cookie: cookie, Origin: 'http://evil.example' }, { Cookie: cookie, Origin: 'null' }, { Cookie: cookie, Origin: `http://${daemon.address}0` }, { Origin: `http://${daemon.address}` }])
			await assert.rejects(open(path, headers), error => error.status === 401, JSON.stringify(headers));
	}
	const origin = `http://${daemon.address}`;
	for (const [Origin, Host] of [[`${origin}\r\nOrigin: http://evil.example`], [`http://evil.example\r\nOrigin: ${origin}`], ['http://', ''], [`${origin}/`], [`${origin}@evil.example`], [`${origin} http://evil.example`], [`${origin}, http://evil.example`], [daemon.address], [`ftp://${daemon.address}`]])
		await assert.rejects(open('/ws', { Cookie: cookie, Origin, Host: Host ?? daemon.address }), error => [400, 401].includes(error.status), JSON.stringify(Origin));
	for (const headers of [{ cookie }, { cookie, ...own() }]) {
		assert.equal((await daemon.api('GET', '/v1/sandboxes', undefined, { token: false, headers })).status, 401);
		assert.equal((await box.api('POST', '/api/execute', { command: 'true' }, { token: false, headers })).status, 401);
	}
	const [name, value] = cookie.split('=');
	const [date, signature] = value.split('-');
	for (const forged of [`${Number(date) + 1}-${signature}`, `${date}-${'0'.repeat(64)}`, date, `${date}-`, '', '-', `1-${signature}`, 'x'.repeat(500)]) {
		await assert.rejects(open('/ws', { Cookie: `${name}=${forged}`, Origin: `http://${daemon.address}` }), error => error.status === 401, forged.slice(0, 80));
	}
});

test('in a browser: a page whose login has ended says so, shows the login, and goes on after it', async t => {
	const box = await daemon.box(t);
	const browser = await openBrowser(t);
	const page = await browser.newPage();
	page.setDefaultTimeout(SLOW_MS);
	await page.goto(`http://${daemon.address}/sandboxes/${box.id}/terminal?session=kept`);
	assert.equal(await page.getByText('log in again').isVisible(), false, 'a first login is no second one');
	await page.fill('#token', daemon.token);
	await page.click('button');
	await sees(page, /[#$]\s*$/m);
	await page.keyboard.type('echo still""-here\n');
	await sees(page, /\nstill-here/);
	await page.context().clearCookies();
	const old = daemon.siltd();
	process.kill(old, 'SIGKILL'); // the connection breaks, and the next one needs a login
	await until('another siltd', () => daemon.programs('siltd').some(pid => pid !== old), SLOW_MS);
	await page.getByText('log in again').waitFor();
	await picture(page, 'login-again');
	await page.fill('#token', daemon.token);
	await page.click('button');
	await sees(page, /\nstill-here/);
	await page.keyboard.type('echo and""-on\n');
	await sees(page, /\nand-on/);
});

/** What the page's terminal shows, lines and all. */
function screen(page) {
	return page.locator('.xterm-rows').innerText();
}

async function sees(page, pattern) {
	await page.waitForFunction(source => new RegExp(source).test([...document.querySelectorAll('.xterm-rows > div')].map(row => row.textContent).join('\n')), pattern.source, { timeout: SLOW_MS }).catch(async error => {
		throw new Error(`${pattern}: ${error.message}\n${await screen(page)}`);
	});
}

test('in a browser: log in, type python3, resize, reload, and what was shown is still there', async t => {
	const box = await daemon.box(t);
	const browser = await openBrowser(t);
	const page = await browser.newPage({ viewport: { width: 900, height: 600 } });
	page.setDefaultTimeout(SLOW_MS);
	const wrong = [];
	page.on('console', message => { if (message.type() === 'error') wrong.push(message.text()); });
	page.on('pageerror', error => wrong.push(String(error)));
	await page.goto(`http://${daemon.address}/sandboxes/${box.id}/terminal`);
	await picture(page, 'login');
	await page.fill('#token', daemon.token);
	await page.click('button');
	await sees(page, /[#$]\s*$/m);
	await page.keyboard.type('echo scroll""back-mark\n');
	await sees(page, /\nscrollback-mark/);
	await page.keyboard.type('python3\n');
	await sees(page, />>>/);
	await page.keyboard.type('6*7\n');
	await sees(page, /\n42/);
	await picture(page, 'python');
	await page.keyboard.type('exit()\n');
	await page.keyboard.type('stty size > /tmp/first; echo wri""tten\n');
	await sees(page, /\nwritten/);
	await page.setViewportSize({ width: 1200, height: 800 });
	await page.waitForFunction(() => document.querySelectorAll('.xterm-rows > div').length > 35, undefined, { timeout: SLOW_MS });
	await page.keyboard.type('stty size > /tmp/second; echo ag""ain\n');
	await sees(page, /\nagain/);
	const [first, second] = (await box.out('cat /tmp/first /tmp/second', { sessionId: 'look' })).trim().split('\n').map(line => line.split(' ').map(Number));
	assert.ok(second[0] > first[0] && second[1] > first[1], `${first} ${second}`);
	await page.reload();
	await sees(page, /\nscrollback-mark/);
	await sees(page, />>>[^]*\n42/);
	await page.keyboard.type('echo af""ter\n');
	await sees(page, /\nafter/);
	await picture(page, 'reloaded');
	await page.keyboard.type('exit\n');
	await page.getByText('The shell has ended').waitFor();
	await page.keyboard.type('x');
	await sees(page, /[#$]\s*$/m);
	assert.deepEqual(wrong.filter(text => !/401/.test(text)), []); // the login page itself is one
});
