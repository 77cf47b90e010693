# SPDX-License-Identifier: Apache-2.0
# Shared by the benchmarks: a daemon of their own, and the peers' root file system. Sourced, not run.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
build=${SILT_BUILD:-$top/build/test}
images=${SILT_TEST_IMAGES:-$top/build/test-images}
results=$top/bench/results
work=$(mktemp -d /tmp/silt-bench.XXXXXX)
super=
supers=
mkdir -p "$results"

die() { echo "bench: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || die "run it as root (sudo $0)"
"$top/script/deps" bench
# The same build and images as the tests use: nothing of a running installation is touched.
[ -n "${SILT_BUILD:-}" ] || "$top/script/test" prepare
[ -x "$build/silt-bench" ] || die "no silt-bench in $build"

finish() {
	status=$?
	trap - EXIT INT TERM
	for one in $supers; do kill "$one" 2>/dev/null || :; wait "$one" 2>/dev/null || :; done
	umount "$work/podman/overlay" 2>/dev/null || : # podman leaves its own mount
	rm -rf "$work"
	exit "$status"
}
trap finish EXIT INT TERM

# start_daemon [SETTING...]: sets $server and $token_file. $network: auto, or off as if not set; $instance: its name.
start_daemon() {
	user=64998
	mkdir -p "$work/state/db"
	cp "$images/seed.db" "$work/state/db/silt.db"
	chown -R $user:$user "$work/state/db"
	chmod 755 "$work"
	token_file=$work/token
	for try in 1 2 3 4 5 6 7 8; do
		block=$(( ($$ + try * 11) % 40 + 80 )) # another instance may have some of these ids; an installation has 16 to 79
		"$build/silt-super" --config= --network="${network:-off}" --instance="${instance:-b$(( $$ % 10000 ))}" --state="$work/state" --run="$work/run" --user=$user \
			--token_file="$token_file" --images="$images" --listen=127.0.0.1:0 --preview.listen=127.0.0.1:0 --ids.base=$(( block * 16777216 )) \
			--ids.count=1536 --disk.pool=16G "$@" >"$work/log" 2>&1 &
		super=$!
		await_daemon && break
		super=
		grep -q 'is in use by another' "$work/log" || break
	done
	[ -n "$super" ] || { tail -5 "$work/log" >&2; die "the daemon does not start"; }
	supers="$supers $super"
	server=$(cat "$work/run/address")
}

await_daemon() {
	n=0
	until [ -s "$work/run/address" ] && curl -fsS "http://$(cat "$work/run/address")/healthz" >/dev/null 2>&1; do
		n=$((n + 1))
		[ $n -lt 200 ] && kill -0 "$super" 2>/dev/null || return 1
		sleep 0.1
	done
}

bench() { "$build/silt-bench" "$server" "$token_file" "$@"; }
# peer NAME COUNT SPACING COMMAND...
peer() {
	peer_name=$1 peer_count=$2 peer_spacing=$3
	shift 3
	"$build/silt-bench" - - peer "$peer_name" "$peer_count" "$peer_spacing" -- "$@"
}

# A root file system for the peers: what our own sandboxes run on.
peer_root() {
	root=$(find "$images" -maxdepth 1 -type d -name '[0-9a-f]*' -exec test -x '{}/usr/bin/python3' ';' -print | head -1)
	[ -n "$root" ] || die "no base image in $images"
	echo "$root"
}

machine() { echo "$(nproc) CPUs, $(awk '/MemTotal/{printf "%d GiB", $2/1048576+0.5}' /proc/meminfo), Linux $(uname -r | cut -d- -f1)"; }

# table FILE: the lines of a result file as text, and its chart
finish_results() {
	python3 "$top/bench/chart.py" "$1" "$(machine)" "${1%.jsonl}.svg"
}
