// SPDX-License-Identifier: Apache-2.0
// Stands in for a code host's API and its webhooks on loopback: comments on issues, with tokens and bodies checked; the first comment meets a broken gateway.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import http from 'node:http';

export const TOKEN = 'ghp_of_the_tests';
export const SECRET = 'secret of the hooks';

/** The headers of a webhook with this body. */
export const hook = (event, body, secret = SECRET) => ({
	'content-type': 'application/json',
	'x-github-event': event,
	'x-github-delivery': crypto.randomUUID(),
	'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
});

export class CodeHost {
	#server;
	#tries = 0;
	comments = []; // {owner, repo, number, body}

	static async start() {
		const host = new CodeHost();
		host.#server = http.createServer((request, response) => host.#serve(request, response));
		await new Promise(resolve => host.#server.listen(0, '127.0.0.1', resolve));
		return host;
	}

	get url() {
		return `http://127.0.0.1:${this.#server.address().port}`;
	}

	/** How often a comment was tried. */
	get tries() {
		return this.#tries;
	}

	stop() {
		this.#server.closeAllConnections();
		return new Promise(resolve => this.#server.close(resolve));
	}

	async #serve(request, response) {
		const text = (await request.toArray()).join('');
		const say = (status, body) => response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(JSON.stringify(body));
		const [, owner, repo, number] = /^\/repos\/([^/]+)\/([^/]+)\/issues\/(\d+)\/comments$/.exec(request.url) ?? [];
		if (request.method !== 'POST' || !owner)
			return say(404, { message: 'Not Found' });
		if (![`token ${TOKEN}`, `Bearer ${TOKEN}`].includes(request.headers.authorization))
			return say(401, { message: 'Bad credentials' });
		let body;
		try {
			({ body } = JSON.parse(text));
			assert.ok(typeof body === 'string' && body !== '');
			assert.ok(request.headers['user-agent'], 'the real host wants one');
		} catch {
			return say(422, { message: 'Validation Failed' });
		}
		if (this.#tries++ === 0)
			return response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>Bad Gateway</h1>');
		this.comments.push({ owner, repo, number: Number(number), body });
		return say(201, { id: this.comments.length, body, user: { login: 'bot' }, html_url: `${this.url}${request.url}#${this.comments.length}` });
	}
}
