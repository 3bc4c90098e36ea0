#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Started without a process manager, a program is the only rank.
. "$top_srcdir/test/adi/common.sh"
unset PMIX_NAMESPACE PMIX_RANK
for program in arguments "ring 1000" matching "barrier $scratch/counter"; do
	timeout 300 "$programs/"$program || fail "$program alone"
done
# A process manager that is not there (any more) is no reason to fail.
PMIX_NAMESPACE=gone PMIX_RANK=0 timeout 300 "$programs/ring" 10 || fail "ring with the traces of a process manager"
