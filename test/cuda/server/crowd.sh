#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2015,SC2016,SC2086,SC2119,SC2154,SC2317
# Four clients of one daemon with quotas: one computes, one wants more than its quota, one is killed in mid-copy again and
# again, one is hostile. The results of the first two are right, and in the end nothing is left: no worker, no session, no
# memory, no file. HEADRACE_TEST_CROWD_SECONDS=N (default 5) says how long; HEADRACE_TEST_SEED repeats a run.
. "$top_srcdir/test/cuda/door/daemon.sh"
with_own_shm
programs=$top_builddir/test/cuda/server
seconds=${HEADRACE_TEST_CROWD_SECONDS:-5}
seed=${HEADRACE_TEST_SEED:-$(date +%s)}
quota=40 # MiB
mkdir "$work/tmp" "$work/run"
chmod 700 "$work/run"
export TMPDIR=$work/tmp XDG_RUNTIME_DIR=$work/run
unset HEADRACE_KEY_FILE

visit() { timeout 60 "${PYTHON:-python3}" -B "$top_srcdir/test/cuda/daemon/metrics.py" "$work/metrics" "$@"; }
has() { [ "$(visit value "$1" 2> "$work/err")" = "$2" ]; }
reaches() { eventually 60 has "$@" || fail "seed $seed: $1 is $(visit value "$1"), not $2"; }
left_over() { shared_memory | comm -13 <(echo "$shared_before") -; }
nothing_left() { [ -z "$(left_over)" ]; }
descriptors() { find "/proc/$daemon/fd" -type l | wc -l; }
shared_mappings() { grep -c headrace-usage "/proc/$daemon/maps"; }
settled() { [ "$(children "$daemon" | wc -w) $(descriptors) $(shared_mappings)" = "$before" ]; }

shared_before=$(shared_memory)
HEADRACE_TIMEOUT_MS=2000 start_daemon "$top_builddir/cuda_remote/server/headraced" --socket="$work/sock" --no-loopback \
	--private --driver="$top_builddir/cuda_remote/softgpu/.libs/libcuda.so.1" --gpu-memory=${quota}M \
	--metrics="$work/metrics" || finish
export HEADRACE_SERVER=unix:$work/sock
reaches headrace_workers_ready 1
before="$(children "$daemon" | wc -w) $(descriptors) $(shared_mappings)"

# again NAME COMMAND…: runs it again and again until the hostile client has ended; counts the runs.
again() {
	local name=$1 runs=0
	shift
	while [ ! -e "$work/over" ]; do
		timeout 300 "$@" > "$work/$name.out" 2>&1 || { echo "status $?: $(cat "$work/$name.out")" > "$work/$name.failed"; return; }
		runs=$((runs + 1))
	done
	echo $runs > "$work/$name.runs"
}
# killed N: a client that copies without end, and is killed when it has begun to. Then its worker ends too.
killed() {
	mkfifo "$work/victim.$1"
	timeout 300 "$top_builddir/test/cuda/remote/victim" down > "$work/victim.$1" 2> "$work/victim.err" &
	local line='' pid client worker
	pid=$!
	exec 6< "$work/victim.$1"
	read -r -t 60 line <&6
	[ "$line" = copying ] || { fail "seed $seed: the client that is to be killed: $line $(cat "$work/victim.err")"; return 1; }
	client=$(children $pid)
	kill -9 $client
	wait $pid 2> "$work/null"
	rm "$work/victim.$1"
	worker=$(sed -n "s/.*client unix:pid ${client% } is served by worker \([0-9]*\).*/\1/p" "$work/log" | tail -n 1)
	[ -n "$worker" ] || { fail "the log does not name the worker of client $client"; return 1; }
	eventually 60 gone "$worker" || fail "seed $seed: worker $worker outlives its client"
}

again steady "$programs/steady" 20 &
steady=$!
again greedy "$programs/greedy" $quota &
greedy=$!
HEADRACE_TIMEOUT_MS=2000 timeout $((seconds + 300)) "$programs/hostile" "$seconds" "$seed" > "$work/hostile.out" 2>&1 &
hostile=$!
kills=0
until [ $kills != 0 ] && gone $hostile; do
	killed $kills || break
	kills=$((kills + 1))
done
wait $hostile || fail "seed $seed: the hostile client: $(tail -n 3 "$work/hostile.out")"
touch "$work/over"
wait $steady $greedy
for name in steady greedy; do
	[ ! -e "$work/$name.failed" ] || fail "seed $seed: client $name: $(cat "$work/$name.failed")"
done
echo "seed $seed: $kills clients killed; hostile: $(cat "$work/hostile.out"); $(cat "$work/steady.runs") runs that compute," \
	"$(cat "$work/greedy.runs") that want too much"

# Nothing is left.
reaches headrace_sessions 0
reaches headrace_session_connections 0
reaches 'headrace_gpu_memory_used_bytes{gpu="0"}' 0
reaches 'headrace_gpu_memory_granted_bytes{gpu="0"}' 0
has 'headrace_worker_exits_total{cause="signal"}' 0 && has 'headrace_worker_exits_total{cause="system_call"}' 0 ||
	fail "seed $seed: a worker fell over: $(grep -E 'killed' "$work/log")"
eventually 60 settled || fail "seed $seed: workers, descriptors, mappings of the daemon were $before," \
	"are $(children "$daemon" | wc -w) $(descriptors) $(shared_mappings)"
grep -E 'ERROR: |runtime error' "$work/log" && fail "seed $seed: a sanitizer reports an error"
rest=$(children "$daemon")
stop_daemon
[ $status = 0 ] || fail "the daemon ended with $status"
for pid in $rest; do
	gone "$pid" || fail "process $pid of the daemon is left"
done
[ -z "$(find "$work/tmp" "$work/run" "$work/sock" "$work/metrics" -mindepth 1 2> "$work/null")" ] && [ ! -e "$work/sock" ] ||
	fail "files are left: $(find "$work/tmp" "$work/run" "$work/sock")"
eventually 60 nothing_left || fail "seed $seed: left in /dev/shm: $(left_over)"
finish
