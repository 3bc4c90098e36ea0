#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Pinned memory that kernels use at the host's address, and what a device says that cannot: one whose worker maps no memory.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
remote_start
timeout 60 "$build/test/cuda/remote/mapped" mapped || fail "memory that kernels use"
remote_stop

# Small allocations are parts of larger memory.
HEADRACE_PLACED_MEMORY=2 remote_start
timeout 60 "$build/test/cuda/remote/mapped" mapped || fail "memory that kernels use, in larger memory"
remote_stop

# The client draws the place of its addresses, in units of 2 MiB from 16 TiB on: here a place that the worker's software GPU
# has reserved for itself.
HEADRACE_SOFTGPU_BASE=32768G remote_start
# A sanitizer's library must be the first one. The shell that libtool's wrapper runs in would report leaks of its own.
sanitizer=$(ldd "$build/cuda_remote/client/.libs/libcuda.so.1" | awk '/lib(a|t)san/ {printf "%s ", $3}')
LD_PRELOAD="$sanitizer$build/test/cuda/remote/.libs/drawn.so" DRAWN=$((16 << 19)) ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS:-} \
	timeout 60 "$build/test/cuda/remote/mapped" occupied 2>"$folder/drawn" || fail "addresses that are in use: $(cat "$folder/drawn")"
grep -q drawn "$folder/drawn" || fail "the client did not draw its addresses"
remote_stop
HEADRACE_SESSION_PINNED=0 remote_start
timeout 60 "$build/test/cuda/remote/mapped" refused || fail "memory that kernels cannot use"
