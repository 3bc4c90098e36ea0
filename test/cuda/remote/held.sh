#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copies in a held stream: through the staging area that a client on the server's host shares, and in chunks over both
# transports of one host.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"

# run WHAT STAGED [SETTING=VALUE...]: STAGED is the number of staging areas that the program makes.
run() {
	local what=$1 staged=$2 made
	shift 2
	# shellcheck disable=SC2163 # each argument is NAME=VALUE
	[ $# = 0 ] || export "$@"
	remote_start
	HEADRACE_LOG=debug timeout 60 "$build/test/cuda/remote/held" 2>"$folder/err" || fail "$what: $(tail -n 5 "$folder/err")"
	made=$(grep -c 'call [0-9]* copy_staging' "$folder/err")
	[ "$made" = "$staged" ] || fail "$what: $made staging areas, want $staged"
	remote_stop || fail "$what: something is left"
}

run "staging area" 2 # of the main thread, and of the thread that copies pageable memory
run "chunks over shared memory" 0 HEADRACE_SESSION_PINNED=0
run "chunks over tcp" 0 HEADRACE_TRANSPORT=tcp
