#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# MPI_Finalize ends also where the process manager never says that a rank has died, and waits for one that is only late.
. "$top_srcdir/test/adi/common.sh"
need_mpirun

try() { # TRANSPORT WAY RANKS THAT SAY SO
	HEADRACE_TRANSPORT=$1 timeout -k 5 300 "$MPIRUN" --enable-recovery -n 5 "$programs/lost_fence" "$2" \
		>"$scratch/out" 2>&1
	[ "$(grep -c 'as it should be' "$scratch/out")" -eq "$3" ] || {
		cat "$scratch/out"
		fail "$2 over $1"
	}
}

try shm dead 4
try tcp dead 4
try shm slow 5
exit 0
