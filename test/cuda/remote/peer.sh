#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copies and waits between three servers, and what is left of them when one of the three dies.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
program=$build/test/cuda/remote/peer
remote_start
HEADRACE_SESSION_PINNED=0 remote_start_another second
list=$HEADRACE_SERVER,$another
remote_start_another third
export HEADRACE_SERVER=$list,$another

timeout 240 "$program" all || fail "copies between servers"
if ! HEADRACE_PEER=nonsense "$program" refused 2>"$folder/refused.log"; then
	fail "HEADRACE_PEER=nonsense was accepted"
fi
grep -q "HEADRACE_PEER=nonsense" "$folder/refused.log" || fail "the message does not name the wrong setting"

mkfifo "$folder/to" "$folder/from"
timeout 240 "$program" death <"$folder/to" >"$folder/from" &
client=$!
exec 4>"$folder/to" 5<"$folder/from"
read -r _ <&5 || fail "the client did not start"
for worker in $(pgrep -P "${others[0]}"); do
	kill -9 "$worker"
done
echo >&4
wait $client || fail "a lost server harmed the sessions of the others"
