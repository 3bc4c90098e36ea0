#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The reply to a call is kept while the client makes other calls (replies.c).
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
export HEADRACE_TRANSPORT=tcp
free_ports 2
remote_start --listen=127.0.0.1:$port
list=127.0.0.1:$port
port=$((port + 1))
remote_start_another second --listen=127.0.0.1:$port
HEADRACE_SERVER=$list,127.0.0.1:$port timeout 60 "$build/test/cuda/remote/replies" || fail "a reply is lost"
