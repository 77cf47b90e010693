// SPDX-License-Identifier: Apache-2.0
// GET /metrics: sandboxes per state, histograms of what siltd does, and rows of each sandbox where the setting asks.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';

let daemon;
before(async () => { daemon = await startDaemon({ flags: { 'metrics.sandboxes': 'on' } }); });
after(() => daemon?.stop());

const text = async (from = daemon) => (await from.api('GET', '/metrics')).raw.toString();
const value = (all, row) => Number(all.split('\n').find(line => line.startsWith(`${row} `))?.slice(row.length + 1) ?? NaN);
const must = async (method, path, body) => {
	const answer = await daemon.api(method, path, body);
	assert.ok(answer.status < 300, `${method} ${path}: ${answer.raw}`);
	return answer.body;
};

test('sandboxes are counted per state', async t => {
	const boxes = await Promise.all([1, 2, 3].map(async () => await daemon.box(t)));
	for (const box of boxes)
		await box.run('true');
	const states = async () => {
		const all = await text();
		return ['running', 'paused', 'stopped'].map(state => value(all, `silt_sandboxes{state="${state}"}`));
	};
	assert.deepEqual(await states(), [3, 0, 0]);
	await must('POST', `/v1/sandboxes/${boxes[0].id}/pause`);
	await must('POST', `/v1/sandboxes/${boxes[1].id}/stop`);
	assert.deepEqual(await states(), [1, 1, 1]);
	await must('DELETE', `/v1/sandboxes/${boxes[1].id}`);
	assert.deepEqual(await states(), [1, 1, 0]);
});

test('each operation is in its histogram once, when it has succeeded', async t => {
	const names = ['silt_create_seconds', 'silt_exec_seconds', 'silt_wake_seconds{from="paused"}', 'silt_wake_seconds{from="stopped"}',
		'silt_snapshot_seconds', 'silt_fork_seconds'];
	const row = (name, part, label = '') => {
		const [bare, labels = ''] = name.replace('}', '').split('{');
		const all = [labels, label].filter(Boolean).join(',');
		return `${bare}_${part}${all ? `{${all}}` : ''}`;
	};
	const counts = async () => {
		const all = await text();
		return names.map(name => value(all, row(name, 'count')));
	};
	let last = await counts();
	const grew = async (what, expected) => {
		const now = await counts();
		assert.deepEqual(Object.fromEntries(names.map((name, i) => [name, now[i] - last[i]]).filter(([, n]) => n !== 0)), expected, what);
		last = now;
	};
	const box = await daemon.box(t);
	await must('POST', '/v1/sandboxes', { id: box.id });
	await grew('create', { silt_create_seconds: 1 });
	await must('POST', `/v1/sandboxes/${box.id}/exec`, { command: 'sleep 0.03' });
	await grew('exec', { silt_exec_seconds: 1 });
	await must('POST', `/v1/sandboxes/${box.id}/pause`);
	await must('POST', `/v1/sandboxes/${box.id}/resume`);
	await grew('wake from paused', { 'silt_wake_seconds{from="paused"}': 1 });
	await must('POST', `/v1/sandboxes/${box.id}/stop`);
	await must('POST', `/v1/sandboxes/${box.id}/start`);
	await grew('wake from stopped', { 'silt_wake_seconds{from="stopped"}': 1 });
	const snapshot = await must('POST', `/v1/sandboxes/${box.id}/snapshots`, {});
	t.after(() => daemon.api('DELETE', `/v1/snapshots/${snapshot.id}`));
	await grew('snapshot', { silt_snapshot_seconds: 1 });
	t.after(() => daemon.api('DELETE', `/v1/sandboxes/${box.id}-1`));
	await must('POST', `/v1/sandboxes/${box.id}/fork`, { ids: [`${box.id}-1`] });
	await grew('fork', { silt_fork_seconds: 1 });
	assert.equal((await daemon.api('POST', '/v1/sandboxes', { id: `${box.id}-2`, image: 'none-such' })).status >= 400, true);
	await grew('a create that fails', {});

	const all = await text();
	for (const name of names) {
		const rows = all.split('\n').filter(line => line.startsWith(row(name, 'bucket', 'le=').replace('}', '')));
		const buckets = rows.map(line => Number(line.split(' ')[1]));
		assert.equal(buckets.length, 17, name);
		assert.deepEqual(buckets, [...buckets].sort((a, b) => a - b), `${name} is cumulative`);
		assert.equal(value(all, row(name, 'bucket', 'le="+Inf"')), value(all, row(name, 'count')), name);
		assert.ok(value(all, row(name, 'sum')) > 0, name);
	}
	assert.ok(value(all, 'silt_exec_seconds_sum') >= 0.03 && value(all, 'silt_exec_seconds_bucket{le="0.02"}') < value(all, 'silt_exec_seconds_count'));
	for (const name of new Set(names.map(name => name.split('{')[0])))
		assert.equal(all.split('\n').filter(line => line === `# TYPE ${name} histogram`).length, 1, name);
});

test('rows of a sandbox are there where the setting asks, and go with it', async t => {
	const box = await daemon.box(t);
	await box.run('printf 12345');
	const named = part => `silt_sandbox_${part}{sandbox="${box.id}"}`;
	const all = await text();
	assert.equal(value(all, named('running')), 1);
	assert.equal(value(all, named('sessions')), 1);
	assert.equal(value(all, named('commands')), 0);
	assert.equal(value(all, named('execs_total')), 1);
	assert.equal(value(all, named('output_bytes_total')), 5);
	await must('POST', `/v1/sandboxes/${box.id}/pause`);
	assert.equal(value(await text(), named('running')), 0);
	await must('DELETE', `/v1/sandboxes/${box.id}`);
	assert.ok(!(await text()).includes(box.id));
	const plain = await startDaemon();
	const other = await plain.box(t);
	t.after(() => plain.stop());
	await other.run('true');
	assert.ok(!(await text(plain)).includes(other.id));
});
