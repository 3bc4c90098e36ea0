#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# CH3's test with two processes through the fault channel, over shared memory and TCP.
set -u
status=0
for plan in seed=1,shorten=30 seed=2,refuse=30,shorten=10 seed=3,delay=3,spurious=30; do
	echo "== $plan"
	HR_FAULTS=$plan "$top_builddir/test/faults/ch3_processes" || status=1
done
exit $status
