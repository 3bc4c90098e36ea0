#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Broadcast, barrier, reductions, scans; schedules; counts that disagree.
. "$top_srcdir/test/adi/common.sh"
need_mpirun
with_ranks "1 2 3 5" collective/collectives
with_ranks "1 2 4" collective/schedules
with_ranks "1 2 5" collective/sequences
with_ranks "2 3 4 5" collective/told
for n in 2 4; do
	HEADRACE_TRANSPORT=shm ranks "$n" "$programs/collective/disagree" || fail "disagree, $n ranks"
done
HEADRACE_TRANSPORT=shm ranks 2 "$programs/collective/disagree_late" || fail "disagree_late"
processors=$(getconf _NPROCESSORS_ONLN)
for n in 2 $((processors < 16 ? processors + 1 : 16)) 5; do
	rm -f "$scratch/counter"
	HEADRACE_TRANSPORT=shm ranks "$n" "$programs/collective/orders" "$scratch/counter" || fail "orders, $n ranks"
done
