// SPDX-License-Identifier: Apache-2.0
// Stands in for the model's API on loopback, in its real wire format: keys, versions and requests are checked, answers come whole or as events in pieces, and
// the first request of all meets an overloaded server.

import assert from 'node:assert/strict';
import http from 'node:http';

export const KEY = 'sk-ant-of-the-tests';
const PIECE = 7; // characters of a delta: no text comes whole

const isText = value => typeof value === 'string' && value !== '';

function checkContent(content) {
	if (isText(content))
		return;
	assert.ok(Array.isArray(content) && content.length > 0, 'content: a text or blocks');
	for (const block of content) {
		const checks = {
			text: () => assert.ok(isText(block.text), 'text'),
			tool_use: () => assert.ok(isText(block.id) && isText(block.name) && typeof block.input === 'object', 'tool_use'),
			tool_result: () => assert.ok(isText(block.tool_use_id) && isText(block.content), 'tool_result'),
		};
		assert.ok(checks[block.type], `content: type ${block.type}`);
		checks[block.type]();
	}
}

function checkTools({ tools = [], tool_choice: choice }) {
	for (const tool of tools)
		assert.ok(isText(tool.name) && tool.input_schema?.type === 'object', 'tools: name and input_schema');
	if (choice)
		assert.ok(choice.type === 'auto' || tools.some(tool => tool.name === choice.name), 'tool_choice: names a tool');
}

/** What the real API would refuse. */
function check(request, body) {
	assert.match(request.headers['anthropic-version'] ?? '', /^\d{4}-\d\d-\d\d$/, 'anthropic-version');
	assert.match(request.headers['content-type'] ?? '', /^application\/json/, 'content-type');
	assert.ok(isText(body.model), 'model: a text');
	assert.ok(Number.isInteger(body.max_tokens) && body.max_tokens > 0, 'max_tokens: a number');
	assert.ok(Array.isArray(body.messages) && body.messages.length > 0, 'messages: at least one');
	body.messages.forEach((message, i) => {
		assert.equal(message.role, i % 2 ? 'assistant' : 'user', `messages.${i}.role`);
		checkContent(message.content);
	});
	checkTools(body);
	assert.ok(body.system === undefined || isText(body.system), 'system: a text');
}

function* events(message) {
	yield { type: 'message_start', message: { ...message, content: [], stop_reason: null, usage: { input_tokens: 10, output_tokens: 1 } } };
	for (const [index, block] of message.content.entries()) {
		const text = block.type === 'text' ? block.text : JSON.stringify(block.input);
		yield { type: 'content_block_start', index, content_block: block.type === 'text' ? { type: 'text', text: '' } : { ...block, input: {} } };
		yield { type: 'ping' };
		for (let at = 0; at < text.length; at += PIECE) {
			const piece = text.slice(at, at + PIECE);
			yield { type: 'content_block_delta', index, delta: block.type === 'text' ? { type: 'text_delta', text: piece } : { type: 'input_json_delta', partial_json: piece } };
		}
		yield { type: 'content_block_stop', index };
	}
	yield { type: 'message_delta', delta: { stop_reason: message.stop_reason, stop_sequence: null }, usage: { output_tokens: 20 } };
	yield { type: 'message_stop' };
}

export class Model {
	#server;
	#answer;
	requests = []; // bodies that were answered
	tries = 0; // requests that were well made; the first meets an overloaded server

	/** answer(body) gives the blocks of an answer. */
	static async start(answer) {
		const model = new Model();
		model.#answer = answer;
		model.#server = http.createServer((request, response) => model.#serve(request, response));
		await new Promise(resolve => model.#server.listen(0, '127.0.0.1', resolve));
		return model;
	}

	get url() {
		return `http://127.0.0.1:${this.#server.address().port}`;
	}

	stop() {
		this.#server.closeAllConnections();
		return new Promise(resolve => this.#server.close(resolve));
	}

	async #serve(request, response) {
		const text = (await request.toArray()).join('');
		const fail = (status, type, message) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ type: 'error', error: { type, message } }));
		if (request.method !== 'POST' || request.url !== '/v1/messages')
			return fail(404, 'not_found_error', request.url);
		if (request.headers.authorization !== `Bearer ${KEY}` && request.headers['x-api-key'] !== KEY)
			return fail(401, 'authentication_error', 'invalid key');
		let body;
		try {
			check(request, body = JSON.parse(text));
		} catch (error) {
			return fail(400, 'invalid_request_error', error.message);
		}
		if (this.tries++ === 0)
			return fail(529, 'overloaded_error', 'Overloaded');
		this.requests.push(body);
		const content = await this.#answer(body);
		const message = {
			id: `msg_${this.requests.length}`, type: 'message', role: 'assistant', model: body.model, content, stop_sequence: null,
			stop_reason: content.some(block => block.type === 'tool_use') ? 'tool_use' : 'end_turn', usage: { input_tokens: 10, output_tokens: 20 },
		};
		if (!body.stream)
			return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(message));
		response.writeHead(200, { 'content-type': 'text/event-stream' });
		for (const event of events(message)) {
			response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
			await new Promise(setImmediate); // each event a packet of its own
		}
		response.end();
	}
}
