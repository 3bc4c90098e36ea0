#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2015,SC2086,SC2154,SC2317
# Wrong calls return the same, call by call, in the program's own process, over shared memory and over TCP.
. "$top_srcdir/test/cuda/door/daemon.sh"
programs=$top_builddir/test/cuda/bad_input
headraced=$top_builddir/cuda_remote/server/headraced
run="timeout 120 $top_builddir/cuda_remote/run/headrace-run"
unset HEADRACE_KEY_FILE HEADRACE_TRANSPORT
export HEADRACE_LIBDIR=$top_builddir/cuda_remote
. "$top_srcdir/test/cuda/bad_input/program.sh"

same_as_local() { # WHERE
	diff "$work/local" "$work/lines" > "$work/diff" || fail "$1 (>) differs from local (<): $(grep '^[<>]' "$work/diff" | head -40)"
}

$program $run --local "$programs/wrong_calls" > "$work/local" 2> "$work/err" || { fail "local: $(cat "$work/err")"; finish; }
[ "$(grep -c cudaErrorInvalid "$work/local")" -gt 60 ] || fail "few calls of the runtime are refused: $(cat "$work/local")"
[ "$(grep -c CUDA_ERROR_INVALID "$work/local")" -gt 60 ] || fail "few calls of the driver are refused: $(cat "$work/local")"
! grep 'works: ' "$work/local" | grep -v 'works: cudaSuccess cudaSuccess cudaSuccess cudaSuccess cudaSuccess cudaSuccess, sum 16' ||
	fail "a wrong call disturbs later ones"

free_ports
start_daemon "$headraced" --socket="$work/sock" --no-loopback --driver=softgpu --listen=127.0.0.1:$port || finish
$program $run -s "unix:$work/sock" "$programs/wrong_calls" > "$work/lines" 2> "$work/err" || fail "shm: $(cat "$work/err")"
same_as_local "shared memory"
HEADRACE_TRANSPORT=tcp $program $run -s 127.0.0.1:$port "$programs/wrong_calls" > "$work/lines" 2> "$work/err" ||
	fail "tcp: $(cat "$work/err")"
same_as_local "tcp"
stop_daemon

start_daemon "$headraced" --socket="$work/sock" --no-loopback --driver=softgpu --gpu-memory=8M || finish
$program $run -s "unix:$work/sock" "$programs/large_variable" > "$work/out" 2> "$work/err"
grep -q '^cudaErrorMemoryAllocation 0' "$work/out" || fail "12 MiB of variables under a quota of 8: $(cat "$work/out" "$work/err")"
stop_daemon
start_daemon "$headraced" --socket="$work/sock" --no-loopback --driver=softgpu --gpu-memory=20M || finish
$program $run -s "unix:$work/sock" "$programs/large_variable" > "$work/out" 2> "$work/err"
grep -q '^cudaSuccess 7' "$work/out" || fail "12 MiB of variables under a quota of 20: $(cat "$work/out" "$work/err")"
stop_daemon
finish
