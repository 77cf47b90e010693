// SPDX-License-Identifier: Apache-2.0
// B12: leaving by setsid and double fork, then being killed.
import assert from 'node:assert/strict';
import { SESSIONLESS } from '../lib/box.mjs';
import { bothWays } from '../lib/escape.mjs';
import { processesOf } from '../lib/host.mjs';
import { until } from '../lib/wait.mjs';

export const without = ['kill_tree'];

const MARKS = ['1000.1201', '1000.1202', '1000.1203'];
const HIDE = `(setsid sleep ${MARKS[0]} &); (setsid sh -c '(setsid sleep ${MARKS[1]} &) & exec sleep ${MARKS[2]}' &); sleep 1000.1200`;

export async function attack(box, daemon) {
	const left = {};
	for (const sessionId of ['s', SESSIONLESS]) {
		const call = box.exec(HIDE, { sessionId, timeoutMs: 8_000 });
		await until('all are hidden', () => MARKS.every(mark => daemon.marked(mark).length === 1));
		await call;
		await until('empty', () => MARKS.every(mark => daemon.marked(mark).length === 0), 10_000).catch(() => {});
		left[sessionId] = MARKS.flatMap(mark => daemon.marked(mark)).length;
		if (left[sessionId] > 0)
			break; // they are still there: a second round would count them again
	}
	return { succeeded: left.s > 0, left };
}

const hidden = daemon => MARKS.flatMap(mark => daemon.marked(mark));
const hide = async (box, daemon, sessionId) => {
	await box.out(HIDE.replace('; sleep 1000.1200', ''), { sessionId });
	await until('all are hidden', () => hidden(daemon).length === MARKS.length);
};

/** Those who left are found again when their session is deleted, and when everything is ended. */
async function repelKills(box, daemon) {
	await hide(box, daemon, 'deleted');
	assert.equal((await box.api('POST', '/api/session/delete', { sessionId: 'deleted' })).status, 200);
	assert.deepEqual(hidden(daemon), [], 'a session that is deleted takes them along');
	for (const sessionId of ['s', SESSIONLESS]) {
		await hide(box, daemon, sessionId);
		assert.equal((await daemon.api('DELETE', `/v1/sandboxes/${box.id}/processes`)).body.left, 0);
		assert.deepEqual(hidden(daemon), [], 'so does a kill of everything');
	}
}

bothWays('B12 daemonising away from a timeout', {
	without,
	attack,
	async repelled(evidence, box, daemon) {
		assert.deepEqual(evidence.left, { s: 0, [SESSIONLESS]: 0 });
		await repelKills(box, daemon);
		await box.out(`sh -c '(exit 0) & exec sleep 1000.1204' & ${HIDE.replace('; sleep 1000.1200', '')}`); // one leaves a zombie behind
		await until('all run', () => MARKS.every(mark => daemon.marked(mark).length === 1));
		await box.destroy();
		assert.deepEqual([...MARKS, '1000.1204'].flatMap(mark => daemon.marked(mark)), [], 'a destroy answers when the sandbox is empty');
		await until('no zombies', () => processesOf(daemon.instance).every(p => p.state !== 'Z')); // one that ends at this moment is none
	},
});
