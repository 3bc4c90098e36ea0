#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What device code prints comes out of the client: printf at its stdout, in order with its own lines, assertions at its stderr.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
driver=$build/cuda_remote/softgpu/.libs/libcuda.so.1
remote_start 2>"$folder/log"
timeout 100 "$build/test/cuda/server/output" >"$folder/out" 2>"$folder/err" || fail "$(cat "$folder/err" "$folder/log")"
printf 'line from GPU\nhost 0\nline from GPU\nhost 1\nline from GPU\nhost 2\n' >"$folder/want"
printf 'f%.0s' {1..6000} >>"$folder/want"
{ printf '<'; printf 's%.0s' {1..6000}; printf '>\n'; } >>"$folder/want"
{ printf '<'; printf 's%.0s' {1..5000}; printf '>\n'; } >>"$folder/want"
printf '<%1048576s>\n' "$(printf 's%.0s' {1..6000})" >>"$folder/want"
cmp "$folder/out" "$folder/want" || fail "stdout is: $(head -c 3000 "$folder/out")"
grep -q '1 > 2:42: 1 > 2: block: \[0,0,0\], thread: \[0,0,0\] Assertion `1 > 2` failed' "$folder/err" ||
	fail "stderr is: $(cat "$folder/err")"
for thread in 0 1 2; do
	count=$(grep -c "thread: \[$thread,0,0\] Assertion" "$folder/err")
	[ "$count" = $((thread != 1)) ] || fail "$count lines of thread $thread"
done
timeout 100 "$build/test/cuda/server/output" allocation >"$folder/out" 2>"$folder/err" || fail "$(cat "$folder/err" "$folder/log")"
[ "$(cat "$folder/out")" = 'line from GPU' ] || fail "before a failing allocation stdout is: $(cat "$folder/out")"
[ "$(grep -c "thread: \[[02],0,0\] Assertion" "$folder/err")" = 2 ] || fail "after a failing allocation stderr is: $(cat "$folder/err")"
grep 'Assertion' "$folder/log" && fail "the assertion is in the daemon's log"
exit 0
