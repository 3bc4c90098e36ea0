#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Host functions; also with a server that allows as many connections as the program's threads use, so that the answer to a host
# function waits until a thread has ended.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
remote_start
timeout 120 "$build/test/cuda/remote/hostfn" || fail "host functions"
remote_stop || fail "the daemon does not end"

HEADRACE_SESSION_CONNECTIONS=2 remote_start
mkfifo "$folder/line"
HEADRACE_TRANSPORT=tcp timeout 120 "$build/test/cuda/remote/hostfn" answers <"$folder/line" 2>"$folder/said" &
client=$!
exec 4>"$folder/line"
while ! grep -q "no connection for the answer to a host function" "$folder/said"; do
	kill -0 $client 2>/dev/null || fail "the answer did not wait for a connection: $(cat "$folder/said")"
	sleep 0.05
done
echo >&4
exec 4>&-
wait $client || fail "an answer that waits for a connection: $(cat "$folder/said")"
exit 0
