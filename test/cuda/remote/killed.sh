#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A ring of three servers, of which one is killed at drawn moments. HEADRACE_TEST_SEED: of the first trial; HEADRACE_TEST_TRIALS.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
trials=${HEADRACE_TEST_TRIALS:-$([ -n "${HEADRACE_TEST_LONG:-}" ] && echo 300 || echo 3)}
seed=${HEADRACE_TEST_SEED:-1}
for transport in shm tcp; do
	export HEADRACE_TRANSPORT=$transport
	remote_start_several 3
	"$build/test/cuda/remote/killed" "$seed" "$trials" "${others[0]}" 2>"$folder/err" ||
		fail "$transport: $(tail -n 30 "$folder/err")"
	remote_stop || fail "something is left"
	unset HEADRACE_SERVER
done
exit 0
