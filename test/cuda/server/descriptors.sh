#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Descriptors that a client passes as its pinned memory: the worker maps none that could make it fail later.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
driver=$build/cuda_remote/softgpu/.libs/libcuda.so.1
export HEADRACE_SESSION_PINNED=16M
remote_start
timeout 60 "$build/test/cuda/server/descriptors" || fail "$(tail -3 "$folder/log")"
grep -qa 'not sealed against shrinking' "$folder/log" || fail "the worker does not name the fault"
grep -a 'was killed by signal' "$folder/log" && fail "a worker crashed"
exit 0
