#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Point-to-point messages and requests, eager and by rendezvous.
. "$top_srcdir/test/adi/common.sh"
need_mpirun
for program in cancel point probe requests; do
	with_ranks "1 2 5" "$program"
	HEADRACE_EAGER_MAX=0 with_ranks "2" "$program"
done
# The sanitizers keep memory of their own, and replace realloc.
if ! grep -q 'define HR_SANITIZED 1' "$top_builddir/config.h"; then
	for transport in shm tcp; do
		HEADRACE_TRANSPORT=$transport ranks 2 "$programs/no_memory" || fail "no_memory over $transport"
	done
fi
sends=50000 bound=10000 # KB
! grep -q 'define HR_SANITIZED 1' "$top_builddir/config.h" || sends=20000 bound=10000000
for transport in shm tcp; do
	for limit in 0 4M; do
		HEADRACE_TRANSPORT=$transport HEADRACE_MPI_UNEXPECTED=$limit ranks 2 "$programs/held" $sends $bound ||
			fail "held over $transport, limit $limit"
	done
done
