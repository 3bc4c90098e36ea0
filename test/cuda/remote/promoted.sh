#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Pinned memory of which a server on another host gets a copy when the device first uses it. The server is reached over TCP.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
remote_start
timeout 60 "$build/test/cuda/remote/promoted" registered || fail "registered memory on this host"
remote_stop
export HEADRACE_TRANSPORT=tcp
free_ports
for scan in 1 0; do
	export HEADRACE_MANAGED_SCAN=$scan
	remote_start --listen=127.0.0.1:$port
	export HEADRACE_SERVER=127.0.0.1:$port
	timeout 120 "$build/test/cuda/remote/promoted" || fail "pinned memory that kernels use, scan $scan"
	timeout 120 "$build/test/cuda/remote/mapped" used || fail "pinned memory as mapped memory, scan $scan"
	[ $scan = 0 ] || {
		"$build/test/cuda/remote/promoted" structure 2>"$folder/said" || fail "a pointer in a structure: $(cat "$folder/said")"
		grep -q 'found the address of pinned memory .* set HEADRACE_MAP_HOST_MEMORY=1' "$folder/said" ||
			fail "the setting is not named: $(cat "$folder/said")"
		HEADRACE_MAP_HOST_MEMORY=0 "$build/test/cuda/remote/promoted" pointer 2>"$folder/said" ||
			fail "a pointer to memory that is not mapped: $(cat "$folder/said")"
		grep -q 'a pointer that was copied to the device was 0x.* HEADRACE_MAP_HOST_MEMORY is not 2' "$folder/said" ||
			fail "the pointer is not named: $(cat "$folder/said")"
		"$build/test/cuda/remote/promoted" in-vain 2>"$folder/said" &
		client=$!
		for _ in $(seq 600); do
			grep -q "cuStreamSynchronize has waited .* changed pinned memory at 0x" "$folder/said" && break
			sleep 0.1
		done
		kill -9 $client
		wait $client 2>/dev/null
		grep -q "cuStreamSynchronize has waited .* changed pinned memory at 0x" "$folder/said" ||
			fail "a kernel that waits in vain is not named: $(cat "$folder/said")"
	}
	remote_stop
done
unset HEADRACE_MANAGED_SCAN
free_ports 2
remote_start --listen=127.0.0.1:$port
remote_start_another second --listen=127.0.0.1:$((port + 1))
HEADRACE_SERVER=127.0.0.1:$port,127.0.0.1:$((port + 1)) timeout 120 "$build/test/cuda/remote/promoted" two-servers 2>"$folder/said" ||
	fail "two servers: $(cat "$folder/said")"
grep -q "parameter 0 of write was 0x[0-9a-f]*, .*another server" "$folder/said" ||
	fail "the use by two servers is not named: $(cat "$folder/said")"
remote_stop
# The worker's processors cannot read the memory of its device, but they can read this memory.
double=$driver driver=$build/cuda_remote/softgpu/.libs/libcuda.so
export HEADRACE_TEST_PTX=1
HEADRACE_PLACED_MEMORY=2 remote_start --listen=127.0.0.1:$port
export HEADRACE_SERVER=127.0.0.1:$port
timeout 120 "$build/test/cuda/remote/promoted" || fail "pinned memory that kernels use, with a driver like a GPU's"
remote_stop
driver=$double
unset HEADRACE_TEST_PTX
# More memory than the worker may have: the kernel fails, and a line says why.
HEADRACE_SESSION_PINNED=1K remote_start --listen=127.0.0.1:$port
export HEADRACE_SERVER=127.0.0.1:$port
timeout 60 "$build/test/cuda/remote/mapped" unmapped pinned 2>"$folder/said" || fail "a worker with little memory: $(cat "$folder/said")"
grep -q "parameter 0 of write was 0x[0-9a-f]*, .*HEADRACE_SESSION_PINNED" "$folder/said" ||
	fail "the limit is not named: $(cat "$folder/said")"
remote_stop
