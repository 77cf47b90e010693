// SPDX-License-Identifier: Apache-2.0
// GET /v1/events: what is told, in which order, from which cursor, and what outlives the daemon.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/daemon.mjs';
import { refused, TIME } from '../lib/expect.mjs';
import { silt } from '../lib/silt.mjs';
import { events } from '../lib/sse.mjs';
import { until } from '../lib/wait.mjs';

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const open = async query => {
	const response = await daemon.client.open('GET', `/v1/events?${query}`);
	assert.equal(response.statusCode, 200);
	return response;
};

/** What is kept behind a cursor. */
async function kept(query) {
	const all = [];
	for await (const { data } of events(await open(`follow=false&${query}`)))
		all.push(data);
	return all;
}

const types = all => all.map(e => e.type);

/** Reads a stream until a type comes, and leaves it. */
async function upTo(type, stream) {
	const all = [];
	for await (const { data } of stream) {
		all.push(data);
		if (data.type === type)
			return all; // the loop closes the stream
	}
	assert.fail(`the stream ended before ${type}: ${types(all)}`);
}

test('a sandbox that has used up its disk says so, once a minute', async t => {
	const box = await daemon.box(t, { limits: { diskMiB: 64 } });
	const fill = async () => {
		const content = 'x'.repeat(90 << 20);
		refused(await box.api('POST', '/api/write', { path: '/workspace/f', content }, { deadline: 60_000 }), 507, 'NO_SPACE');
	};
	await fill();
	await fill();
	const [event, ...more] = await kept(`sandbox=${box.id}&cursor=0&types=diskFull`);
	assert.deepEqual([event.type, event.sandbox, event.scope, event.limitBytes], ['diskFull', box.id, 'sandbox', 64 << 20]);
	assert.deepEqual(more, []);
});

test('a sandbox tells its whole life in order, each event with a cursor of its own', async t => {
	const box = await daemon.box(t, {});
	const stream = events(await open(`sandbox=${box.id}&cursor=0`));
	await box.change('pause');
	await box.change('resume');
	await box.api('POST', '/api/process/start', { command: 'true' });
	assert.equal((await daemon.api('POST', `/v1/sandboxes/${box.id}/ports`, { port: 8000, name: 'web' })).status, 201);
	await box.change('stop');
	await box.change('start');
	await box.destroy();
	const all = await upTo('destroyed', stream);
	assert.deepEqual(types(all), ['created', 'started', 'paused', 'resumed', 'exposed', 'stopped', 'started', 'destroyed']);
	for (const [i, event] of all.entries()) {
		assert.equal(event.sandbox, box.id);
		assert.match(event.at, TIME);
		assert.match(event.cursor, /^\d+$/);
		assert.ok(i === 0 || BigInt(event.cursor) > BigInt(all[i - 1].cursor));
	}
	assert.equal(all[4].port, 8000);
	assert.equal(all[4].name, 'web');
	assert.equal(all[4].url, undefined, 'a URL opens the port: it is not told');
	assert.deepEqual([all[5].cause, typeof all[5].message], ['stopped', 'string']);
	assert.notEqual(all[1].incarnation, all[6].incarnation);
});

test('a death is told with its cause', async t => {
	const box = await daemon.box(t, { type: 'lite' });
	const stream = events(await open(`sandbox=${box.id}&types=died`));
	process.kill(await box.init(), 'SIGKILL');
	const [died] = await upTo('died', stream);
	assert.equal(died.cause, 'crash');
	assert.match(died.message, /ended unexpectedly/);
});

test('a command that the memory limit ended is told, and the sandbox runs on', async t => {
	const box = await daemon.box(t, { limits: { memoryMiB: 64 } });
	const stream = events(await open(`sandbox=${box.id}&types=died`));
	await box.run('head -c 200m /dev/zero | tail', { sessionId: 'hungry' });
	const [died] = await upTo('died', stream);
	assert.deepEqual([died.cause, died.limitBytes], ['oom', 64 * 1024 * 1024]);
	assert.equal((await box.info()).state, 'running');
});

