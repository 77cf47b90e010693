// SPDX-License-Identifier: Apache-2.0
// Long lines of interpreters, which siltd understands on threads of its own: they keep their place, they end with whoever
// sent or wanted them, and nobody else waits for them.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { context, open, run } from '../lib/code.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { events } from '../lib/sse.mjs';

let daemon, box;
before(async () => {
	daemon = await startDaemon({ warm: true });
	box = await daemon.box(); // it goes with the daemon
});
after(() => daemon?.stop());

const LONG = 3_000_000;
const SHOW = `from IPython.display import display\nprint("a")\ndisplay("x" * ${LONG})\nprint("b")\ndisplay(1)\n`;

test('a long result keeps its place among the others, and behind what was printed before it', async () => {
	const id = await context(box);
	const { events: seen, results, stdout, count } = await run(box, id, `${SHOW}"y" * ${LONG}`);
	assert.deepEqual([seen[0].text?.[0], stdout, seen.at(-1).type], ['a', 'a\nb\n', 'execution_complete'], 'what was printed before comes before');
	assert.deepEqual(results.map(result => result.text), [`'${'x'.repeat(LONG)}'`, '1', `'${'y'.repeat(LONG)}'`]);
	assert.deepEqual([results.map(result => result.isMainResult), count], [[false, false, true], 1]);
	const { body } = await daemon.api('POST', `/v1/sandboxes/${box.id}/contexts/${id}/run`, { code: `${SHOW}2` }, { deadline: 60_000 });
	assert.deepEqual(body.results.map(result => result.text.length), [LONG + 2, 1, 1]);
	assert.deepEqual([body.logs.stdout.join(''), body.executionCount, body.error], ['a\nb\n', 2, null]);
});

test('a long error is told whole', async () => {
	const { error } = await run(box, await context(box), `raise ValueError("z" * ${LONG})`);
	assert.equal(error.ename, 'ValueError');
	assert.ok(error.evalue.startsWith('zzz') && Array.isArray(error.traceback));
});

test('what was shown just before an interpreter ended is told, however long it is', async () => {
	for (const end of ['import os\nos._exit(3)', 'import os, signal\nos.kill(os.getpid(), signal.SIGKILL)']) {
		const { events: seen, results, error } = await run(box, await context(box), `${SHOW}display("w" * ${LONG})\n${end}`);
		assert.deepEqual(results.map(result => result.text.length), [LONG + 2, 1, LONG + 2], JSON.stringify(error));
		assert.deepEqual([seen.at(-1).ename, seen.at(-1).contextTerminated], ['ContextTerminated', true]);
	}
});

const FLOOD = `from IPython.display import display\nwhile True: display("x" * ${LONG})`;

/** A run that shows long results for ever, after its first. */
async function flood(where, id) {
	const response = await open(where, id, FLOOD);
	const seen = events(response, 60_000);
	assert.equal((await seen.next()).value.data.type, 'result');
	const rest = (async () => {
		let last = null;
		for await (const { data } of seen)
			last = data;
		return last;
	})();
	rest.catch(() => {}); // its reader may be the one who leaves
	return { response, rest };
}

test('contexts are deleted, restarted and interrupted while they show long results', async () => {
	const ids = await Promise.all([context(box), context(box), context(box)]);
	const runs = await Promise.all(ids.map(id => flood(box, id)));
	assert.equal((await box.api('DELETE', `/api/contexts/${ids[0]}`)).status, 200);
	assert.equal((await daemon.api('POST', `/v1/sandboxes/${box.id}/contexts/${ids[1]}/restart`)).status, 200);
	assert.equal((await daemon.api('POST', `/v1/sandboxes/${box.id}/contexts/${ids[2]}/interrupt`)).status, 200);
	const ends = await Promise.all(runs.map(({ rest }) => rest));
	assert.deepEqual(ends.slice(0, 2).map(end => end.cause), ['deleted', 'restarted']);
	assert.equal(ends[2].type, 'error');
	assert.equal((await run(box, ids[1], '1')).results[0].text, '1');
});

test('readers leave and sandboxes go while long results are on their way', async t => {
	for (let i = 0; i < 4; i++) {
		const doomed = await daemon.box(t);
		const runs = await Promise.all([0, 1, 2].map(async () => flood(doomed, await context(doomed))));
		runs[0].response.destroy();
		await doomed.destroy();
		assert.equal((await runs[1].rest).cause, 'destroyed');
		assert.equal((await runs[2].rest).cause, 'destroyed');
	}
	assert.equal((await run(box, await context(box), '1')).results[0].text, '1');
});

/** A box whose interpreter answers each run with the same list of 1.4 million numbers, for ever. */
async function listers(t) {
	const fake = await daemon.box(t);
	await fake.out(`cat > /usr/local/bin/python3 <<'END'
#!/bin/sh
read -r init <&3
echo '{"t":"ready"}' >&4
read -r line <&3
id=\${line#*'"id":'} id=\${id%%,*}
while :; do { printf '{"t":"result","id":%s,"json":' "$id"; cat /tmp/list; echo '}'; } >&4; done
END
chmod +x /usr/local/bin/python3; { printf '[0'; yes ,0 | head -n 1400000 | tr -d '\\n'; printf ']'; } > /tmp/list`);
	return fake;
}

test('others are served while long lines are understood', async t => {
	const fake = await listers(t);
	const counts = [0, 0, 0];
	const responses = [];
	const readers = counts.map(async (_, n) => {
		const response = await open(fake, await context(fake), '1');
		responses.push(response);
		for await (const { data } of events(response, 60_000)) {
			assert.equal(data.json.length, 1_400_001);
			counts[n]++;
		}
	});
	for (const reader of readers)
		reader.catch(() => {}); // it is cut off
	for (let i = 0; i < 40 || counts.some(count => count === 0); i++) {
		assert.equal((await box.run(`echo ${i}`)).stdout, `${i}\n`);
		assert.ok(i < 20_000, `lists: ${counts}`);
	}
	for (const response of responses)
		response.destroy();
});

test('a long line that breaks the rules ends its context', async t => {
	const fake = await listers(t);
	await fake.out('head -c 2000000 /dev/zero | tr "\\0" "{" > /tmp/list');
	const { error } = await run(fake, await context(fake), '1');
	assert.deepEqual([error.cause, error.contextTerminated], ['protocol', true]);
});
