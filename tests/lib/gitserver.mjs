// SPDX-License-Identifier: Apache-2.0
// A real git server over HTTP inside a sandbox, on its own loopback: git http-backend behind a small program.
//   /open/…     anybody may read            /private/…  Basic authentication
//   /hang/…     takes requests, never answers
//   /hub/…      has nothing, and says so in words, as large hosts do
//   /away/…     sends the client to /private of another port, where anybody's name and password are written down

import assert from 'node:assert/strict';

export const PORT = 8418;
export const OTHER = 8419;
export const USER = 'bob@example.com';
export const PASSWORD = 'p:a/s%s w0rd+ü';

const PROGRAM = String.raw`
const http = require('http'), fs = require('fs'), { spawn } = require('child_process');
const wanted = 'Basic ' + Buffer.from(${JSON.stringify(`${USER}:${PASSWORD}`)}).toString('base64');
function backend(q, r) {
	const url = new URL(q.url, 'http://x');
	const cgi = spawn('/usr/lib/git-core/git-http-backend', { env: { PATH: process.env.PATH, GIT_PROJECT_ROOT: '/srv/git', GIT_HTTP_EXPORT_ALL: '1', PATH_INFO: decodeURIComponent(url.pathname), QUERY_STRING: url.search.slice(1), REQUEST_METHOD: q.method, CONTENT_TYPE: q.headers['content-type'] || '', HTTP_CONTENT_ENCODING: q.headers['content-encoding'] || '', GIT_PROTOCOL: q.headers['git-protocol'] || '', REMOTE_ADDR: '127.0.0.1' } });
	q.pipe(cgi.stdin);
	cgi.stdin.on('error', () => {});
	let head = Buffer.alloc(0), begun = false;
	cgi.stdout.on('data', d => {
		if (begun)
			return r.write(d);
		head = Buffer.concat([head, d]);
		const end = head.indexOf('\r\n\r\n');
		if (end < 0)
			return;
		begun = true;
		let status = 200;
		for (const line of head.subarray(0, end).toString().split('\r\n')) {
			const [name, ...value] = line.split(': ');
			if (name === 'Status')
				status = parseInt(value[0]);
			else
				r.setHeader(name, value.join(': '));
		}
		r.writeHead(status);
		r.write(head.subarray(end + 4));
	});
	cgi.stdout.on('end', () => r.end());
}
http.createServer((q, r) => {
	fs.appendFileSync('/srv/requests', q.method + ' ' + q.url + ' ' + (q.headers.authorization || '-') + '\n');
	if (q.url.startsWith('/hang/'))
		return;
	if (q.url.startsWith('/hub/'))
		return r.writeHead(404, { 'content-type': 'text/plain' }).end('Repository not found.');
	if (q.url.startsWith('/away/'))
		return r.writeHead(302, { location: 'http://127.0.0.1:${OTHER}/private' + q.url.slice(5) }).end();
	if (q.url.startsWith('/private/') && q.headers.authorization !== wanted)
		return r.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end('no');
	if (q.url.startsWith('/forbidden/'))
		return r.writeHead(403).end('no');
	backend(q, r);
}).listen(${PORT}, '127.0.0.1');
http.createServer((q, r) => {
	fs.appendFileSync('/srv/stolen', (q.headers.authorization || '-') + '\n');
	r.writeHead(401, { 'www-authenticate': 'Basic realm="other"' }).end('no');
}).listen(${OTHER}, '127.0.0.1');
`;

const REPOSITORY = `
set -e
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
rm -rf /srv/w; mkdir -p /srv/git/open /srv/git/private /srv/git/hang /srv/w; cd /srv/w
git init -q -b main .
for i in 1 2 3; do echo line $i >> file; head -c 20000 /dev/urandom | base64 > big$i; git add -A; git commit -q -m "commit $i"; done
git tag v1
git checkout -q -b feature/x; echo other > only-here; git add -A; git commit -q -m feature
git checkout -q main
git clone -q --bare . /srv/git/open/repo.git
git -C /srv/git/open/repo.git config uploadpack.allowFilter true
cp -r /srv/git/open/repo.git /srv/git/private/repo.git
git init -q --bare -b main /srv/git/open/empty.git
`;

export const open = name => `http://127.0.0.1:${PORT}/open/${name}`;
export const withCredentials = (name, user = USER, password = PASSWORD) => `http://${encodeURIComponent(user)}:${encodeURIComponent(password)}@127.0.0.1:${PORT}/private/${name}`;

/** Makes the repositories in the sandbox and starts the server; resolves when it answers. */
export async function startGitServer(box) {
	await box.out(`bash -c '${REPOSITORY.replaceAll("'", "'\\''")}'`, { sessionId: 'git-server' });
	await box.put('/srv/server.cjs', Buffer.from(PROGRAM));
	await box.run('exec node /srv/server.cjs', { sessionId: 'git-server', background: true });
	const answer = await box.daemon.api('POST', `/v1/sandboxes/${box.id}/ports/wait`, { port: PORT, mode: 'tcp', timeoutMs: 60_000 });
	assert.equal(answer.body.reached, true);
}

export const stopGitServer = box => box.out('for p in /proc/[0-9]*; do [ "$(tr "\\0" " " < $p/cmdline 2>/dev/null)" = "node /srv/server.cjs " ] && kill -9 ${p#/proc/}; done; true', { sessionId: 'killer' });
