#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copies of pinned memory: the worker maps it, or gets its bytes in chunks as the session may map none.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
remote_start
timeout 60 "$build/test/cuda/remote/pinned" shared || fail "memory that the worker maps"
remote_stop
# Small allocations are parts of larger memory.
HEADRACE_PLACED_MEMORY=2 remote_start
timeout 60 "$build/test/cuda/remote/pinned" shared || fail "memory that the worker maps, in larger memory"
remote_stop
HEADRACE_SESSION_PINNED=0 remote_start
timeout 60 "$build/test/cuda/remote/pinned" chunks || fail "memory that the worker does not map"
grep -qa 'HEADRACE_SESSION_PINNED=0' "$folder/log" || fail "the worker does not say that it maps no memory"
