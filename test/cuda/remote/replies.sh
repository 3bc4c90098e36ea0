#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The reply to a call is kept while the client makes other calls; such a call does not wait for itself (replies.c).
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
export HEADRACE_TRANSPORT=tcp
free_ports 2
remote_start --listen=127.0.0.1:$port
list=127.0.0.1:$port
port=$((port + 1))
remote_start_another second --listen=127.0.0.1:$port
export HEADRACE_SERVER=$list,127.0.0.1:$port
timeout 60 "$build/test/cuda/remote/replies" || fail "a reply is lost"
# A sanitizer's library must be the first one. The shell that libtool's wrapper runs in would report leaks of its own.
sanitizer=$(ldd "$build/cuda_remote/client/.libs/libcuda.so.1" | awk '/lib(a|t)san/ {printf "%s ", $3}')
LD_PRELOAD="$sanitizer$build/test/cuda/remote/.libs/late_threads.so" ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS:-} \
	timeout 60 "$build/test/cuda/remote/replies" late || fail "a data connection that opens late"
