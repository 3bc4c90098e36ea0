#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copies of four threads at a time, of memory that the worker maps and of other memory, over shared memory and over tcp.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
free_ports 2

both() { # WHAT
	remote_start --listen=127.0.0.1:$port
	timeout 120 "$build/test/cuda/remote/complete" || fail "over shared memory, $1"
	HEADRACE_SERVER=127.0.0.1:$port HEADRACE_TRANSPORT=tcp timeout 120 "$build/test/cuda/remote/complete" || fail "over tcp, $1"
	remote_stop || fail "something is left"
}

both "mapped"
port=$((port + 1))
HEADRACE_SESSION_PINNED=0 HEADRACE_STAGING=1M both "not mapped, few bytes kept"
