#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Many ranks, and many messages to a rank that does not receive: memory stays bounded, and no error is logged.
. "$top_srcdir/test/adi/common.sh"
need_mpirun
# shellcheck disable=SC2034 # which common.sh uses
ranks_limit=1200 # a million messages whose sender stops again and again

# The sanitizers keep memory of their own, and take more time.
ranks=128 rank_kb=16000 messages=1000000 flood_kb=32000
if grep -q 'define HR_SANITIZED 1' "$top_builddir/config.h"; then
	ranks=16 rank_kb=0 messages=50000 flood_kb=10000000
fi

declare -A limits=([shm]='4M 0' [tcp]=1M)
for transport in shm tcp; do
	export HEADRACE_TRANSPORT=$transport
	ranks $ranks "$programs/many" $rank_kb >"$scratch/out" 2>&1 || {
		cat "$scratch/out"
		fail "$ranks ranks over $transport"
	}
	cat "$scratch/out"
	[ "$(wc -l <"$scratch/out")" -eq 1 ] || fail "$ranks ranks over $transport: more than one line"
	for limit in ${limits[$transport]}; do
		HEADRACE_MPI_UNEXPECTED=$limit ranks 2 "$programs/flood" $messages $flood_kb || fail "flood over $transport, limit $limit"
	done
done
