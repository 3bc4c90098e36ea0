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

# An invalid number ends MPI_Init, also if this program never uses the setting. The log names the setting once.
for setting in WINDOW_DIRECT=maybe MPI_PROGRESS_THREAD=7 EAGER_MAX=-1 SHM_ZERO_COPY=64x IB_GID_INDEX=256; do
	env HEADRACE_TRANSPORT=shm "HEADRACE_$setting" timeout 300 "$programs/ring" 10 2>"$scratch/log" &&
		fail "HEADRACE_$setting was accepted"
	[ "$(grep -c "HEADRACE_$setting: invalid value; valid values: a number from" "$scratch/log")" = 1 ] || {
		cat "$scratch/log"
		fail "HEADRACE_$setting: wrong message"
	}
done

# Valid values: empty, with a suffix, the limits, and a word in place of a number.
env HEADRACE_TRANSPORT=shm HEADRACE_WINDOW_DIRECT= HEADRACE_EAGER_MAX=0 HEADRACE_RING_BYTES=16K HEADRACE_SPIN_US=0 \
	HEADRACE_SHM_ZERO_COPY=0 HEADRACE_MPI_UNEXPECTED=1024G HEADRACE_IB_GID_INDEX=auto HEADRACE_IB_ZERO_COPY=auto \
	HEADRACE_IB_PORT=255 timeout 300 "$programs/ring" 10 || fail "valid settings"
