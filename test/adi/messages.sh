#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Point-to-point messages and requests, eager and by rendezvous.
. "$top_srcdir/test/adi/common.sh"
need_mpirun
for program in cancel point probe requests; do
	with_ranks "1 2 5" "$program"
	HEADRACE_EAGER_MAX=0 with_ranks "2" "$program"
done
