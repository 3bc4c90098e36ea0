#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2015,SC2016,SC2086,SC2119,SC2154,SC2317
# A CUDA program on one host, the software GPU on another, TCP between and a key on both.
. "$top_srcdir/test/cuda/door/daemon.sh"
. "$top_srcdir/test/cuda/door/two_hosts.sh"
. "$top_srcdir/test/cuda/bad_input/program.sh"
headraced=$top_builddir/cuda_remote/server/headraced
run="timeout 120 $top_builddir/cuda_remote/run/headrace-run"
programs=$top_builddir/test/cuda/bad_input
unset HEADRACE_KEY_FILE HEADRACE_TRANSPORT
export HEADRACE_LIBDIR=$top_builddir/cuda_remote
"$headraced" --make-key="$work/key" 2> "$work/err" || { echo "SKIP: no key support: built without libsodium"; exit 77; }
"$headraced" --make-key="$work/other"

start_daemon "${on_server[@]}" "$headraced" --socket="$work/sock" --no-loopback --driver=softgpu \
	--key-file="$work/key" --listen=$server_address || finish

echo "- the right key"
"${on_client[@]}" $program $run -k "$work/key" -s $server_address "$programs/bad_calls" > "$work/out" 2> "$work/err" ||
	fail "calls: $(cat "$work/out" "$work/err")"
"${on_client[@]}" $program $run -k "$work/key" -s $server_address "$programs/copy_loop" 2 > "$work/out" 2> "$work/err" ||
	fail "copies: $(cat "$work/out" "$work/err")"

echo "- the wrong key, and none"
"${on_client[@]}" $program $run -k "$work/other" -s $server_address "$programs/copy_loop" 1 2> "$work/err"
refused 125 "wrong key" "a wrong key"
"${on_client[@]}" $program $run -s $server_address "$programs/copy_loop" 1 2> "$work/err"
refused 125 "asks for a key" "no key"

echo "- the cable cut in mid-copy"
rm -f "$work/out"
HEADRACE_TIMEOUT_MS=2000 "${on_client[@]}" $program $run -k "$work/key" -s $server_address "$programs/copy_loop" \
	> "$work/out" 2> "$work/err" &
client=$!
eventually 30 has_line "$work/out" copying || fail "the copy did not begin: $(cat "$work/err")"
"${on_client[@]}" ip link set "${namespace}c" down
wait $client
refused 3 cudaMemcpy "the client does not notice"
"${on_client[@]}" ip link set "${namespace}c" up
"${on_client[@]}" $program $run -k "$work/key" -s $server_address "$programs/copy_loop" 1 > "$work/out" 2> "$work/err" ||
	fail "others are not served afterwards: $(cat "$work/err")"

stop_daemon
[ $status = 0 ] || fail "the daemon ended with $status"
finish
