#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Asynchronous copies to host memory that the worker has not mapped: over shared memory, and over tcp to a port. Then the same
# with a worker that keeps less than the bytes of one copy.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
free_ports 2
export HEADRACE_SOFTGPU_DEVICES=2

both() {
	remote_start --listen=127.0.0.1:$port
	timeout 120 "$build/test/cuda/remote/delivery" || fail "over shared memory$1"
	HEADRACE_SERVER=127.0.0.1:$port HEADRACE_TRANSPORT=tcp timeout 120 "$build/test/cuda/remote/delivery" || fail "over tcp$1"
}

both ""
remote_stop || fail "something is left"
port=$((port + 1))
export HEADRACE_STAGING=1M
both ", few bytes kept"
