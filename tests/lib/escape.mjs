// SPDX-License-Identifier: Apache-2.0
// Runs an attack both ways: against an ordinary build it must be repelled; against a build for tests, with the protections it is
// about taken away, it must be seen to succeed. What the names in `without` mean: tests/escape/PROTECTIONS.md.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { ContextBox } from './code.mjs';
import { startDaemon } from './daemon.mjs';

const running = new Map();

/** One daemon per file and set of missing protections, started on first use, stopped when the file is done. */
export function daemonWithout(names, options = {}) {
	const key = JSON.stringify([names, options]);
	if (!running.has(key))
		running.set(key, startDaemon(names.length === 0 ? options : { ...options, build: unsafeBuild(), without: names }));
	return running.get(key);
}

function unsafeBuild() {
	assert.ok(process.env.SILT_UNSAFE_BUILD, 'SILT_UNSAFE_BUILD names a build made with -Dunsafe_tests=true');
	return process.env.SILT_UNSAFE_BUILD;
}

after(async () => {
	const daemons = await Promise.allSettled(running.values());
	const stops = await Promise.allSettled(daemons.filter(d => d.status === 'fulfilled').map(d => d.value.stop()));
	for (const stop of stops)
		assert.equal(stop.status, 'fulfilled', stop.reason?.stack);
});

/**
 * attack(box, daemon, t) makes real attempts from inside and returns {succeeded, ...evidence}.
 * repelled(evidence, box, daemon), optional, looks closer at the run against the ordinary build; broken at the other.
 * sandbox: options of the sandbox; daemon: options of the daemon; context: the attack is also made from inside a forked Python context.
 */
export function bothWays(name, { without, attack, repelled, broken, sandbox = {}, daemon: options, context }) {
	test(`${name}: repelled`, async t => {
		const daemon = await daemonWithout([], options);
		const box = await daemon.box(t, sandbox);
		const evidence = await attack(box, daemon, t);
		assert.equal(evidence.succeeded, false, JSON.stringify(evidence, null, 1));
		await repelled?.(evidence, box, daemon, t);
	});
	context && test(`${name}: repelled from a forked Python context`, async t => {
		const daemon = await daemonWithout([], { ...options, warm: true });
		const { id } = await daemon.box(t, sandbox);
		const box = new ContextBox(daemon, id);
		const evidence = await attack(box, daemon, t);
		assert.equal(evidence.succeeded, false, JSON.stringify(evidence, null, 1));
		await repelled?.(evidence, box, daemon, t);
	});
	test(`${name}: succeeds without ${without.join(' and ')}`, async t => {
		const daemon = await daemonWithout(without, options);
		const box = await daemon.box(t, sandbox);
		const evidence = await attack(box, daemon, t);
		assert.equal(evidence.succeeded, true, JSON.stringify(evidence, null, 1));
		await broken?.(evidence, box, daemon, t);
	});
}

/** The lines of an attack program, `name outcome`, as an object. */
export function outcomes(text) {
	return Object.fromEntries(text.split('\n').filter(Boolean).map(line => {
		const space = line.indexOf(' ');
		return [line.slice(0, space), line.slice(space + 1)];
	}));
}

/** Names of the attempts that worked. */
export function worked(results) {
	return Object.keys(results).filter(name => results[name] === 'ok');
}
