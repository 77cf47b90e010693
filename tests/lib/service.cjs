// SPDX-License-Identifier: Apache-2.0
// A web server that runs inside a sandbox: `node service.cjs PORT [ADDRESS [DELAY_MS]]`. What it does is chosen by the path.
const http = require('node:http');
const crypto = require('node:crypto');

const [port, address = '0.0.0.0', delay = '0'] = process.argv.slice(2);
const MIB = Buffer.alloc(1 << 20, 'silt ');
let requests = 0;
let swallowed = 0;
let gone = 0; // answers whose reader left

const routes = {
	/** What came, as it came. */
	'/echo': (request, response) => {
		const hash = crypto.createHash('sha256');
		let length = 0;
		request.on('data', piece => { hash.update(piece); length += piece.length; });
		request.on('end', () => json(response, { method: request.method, url: request.url, headers: request.headers, raw: request.rawHeaders, length, sha256: hash.digest('hex'), requests, trailers: request.trailers }));
	},
	'/who': (request, response) => response.end(process.env.NAME),
	/** What was asked for since the last time. */
	'/seen': (request, response) => json(response, seen.splice(0).slice(0, -1)),
	'/count': (request, response) => json(response, { requests, gone, swallowed }),
	/** Takes whatever comes; /count tells how much, also while it comes. */
	'/swallow': (request, response) => request.on('data', piece => { swallowed += piece.length; }).on('end', () => response.end('swallowed')),
	/** ?mib=N, with a length or (&chunked) without. */
	'/big': (request, response, query) => {
		let left = Number(query.get('mib'));
		if (!query.has('chunked'))
			response.setHeader('content-length', left * MIB.length);
		response.on('close', () => { gone += !response.writableFinished; });
		const more = () => {
			while (left-- > 0)
				if (!response.write(MIB))
					return response.once('drain', more);
			response.end();
		};
		more();
	},
	/** A clock of server-sent events: one at once, the next when /tick is asked for. */
	'/clock': (request, response) => {
		response.writeHead(200, { 'content-type': 'text/event-stream' });
		response.write('data: 0\n\n');
		clocks.add(response);
		response.on('close', () => { clocks.delete(response); gone++; });
	},
	'/tick': (request, response) => {
		for (const clock of clocks)
			clock.write(`data: ${requests}\n\n`);
		json(response, { clocks: clocks.size });
	},
	'/hold': (request, response) => held.push(response), // until /release
	'/release': (request, response) => {
		for (const one of held.splice(0))
			one.end('released');
		json(response, {});
	},
	/** Answers before the body has come. */
	'/early': (request, response) => { response.writeHead(413, { connection: 'close' }); response.end('too much'); },
	'/status': (request, response, query) => { response.statusCode = Number(query.get('is')); response.end(query.get('body') ?? undefined); },
	'/hop': (request, response) => {
		response.setHeader('Connection', 'keep-alive, x-secret');
		response.setHeader('X-Secret', 'for one hop');
		response.setHeader('Keep-Alive', 'timeout=5');
		response.setHeader('Proxy-Authenticate', 'Basic');
		response.setHeader('Alt-Svc', 'h3=":443"');
		response.setHeader('X-Kept', 'for all');
		response.setHeader('Set-Cookie', ['a=1', 'b=2']);
		response.end('hop');
	},
	'/trailers': (request, response) => {
		response.writeHead(200, { trailer: 'x-sum' });
		response.write('with');
		response.addTrailers({ 'x-sum': '1' });
		response.end(' trailers');
	},
	'/redirect': (request, response) => { response.writeHead(302, { location: 'http://169.254.169.254/latest/' }); response.end(); },
	'/hints': (request, response) => { response.writeEarlyHints({ link: '</a.css>; rel=preload' }); response.end('hinted'); },
	/** Raw bytes as the answer, then the end: ?bytes=base64 */
	'/raw': (request, response, query) => request.socket.end(Buffer.from(query.get('bytes'), 'base64')),
	'/huge': request => request.socket.end(`HTTP/1.1 200 OK\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`),
	'/break': request => request.socket.destroy(),
	'/half': (request, response) => {
		response.writeHead(200, { 'content-length': 100 });
		response.write('half');
		setImmediate(() => request.socket.destroy());
	},
};
const clocks = new Set(), held = [], seen = [];

function json(response, value) {
	response.setHeader('content-type', 'application/json');
	response.end(JSON.stringify(value));
}

const server = http.createServer((request, response) => {
	requests++;
	seen.push(`${request.method} ${request.url}`);
	const url = new URL(request.url, 'http://service');
	const route = routes[url.pathname];
	if (route)
		route(request, response, url.searchParams);
	else
		response.end(`hello from ${url.pathname}`);
});

/** Any protocol: says it back, in capitals; `bye` ends our side only. */
server.on('upgrade', (request, socket, head) => {
	if (request.url === '/refuse')
		return socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno');
	socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: ${request.headers.upgrade}\r\nConnection: Upgrade\r\nX-Host: ${request.headers.host}\r\n\r\n`);
	const say = text => text.includes('bye') ? socket.end(text.toUpperCase()) : socket.write(text.toUpperCase());
	if (head.length > 0)
		say(head.toString());
	socket.on('data', bytes => say(bytes.toString()));
	socket.on('error', () => {});
	socket.on('end', () => socket.end('END\n'));
	socket.allowHalfOpen = true;
});
server.on('checkContinue', (request, response) => {
	if (request.url === '/no') {
		response.writeHead(417);
		return response.end();
	}
	response.writeContinue();
	server.emit('request', request, response);
});
setTimeout(() => server.listen({ port: Number(port), host: address }, () => console.log('listening')), Number(delay));
