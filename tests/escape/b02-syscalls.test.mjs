// SPDX-License-Identifier: Apache-2.0
// B2: the blocked calls are blocked on every ABI.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bothWays, daemonWithout } from '../lib/escape.mjs';

export const withoutFilter = ['seccomp'];
export const withoutAbi = ['abi'];

/** name: [number on x86-64, number on i386]; null: does not exist there. */
const BLOCKED = {
	mount: [165, 21], umount: [null, 22], umount2: [166, 52], pivot_root: [155, 217], open_tree: [428, 428], move_mount: [429, 429], fsopen: [430, 430], fsconfig: [431, 431],
	fsmount: [432, 432], fspick: [433, 433], mount_setattr: [442, 442], open_tree_attr: [467, 467], setns: [308, 346], open_by_handle_at: [304, 342],
	init_module: [175, 128], finit_module: [313, 350], delete_module: [176, 129], kexec_load: [246, 283], kexec_file_load: [320, null], reboot: [169, 88], swapon: [167, 87], swapoff: [168, 115],
	acct: [163, 51], quotactl: [179, 131], quotactl_fd: [443, 443], iopl: [172, 110], ioperm: [173, 101], vm86: [null, 166], vm86old: [null, 113], syslog: [103, 103], bpf: [321, 357],
	perf_event_open: [298, 336], userfaultfd: [323, 374], io_uring_setup: [425, 425], io_uring_enter: [426, 426], io_uring_register: [427, 427], keyctl: [250, 288], add_key: [248, 286],
	request_key: [249, 287], settimeofday: [164, 79], clock_settime: [227, 264], clock_settime64: [null, 404], vhangup: [153, 111],
};

const EPERM = 1, EFAULT = 14, ENOSYS = 38, SIGSEGV = 11, SIGSYS = 31;

/** Calls the blocked set on one ABI, once with zeros and once with -1 as arguments: the answers by name. */
async function call(box, program, abi) {
	const column = abi === 'i386' ? 1 : 0;
	const names = Object.keys(BLOCKED).filter(name => BLOCKED[name][column] !== null);
	const answers = {};
	for (const values of ['0,0,0,0,0,0', '-1,-1,-1,-1,-1,-1']) {
		const text = await box.out(`${program} ${names.map(name => `${abi}:${BLOCKED[name][column]}:${values}`).join(' ')}`);
		text.trim().split('\n').forEach((line, i) => {
			const [, , kind, number] = line.split(' ');
			(answers[names[i]] ??= []).push([kind, Number(number)]);
		});
	}
	return answers;
}

const isRefusal = ([kind, number]) => kind === 'errno' && (number === EPERM || number === ENOSYS);
const isDeadAbi = ([kind, number]) => kind === 'signal' && (number === SIGSYS || number === SIGSEGV);

export async function nativeCalls(box) {
	const program = await box.install('call');
	const answers = await call(box, program, 'x64');
	const passed = Object.keys(answers).filter(name => !answers[name].every(isRefusal));
	return { succeeded: passed.length >= 10, passed, answers };
}

export async function otherAbis(box) {
	const program = await box.install('call');
	const [old, x32] = [await call(box, program, 'i386'), await call(box, program, 'x32')];
	const bad = answers => Object.keys(answers).filter(name => !answers[name].every(a => isRefusal(a) || isDeadAbi(a)));
	return { succeeded: old.mount.some(([kind, number]) => kind === 'errno' && number === EFAULT), passed: { i386: bad(old), x32: bad(x32) } };
}

bothWays('B2 blocked system calls', {
	context: true,
	without: withoutFilter,
	attack: nativeCalls,
	repelled(evidence) {
		assert.deepEqual(evidence.passed, []);
	},
});

bothWays('B2 blocked system calls by x32 numbers and int 0x80', {
	context: true,
	without: withoutAbi,
	attack: otherAbis,
	repelled(evidence) {
		assert.deepEqual(evidence.passed, { i386: [], x32: [] });
	},
});

test('B2 no x32 number from 0 to 600 is a system call', async t => {
	const box = await (await daemonWithout([])).box(t);
	const program = await box.install('call');
	const lines = (await box.out(`${program} sweep x32 0 600`, {}, { deadline: 120_000 })).trim().split('\n');
	assert.ok(lines.length > 550);
	assert.deepEqual(lines.filter(line => !/(errno (1|38)|signal 31)$/.test(line)), []);
});

test('B2 a sweep over all numbers leaves sandbox and daemon alive', async t => {
	const daemon = await daemonWithout([]);
	const box = await daemon.box(t);
	const program = await box.install('call');
	for (const abi of ['x64', 'i386'])
		await box.run(`${program} sweep ${abi} 0 600`, {}, { deadline: 120_000 });
	assert.equal(await box.out('echo alive'), 'alive\n');
});
