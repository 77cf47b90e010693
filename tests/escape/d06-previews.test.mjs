// SPDX-License-Identifier: Apache-2.0
// Visitors of previews who bend requests, and services who want more than their own origin. Attacks that meet no single protection are in tests/api:
// preview-attacks (ports, tokens, hosts, targets), preview-smuggling (what the proxy writes anew has one reading), preview-limits and preview-settings (bounds).
import assert from 'node:assert/strict';
import { bothWays } from '../lib/escape.mjs';
import { expose, serve } from '../lib/preview.mjs';

const WAIT = 120_000;
const daemon = { flags: { 'preview.wait_ms': WAIT, 'preview.paths': 'on' } };

async function visited(box, t, fields) {
	await serve(box, 8000);
	const preview = await expose(box, 8000, fields);
	t.after(() => preview.close());
	return preview;
}

bothWays('D6 a visitor who says that it is somebody else', {
	without: ['preview_fields'],
	daemon,
	async attack(box, _, t) {
		const preview = await visited(box, t);
		const { headers } = (await preview.get('/echo', { deadline: WAIT, headers: { 'x-forwarded-for': '1.2.3.4', 'x-forwarded-user': 'root' } })).body;
		return { succeeded: headers['x-forwarded-for'].includes('1.2.3.4') && headers['x-forwarded-user'] === 'root', headers };
	},
	repelled({ headers }) {
		assert.deepEqual([headers['x-forwarded-for'], headers['x-forwarded-user']], ['127.0.0.1', undefined]);
	},
});

bothWays("D8 another page's WebSocket with a visitor's cookie", {
	without: ['preview_origin'],
	daemon,
	async attack(box, on, t) {
		const preview = await visited(box, t, { private: true });
		const { url } = (await on.api('POST', `/v1/sandboxes/${box.id}/ports/8000/sign`, {})).body;
		const [cookie] = (await preview.get(`/${new URL(url).search}`, { deadline: WAIT })).headers['set-cookie'];
		const raw = await preview.raw('GET /ws', `Connection: Upgrade\r\nUpgrade: websocket\r\nOrigin: http://8001-${preview.host.slice(5)}\r\nCookie: ${cookie.split(';')[0]}\r\n`);
		const text = await raw.received(/^HTTP\/1\.1 \d+ /, WAIT);
		raw.destroy();
		return { succeeded: text.startsWith('HTTP/1.1 101'), text };
	},
	repelled({ text }) {
		assert.match(text, /^HTTP\/1\.1 403 /);
	},
});

bothWays('D9 a preview by path that acts as the origin of all', {
	without: ['preview_cage'],
	daemon,
	async attack(box, on, t) {
		const preview = await visited(box, t);
		const { token } = preview.body;
		const answer = await preview.get(`/preview/${box.id}/8000/${token}/hop`, { deadline: WAIT, headers: { host: on.previews } });
		return { succeeded: answer.status === 200 && answer.headers['content-security-policy'] === undefined, status: answer.status, headers: answer.headers };
	},
});
