// SPDX-License-Identifier: Apache-2.0
// The terminal page: xterm.js on the WebSocket …/ws/pty of the sandbox that the address names. ?session= chooses the session.
(() => {
	'use strict';
	const FIRST_MS = 1000;
	const LONGEST_MS = 32_000;

	const id = location.pathname.split('/')[2];
	const session = new URLSearchParams(location.search).get('session') || 'default';
	const note = document.getElementById('state');
	const terminal = new Terminal({ cursorBlink: true, scrollback: 10_000, fontFamily: 'ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace', fontSize: 14, theme: { background: '#101418' } });
	const fit = new FitAddon.FitAddon();
	let socket;
	let wait = FIRST_MS;
	let shown = false; // something of this connection
	let ended = false;

	document.title = `${decodeURIComponent(id)}: terminal`;
	terminal.loadAddon(fit);
	terminal.open(document.getElementById('terminal'));
	fit.fit();
	terminal.focus();

	function say(text) {
		note.textContent = text;
		note.hidden = !text;
	}

	function send(message) {
		if (socket?.readyState === WebSocket.OPEN)
			socket.send(message);
	}

	function resize() {
		send(JSON.stringify({ type: 'resize', cols: terminal.cols, rows: terminal.rows }));
	}

	function onControl(message) {
		if (message.type === 'ready') {
			if (!shown)
				terminal.reset();
			wait = FIRST_MS;
			say('');
			resize();
		} else if (message.type === 'exit') {
			ended = true;
			say(`The shell has ended (${message.signal ?? message.code}). Press a key for a new one.`);
		} else if (message.type === 'error') {
			say(message.message);
		}
	}

	/** Whether the server would show its login now; one that does not answer has not said so. */
	async function loggedOut() {
		const answer = await fetch(location.href, { method: 'HEAD', cache: 'no-store' }).catch(() => undefined);
		return answer?.status === 401;
	}

	function connect() {
		const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
		const query = new URLSearchParams({ sessionId: session, cols: terminal.cols, rows: terminal.rows });
		socket = new WebSocket(`${scheme}://${location.host}/sandboxes/${id}/ws/pty?${query}`);
		socket.binaryType = 'arraybuffer';
		shown = ended = false;
		socket.onmessage = event => {
			if (typeof event.data === 'string') {
				onControl(JSON.parse(event.data));
				return;
			}
			if (!shown)
				terminal.reset(); // what was shown before comes again
			shown = true;
			terminal.write(new Uint8Array(event.data));
		};
		socket.onclose = async () => {
			if (ended)
				return;
			if (await loggedOut()) {
				say('Your login has ended: log in again.');
				location.hash = 'again';
				location.reload(); // the server shows the login instead
				return;
			}
			say(`The connection is closed. Trying again in ${Math.round(wait / 1000)} s.`);
			setTimeout(connect, wait * (1 + Math.random() / 10));
			wait = Math.min(2 * wait, LONGEST_MS);
		};
	}

	const encoder = new TextEncoder();
	terminal.onData(text => {
		if (ended)
			connect();
		else
			send(encoder.encode(text));
	});
	terminal.onBinary(text => send(Uint8Array.from(text, c => c.charCodeAt(0))));
	terminal.onResize(resize);
	new ResizeObserver(() => fit.fit()).observe(document.getElementById('terminal'));
	connect();
})();
