// SPDX-License-Identifier: Apache-2.0
// Output of any size with bounded memory in the daemon.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SESSIONLESS } from '../lib/box.mjs';
import { startDaemon } from '../lib/daemon.mjs';
import { refused } from '../lib/expect.mjs';
import { descriptors, processInfo, resetPeak } from '../lib/host.mjs';
import { until, within } from '../lib/wait.mjs';

const GIB = 2 ** 30;
const LINE = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-'; // 63 characters and a newline
const MEMORY_KIB = (process.env.SILT_SANITIZED ? 64 : 8) * 1024; // a sanitizer keeps what was freed for a while

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

/** Compares the body of an answer, piece by piece, with {"success":true,"exitCode":0,"stdout":"<count lines>","stderr"... */
class Checker {
	#head = '{"success":true,"exitCode":0,"stdout":"';
	#lines = Buffer.from(`${LINE}\\n`.repeat(1024));
	#at = 0;
	#tail = [];

	constructor(count) {
		this.end = this.#head.length + count * (LINE.length + 2);
	}

	take(chunk) {
		while (chunk.length > 0 && this.#at < this.end) {
			const length = this.#compare(chunk);
			this.#at += length;
			chunk = chunk.subarray(length);
		}
		this.#tail.push(Buffer.from(chunk));
	}

	#compare(chunk) {
		if (this.#at < this.#head.length) {
			const length = Math.min(chunk.length, this.#head.length - this.#at);
			assert.equal(chunk.toString('latin1', 0, length), this.#head.slice(this.#at, this.#at + length));
			return length;
		}
		const start = (this.#at - this.#head.length) % this.#lines.length;
		const length = Math.min(chunk.length, this.#lines.length - start, this.end - this.#at);
		assert.equal(this.#lines.compare(chunk, 0, length, start, start + length), 0, `the bytes from ${this.#at} on are as written`);
		return length;
	}

	/** The rest of the document, made whole with an empty stdout. */
	finish() {
		assert.equal(this.#at, this.end, 'everything arrived');
		return JSON.parse(this.#head + Buffer.concat(this.#tail).toString());
	}
}

async function grown(work) {
	const pid = daemon.siltd();
	resetPeak(pid);
	const before = processInfo(pid).residentKiB;
	await work();
	return processInfo(pid).peakKiB - before;
}

for (const sessionId of ['default', SESSIONLESS]) {
	test(`1 GiB of output (${sessionId}) arrives whole and costs the daemon at most 8 MiB`, async t => {
		const box = await daemon.box(t);
		await box.run('true', { sessionId });
		const command = `yes ${LINE} | head -c ${GIB}`;
		const growth = await grown(async () => {
			const response = await daemon.client.open('POST', `/sandboxes/${box.id}/api/execute`, { command, sessionId }, { deadline: 400_000 });
			assert.equal(response.statusCode, 200);
			const checker = new Checker(GIB / 64);
			await within(400_000, '1 GiB', (async () => {
				for await (const chunk of response)
					checker.take(chunk);
			})());
			const rest = checker.finish();
			assert.deepEqual([rest.stderr, rest.command, rest.sessionId], ['', command, sessionId]);
		});
		assert.ok(growth <= MEMORY_KIB, `siltd grew by ${growth} KiB`);
		assert.equal(await box.out('echo usable', { sessionId }), 'usable\n');
	});
}

test('large output on stderr is spooled as well', async t => {
	const box = await daemon.box(t);
	const growth = await grown(async () => {
		const body = await box.run("head -c 64000000 /dev/zero | tr '\\0' e >&2; echo out", {}, { deadline: 180_000 });
		assert.equal(body.stdout, 'out\n');
		assert.ok(body.stderr === 'e'.repeat(64_000_000));
	});
	assert.ok(growth <= MEMORY_KIB, `siltd grew by ${growth} KiB`);
});

test('a client that never reads its large answer holds nobody up', async t => {
	const box = await daemon.box(t);
	const response = await daemon.client.open('POST', `/sandboxes/${box.id}/api/execute`, { command: 'yes | head -c 50000000', sessionId: 'slow' });
	response.pause();
	t.after(() => response.destroy());
	assert.equal(await box.out('echo free', { sessionId: 'slow' }), 'free\n', 'the command itself is finished');
});

test('a client that leaves in the middle of a large answer leaves nothing', async t => {
	const box = await daemon.box(t);
	await box.run('true');
	await daemon.atRest(); // ready sandboxes are made in the background, and have descriptors too
	const pid = daemon.siltd();
	const before = descriptors(pid);
	for (let i = 0; i < 5; i++) {
		const response = await daemon.client.open('POST', `/sandboxes/${box.id}/api/execute`, { command: 'yes | head -c 50000000' });
		response.destroy();
	}
	await box.run('true');
	daemon.client.close();
	await until('descriptors as before', () => descriptors(pid) <= before);
});

test('output beyond the disk quota is a typed error with the part so far', async t => {
	const box = await daemon.box(t, { limits: { diskMiB: 64, memoryMiB: 256 } });
	const context = refused(await box.exec("head -c 300000000 /dev/zero | tr '\\0' x", {}, { deadline: 180_000 }), 507, 'NO_SPACE');
	assert.equal(context.cause, 'disk');
	assert.match(context.stdout, /^x+$/);
	assert.ok(context.stdout.length > 1_000_000);
	assert.equal(await box.out('echo usable'), 'usable\n');
});

test('a spool gives its space back', async t => {
	const box = await daemon.box(t, { limits: { diskMiB: 200, memoryMiB: 256 } });
	for (let i = 0; i < 4; i++)
		assert.equal((await box.out("head -c 100000000 /dev/zero | tr '\\0' x", {}, { deadline: 180_000 })).length, 100_000_000);
});
