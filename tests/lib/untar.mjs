// SPDX-License-Identifier: Apache-2.0
// Reads tars (ustar, GNU long names) for tests that look at what was written.

const text = (block, from, length) => block.toString('latin1', from, from + length).replace(/\0.*$/s, '');
const TYPES = { 0: 'file', '\0': 'file', 1: 'hardlink', 2: 'symlink', 5: 'dir', 6: 'fifo' };

function number(block, from, length) {
	if (block[from] & 0x80)
		return block.subarray(from + 1, from + length).reduce((sum, byte) => sum * 256 + byte, 0);
	return parseInt(text(block, from, length).trim() || '0', 8);
}

/** Entries by name: {name, type, mode, uid, gid, mtime, target, data}, in their order. */
export function untar(bytes) {
	const entries = new Map();
	let long = {};
	for (let at = 0; at + 512 <= bytes.length && bytes[at] !== 0;) {
		const block = bytes.subarray(at, at + 512);
		const size = number(block, 124, 12);
		const type = String.fromCharCode(block[156]);
		const data = bytes.subarray(at + 512, at + 512 + size);
		at += 512 + Math.ceil(size / 512) * 512;
		if (type === 'L' || type === 'K') {
			long[type] = data.toString().replace(/\0.*$/s, '');
			continue;
		}
		const name = (long.L ?? text(block, 0, 100)).replace(/^\.\//, '').replace(/\/$/, '');
		entries.set(name, { name, type: TYPES[type] ?? type, mode: number(block, 100, 8), uid: number(block, 108, 8), gid: number(block, 116, 8), mtime: number(block, 136, 12), target: long.K ?? text(block, 157, 100), data });
		long = {};
	}
	return entries;
}
