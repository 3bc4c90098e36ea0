#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Gather, scatter, alltoall and neighbourhood collectives.
. "$top_srcdir/test/adi/common.sh"
need_mpirun
for program in gathers alltoalls neighbors rounds; do
	with_ranks "1 2 5" "collective/$program"
done
with_ranks "1 2 5" collective/uneven
for n in 2 4; do
	HEADRACE_TRANSPORT=shm ranks "$n" "$programs/collective/uneven" segment || fail "uneven segment, $n ranks"
done
for n in 3 4; do # without single copy of messages, which would be counted
	HEADRACE_SHM_ZERO_COPY=0 HEADRACE_TRANSPORT=shm ranks "$n" "$programs/collective/direct" || fail "direct, $n ranks"
done
