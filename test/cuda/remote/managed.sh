#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Managed memory: on a server of this host, on one that maps little, and on those that have none.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
remote_start
timeout 60 "$build/test/cuda/remote/managed" managed || fail "managed memory"
remote_stop
# As with the drivers of real GPUs, where small allocations are parts of larger memory.
HEADRACE_PLACED_MEMORY=2 remote_start
timeout 60 "$build/test/cuda/remote/managed" parts || fail "small allocations in larger memory"
timeout 60 "$build/test/cuda/remote/managed" failed-parts || fail "a kernel that fails before a part is freed"
remote_stop
HEADRACE_PLACED_MEMORY=2 HEADRACE_SESSION_PINNED=16M remote_start
timeout 60 "$build/test/cuda/remote/managed" parts-limited || fail "parts on a worker that maps 16M"
remote_stop
HEADRACE_PLACED_MEMORY=2 HEADRACE_SESSION_CONNECTIONS=2 remote_start
timeout 120 "$build/test/cuda/remote/managed" lonely-parts || fail "a part that is freed without a connection"
remote_stop
for limit in 16M 0; do
	HEADRACE_SESSION_PINNED=$limit remote_start
	part=limited
	[ "$limit" != 0 ] || part=refused
	timeout 60 "$build/test/cuda/remote/managed" $part || fail "a worker that maps $limit"
	remote_stop
done
