#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Calls that the client gathers over TCP: 2,000 launches take few sends, launches leave without a further call, and what one
# thread has gathered does not hold up another; the call of a long asynchronous copy sends nothing. The worker is on this
# host, so that the program sees what kernels do.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
remote_start
timeout 120 "$build/test/cuda/remote/gathered" all || fail "over shared memory"
export HEADRACE_TRANSPORT=tcp
timeout 120 "$build/test/cuda/remote/gathered" all || fail "over tcp"
# A sanitizer's library must be the first one. The shell that libtool's wrapper runs in would report leaks of its own.
sanitizer=$(ldd "$build/cuda_remote/client/.libs/libcuda.so.1" | awk '/lib(a|t)san/ {printf "%s ", $3}')
counted() {
	LD_PRELOAD="$sanitizer$build/test/cuda/remote/.libs/sends.so" ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS:-} \
		timeout 120 "$build/test/cuda/remote/gathered" "$1" 2>"$folder/err" || fail "$1: $(cat "$folder/err")"
}
counted long
counted few
sends=$(awk '/^sends / { last = $2 } END { print last }' "$folder/err")
[ "${sends:-2000}" -lt 1000 ] || fail "2,000 launches took ${sends:-?} sends"
exit 0
