#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
remote_start
timeout 120 "$build/test/cuda/remote/threads" || fail "threads"
timeout 120 "$build/test/cuda/remote/graph_threads" || fail "graphs of several threads"
# Fewer connections are kept than there are threads at a time; none is.
for kept in 2 0; do
	HEADRACE_IDLE_CONNECTIONS=$kept timeout 120 "$build/test/cuda/remote/threads" short || fail "threads, HEADRACE_IDLE_CONNECTIONS=$kept"
done
