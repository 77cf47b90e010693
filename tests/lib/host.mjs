// SPDX-License-Identifier: Apache-2.0
// What the machine shows from outside: processes, mounts, cgroups, descriptors. Reads only.

import fs from 'node:fs';
import path from 'node:path';

export const CGROUPS = '/sys/fs/cgroup';

function read(file) {
	try {
		return fs.readFileSync(file, 'utf8');
	} catch {
		return '';
	}
}

function list(directory) {
	try {
		return fs.readdirSync(directory);
	} catch {
		return [];
	}
}

function link(file) {
	try {
		return fs.readlinkSync(file);
	} catch {
		return '';
	}
}

export function pids() {
	return list('/proc').filter(name => /^\d+$/.test(name)).map(Number);
}

export function processInfo(pid) {
	const status = read(`/proc/${pid}/status`);
	const field = name => (new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status) ?? [])[1];
	return {
		pid,
		name: field('Name'),
		state: field('State')?.[0],
		parent: Number(field('PPid')),
		nsPids: field('NSpid')?.split(/\s+/).map(Number) ?? [],
		residentKiB: Number.parseInt(field('VmRSS') ?? '0', 10),
		peakKiB: Number.parseInt(field('VmHWM') ?? '0', 10),
		command: read(`/proc/${pid}/cmdline`).split('\0').slice(0, -1),
		cgroup: read(`/proc/${pid}/cgroup`),
		pidNamespace: link(`/proc/${pid}/ns/pid`),
		netNamespace: link(`/proc/${pid}/ns/net`),
	};
}

/** From now on VmHWM counts anew. */
export function resetPeak(pid) {
	fs.writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

export function descriptors(pid) {
	return list(`/proc/${pid}/fd`).length;
}

/** One of its descriptors leads to this. */
export function hasOpen(pid, target) {
	return list(`/proc/${pid}/fd`).some(fd => link(`/proc/${pid}/fd/${fd}`) === target);
}

export function children(pid) {
	return list(`/proc/${pid}/task`).flatMap(task => read(`/proc/${pid}/task/${task}/children`).split(' ').filter(Boolean).map(Number));
}

/** Processes in a cgroup of this instance, zombies included. */
export function processesOf(instance) {
	const inside = new RegExp(`/${instance}(/|$)`, 'm');
	// Those of others are not looked at any closer: there may be many.
	return pids().filter(pid => inside.test(read(`/proc/${pid}/cgroup`))).map(processInfo).filter(p => inside.test(p.cgroup));
}

export function mountsWith(text, pid = 'self') {
	return read(`/proc/${pid}/mounts`).split('\n').filter(line => line.includes(text));
}

/** All cgroup directories of the instance, in every hierarchy. */
export function cgroupsOf(instance) {
	const tops = [path.join(CGROUPS, instance), ...list(CGROUPS).map(name => path.join(CGROUPS, name, instance))];
	return tops.filter(top => fs.existsSync(top)).flatMap(directories);
}

function directories(top) {
	const below = list(top).map(name => path.join(top, name)).filter(p => {
		try {
			return fs.lstatSync(p).isDirectory();
		} catch {
			return false;
		}
	});
	return [top, ...below.flatMap(directories)];
}

export function loopsInside(directory) {
	return list('/sys/block').filter(name => name.startsWith('loop'))
		.map(name => ({ name, file: read(`/sys/block/${name}/loop/backing_file`).trim() }))
		.filter(loop => loop.file.startsWith(directory));
}

export function netNamespaces() {
	return new Set(pids().map(pid => link(`/proc/${pid}/ns/net`)).filter(Boolean));
}

/** Names in a directory, seen through the mounts of process pid. */
export function namesIn(directory, pid = 'self') {
	return list(`/proc/${pid}/root${directory}`);
}

/** Names of all files below a directory, seen through the mounts of process pid. */
export function filesBelow(directory, pid = 'self') {
	const root = `/proc/${pid}/root`;
	const walk = at => list(root + at).flatMap(name => {
		const file = path.join(at, name);
		try {
			return fs.lstatSync(root + file).isDirectory() ? [file, ...walk(file)] : [file];
		} catch {
			return [];
		}
	});
	return walk(directory);
}