test('a client that comes back with its cursor misses nothing and sees nothing twice', async t => {
	const box = await daemon.box(t, {});
	const stream = events(await open(`sandbox=${box.id}&cursor=0`));
	const first = await upTo('started', stream);
	await box.stop();
	const { cursor } = first.at(-1);
	assert.deepEqual(types(await kept(`sandbox=${box.id}&cursor=${cursor}`)), ['stopped']);
	const again = await daemon.client.open('GET', `/v1/events?sandbox=${box.id}`, undefined, { headers: { 'last-event-id': cursor } });
	assert.deepEqual(types(await upTo('stopped', events(again))), ['stopped'], 'a browser sends it as a header');
});

test('without a cursor a stream begins now', async t => {
	const box = await daemon.box(t, {});
	const stream = events(await open(`sandbox=${box.id}`));
	await box.stop();
	assert.deepEqual(types(await upTo('stopped', stream)), ['stopped']);
});

test('events outlive siltd and all of Silt, and the numbers go on', async t => {
	const own = await startDaemon();
	let last = own;
	t.after(() => last.stop());
	const of = async query => {
		const response = await last.client.open('GET', `/v1/events?follow=false&${query}`);
		const all = [];
		for await (const { data } of events(response))
			all.push(data);
		return all;
	};
	await own.box(undefined, { id: 'lasting' });
	const before = await of('cursor=0');
	assert.deepEqual(types(before), ['created', 'started']);
	process.kill(own.siltd(), 'SIGKILL');
	await own.healthy();
	assert.deepEqual(await of('cursor=0'), before, 'after a crash of siltd');
	await own.stop({ keep: true });
	last = await startDaemon({ home: own.home });
	const all = await of('cursor=0');
	assert.deepEqual(all.slice(0, 2), before, 'after a restart of all');
	assert.deepEqual(types(all), ['created', 'started', 'died']);
	assert.equal(all[2].cause, 'daemon_restart');
	assert.deepEqual(types(await of(`cursor=${before[1].cursor}`)), ['died']);
});

test('a cursor that is not of this store is answered with what is kept', async () => {
	const [first] = await kept('cursor=9000000000000000000');
	assert.equal(first.type, 'missed');
});

test('wrong questions are refused with the name of the field', async () => {
	for (const [query, field] of [['cursor=x', 'cursor'], ['cursor=-1', 'cursor'], ['types=started,nothing', 'types'], ['sandbox=..', 'sandbox'], ['follow=maybe', 'follow']])
		assert.equal(refused(await daemon.api('GET', `/v1/events?${query}`), 400, 'VALIDATION_FAILED').validationErrors[0].field, field);
});

test('64 clients may follow at once, and one that leaves makes room', async () => {
	const open64 = [];
	let answer;
	await until('no more is taken', async () => {
		answer = await daemon.client.open('GET', '/v1/events?types=diskFull');
		return answer.statusCode !== 200 || !open64.push(answer);
	});
	answer.destroy();
	assert.equal(open64.length, 64);
	answer = await daemon.api('GET', '/v1/events');
	assert.equal(answer.status, 429);
	assert.equal(answer.body.code, 'LIMIT_REACHED');
	for (const response of open64)
		response.destroy();
	await until('there is room', async () => (await daemon.api('GET', '/v1/events?follow=false')).status === 200);
});

test('silt events prints what is kept; -f follows over a restart of siltd until Ctrl-C', async t => {
	const box = await daemon.box(t, {});
	const brief = await silt(daemon, ['events', '--sandbox', box.id]);
	assert.equal(brief.code, 0, brief.stderr);
	assert.match(brief.stdout, new RegExp(`^\\S+Z  created     ${box.id}\n\\S+Z  started     ${box.id}  incarnation="\\w+"\n$`));
	let child;
	let text = '';
	const following = silt(daemon, ['events', '-f', '--json', '--cursor', '0', '--sandbox', box.id], { onStart: c => { child = c; }, onOutput: all => { text = all; } });
	await until('the first events', () => text.includes('"started"'));
	process.kill(daemon.siltd(), 'SIGKILL');
	await daemon.healthy();
	await box.stop();
	await until('the stop', () => text.includes('"stopped"'));
	child.kill('SIGINT');
	const { code } = await following;
	assert.equal(code, 130);
	assert.deepEqual(text.trim().split('\n').map(line => JSON.parse(line).type), ['created', 'started', 'stopped']);
	const wrong = await silt(daemon, ['events', 'word']);
	assert.equal(wrong.code, 125);
});
