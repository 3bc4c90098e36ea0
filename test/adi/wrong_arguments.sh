#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# All functions with one wrong argument at a time; and a sample of these calls with MPI_ERRORS_ARE_FATAL, which end the program
# with one line that names function and argument.
. "$top_srcdir/test/adi/common.sh"
unset PMIX_NAMESPACE PMIX_RANK
timeout -k 5 300 "$programs/wrong_arguments" || fail "alone"
sample=0
for ((number = 0; number < 7000; number += 397)); do
	timeout 300 "$programs/wrong_arguments" $number >"$scratch/call" 2>"$scratch/line"
	status=$?
	read -r function argument <"$scratch/call"
	[ "$function" != none ] || continue
	wanted="$function on rank 0 of 1, host .*: MPI_ERR_[A-Z_]*: .*$argument.*; aborting the job"
	[ $status -ne 0 ] && grep -q "$wanted" "$scratch/line" ||
		fail "$function with a wrong $argument: status $status, $(cat "$scratch/line")"
	[ "$(wc -l <"$scratch/line")" -eq 1 ] || fail "$function with a wrong $argument: more than one line: $(cat "$scratch/line")"
	sample=$((sample + 1))
done
[ $sample -gt 8 ] || fail "only $sample calls with MPI_ERRORS_ARE_FATAL"
need_mpirun
ranks 2 "$programs/wrong_arguments" || fail "two ranks"
exit 0
