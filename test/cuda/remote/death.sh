#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A worker killed in mid-copy is an error in its client; a client killed in mid-copy ends its worker. The daemon goes on.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"

# Starts a victim; $victim is its process, $worker the one that serves it.
begin() {
	local before
	before=$(remote_workers)
	mkfifo "$folder/out.$1"
	timeout 60 "$build/test/cuda/remote/victim" "$1" >"$folder/out.$1" 2>"$folder/err" &
	victim=$!
	exec 4<"$folder/out.$1"
	read -r line <&4 || fail "the client did not start: $(cat "$folder/err")"
	[ "$line" = copying ] || fail "the client said: $line"
	# The one that stood ready before the client came serves it now.
	worker=$(echo "$before" | head -1)
}

gone() {
	for _ in $(seq 200); do
		kill -0 "$1" 2>/dev/null || return 0
		sleep 0.05
	done
	return 1
}

remote_start
for direction in up down later delivered fetched; do
	for _ in $(seq 100); do
		[ "$(remote_workers | wc -l)" = 1 ] && break
		sleep 0.05
	done
	begin "$direction"
	sleep 0.2
	kill -9 "$worker" || fail "no worker $worker"
	read -r line <&4 || fail "the client said nothing"
	[ "$line" = CUDA_ERROR_DEVICE_UNAVAILABLE ] || fail "copying $direction, the client got $line"
	wait "$victim" || fail "the client ended with status $?"
	grep -q 'lost' "$folder/err" || fail "no line says that the connection is lost"
	rm "$folder/out.$direction"

	for _ in $(seq 100); do
		[ "$(remote_workers | wc -l)" = 1 ] && break
		sleep 0.05
	done
	begin "$direction"
	sleep 0.2
	client=$(pgrep -P "$victim")
	kill -9 "$victim" ${client:+$client}
	wait "$victim" 2>/dev/null
	gone "$worker" || fail "copying $direction, the worker outlived its client"
	rm "$folder/out.$direction"
done
timeout 60 "$build/test/cuda/remote/hostfn" || fail "the daemon serves no more"
