#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copies of 64 MB, and then of 1 MB, in three streams between the host and three servers, whose channels delay and shorten what
# they move, at random: the channels to the client and those between the workers. With HEADRACE_TEST_LONG more rounds, or
# HEADRACE_TEST_ROUNDS of 64 MB and ten times as many of 1 MB. HEADRACE_TEST_DELAYS=TRANSPORT: over that one only.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
# shellcheck disable=SC2034 # of remote.sh
headraced=$build/test/cuda/remote/headraced-faults
rounds=${HEADRACE_TEST_ROUNDS:-$([ -n "${HEADRACE_TEST_LONG:-}" ] && echo 1000 || echo 1)}
for transport in ${HEADRACE_TEST_DELAYS:-shm tcp}; do
	for plan in seed=$RANDOM,delay=12 seed=$RANDOM,delay=4,refuse=20,shorten=2,spurious=10; do
		export HEADRACE_TRANSPORT=$transport HR_FAULTS=$plan
		remote_start_several 3
		for size in 64 1; do
			times=$((size == 64 ? rounds : 10 * rounds))
			timeout $((400 + times * 200)) "$build/test/cuda/remote/delays" $times $size 2>"$folder/err" ||
				fail "$transport, HR_FAULTS=$plan, $size MB: $(cat "$folder/err")"
			grep 'by way of this process' "$folder/err" && fail "$transport, HR_FAULTS=$plan: there was no link"
		done
		grep -a 'no transport in common' "$folder/log" && fail "$transport: workers looked for each other in the wrong place"
		remote_stop || fail "something is left"
		unset HEADRACE_SERVER
	done
done
exit 0
