#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Asynchronous copies to host memory that the worker has not mapped: over shared memory, and over tcp to a port.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
port=$((21000 + $$ % 8000))
remote_start --listen=127.0.0.1:$port
timeout 120 "$build/test/cuda/remote/delivery" || fail "over shared memory"
HEADRACE_SERVER=127.0.0.1:$port HEADRACE_TRANSPORT=tcp timeout 120 "$build/test/cuda/remote/delivery" || fail "over tcp"
