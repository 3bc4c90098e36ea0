#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
for way in 0 1 2; do # the buffers are written past the cache, through it, as is faster
	export HEADRACE_FILL_CACHE=$way
	remote_start
	timeout 120 "$build/test/cuda/remote/copies" || fail "HEADRACE_FILL_CACHE=$way"
	remote_stop || fail "the daemon does not end"
done
