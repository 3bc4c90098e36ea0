#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Waits for streams, events and contexts, over shared memory and over tcp: those that the client can answer itself are not sent,
# and no answer is wrong.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
free_ports
export HEADRACE_SOFTGPU_DEVICES=2
remote_start --listen=127.0.0.1:$port

run() { # CASE
	HEADRACE_LOG=debug timeout 120 "$build/test/cuda/remote/waits" "$1" 2>"$folder/err" ||
		fail "$1: $(grep -v 'call [0-9]*' "$folder/err" | tail -n 5)"
}

# sent FUNCTION COUNT: in the last run.
sent() {
	local count
	count=$(grep -c "call [0-9]* $1\$" "$folder/err")
	[ "$count" = "$2" ] || fail "$count calls of $1 were sent, want $2"
}

all() {
	local each count
	for each in held blocking beside again thread destroyed graph contexts context failed sticky; do
		run $each
	done
	run harmless
	sent cuCtxEnablePeerAccess 41
	sent memory_budget 1 # for the allocation
	run idle
	sent cuEventRecord 40
	sent cuEventSynchronize 0
	sent cuEventQuery 0
	run streams
	sent cuStreamSynchronize 40
	sent cuStreamQuery 0
	sent cuEventSynchronize 0
	sent context_synchronize 0
	run polled # some are sent, so that the server sees that the session is in use
	count=$(grep -c "call [0-9]* cuStreamQuery\$" "$folder/err")
	((count > 0 && count < 90)) || fail "$count of 100 polls were sent"
	run events
	sent cuEventSynchronize 40
	sent cuEventQuery 0
	run query
	sent cuEventSynchronize 40
	sent cuStreamSynchronize 40
	sent context_synchronize 0
	run peer # two waits in each of 10 rounds
	sent context_synchronize 20
	run elapsed
	sent event_elapsed 40 # the first call asks for both, and the later waits do
	sent cuEventElapsedTime_v2 0
	sent cuEventSynchronize 0
	run timed
	sent event_elapsed 39
	sent cuEventSynchronize 1
	sent cuEventElapsedTime_v2 81
	run timed_by_stream
	sent event_elapsed 39
	sent cuStreamSynchronize 1
	sent cuEventElapsedTime_v2 81
	run timed_by_context
	sent event_elapsed 39
	sent context_synchronize 1
	sent cuEventElapsedTime_v2 81
	run timed_beside_work
	sent event_elapsed 0
	sent context_synchronize 40
	run timed_before_work # one wait in 20 rounds, two in the other 20
	sent event_elapsed 0
	sent cuStreamSynchronize 60
	run timed_again
}

all
export HEADRACE_SERVER=127.0.0.1:$port HEADRACE_TRANSPORT=tcp
all
