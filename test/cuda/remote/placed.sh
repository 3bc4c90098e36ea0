#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Memory whose addresses the client chooses; with servers and programs that use the same addresses themselves.
HEADRACE_TEST_DRIVER=${top_builddir:?run by make check}/cuda_remote/softgpu/.libs/libcuda.so
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
program=$build/test/cuda/remote/placed
remote_start
timeout 120 "$program" one || fail "one server"

# A client that is killed while it allocates ends its worker.
before=$(remote_workers)
mkfifo "$folder/out"
"$program" endless >"$folder/out" 2>"$folder/err" &
victim=$!
exec 4<"$folder/out"
read -r line <&4 || fail "the client did not start: $(cat "$folder/err")"
[ "$line" = allocating ] || fail "the client said: $line"
kill -9 "$victim"
wait "$victim" 2>/dev/null
worker=$(echo "$before" | head -1)
for _ in $(seq 200); do
	kill -0 "$worker" 2>/dev/null || break
	sleep 0.05
done
! kill -0 "$worker" 2>/dev/null || fail "the worker outlived its client"
timeout 120 "$program" one || fail "after a client was killed"
remote_stop || fail "the server left something behind"

# A driver that does not know the worker's private interface, but virtual memory management.
HEADRACE_PLACED_MEMORY=2 remote_start
timeout 120 "$program" one || fail "placed by virtual memory management"
remote_stop || fail "the server left something behind"

# A driver that chooses the addresses itself.
HEADRACE_PLACED_MEMORY=0 remote_start
timeout 120 "$program" driver || fail "addresses chosen by the driver"
remote_stop || fail "the server left something behind"

# Servers whose own memory begins at one place, and a program that has memory there too.
export HEADRACE_SOFTGPU_BASE=32768G
remote_start
remote_start_another second
HEADRACE_SERVER=$HEADRACE_SERVER,$another timeout 120 "$program" two || fail "two servers"
# A sanitizer's library must be the first one. The shell that libtool's wrapper runs in would report leaks of its own.
sanitizer=$(ldd "$build/cuda_remote/client/.libs/libcuda.so.1" | awk '/lib(a|t)san/ {printf "%s ", $3}')
[ -z "$sanitizer" ] || export ASAN_OPTIONS=detect_leaks=0
HEADRACE_SERVER=$HEADRACE_SERVER,$another LD_PRELOAD="$sanitizer$build/test/cuda/remote/.libs/occupy.so" OCCUPY=0x200000000000 \
	timeout 120 "$program" two || fail "memory of the program at the addresses of the servers"
