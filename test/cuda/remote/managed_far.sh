#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Managed memory of a server on another host: it is reached over TCP, so client and worker share no memory.
# HEADRACE_TEST_LONG=1: more random changes where all pages are compared.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
export HEADRACE_TRANSPORT=tcp
free_ports
remote_start --listen=127.0.0.1:$port
export HEADRACE_SERVER=127.0.0.1:$port
timeout 120 "$build/test/cuda/remote/managed" far || fail "managed memory"
timeout 120 "$build/test/cuda/remote/managed_far" || fail "managed memory of another host"
for kind in managed "pinned or attached"; do
	timeout 60 "$build/test/cuda/remote/managed_far" "both-${kind%% *}" 2>"$folder/said" || fail "changes of both sides, $kind: $(cat "$folder/said")"
	[ "$(grep -c "the program has changed $kind memory at 0x[0-9a-f]* while .* one of the two values is lost" "$folder/said")" = 1 ] ||
		fail "changes of both sides are not named once: $(cat "$folder/said")"
done
timeout 120 "$build/test/cuda/remote/mapped" far || fail "mapped memory of another host"
HEADRACE_MAP_HOST_MEMORY=1 timeout 120 "$build/test/cuda/remote/mapped" all || fail "pinned memory as mapped memory"
for how in pinned registered; do
	HEADRACE_MAP_HOST_MEMORY=0 timeout 60 "$build/test/cuda/remote/mapped" unmapped $how 2>"$folder/said" || fail "$how memory that is not mapped: $(cat "$folder/said")"
	[ "$(grep -c "parameter 0 of write was 0x[0-9a-f]*, .*cudaHostAllocMapped" "$folder/said")" = 1 ] ||
		fail "$how memory that is not mapped is not named once: $(cat "$folder/said")"
done
remote_stop
# Without the kernel's help all pages are compared.
export HEADRACE_MANAGED_SCAN=0
remote_start --listen=127.0.0.1:$port
export HEADRACE_SERVER=127.0.0.1:$port
timeout 120 "$build/test/cuda/remote/managed" far || fail "managed memory, all compared"
timeout 120 "$build/test/cuda/remote/mapped" far || fail "mapped memory, all compared"
timeout 120 "$build/test/cuda/remote/managed_far" ${HEADRACE_TEST_LONG:+2000} || fail "managed memory of another host, all compared"
remote_stop
unset HEADRACE_MANAGED_SCAN
HEADRACE_SESSION_PINNED=16M remote_start --listen=127.0.0.1:$port
export HEADRACE_SERVER=127.0.0.1:$port
timeout 60 "$build/test/cuda/remote/managed" far-limited || fail "a worker with little memory for twins"
remote_stop
# Without memory for twins there is none,
HEADRACE_SESSION_PINNED=0 remote_start --listen=127.0.0.1:$port
export HEADRACE_SERVER=127.0.0.1:$port
timeout 60 "$build/test/cuda/remote/managed" refused || fail "a worker without memory for twins"
remote_stop
# With memory that the worker's processors cannot read, kernels find the changed pages and store changes.
double=$driver driver=$build/cuda_remote/softgpu/.libs/libcuda.so
export HEADRACE_TEST_PTX=1
HEADRACE_PLACED_MEMORY=2 remote_start --listen=127.0.0.1:$port
export HEADRACE_SERVER=127.0.0.1:$port
timeout 120 "$build/test/cuda/remote/managed" far || fail "managed memory, compared by kernels"
timeout 120 "$build/test/cuda/remote/mapped" far || fail "mapped memory, compared by kernels"
timeout 240 "$build/test/cuda/remote/managed_far" || fail "managed memory of another host, compared by kernels"
remote_stop
driver=$double
unset HEADRACE_TEST_PTX
# There is none with a driver that chooses addresses.
HEADRACE_PLACED_MEMORY=0 remote_start --listen=127.0.0.1:$port
export HEADRACE_SERVER=127.0.0.1:$port
timeout 60 "$build/test/cuda/remote/managed" refused || fail "a driver that chooses addresses"
timeout 60 "$build/test/cuda/remote/mapped" refused || fail "mapped memory of a driver that chooses addresses"
remote_stop
