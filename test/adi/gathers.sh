#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Gather, scatter, alltoall and neighbourhood collectives.
. "$top_srcdir/test/adi/common.sh"
need_mpirun
for program in gathers alltoalls neighbors; do
	with_ranks "1 2 5" "$program"
done
