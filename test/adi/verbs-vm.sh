#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# MPI over verbs in the virtual machine with the kernel's Soft-RoCE (make check-vm): messages,
# collectives, windows, threads.
MPIRUN=${MPIRUN:-$(command -v mpirun.openmpi || command -v mpirun)}
if [ "$1" = inside ]; then
	. "$top_srcdir/test/adi/common.sh"
	need_mpirun
	export HEADRACE_TRANSPORT=verbs HEADRACE_TIMEOUT_MS=60000
	# Emulated processors: give each run longer than on the machine itself.
	ranks() {
		n=$1
		shift
		timeout -k 5 300 "$MPIRUN" -n "$n" "$@"
	}
	ranks 2 "$programs/ring" 20000 || fail "ring, 2 ranks"
	ranks 4 "$programs/ring" 2000 || fail "ring, 4 ranks"
	ranks 4 "$programs/barrier" "$scratch/counter" || fail "barrier, 4 ranks"
	ranks 2 "$programs/pingpong" 20 100000 || fail "pingpong"
	ranks 2 "$programs/requests" || fail "requests"
	# Nonblocking and persistent collectives: the blocking ones would use shared memory.
	ranks 2 "$programs/collective/schedules" || fail "schedules"
	ranks 2 "$programs/passive" || fail "passive"
	ranks 2 "$programs/windows" || fail "windows"
	ranks 2 "$programs/threads" || fail "threads"
	exit 0
fi
exec "$top_srcdir/test/vm/run.sh" env top_srcdir="$top_srcdir" top_builddir="$top_builddir" MPIRUN="$MPIRUN" \
	bash "$top_srcdir/test/adi/verbs-vm.sh" inside
