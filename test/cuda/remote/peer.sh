#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copies and waits between three servers, what is left of them when one of the three dies, drivers that
# wait for streams, and a server that sends its bytes late.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
program=$build/test/cuda/remote/peer
remote_start
HEADRACE_SESSION_PINNED=0 remote_start_another second
list=$HEADRACE_SERVER,$another
remote_start_another third
export HEADRACE_SERVER=$list,$another

timeout 240 "$program" all || fail "copies between servers"
timeout 120 "${program}_graphs" all || fail "graphs of several servers"
HEADRACE_PEER=client timeout 120 "${program}_graphs" all || fail "graphs of several servers, copies by way of the client"
if ! HEADRACE_PEER=nonsense "$program" refused 2>"$folder/refused.log"; then
	fail "HEADRACE_PEER=nonsense was accepted"
fi
grep -q "HEADRACE_PEER=nonsense" "$folder/refused.log" || fail "the message does not name the wrong setting"

mkfifo "$folder/to" "$folder/from"
death() { # PROGRAM: while it runs, the workers of the second server are killed
	timeout 240 "$1" death <"$folder/to" >"$folder/from" &
	client=$!
	exec 4>"$folder/to" 5<"$folder/from"
	read -r _ <&5 || fail "the client did not start"
	for worker in $(pgrep -P "${others[0]}"); do
		kill -9 "$worker"
	done
	echo >&4
	wait $client || fail "a lost server harmed the sessions of the others"
	exec 4>&- 5<&-
}
death "$program"
death "${program}_graphs"

# Three GPUs of one server.
remote_stop || fail "something is left"
HEADRACE_SOFTGPU_DEVICES=3 remote_start
timeout 60 "$program" defaults || fail "default streams of GPUs of one server"

# Two GPUs of the second server, then three servers. The client has no part in the order of the streams once it has sent the calls.
remote_stop || fail "something is left"
HEADRACE_SOFTGPU_DEVICES=1 remote_start
list=$HEADRACE_SERVER
HEADRACE_SOFTGPU_DEVICES=2 remote_start_another second
second=$another
HEADRACE_SOFTGPU_DEVICES=1 remote_start_another third
third=$another
HEADRACE_SOFTGPU_DEVICES=1 remote_start_another fourth
for servers in $list,$second $list,$third,$another; do
	HEADRACE_LOG=debug HEADRACE_SERVER=$servers timeout 60 "$program" beside 2>"$folder/calls" ||
		fail "the default stream of a third context: $(grep -v 'call [0-9]' "$folder/calls" | tail -5)"
	grep -q 'call [0-9]* peer_copy' "$folder/calls" || fail "no copy went from worker to worker"
	grep -E 'call [0-9]* peer_(gate|open)' "$folder/calls" && fail "the client lets streams go on"
done
another=$second

# Waits for events alone make the client open a link, too.
mkfifo "$folder/stop"
HEADRACE_LOG=debug HEADRACE_SERVER=$list,$another timeout 60 "$program" events <"$folder/stop" 2>"$folder/calls" &
client=$!
exec 4>"$folder/stop"
while ! grep -q 'call [0-9]* peer_copy' "$folder/calls"; do
	kill -0 $client 2>/dev/null || fail "waits for events use no link"
	sleep 0.05
done
echo >&4
wait $client || fail "waits for events"
exec 4>&-

# Servers that are reached over TCP, as those of other hosts: small copies to them are sent before their stream has come to them.
remote_stop || fail "something is left"
remote_start_several_by_tcp 3
timeout 240 "$program" source || fail "a source that changes"
unset HEADRACE_TRANSPORT

# Drivers that wait for all streams before they allocate or pin memory or load code.
remote_stop || fail "something is left"
{ printf '\1'; head -c 4095 /dev/zero; } >"$folder/refusing"
export HEADRACE_TEST_REFUSING=$folder/refusing
plain=$driver
driver=$build/test/cuda/remote/.libs/refusing.so
remote_start_several 3
for version in hybrid 2b 3a 3b; do
	HEADRACE_PEER=$version timeout 100 "$program" waiting ||
		fail "drivers that wait for streams, HEADRACE_PEER=$version"
done

# Drivers whose streams share a hardware queue.
remote_stop || fail "something is left"
{ printf '\0\0\0\0\1'; head -c 4091 /dev/zero; } >"$folder/refusing"
remote_start_several 3
for version in hybrid 2a 2b 3b client; do
	HEADRACE_PEER=$version timeout 100 "$program" queues ||
		fail "drivers whose streams share a queue, HEADRACE_PEER=$version"
done
driver=$plain

# One server sends its bytes later than another server, which copies to the same memory afterwards.
remote_stop || fail "something is left"
export HEADRACE_TRANSPORT=tcp
plain=$headraced
headraced=$build/test/cuda/remote/headraced-faults
HR_FAULTS=seed=1,delay=400 remote_start
headraced=$plain
list=$HEADRACE_SERVER
remote_start_another second
list=$list,$another
remote_start_another third
HEADRACE_SERVER=$list,$another timeout 240 "$program" same-memory || fail "copies into the same memory"
