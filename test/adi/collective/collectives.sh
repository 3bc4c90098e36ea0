#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Broadcast, barrier, reductions, scans; schedules.
. "$top_srcdir/test/adi/common.sh"
need_mpirun
with_ranks "1 2 3 5" collective/collectives
with_ranks "1 2 4" collective/schedules
with_ranks "1 2 5" collective/sequences
