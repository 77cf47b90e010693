// SPDX-License-Identifier: Apache-2.0
// B8: cgroup files, release agents, moving up.
import assert from 'node:assert/strict';
import { bothWays } from '../lib/escape.mjs';

export const without = ['cgroup_ro'];

const TRY = `
cd /
find / -xdev -name release_agent -o -xdev -name cgroup.procs 2>/dev/null
for dir in $(while read -r source at type rest; do case $type in cgroup*) echo $at;; esac; done < /proc/self/mounts) /sys/fs/cgroup; do
	for file in $(find $dir -maxdepth 4 -type f 2>/dev/null); do
		case $file in
		*/notify_on_release|*/memory.max|*/memory.limit_in_bytes|*/pids.max|*/cpu.max|*/cgroup.freeze|*/freezer.state)
			value=$(cat $file 2>/dev/null) && ( echo $value > $file ) 2>/dev/null && echo written $file;;
		*/release_agent|*/cgroup.procs|*/tasks|*/cgroup.subtree_control)
			( : >> $file ) 2>/dev/null && echo opened $file;;
		esac
	done
	for file in $dir/../cgroup.procs $dir/../tasks; do ( echo 0 > $file ) 2>/dev/null && echo moved $file; done
	mkdir $dir/mine 2>/dev/null && echo made $dir/mine && rmdir $dir/mine
done
mkdir -p /tmp/cg; for type in cgroup cgroup2; do mount -t $type none /tmp/cg 2>/dev/null && echo mounted $type && umount /tmp/cg; done
true`;

export async function attack(box) {
	const found = (await box.out(TRY, {}, { deadline: 60_000 })).split('\n').filter(Boolean);
	return { succeeded: found.some(line => /^written /.test(line)), found, own: await box.out('cat /proc/self/cgroup') };
}

bothWays('B8 writing to cgroups', {
	context: true,
	without,
	attack,
	repelled(evidence) {
		assert.deepEqual(evidence.found.filter(line => /^(written|opened|moved|made|mounted) /.test(line)), []);
		for (const line of evidence.own.trim().split('\n'))
			assert.match(line, /^\d+:[^:]*:\/(h\d+)?$/, 'the path of the host is not shown');
	},
});
