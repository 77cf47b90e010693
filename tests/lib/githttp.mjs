// SPDX-License-Identifier: Apache-2.0
// git http-backend behind a socket, as nginx's neighbour: node githttp.mjs DIRECTORY-OF-REPOSITORIES SOCKET

import { spawn } from 'node:child_process';
import http from 'node:http';

const [root, socket] = process.argv.slice(2);

function backend(request, response) {
	const url = new URL(request.url, 'http://x');
	const cgi = spawn('git', ['http-backend'], {
		stdio: ['pipe', 'pipe', 'inherit'],
		env: {
			PATH: process.env.PATH, GIT_PROJECT_ROOT: root, GIT_HTTP_EXPORT_ALL: '1', PATH_INFO: decodeURIComponent(url.pathname), QUERY_STRING: url.search.slice(1), REQUEST_METHOD: request.method,
			CONTENT_TYPE: request.headers['content-type'] ?? '', HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '', GIT_PROTOCOL: request.headers['git-protocol'] ?? '', REMOTE_ADDR: '::1',
			GIT_CONFIG_COUNT: '2', GIT_CONFIG_KEY_0: 'safe.directory', GIT_CONFIG_VALUE_0: '*', GIT_CONFIG_KEY_1: 'uploadpack.allowFilter', GIT_CONFIG_VALUE_1: 'true',
		},
	});
	cgi.stdin.on('error', () => {}); // it need not read everything
	request.pipe(cgi.stdin);
	let head = Buffer.alloc(0);
	const onHead = piece => {
		head = Buffer.concat([head, piece]);
		const end = head.indexOf('\r\n\r\n');
		if (end < 0)
			return;
		cgi.stdout.off('data', onHead);
		for (const [name, value] of head.toString('latin1', 0, end).split('\r\n').map(line => line.split(': ')))
			name === 'Status' ? response.statusCode = Number.parseInt(value, 10) : response.setHeader(name, value);
		response.write(head.subarray(end + 4));
		cgi.stdout.pipe(response);
	};
	cgi.stdout.on('data', onHead).once('end', () => response.end());
}

http.createServer(backend).listen(socket);
