#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Contexts, graphs, images, shared memory and host functions: drawn sequences of calls give the same results, outputs and memory
# directly and through client, daemon and worker: over shared memory, and over TCP. HEADRACE_TEST_LONG=1: 200 rounds.
# HEADRACE_TEST_SEQUENCE: runs one sequence only.
HEADRACE_TEST_DRIVER=${top_builddir:?run by make check}/cuda_remote/softgpu/.libs/libcuda.so
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
rounds=${HEADRACE_TEST_SEQUENCE_ROUNDS:-25} seed=20261127
[ "${HEADRACE_TEST_LONG:-0}" = 0 ] || rounds=200
# With a drawn seed there must be enough rounds for each function to be drawn.
[ -z "${HEADRACE_TEST_ECHO_SECONDS:-}" ] || { seed=$(od -An -N4 -tu4 /dev/urandom) rounds=100; }
export HEADRACE_TEST_FOLDER=$folder
run() { # WHAT
	timeout 600 "$build/test/cuda/echo/sequences" "$driver" "$build/cuda_remote/client/.libs/libcuda.so.1" "$rounds" \
		"$((seed))" || fail "over $1"
}
remote_start
run "shared memory"
remote_stop || fail "the daemon does not end"
free_ports
export HEADRACE_TRANSPORT=tcp
remote_start --listen=127.0.0.1:$port
export HEADRACE_SERVER=127.0.0.1:$port
run TCP
