#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One of three ranks dies in or before an operation, or before the start: the others get an error, or the job ends with one line.
. "$top_srcdir/test/adi/common.sh"
need_mpirun

# mpirun would end the job by itself without --enable-recovery.
run() { # ARGUMENT...
	timeout -k 5 60 "$MPIRUN" --enable-recovery -n 3 "$programs/deaths" "$@" >"$scratch/out" 2>&1
	status=$?
	[ "$status" -ne 124 ] || {
		cat "$scratch/out"
		fail "$* over $HEADRACE_TRANSPORT hangs"
	}
}

expect() { # CASE...
	for case in "$@"; do
		run "$case"
		[ "$(grep -c 'told that rank 1 is gone' "$scratch/out")" -eq 2 ] || {
			cat "$scratch/out"
			fail "$case over $HEADRACE_TRANSPORT: the other ranks were not told"
		}
	done
}

messages="any_receive any_test any_probe rendezvous partitioned held"
collectives="barrier barrier_of_root allreduce allreduce_long nonblocking first_barrier"
windows="lock_exclusive lock_shared lock_created lock_created_shared lock_target lock_all fetch puts_flush gets_flush fence_allocated fence_created post_start"
for HEADRACE_TRANSPORT in shm tcp; do
	export HEADRACE_TRANSPORT
	# shellcheck disable=SC2086 # lists
	expect $messages $collectives finalize
	# shellcheck disable=SC2086
	HEADRACE_MPI_ALGORITHM=barrier=dissemination,allreduce=doubling expect $collectives
	# shellcheck disable=SC2086
	HEADRACE_WINDOW_DIRECT=0 expect lock_exclusive lock_all
done
export HEADRACE_TRANSPORT=shm
# shellcheck disable=SC2086
expect $windows accumulate

# Four ranks.
timeout -k 5 60 "$MPIRUN" --enable-recovery -n 4 "$programs/deaths" reduce_elsewhere >"$scratch/out" 2>&1
[ "$(grep -c 'told that rank 1 is gone' "$scratch/out")" -eq 2 ] || {
	cat "$scratch/out"
	fail "reduce_elsewhere: the other ranks were not told"
}

# One line says which rank has died, where and why. (The ranks of these cases are connected, so they agree on who writes it.)
for case in barrier lock_created fence_allocated; do
	run $case fatal
	lines=$(grep -c 'aborting the job' "$scratch/out")
	good=$(grep -c 'on rank [02] of 3, host [^ ]*: .*(rank 1, [^ ]*: .*); aborting the job' "$scratch/out")
	[ "$lines $good" = "1 1" ] || {
		cat "$scratch/out"
		fail "$case: not one line about the death"
	}
done

# Before the start mpirun ends the job, or the other ranks, which wait in MPI_Init, ask it for the states of all ranks.
timeout -k 5 60 "$MPIRUN" -n 3 "$programs/deaths" init fatal >"$scratch/out" 2>&1
case $? in
0 | 124) fail "a rank dies before MPI_Init, and the job goes on" ;;
esac
run init fatal
if ! grep -q 'rank 1 has ended before all ranks were in MPI_Init' "$scratch/out" ||
	! grep -q 'MPI_Init on rank .* of 3, .*: MPI_ERR_PROC_ABORTED: .*; aborting the job' "$scratch/out"; then
	cat "$scratch/out"
	fail "a rank dies before MPI_Init, mpirun continues, and the other ranks are not told"
fi
exit 0
