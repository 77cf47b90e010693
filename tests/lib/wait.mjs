// SPDX-License-Identifier: Apache-2.0
// Waiting, always with a deadline.

const INTERVAL_MS = 10;

/** Rejects when the promise is not settled in time. */
export async function within(ms, what, promise) {
	let timer;
	const late = new Promise((_, reject) => {
		timer = setTimeout(() => reject(new Error(`${what}: not within ${ms} ms`)), ms);
	});
	try {
		return await Promise.race([promise, late]);
	} finally {
		clearTimeout(timer);
	}
}

/** Asks again and again until check() gives something truthy, and returns that. */
export async function until(what, check, ms = 60_000) {
	const deadline = Date.now() + ms;
	let last;
	for (;;) {
		try {
			const value = await check();
			if (value)
				return value;
			last = undefined;
		} catch (error) {
			last = error;
		}
		if (Date.now() > deadline)
			throw new Error(`${what}: not within ${ms} ms${last ? ` (${last.message})` : ''}`, { cause: last });
		await new Promise(resolve => setTimeout(resolve, INTERVAL_MS));
	}
}

export async function milliseconds(work) {
	const start = process.hrtime.bigint();
	await work();
	return Number(process.hrtime.bigint() - start) / 1e6;
}

/** Until a connection that is refused must have failed: far less than one takes that nobody answers (20 s and more). */
export const REFUSED_MS = 15_000;

export function median(numbers) {
	return numbers.toSorted((a, b) => a - b)[numbers.length >> 1];
}
