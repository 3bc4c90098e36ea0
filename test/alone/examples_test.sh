#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# examples_test.sh [FOLDER]: the channel's examples in FOLDER (those built here) do what they say, over shm and over tcp.
set -euo pipefail
programs=${1:-$top_builddir/examples}
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
head -c 10000019 /dev/urandom >"$work/in"
for HEADRACE_TRANSPORT in shm tcp; do
	export HEADRACE_TRANSPORT
	timeout 120 "$programs/pipe" "$work/in" "$work/out"
	cmp "$work/in" "$work/out"
	for connections in 1 5; do
		timeout 120 "$programs/file_copy" "$work/in" "$work/out" $connections
		cmp "$work/in" "$work/out"
	done
	head -c 3 "$work/in" >"$work/short" # fewer bytes than connections
	timeout 120 "$programs/file_copy" "$work/short" "$work/out" 5
	cmp "$work/short" "$work/out"

	timeout 120 "$programs/echo_server" "$work/card" 100 &
	server=$!
	timeout 120 "$programs/echo_client" "$work/card" 100 20
	wait $server
	server=
done
