// SPDX-License-Identifier: Apache-2.0
// C13: local sockets of the host: abstract ones, and those that are files.
import '../lib/inside.mjs';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { after } from 'node:test';
import assert from 'node:assert/strict';
import { bothWays } from '../lib/escape.mjs';
import { Internet, NETWORK } from '../lib/internet.mjs';

export const withoutNamespace = ['netns'];
export const withoutClosing = ['close_fds'];

const internet = await Internet.start();
after(() => internet.stop());

const CONNECT = String.raw`
import os, socket, sys
def listed(directory):
    try:
        return [directory + '/' + name for name in os.listdir(directory)]
    except OSError:
        return []
ways = {'', *(f'/proc/{pid}/{name}' for pid in ('1', 'self') for name in ('root', 'cwd')), *listed('/proc/1/fd'), *listed('/proc/self/fd')}
for name in [way + name for name in sys.argv[1:] for way in (ways if name[0] == '/' else [''])]:
    try:
        s = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect(name.replace('@', '\0', 1) if name[0] == '@' else name); print(name, s.recv(100).decode())
    except OSError as error:
        print(name, error)
`;

async function listen(t, where) {
	const server = net.createServer(socket => socket.on('error', () => {}).end('of the host')).listen(where);
	await new Promise(resolve => server.once('listening', resolve));
	t.after(() => server.close());
}

/** What answers, of these: files also by whatever leads out of the root. */
async function reach(box, names) {
	const said = await box.out(`python3 -c "$CONNECT" ${names.join(' ')}`, { env: { CONNECT } });
	return said.split('\n').filter(line => line.endsWith(' of the host')).map(line => line.split(' ')[0]);
}

export async function attackAbstract(box, daemon, t) {
	const name = `silt-test-${randomBytes(6).toString('hex')}`;
	await listen(t, `\0${name}`);
	const seen = (await box.out('cat /proc/net/unix')).includes(name);
	const reached = await reach(box, [`@${name}`]);
	return { succeeded: reached.length > 0, reached, seen };
}

bothWays('C13 an abstract socket of the host', { without: withoutNamespace, attack: attackAbstract, daemon: NETWORK, repelled: evidence => assert.equal(evidence.seen, false) });

export async function attackFile(box, daemon, t) {
	const file = path.join(daemon.home, `${randomBytes(4).toString('hex')}.sock`);
	await listen(t, file);
	fs.chmodSync(file, 0o777);
	const known = ['/run/docker.sock', '/run/dbus/system_bus_socket', '/run/systemd/private', '/run/systemd/notify', '/run/systemd/journal/socket', '/run/containerd/containerd.sock'];
	const found = (await box.out(`for f in ${known.join(' ')}; do [ -e $f ] && echo $f; done; true`)).trim();
	const reached = await reach(box, [file]);
	return { succeeded: reached.length > 0, reached, found };
}

bothWays('C13 a socket file of the host', { without: withoutClosing, attack: attackFile, daemon: NETWORK, repelled: evidence => assert.equal(evidence.found, '') });
