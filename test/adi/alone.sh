#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Started without a process manager, a program is the only rank.
. "$top_srcdir/test/adi/common.sh"
unset PMIX_NAMESPACE PMIX_RANK
for program in arguments "ring 1000" matching "barrier $scratch/counter"; do
	timeout 300 "$programs/"$program || fail "$program alone"
done
# A process manager that is not there (any more) is no reason to fail.
PMIX_NAMESPACE=gone PMIX_RANK=0 timeout 300 "$programs/ring" 10 || fail "ring with the traces of a process manager"

# An invalid number ends MPI_Init, also if this program never uses the setting. The log names the setting once.
for setting in WINDOW_DIRECT=maybe MPI_PROGRESS_THREAD=7 EAGER_MAX=-1; do
	env "HEADRACE_$setting" timeout 300 "$programs/ring" 10 2>"$scratch/log" && fail "HEADRACE_$setting was accepted"
	[ "$(grep -c "HEADRACE_$setting: invalid value; valid values: a number from" "$scratch/log")" = 1 ] || {
		cat "$scratch/log"
		fail "HEADRACE_$setting: wrong message"
	}
done
