#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What one session may hold (HEADRACE_SESSION_...) and touch (its GPU, its streams).
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"

# run TEST [SETTING=VALUE...]: a daemon with the settings, and the test.
run() {
	local test=$1
	shift
	# shellcheck disable=SC2163 # each argument is NAME=VALUE
	[ $# = 0 ] || export "$@"
	remote_start 2>"$folder/log"
	timeout 100 "$build/test/cuda/server/session" "$test" || fail "$test; the daemon's log: $(cat "$folder/log")"
	grep -E 'signal|ERROR: |runtime error' "$folder/log" && fail "$test: a worker died"
	remote_stop || fail "$test: something is left"
	for setting; do
		unset "${setting%%=*}"
	done
}

run connections HEADRACE_SESSION_CONNECTIONS=3
run arguments HEADRACE_SESSION_ARGUMENTS=1M
run replies HEADRACE_SESSION_REPLIES=64k HEADRACE_SOFTGPU_DEVICES=8
run stream
run window
run parts
run staging
run credit HEADRACE_RING_BYTES=16384
run counted
run twice
run early
run placed
run managed
run pinned HEADRACE_SESSION_PINNED=64K
run area
run grant HEADRACE_SOFTGPU_DEVICES=2
(
	ulimit -n 48
	run descriptors HEADRACE_SESSION_CONNECTIONS=1000
) || fail "descriptors"
exit 0
