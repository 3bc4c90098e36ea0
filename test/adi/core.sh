#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Handles, attributes, errors, info objects, sessions, the tool interface, threads: what needs few messages.
. "$top_srcdir/test/adi/common.sh"
for program in abi older attributes errors info sessions tool; do
	timeout 300 "$programs/$program" || fail "$program, alone"
done
need_mpirun
for program in attributes errors info sessions tool; do
	with_ranks "2 3" "$program"
done
with_ranks "2" sessions world
with_ranks "1 2 3" threads
