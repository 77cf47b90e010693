// SPDX-License-Identifier: Apache-2.0
// A commit leaves out the files of volumes: silt-priv, as root, moves them out of a snapshot whose every directory the guest may have exchanged for a link.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { connect, Engine, talk } from '../lib/engine.mjs';
import { bothWays } from '../lib/escape.mjs';

async function run(port, command) {
	const { socket } = await connect(port);
	try {
		return (await talk(socket, 'POST', '/api/execute', { command })).json;
	} finally {
		socket.destroy();
	}
}

/** What sandboxes have written, by slot. */
const slots = daemon => `/proc/${daemon.pid}/root${path.join(daemon.state, 'pool/s')}`;

bothWays('G24 a commit whose mount points have become links to what is not the guest\'s', {
	without: ['commit_links'],
	attack: async (neighbour, daemon, t) => {
		const engine = new Engine(daemon);
		const marker = `/marker-${randomUUID()}`;
		await neighbour.out(`echo mine > ${marker}`);
		const slot = fs.readdirSync(slots(daemon)).find(name => fs.existsSync(path.join(slots(daemon), name, 'upper', marker)));
		assert.ok(slot, 'the neighbour\'s files');
		const victim = fs.mkdtempSync(path.join(os.tmpdir(), 'silt-victim-'));
		t.after(() => fs.rmSync(victim, { recursive: true, force: true }));
		fs.writeFileSync(path.join(victim, 'file'), 'of the machine');
		const volume = `workerd-snap-${randomUUID()}`, repo = `workerd-container-snap-${randomUUID()}`;
		t.after(async () => {
			await engine.ask('DELETE', `/images/${repo}?noprune=true`);
			await engine.ask('DELETE', `/volumes/${volume}`);
		});
		const links = { // path of a mount, and what one of the directories above becomes: seen from the snapshot, from inside, and from the machine
			[`/s/${slot}`]: ['/s', '../../../s'],
			[`/deep/er/${slot}`]: ['/deep/er', '../../../../s'],
			'/layer/note': ['/layer', '..'],
			'/machine/file': ['/machine', victim],
			'/proc-link/file': ['/proc-link', `/proc/self/root${victim}`],
		};
		const Mounts = Object.keys(links).map(Target => ({ Type: 'volume', Source: volume, Target }));
		const guest = await engine.app(t, { Mounts });
		const steps = Object.values(links).map(([at, to]) => `rm -rf ${at} && ln -s ${to} ${at}`);
		assert.equal((await run(guest.port, steps.join(' && '))).exitCode, 0);
		const committed = await engine.ask('POST', `/commit?container=${guest.id}&pause=true&repo=${repo}`, '');
		const evidence = { committed: committed.status, neighbour: fs.existsSync(path.join(slots(daemon), slot, 'upper', marker)), machine: fs.existsSync(path.join(victim, 'file')) };
		return { succeeded: !evidence.neighbour || !evidence.machine, ...evidence, repo };
	},
	repelled: async ({ committed, repo }, neighbour, daemon, t) => {
		assert.equal(committed, 201);
		const next = await new Engine(daemon).app(t, { image: repo });
		assert.equal((await run(next.port, 'readlink /s /layer')).stdout, '../../../s\n..\n', 'the guest\'s own links are in its image');
		assert.equal(await neighbour.out('ls / | grep -c marker'), '1\n');
	},
});
