#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Groups, communicators, intercommunicators, topologies.
. "$top_srcdir/test/adi/common.sh"
need_mpirun
for program in groups communicators intercommunicators topologies; do
	with_ranks "1 2 4 5" "$program"
done
