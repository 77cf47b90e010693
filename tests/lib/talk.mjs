// SPDX-License-Identifier: Apache-2.0
// Attacks on mode allow: the client of tests/escape/attacks/talk.py in a sandbox, and questions of names.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

const PROGRAM = fs.readFileSync(path.join(import.meta.dirname, '../escape/attacks/talk.py'));

/** What came back for each attempt (see talk.py): {name: {said, ms}}. */
export async function talk(box, attempts) {
	await box.put('/tmp/talk.py', PROGRAM);
	const list = JSON.stringify(attempts).replaceAll("'", "'\\''");
	return JSON.parse(await box.out(`python3 /tmp/talk.py '${list}'`, {}, { deadline: 180_000 }));
}

/** Names of the attempts that got what they wanted; the others were refused at once, not left waiting. */
export function reached(answers, wanted) {
	return Object.keys(answers).filter(name => {
		const { said, ms } = answers[name];
		const got = typeof wanted === 'function' ? wanted(said, name) : said.includes(wanted);
		assert.ok(got || ms < 10_000, `${name} was refused only after ${ms} ms: ${said}`);
		return got;
	});
}

export const request = (host, more = '') => `GET / HTTP/1.1\r\nHost: ${host}\r\n${more}\r\n`;

const ASK = String.raw`
import socket, struct, sys
def question(name, kind, group):
    labels = b''.join(bytes([len(label)]) + label.encode() for label in name.split('.'))
    return struct.pack('!6H', 7, 0x100, 1, 0, 0, 0) + labels + b'\0' + struct.pack('!HH', kind, group)
for word in sys.argv[1:]:
    name, kind, server, port, way, group, wait = word.split(',')
    data = question(name, int(kind), int(group))
    try:
        s = socket.create_connection((server, int(port)), timeout=int(wait)) if way == 'tcp' else socket.socket(socket.AF_INET6 if ':' in server else socket.AF_INET, socket.SOCK_DGRAM)
        s.settimeout(int(wait))
        if way == 'tcp':
            s.sendall(struct.pack('!H', len(data)) + data)
            answer = s.recv(65536)[2:]
        else:
            s.connect((server, int(port))); s.send(data)
            answer = s.recv(65536)
        print(word, 'code', answer[3] & 15, 'records', struct.unpack_from('!H', answer, 6)[0]) if len(answer) > 11 else print(word, 'nothing')
    except OSError as error:
        print(word, 'error', str(error).replace(' ', '-'))
`;

/** Questions [{name, type, server, port, way, group, wait (seconds for an answer)}] asked from inside: {word: what came}. */
export async function ask(box, questions) {
	const words = questions.map(({ name, type = 1, server, port = 53, way = 'udp', group = 1, wait = 20 }) => [name, type, server, port, way, group, wait].join(','));
	const text = await box.out(`python3 -c "$ASK" ${words.join(' ')}`, { env: { ASK } }, { deadline: 180_000 });
	return Object.fromEntries(text.trim().split('\n').map(line => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)]));
}

/** The server that resolv.conf of the sandbox names. */
export async function nameserver(box) {
	return (await box.out('cat /etc/resolv.conf')).match(/^nameserver (\S+)$/m)[1];
}
