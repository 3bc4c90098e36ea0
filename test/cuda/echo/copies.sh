#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every form of cuMemcpy and cuMemset has the same effect on memory directly and through client, daemon and worker: over shared
# memory, and over TCP, where nothing is shared. HEADRACE_TEST_LONG=1: 200 calls of each.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
calls=12 seed=20261127
[ "${HEADRACE_TEST_LONG:-0}" = 0 ] || calls=200
[ -z "${HEADRACE_TEST_ECHO_SECONDS:-}" ] || seed=$(od -An -N4 -tu4 /dev/urandom)
remote_start
timeout 600 "$build/test/cuda/echo/copies" "$driver" "$build/cuda_remote/client/.libs/libcuda.so.1" "$calls" "$((seed))" || fail "over shared memory"
remote_stop || fail "the daemon does not end"
free_ports
export HEADRACE_TRANSPORT=tcp
remote_start --listen=127.0.0.1:$port
export HEADRACE_SERVER=127.0.0.1:$port
timeout 600 "$build/test/cuda/echo/copies" "$driver" "$build/cuda_remote/client/.libs/libcuda.so.1" "$calls" "$((seed))" || fail "over TCP"
