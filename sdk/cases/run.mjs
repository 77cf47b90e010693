// SPDX-License-Identifier: Apache-2.0
// Runs cases with the TypeScript library: the same file in Node, Bun, Deno, workerd and browsers.

const EVENT_MS = 30_000;

/** Runs the cases, one after the other. Returns what failed and how many passed. */
export async function runCases(library, cases, { only } = {}) {
	const failures = [];
	let passed = 0;
	for (const one of cases) {
		if (only && !only.test(one.name))
			continue;
		const id = `case-${Math.random().toString(36).slice(2, 12)}`;
		const sandbox = library.getSandbox(id, one.options ?? {});
		try {
			await runCase(library, sandbox, one, id);
			passed++;
		} catch (error) {
			failures.push({ name: one.name, error: error.stack?.includes(error.message) ? error.stack : `${error.message}\n${error.stack}` });
		} finally {
			await sandbox.destroy().catch(error => failures.push({ name: one.name, error: `destroy: ${error.message}` }));
		}
	}
	return { passed, failures };
}

async function runCase(library, sandbox, { steps }, id) {
	const kept = { sandbox, library, id };
	const calls = {};
	for (const [i, step] of steps.entries())
		try {
			await runStep(kept, calls, step);
		} catch (error) {
			throw new Error(`step ${i + 1} (${step.do ?? step.get}): ${error.message}`, { cause: error });
		}
}

async function runStep(kept, calls, step) {
	const owner = lookUp(kept, step.on ?? 'sandbox');
	const args = (step.args ?? []).map(value => fill(value, kept, calls));
	let result;
	try {
		result = step.get !== undefined ? lookUp(owner, step.get) : await owner[step.do](...args);
	} catch (error) {
		if (!step.fails)
			throw error;
		return compare(error, step.fails, 'error');
	}
	if (step.fails)
		throw new Error(`it did not fail: ${show(result)}`);
	if (step.as)
		kept[step.as] = result;
	if (step.events || step.joined)
		await readEvents(result, step, kept);
	else if ('expect' in step)
		compare(result, fill(step.expect, kept, calls), 'result');
	for (const name in step.calls ?? {})
		compare(calls[name] ?? [], step.calls[name], `calls of ${name}`);
}

async function readEvents(stream, step) {
	const all = [];
	const iterator = stream.events ? stream.events() : stream[Symbol.asyncIterator]();
	const wanted = step.events ?? [];
	const last = step.until ?? wanted.at(-1)?.type;
	for (;;) {
		const next = await within(iterator.next(), `an event after ${show(all.slice(-3))}`);
		if (next.done)
			break;
		all.push(next.value);
		if (next.value.type === last)
			break;
	}
	await iterator.return?.();
	let at = 0;
	for (const event of wanted) {
		const found = all.findIndex((one, i) => i >= at && matches(one, event));
		if (found < 0)
			throw new Error(`no event ${show(event)} in ${show(all)}`);
		at = found + 1;
	}
	for (const type in step.joined ?? {})
		compare(all.filter(event => event.type === type).map(event => event.data ?? event.text ?? '').join(''), step.joined[type], `joined ${type}`);
}

function within(promise, what) {
	let timer;
	const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`${what}: not within ${EVENT_MS} ms`)), EVENT_MS); });
	return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

const lookUp = (from, path) => path.split('.').reduce((at, name) => name === '$string' ? String(at) : name === '$json' ? JSON.stringify(at) : typeof at?.[name] === 'function' && name.endsWith('()') ? at[name.slice(0, -2)]() : at?.[name], from);
const decode = base64 => Uint8Array.from(atob(base64), letter => letter.charCodeAt(0));
const show = value => { try { return JSON.stringify(value)?.slice(0, 600); } catch { return String(value); } };

function fill(value, kept, calls) {
	if (Array.isArray(value))
		return value.map(one => fill(one, kept, calls));
	if (value === null || typeof value !== 'object')
		return value;
	if ('$bytes' in value)
		return decode(value.$bytes);
	if ('$var' in value)
		return lookUp(kept, value.$var);
	if ('$callback' in value)
		return (...words) => { (calls[value.$callback] ??= []).push(words); };
	if ('$regexp' in value)
		return new RegExp(value.$regexp);
	return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, fill(one, kept, calls)]));
}

function matches(value, wanted) {
	try {
		compare(value, wanted, '');
		return true;
	} catch {
		return false;
	}
}

function compare(value, wanted, where) {
	const fail = () => { throw new Error(`${where} is ${show(value)}, not ${show(wanted)}`); };
	if (wanted === null || typeof wanted !== 'object') {
		if (value !== wanted && !(wanted === null && value === undefined))
			fail();
	} else if (wanted instanceof Uint8Array) {
		if (!(value instanceof Uint8Array) || value.length !== wanted.length || wanted.some((byte, i) => value[i] !== byte))
			fail();
	} else if ('$match' in wanted) {
		if (!new RegExp(wanted.$match).test(String(value)))
			fail();
	} else if ('$joined' in wanted) {
		if (value?.join?.('') !== wanted.$joined)
			fail();
	} else if ('$type' in wanted) {
		if (typeof value !== wanted.$type)
			fail();
	} else if (Array.isArray(wanted)) {
		if (!Array.isArray(value) || value.length !== wanted.length)
			fail();
		wanted.forEach((one, i) => compare(value[i], one, `${where}[${i}]`));
	} else {
		if (value === null || typeof value !== 'object' && typeof value !== 'function')
			fail();
		for (const name in wanted)
			compare(value[name], wanted[name], `${where}.${name}`);
	}
}
