// SPDX-License-Identifier: Apache-2.0
// F12: how our own programs are made, and what they may do while they run.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { BUILD, startDaemon } from '../lib/daemon.mjs';

const DYNAMIC = ['silt-super', 'silt-priv', 'siltd', 'silt-fetch', 'silt-proxy', 'silt-trust', 'silt'];

let daemon;
before(async () => { daemon = await startDaemon(); });
after(() => daemon?.stop());

const readelf = (program, ...flags) => execFileSync('readelf', [...flags, '-W', path.join(BUILD, program)], { encoding: 'utf8' });

function commonTo(program) {
	const segments = readelf(program, '-l');
	assert.match(segments, /GNU_RELRO/, `${program}: what the linker filled in becomes read-only`);
	assert.match(segments, /GNU_STACK.* RW /, `${program}: no code on the stack`);
	assert.doesNotMatch(segments, /LOAD.* RWE /, `${program}: nothing is both writable and code`);
	const dynamic = readelf(program, '-d');
	assert.doesNotMatch(dynamic, /TEXTREL|RPATH|RUNPATH/, program);
	return { segments, dynamic };
}

test('F12 our programs are position independent, bound at the start, and guard their stacks', { skip: process.env.SILT_SANITIZED && 'sanitizers bring their own' }, () => {
	for (const program of DYNAMIC) {
		const { dynamic } = commonTo(program);
		assert.match(readelf(program, '-h'), /Type:\s+DYN/, `${program} is position independent`);
		assert.match(dynamic, /FLAGS.*NOW/, `${program} is bound at its start`);
		const symbols = readelf(program, '--dyn-syms');
		assert.match(symbols, /__stack_chk_fail/, `${program} guards its stack`);
		assert.match(symbols, /__\w+_chk\b/, `${program} checks the sizes of copies`);
	}
});

test('F12 silt-init is one static file without symbols', { skip: process.env.SILT_SANITIZED && 'sanitizers bring their own' }, () => {
	const { segments } = commonTo('silt-init');
	assert.doesNotMatch(segments, /INTERP/, 'nothing of an image is loaded into it');
	assert.doesNotMatch(readelf('silt-init', '-S'), /\.symtab/);
	assert.ok(fs.statSync(path.join(BUILD, 'silt-init')).size < 512 << 10);
});

function status(pid) {
	const text = fs.readFileSync(`/proc/${pid}/status`, 'utf8');
	const field = name => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(text)?.[1].trim();
	return { uids: field('Uid').split(/\s+/), effective: field('CapEff'), permitted: field('CapPrm'), newPrivileges: field('NoNewPrivs') === '0', seccomp: field('Seccomp') };
}

test('F12 whoever reads what strangers say has no rights and a filter for its system calls', () => {
	for (const name of ['siltd', 'silt-proxy', 'silt-preview']) {
		for (const pid of daemon.programs(name)) {
			const s = status(pid);
			assert.ok(s.uids.every(uid => uid !== '0'), `${name} is not root`);
			assert.deepEqual([s.effective, s.permitted, s.newPrivileges, s.seccomp], ['0000000000000000', '0000000000000000', false, '2'], name);
		}
	}
	assert.equal(daemon.programs('siltd').length, 1);
});

test('F12 programs of an ordinary user cannot be led by what is in its directory or environment', t => {
	const directory = fs.mkdtempSync(path.join(daemon.home, 'led-'));
	fs.writeFileSync(path.join(directory, 'silt.conf'), 'listen = 0.0.0.0:1\n');
	for (const name of ['silt-priv', 'siltd', 'silt-proxy', 'silt-fetch']) {
		const before = fs.readdirSync(directory).length;
		let ended;
		try {
			execFileSync(path.join(BUILD, name), [], { cwd: directory, env: { SILT_CONFIG: path.join(directory, 'silt.conf') }, timeout: 20_000, stdio: 'pipe', uid: 65_534, gid: 65_534 });
			ended = 0;
		} catch (error) {
			ended = error.status ?? error.signal ?? error.code;
		}
		assert.notEqual(ended, 0, `${name}, started by hand, serves nobody`);
		assert.equal(fs.readdirSync(directory).length, before);
	}
});
