#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Many ranks, and many messages to a rank that does not receive: time and memory stay bounded, and nothing is logged.
. "$top_srcdir/test/adi/common.sh"
need_mpirun

# The sanitizers keep memory of their own, and take more time.
ranks=128 rank_kb=16000 messages=1000000 flood_kb=32000
if grep -q 'define HR_SANITIZED 1' "$top_builddir/config.h"; then
	ranks=16 rank_kb=0 messages=50000 flood_kb=10000000
fi

for transport in shm tcp; do
	export HEADRACE_TRANSPORT=$transport
	HEADRACE_LOG=warn ranks $ranks "$programs/many" $rank_kb >"$scratch/out" 2>&1 || {
		cat "$scratch/out"
		fail "$ranks ranks over $transport"
	}
	cat "$scratch/out"
	[ "$(wc -l <"$scratch/out")" -eq 1 ] || fail "$ranks ranks over $transport: more than one line"
	for limit in 4M 1M 0; do
		HEADRACE_MPI_UNEXPECTED=$limit ranks 2 "$programs/flood" $messages $flood_kb || fail "flood over $transport, limit $limit"
	done
done
