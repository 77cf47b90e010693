// SPDX-License-Identifier: Apache-2.0
// Reads server-sent events strictly: a frame that our own promise does not allow is an error.

import assert from 'node:assert/strict';
import { within } from './wait.mjs';

/** Events of a response: {event, data} with data parsed. Each wait for the next frame has a deadline. */
export async function* events(response, ms = 90_000) {
	let text = '';
	const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
	const chunks = response[Symbol.asyncIterator]();
	try {
		for (;;) {
			const { done, value } = await within(ms, 'next event', chunks.next());
			if (done)
				break;
			text += decoder.decode(value, { stream: true });
			let end;
			while ((end = text.indexOf('\n\n')) >= 0) {
				const frame = text.slice(0, end);
				text = text.slice(end + 2);
				if (!frame.startsWith(':')) // a comment keeps the connection alive
					yield parse(frame);
			}
		}
		assert.equal(text, '', 'the stream ends after a whole frame');
	} finally {
		response.destroy();
	}
}

function parse(frame) {
	const match = /^(?:id: \d+\n)?event: ([A-Za-z_]+)\ndata: (\{.*\})$/.exec(frame);
	assert.ok(match, `a frame has an event line and a data line: ${JSON.stringify(frame.slice(0, 200))}`);
	const data = JSON.parse(match[2]);
	assert.equal(data.type, match[1], 'event: and data.type agree');
	return { event: match[1], data };
}

/** All events of a finished stream with their text put together. */
export async function collect(stream) {
	const all = [];
	for await (const event of stream)
		all.push(event);
	const joined = name => all.filter(e => e.event === name).map(e => e.data.data).join('');
	return { all, names: all.map(e => e.event), stdout: joined('stdout'), stderr: joined('stderr'), exitCode: all.at(-1)?.data.exitCode };
}
