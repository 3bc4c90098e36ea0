#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# MPI over verbs, on the libibverbs double: windows by the adapter and by messages, faults, deaths, and a little of the rest.
. "$top_srcdir/test/adi/common.sh"
need_mpirun
double=$top_srcdir/test/ibverbs_double/with_double.sh
"$double" true || exit
export HEADRACE_TRANSPORT=verbs

# A hang is the failure of most of these cases.
ranks() {
	n=$1
	shift
	timeout -k 5 300 "$double" "$MPIRUN" -n "$n" "$@"
}

for n in 2 4; do
	ranks "$n" "$programs/windows" || fail "windows, $n ranks"
	ranks "$n" "$programs/passive" || fail "passive, $n ranks"
done
HEADRACE_WINDOW_ADAPTER=0 ranks 3 "$programs/windows" || fail "windows by messages"
# Several queue pairs, which an operation is spread over, and so few requests that operations wait for room.
HEADRACE_IB_QPS=4 HEADRACE_IB_DEPTH=2 ranks 2 "$programs/passive" || fail "passive, many queue pairs"
# Memory that cannot be registered: messages.
HR_VERBS_DOUBLE_FAULT=budget:4000000 ranks 2 "$programs/windows" || fail "windows, little memory can be registered"
ranks 3 "$programs/ring" 1000 || fail "ring"
ranks 3 "$programs/matching" || fail "matching"
# Shorter messages by zero copy too, and a threshold that is measured while messages are under way.
for least in 16k auto; do
	HEADRACE_IB_ZERO_COPY=$least ranks 2 "$programs/matching" || fail "matching, zero copy from $least"
done
ranks 2 "$programs/collective/collectives" || fail "collectives"
ranks 2 "$programs/threads" || fail "threads"
HEADRACE_MPI_PROGRESS_THREAD=1 ranks 2 "$programs/computes" || fail "computes, with the thread for progress"

# One of three ranks dies.
for case in lock_created lock_target fetch puts_flush gets_flush fence_created post_start; do
	timeout -k 5 300 "$double" "$MPIRUN" --enable-recovery -n 3 "$programs/deaths" "$case" >"$scratch/out" 2>&1
	[ "$(grep -c 'told that rank 1 is gone' "$scratch/out")" -eq 2 ] || {
		cat "$scratch/out"
		fail "$case: the other ranks were not told"
	}
done
exit 0
