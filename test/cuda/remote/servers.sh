#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One program with the GPUs of two servers: a daemon with one GPU, and one with two.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
program=$build/test/cuda/remote/servers
remote_start
HEADRACE_SOFTGPU_DEVICES=2 remote_start_another second
first=$HEADRACE_SERVER

HEADRACE_SERVER=$first,$another timeout 120 "$program" all || fail "devices of two servers"
HEADRACE_SERVER=$first,$another/1 timeout 120 "$program" one || fail "one GPU of the second server"
CUDA_VISIBLE_DEVICES=0,2 HEADRACE_SERVER=$first,$another timeout 120 "$program" one || fail "CUDA_VISIBLE_DEVICES"
if HEADRACE_SERVER=$first,unix:$folder/none timeout 120 "$program" one 2>"$folder/none.log"; then
	fail "a server that does not exist was accepted"
fi
grep -q "$folder/none" "$folder/none.log" || fail "the message does not name the server that does not exist"

# The worker that serves the client is the second server's only one that has exchanged its standard output.
lose_second() { # MODE: of the program
	mkfifo "$folder/to" "$folder/from"
	HEADRACE_SERVER=$first,$another timeout 120 "$program" "$1" <"$folder/to" >"$folder/from" &
	client=$!
	exec 4>"$folder/to" 5<"$folder/from"
	read -r _ <&5 || fail "the client did not start"
	for worker in $(pgrep -P "${others[0]}"); do
		kill -9 "$worker"
	done
	echo >&4
	wait $client || fail "$1: a lost server harmed the other one's session"
	exec 4>&- 5<&-
	rm "$folder/to" "$folder/from"
}
lose_second death

for limit in 0 1M; do
	HEADRACE_SESSION_PINNED=$limit remote_start_another "takes-$limit"
	HEADRACE_SERVER=$first,$another timeout 60 "$program" refused ||
		fail "memory that a server refuses as it takes $limit"
done

# Servers whose drivers are used as those of real GPUs, where small allocations are parts of larger memory.
remote_stop || fail "the servers left something behind"
export HEADRACE_PLACED_MEMORY=2
remote_start
HEADRACE_SOFTGPU_DEVICES=2 remote_start_another parts
first=$HEADRACE_SERVER
lose_second parts
HEADRACE_SESSION_PINNED=8M remote_start_another takes-8M
HEADRACE_SERVER=$first,$another timeout 60 "$program" refused-parts || fail "larger memory that a server has no room for"
free_ports
HEADRACE_PLACED_MEMORY=0 remote_start_another of-another-host --listen=127.0.0.1:$port
HEADRACE_SERVER=$first,127.0.0.1:$port timeout 60 "$program" refused-part || fail "a part of larger memory that is refused"
unset HEADRACE_PLACED_MEMORY

# Servers whose addresses begin at the same place.
remote_stop || fail "the first servers left something behind"
export HEADRACE_SOFTGPU_BASE=32768G
remote_start
HEADRACE_SOFTGPU_DEVICES=2 remote_start_another third
HEADRACE_SERVER=$HEADRACE_SERVER,$another timeout 120 "$program" all || fail "servers with equal addresses"
