#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Asynchronous copies of 128 KB from memory that the worker has not mapped, over tcp and over shared memory: their bytes go out
# during the call if no stream is held; otherwise they are read when the stream gets there.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
free_ports
remote_start --listen=127.0.0.1:$port

# counts CASE FETCHED: FETCHED of the 40 copies are sent when their stream has come to them.
counts() {
	local fetched
	HEADRACE_LOG=debug timeout 120 "$build/test/cuda/remote/eager" "$1" 2>"$folder/err" ||
		fail "$1: $(grep -v 'call [0-9]*' "$folder/err" | tail -n 5)"
	fetched=$(grep -c 'call [0-9]* copy_up_later' "$folder/err")
	[ "$fetched" = "$2" ] || fail "$1: $fetched copies were fetched, want $2"
}

all() {
	local each
	for each in stream context back several; do
		counts $each 0
	done
	for each in kernel wait another default defaults function copy large thread; do
		counts $each 40
	done
}

all
export HEADRACE_SERVER=127.0.0.1:$port HEADRACE_TRANSPORT=tcp
all
