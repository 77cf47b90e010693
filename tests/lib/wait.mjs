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

/** Does it again until it took less than `ms` once, and returns what that gave: other work on the machine slows down this one or that, never all. */
export async function soon(what, ms, work, tries = 10) {
	const took = [];
	for (;;) {
		const start = process.hrtime.bigint();
		const value = await work();
		took.push(Math.round(Number(process.hrtime.bigint() - start) / 1e6));
		if (took.at(-1) < ms)
			return value;
		if (took.length >= tries)
			throw new Error(`${what}: never within ${ms} ms, but in ${took.join(', ')} ms`);
	}
}

export function median(numbers) {
	return numbers.toSorted((a, b) => a - b)[numbers.length >> 1];
}
