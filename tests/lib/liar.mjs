// SPDX-License-Identifier: Apache-2.0
// A registry that answers what it is told (registries.mjs): one line of JSON on standard input after the other, {path: answer}. `hang`: after its body it is silent, `cut`: gone; `endless`: its body again and again.

import fs from 'node:fs';
import https from 'node:https';
import readline from 'node:readline';

const [address, cert, key] = process.argv.slice(2);
let answers = {};

https.createServer({ cert: fs.readFileSync(cert), key: fs.readFileSync(key) }, (request, response) => {
	process.stdout.write(`${request.method} ${request.url}\n`);
	const answer = answers[request.url] ?? (request.url === '/v2/' ? { status: 200, body: '' } : { status: 404, body: Buffer.from('{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}').toString('base64'), headers: { 'content-type': 'application/json' } });
	response.writeHead(answer.status ?? 200, answer.headers);
	const body = Buffer.from(answer.body ?? '', 'base64');
	if (!answer.endless) {
		response.write(body, () => answer.cut && request.socket.destroy());
		if (!answer.hang && !answer.cut)
			response.end();
		return;
	}
	const more = () => { while (!response.destroyed && response.write(body)); };
	response.on('drain', more).on('error', () => {});
	more();
}).listen(5000, address);

readline.createInterface({ input: process.stdin }).on('line', line => {
	answers = JSON.parse(line);
	process.stdout.write('learned\n');
}).on('close', () => process.exit());
