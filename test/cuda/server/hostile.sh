#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A hostile client beside one that computes: no worker falls over, and every result of the other is right.
# HEADRACE_TEST_HOSTILE_SECONDS=N (default 10) says how long; from 60 on, the other's time must stay within twice that without
# the hostile client. HEADRACE_TEST_SEED repeats a run.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
driver=$build/cuda_remote/softgpu/.libs/libcuda.so.1
seconds=${HEADRACE_TEST_HOSTILE_SECONDS:-10}
seed=${HEADRACE_TEST_SEED:-$(date +%s)}
rounds=50
export HEADRACE_TIMEOUT_MS=2000

steady() {
	env -u HEADRACE_TIMEOUT_MS timeout 300 "$build/test/cuda/server/steady" $rounds || fail "seed $seed: the client that computes failed"
}
median() {
	sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'
}

remote_start 2>"$folder/log"
before=$(for _ in 1 2 3 4 5; do steady; done) || exit 1
timeout $((seconds + 120)) "$build/test/cuda/server/hostile" "$seconds" "$seed" >"$folder/hostile" 2>&1 &
hostile=$!
: >"$folder/times"
while kill -0 $hostile 2>/dev/null; do
	steady >>"$folder/times" || exit 1
done
wait $hostile || fail "$(tail -3 "$folder/hostile")"
alone=$(echo "$before" | median)
beside=$(median <"$folder/times")
echo "seed $seed: $(cat "$folder/hostile"); the other client: $(wc -l <"$folder/times") runs, $beside ms, alone $alone ms"
grep -E 'killed by signal|ERROR: |runtime error' "$folder/log" && fail "seed $seed: a worker fell over"
[ "$seconds" -lt 60 ] || [ "$beside" -le $((2 * alone)) ] || fail "the other client took more than twice its time"
steady >/dev/null
exit 0
