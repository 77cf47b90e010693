// SPDX-License-Identifier: Apache-2.0
// ATTACKS.md, the tests that it names and the switches of the programs agree.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

const HERE = import.meta.dirname;
const TESTS = path.join(HERE, '..');
const SECTIONS = { A: 15, B: 17, C: 18, D: 11, E: 12, F: 14 };

const read = file => fs.readFileSync(file, 'utf8');
const cells = line => line.trim().replace(/^\||\|$/g, '').split(/(?<!\\)\|/).map(cell => cell.trim());
const names = text => [...text.matchAll(/`([a-z_]+)`/g)].map(([, name]) => name);

/** {ids, shown: [{file, name}], without, why} of each row. */
const ROWS = read(path.join(HERE, 'ATTACKS.md')).split('\n').filter(line => /^\| [A-G]\d/.test(line)).map(line => {
	const [ids, , , shown, without, why, ...rest] = cells(line);
	assert.ok(why !== undefined && rest.length === 0, `six columns: ${line}`);
	return {
		ids: ids.split(', '), without: names(without), why,
		shown: shown === '—' ? [] : shown.split('<br>').map(text => {
			const [, file, name] = /^`([\w./-]+)`(?:: (.+))?$/.exec(text) ?? assert.fail(`${ids}: not a test: ${text}`);
			return { file: path.join(TESTS, file.endsWith('.c') ? file : `${file}.test.mjs`), name: name ?? '' };
		}),
	};
});
const named = file => ROWS.flatMap(row => row.shown).filter(shown => shown.file === file);
const ours = fs.readdirSync(HERE).filter(file => /^(?!ledger|switches).*\.test\.mjs$/.test(file)).map(file => path.join(HERE, file));

test('every attack has a row', () => {
	const ids = new Set(ROWS.flatMap(row => row.ids));
	for (const [letter, count] of Object.entries(SECTIONS)) {
		for (let i = 1; i <= count; i++)
			assert.ok(ids.has(`${letter}${i}`), `${letter}${i}`);
	}
});

test('every row names tests that exist, or says why there is none', () => {
	for (const { ids, shown, without, why } of ROWS) {
		assert.ok(why.length > (without.length > 0 ? 2 : 10), `${ids}: what the switch shows, or why there is none`);
		for (const { file, name } of shown) {
			assert.ok(fs.existsSync(file), `${ids}: ${file}`);
			assert.ok(read(file).replaceAll("\\'", "'").includes(name), `${ids}: ${path.basename(file)} has no test "${name}"`);
			assert.ok(name !== '' || file.includes('/fuzz/') || file.includes('/unit/'), `${ids}: which test of ${path.basename(file)}?`);
		}
	}
});

test('every test of this directory is in a row', () => {
	for (const file of ours) {
		const listed = named(file).map(({ name }) => name);
		for (const [, , title] of read(file).matchAll(/(?:bothWays|\ntest)\((['"`])((?:\\.|(?!\1).)+)\1/g)) {
			const name = title.replaceAll("\\'", "'");
			assert.ok(listed.some(text => name.startsWith(text)), `${path.basename(file)}: ${name}`);
		}
		assert.ok(listed.length > 0, path.basename(file));
	}
});

test('a row and its file take the same protections away', () => {
	for (const file of ours) {
		const rows = ROWS.filter(row => row.without.length > 0 && row.shown.some(shown => shown.file === file));
		for (const [, list] of read(file).matchAll(/^export const without\w* = \[(.*)\];$/gm)) {
			const wanted = [...list.matchAll(/'(\w+)'/g)].map(([, name]) => name).join();
			assert.ok(rows.some(row => row.without.join() === wanted), `${path.basename(file)}: no row without ${wanted}`);
		}
	}
});

test('every switch of the programs is explained and shown by a row', () => {
	const [, list] = /known\[\] = \{([^}]*)\}/.exec(read(path.join(TESTS, '../src/super/test_switch.c')));
	const known = [...list.matchAll(/"(\w+)"/g)].map(([, name]) => name).sort();
	const explained = [...read(path.join(HERE, 'PROTECTIONS.md')).matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name).sort();
	assert.deepEqual(explained, known, 'PROTECTIONS.md');
	assert.deepEqual([...new Set(ROWS.flatMap(row => row.without))].sort(), known, 'ATTACKS.md');
});
