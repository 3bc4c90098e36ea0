#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Memory pools and batches of copies over a worker, of this host and as of another one.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
free_ports
remote_start --listen=127.0.0.1:$port
timeout 120 "$build/test/cuda/remote/pools" || fail "a server of this host"
export HEADRACE_TRANSPORT=tcp HEADRACE_SERVER=127.0.0.1:$port
timeout 120 "$build/test/cuda/remote/pools" || fail "a server of another host"
