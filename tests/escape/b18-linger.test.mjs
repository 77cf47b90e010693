// SPDX-License-Identifier: Apache-2.0
// B18: sockets whose last close waits (SO_LINGER, bytes that nobody takes), sent to a daemon that closes what it did not ask for.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { context, run } from '../lib/code.mjs';
import { bothWays, daemonWithout, outcomes } from '../lib/escape.mjs';
import { until } from '../lib/wait.mjs';

export const without = ['context_pipes'];
export const withoutRefusal = ['passrights'];

const FILE = path.join(import.meta.dirname, 'attacks/linger.py');
const PROGRAM = fs.readFileSync(FILE);
const PATIENCE_MS = 2_000; // a tenth of what the sockets ask for
const LOOK_MS = 3_000;

/* From the interpreter itself. */
const PYTHON = `
scope = {"__name__": "linger"}
exec(open("/tmp/linger.py").read(), scope)
scope["attack"]()`;

/* Node sends no descriptors; a program to which it gives all of its own does. */
const NODE = `
const fds = fs.readdirSync('/proc/self/fd').map(Number).filter(fd => fd > 2 && fs.existsSync('/proc/self/fd/' + fd));
const child = require('child_process').spawn('python3', ['/tmp/linger.py', ...fds.map((_, i) => 3 + i)], { stdio: ['ignore', 'pipe', 'inherit', ...fds] });
console.log(String(await new Promise(resolve => child.stdout.once('data', resolve))));
`;

/** The longest that anybody else waited, in ms, while the attack was made and a while after. */
async function disturbance(daemon, bystander, attack) {
	let over = false, worst = 0;
	const timed = async ask => {
		const from = Date.now();
		await ask().catch(() => undefined);
		worst = Math.max(worst, Date.now() - from);
	};
	const made = attack().catch(error => ({ error })).finally(() => setTimeout(() => over = true, LOOK_MS));
	while (!over && worst <= PATIENCE_MS) {
		await timed(() => daemon.api('GET', '/healthz', undefined, { token: false, deadline: 30_000 }));
		await timed(() => bystander.exec('true', {}, { deadline: 30_000 }));
	}
	return { worst, said: worst > PATIENCE_MS ? undefined : await made };
}

/** A context of that language attacks; what each descriptor said, and how others fared. */
async function attackFrom(box, daemon, t, language) {
	const bystander = await daemon.box(t);
	await bystander.out('true');
	await box.put('/tmp/linger.py', PROGRAM);
	const id = await context(box, { language });
	return disturbance(daemon, bystander, async () => {
		const answer = await run(box, id, language === 'python' ? PYTHON : NODE);
		assert.equal(answer.error, null, JSON.stringify(answer.error));
		return outcomes(answer.stdout);
	});
}

function repelled({ worst, said }) {
	assert.ok(worst <= PATIENCE_MS, `others waited ${worst} ms`);
	assert.ok(said && !said.error && Object.keys(said).length > 2, JSON.stringify(said));
	assert.deepEqual(Object.entries(said).filter(([, outcome]) => /sent|late/.test(outcome)), []);
}

for (const language of ['python', 'javascript'])
	bothWays(`B18 lingering sockets from a context (${language})`, {
		without,
		async attack(box, daemon, t) {
			const seen = await attackFrom(box, daemon, t, language);
			return { succeeded: seen.worst > PATIENCE_MS, ...seen };
		},
		repelled,
	});

test('B18 lingering sockets from a forked Python context: repelled', async t => {
	const daemon = await daemonWithout([], { warm: true });
	repelled(await attackFrom(await daemon.box(t), daemon, t, 'python'));
});

test('B18 lingering sockets from commands: repelled', async t => {
	const daemon = await daemonWithout([]);
	const box = await daemon.box(t);
	const bystander = await daemon.box(t);
	await bystander.out('true');
	await box.put('/tmp/linger.py', PROGRAM);
	repelled(await disturbance(daemon, bystander, async () => {
		await box.out('python3 /tmp/linger.py > /tmp/linger.out 2>&1 &');
		return outcomes(await until('the attempts', () => box.out('grep . /tmp/linger.out'), 20_000));
	}));
});

bothWays('B18 lingering sockets from a client of the engine socket', {
	without: withoutRefusal,
	async attack(box, daemon, t) {
		const seen = await disturbance(daemon, box, async () => {
			const client = spawn('python3', [FILE, daemon.engine], { stdio: ['ignore', 'pipe', 'inherit'] });
			t.after(() => client.kill('SIGKILL'));
			const [said] = await once(client.stdout, 'data');
			return outcomes(said.toString());
		});
		return { succeeded: seen.worst > PATIENCE_MS, ...seen };
	},
	repelled(evidence, box, daemon) {
		assert.deepEqual(evidence.said, { [daemon.engine]: 'EPERM' });
	},
});
