#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Graphs and captures over a worker. A launch is one message, however many nodes the graph has.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
remote_start
timeout 120 "$build/test/cuda/remote/graphs" || exit 1
HEADRACE_TRANSPORT=tcp timeout 120 "$build/test/cuda/remote/graphs" || fail "over tcp"
timeout 120 "$build/test/cuda/remote/capture" || exit 1
timeout 60 "$build/test/cuda/remote/graph_boxes" || fail "copies and fills of several rows"
timeout 120 "$build/test/cuda/remote/graph_memory" || exit 1
HEADRACE_LOG=debug timeout 120 "$build/test/cuda/remote/graphs" many 2>"$folder/calls" || { cat "$folder/calls" >&2; exit 1; }
launches=$(grep -c 'call [0-9]* graph_launch' "$folder/calls")
all=$(grep -c 'call [0-9]* [a-zA-Z_]' "$folder/calls")
[ "$launches" = 100 ] || fail "100 launches sent $launches messages"
# Start, allocation, fill, load, instantiation, the copy at the end, frees: fewer than 20.
[ "$all" -lt 120 ] || fail "the program sent $all calls for 100 launches"
remote_stop || fail "the daemon does not end"
HEADRACE_PLACED_MEMORY=0 remote_start
timeout 120 "$build/test/cuda/remote/graph_memory" driver || exit 1
remote_stop || fail "the daemon does not end"
HEADRACE_PLACED_MEMORY=2 remote_start
timeout 120 "$build/test/cuda/remote/graph_memory" pages || exit 1
remote_stop || fail "the daemon does not end"

# Two GPUs without access to each other's memory.
for placed in 0 1 2; do
	HEADRACE_PLACED_MEMORY=$placed HEADRACE_SOFTGPU_DEVICES=2 remote_start
	timeout 120 "$build/test/cuda/remote/graphs" two || fail "copies between two GPUs, HEADRACE_PLACED_MEMORY=$placed"
	remote_stop || fail "the daemon does not end"
done
remote_start_several 2
timeout 60 "$build/test/cuda/remote/graph_boxes" || fail "copies and fills of several rows on two servers"
