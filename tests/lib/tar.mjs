// SPDX-License-Identifier: Apache-2.0
// Writes tar archives (ustar) by hand, honest ones and others.

/** entries: {name, type: 'file'|'dir'|'symlink'|'hardlink'|'char'|'block'|'fifo'|'L' (the name of the next, GNU), data, target, mode, uid, gid, major, minor} */
export function tar(entries) {
	return Buffer.concat([...entries.flatMap(entry => [header(entry), padded(Buffer.from(entry.data ?? ''))]), Buffer.alloc(1024)]);
}

const TYPES = { file: '0', hardlink: '1', symlink: '2', char: '3', block: '4', dir: '5', fifo: '6', L: 'L' };

function header(entry) {
	const block = Buffer.alloc(512);
	const type = entry.type ?? 'file';
	const octal = (value, at, length) => block.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at, 'latin1');
	block.write(entry.name, 0, 100, 'utf8');
	octal(entry.mode ?? (type === 'dir' ? 0o755 : 0o644), 100, 8);
	octal(entry.uid ?? 0, 108, 8);
	octal(entry.gid ?? 0, 116, 8);
	octal(Buffer.byteLength(entry.data ?? ''), 124, 12);
	octal(entry.mtime ?? 1_700_000_000, 136, 12);
	block.write('        ', 148, 'latin1');
	block.write(TYPES[type], 156, 'latin1');
	block.write(entry.target ?? '', 157, 100, 'utf8');
	block.write('ustar\x0000', 257, 'latin1');
	octal(entry.major ?? 0, 329, 8);
	octal(entry.minor ?? 0, 337, 8);
	octal(block.reduce((sum, byte) => sum + byte, 0), 148, 7);
	return block;
}

function padded(data) {
	return Buffer.concat([data, Buffer.alloc((512 - data.length % 512) % 512)]);
}

/** A root for kind=host images: the machine's /usr is mounted into it. `replace` changes or adds entries by name. */
export function skeletonTar(replace = {}) {
	const dirs = ['dev', 'etc', 'home', 'mnt', 'opt', 'proc', 'root', 'run', 'srv', 'sys', 'tmp', 'usr', 'var', 'var/tmp', 'workspace'];
	const entries = [
		...dirs.map(name => ({ name, type: 'dir', mode: name.endsWith('tmp') ? 0o1777 : 0o755 })),
		...['bin', 'sbin', 'lib', 'lib64'].map(name => ({ name, type: 'symlink', target: `usr/${name}` })),
		{ name: 'etc/passwd', data: 'root:x:0:0:root:/root:/bin/bash\n' },
		{ name: 'etc/group', data: 'root:x:0:\n' },
	];
	return tar([...entries.filter(entry => !(entry.name in replace)), ...Object.values(replace).filter(Boolean)]);
}
