#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Drawn sequences of work (mixed.c): on three GPUs of the program's own process, which shows that the expected contents are right;
# on one server of three GPUs; on three servers over shared memory, and with HEADRACE_TEST_LONG=1 over TCP. HEADRACE_TEST_SEED: draws
# other sequences. HEADRACE_TEST_SEQUENCES: so many in each run, instead of 3, or 300 with HEADRACE_TEST_LONG=1.
# HEADRACE_TEST_STEPS, HEADRACE_TEST_THREADS.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
seed=${HEADRACE_TEST_SEED:-20261128}
sequences=${HEADRACE_TEST_SEQUENCES:-$([ "${HEADRACE_TEST_LONG:-0}" = 0 ] && echo 3 || echo 300)}

run() { # WHAT PROGRAM [SETTING...]
	env "${@:3}" timeout $((100 + 10 * sequences)) "$build/test/cuda/mixed/$2" "$seed" "$sequences" \
		"${HEADRACE_TEST_STEPS:-250}" "${HEADRACE_TEST_THREADS:-2}" ||
		fail "$1, seed $seed, $sequences sequences"
}

run "in the own process" mixed_local HEADRACE_SOFTGPU_DEVICES=3
HEADRACE_SOFTGPU_DEVICES=3 remote_start
run "one server" mixed
remote_stop || fail "something is left"
remote_start
list=$HEADRACE_SERVER
remote_start_another second
list=$list,$another
HEADRACE_SESSION_PINNED=0 remote_start_another third
run "three servers" mixed HEADRACE_SERVER=$list,$another
remote_stop || fail "something is left"
[ "${HEADRACE_TEST_LONG:-0}" != 0 ] || exit 0
remote_start_several_by_tcp 3
run "three servers over TCP" mixed
exit 0
