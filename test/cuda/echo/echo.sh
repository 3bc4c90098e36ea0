#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# For each forwarded function: random calls in the echo driver itself and through client, daemon and worker must record the
# same arguments there and give the same results. HEADRACE_TEST_LONG=1: 1,000 calls of each. HEADRACE_TEST_ECHO_SECONDS: goes
# on with random calls until the time is over, with a drawn seed.
export HEADRACE_TEST_DRIVER=${top_builddir:?run by make check}/test/cuda/echo/.libs/libecho.so
. "${top_srcdir:?}/test/cuda/remote/remote.sh"
calls=100 seed=20261127
[ "${HEADRACE_TEST_LONG:-0}" = 0 ] || calls=1000
[ -z "${HEADRACE_TEST_ECHO_SECONDS:-}" ] || seed=$(od -An -N4 -tu4 /dev/urandom)
export HEADRACE_TEST_ECHO=$folder/echo
truncate -s 8M "$HEADRACE_TEST_ECHO"
remote_start
timeout "$((600 + ${HEADRACE_TEST_ECHO_SECONDS:-0}))" "$build/test/cuda/echo/echo" "$driver" "$calls" "$((seed))" ${HEADRACE_TEST_ECHO_SECONDS:-}
