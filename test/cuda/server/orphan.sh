#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# After its client's death a worker ends, whatever its threads wait for: a call that never comes, a kernel without end, a
# copy behind that kernel, a host function that never returns. The client exits, or is killed; over a Unix socket and TCP.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"

gone() {
	for _ in $(seq 200); do
		kill -0 "$1" 2>/dev/null || return 0
		sleep 0.05
	done
	return 1
}

# leave WAIT END: the client's wait, and how it ends.
leave() {
	local worker client line
	for _ in $(seq 200); do
		[ "$(remote_workers | wc -l)" = 1 ] && break
		sleep 0.05
	done
	worker=$(remote_workers | head -1)
	rm -f "$folder/in" "$folder/out"
	mkfifo "$folder/in" "$folder/out"
	"$build/test/cuda/server/orphan" "$1" <"$folder/in" >"$folder/out" &
	client=$!
	exec 5>"$folder/in" 4<"$folder/out"
	read -r -t 60 line <&4
	[ "$line" = waiting ] || fail "$1: the client could not make its worker wait"
	local started
	started=$(date +%s%N)
	if [ "$2" = kill ]; then
		pkill -KILL -P $client 2>/dev/null
		kill -KILL $client
	fi
	exec 5>&-
	wait $client 2>/dev/null
	gone "$worker" || fail "$1, $2: worker $worker is left"
	echo "$1, $2: the worker was gone after $((($(date +%s%N) - started) / 1000000)) ms"
}

remote_start 2>"$folder/log"
for transport in '' tcp; do
	export HEADRACE_TRANSPORT=$transport
	[ -n "$transport" ] || unset HEADRACE_TRANSPORT
	for wait in gap kernel copy function; do
		leave $wait exit
		leave $wait kill
	done
done
exit 0
