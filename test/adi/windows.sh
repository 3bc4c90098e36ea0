#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One-sided communication.
. "$top_srcdir/test/adi/common.sh"
need_mpirun
with_ranks "1 2 4" windows
# Windows of MPI_Win_allocate by messages, as between machines.
HEADRACE_WINDOW_DIRECT=0 HEADRACE_TRANSPORT=shm ranks 3 "$programs/windows" || fail "windows by messages"
# The thread that makes progress: the target computes.
export HEADRACE_MPI_PROGRESS_THREAD=1
with_ranks "2" computes
HEADRACE_TRANSPORT=tcp ranks 3 "$programs/threads" || fail "threads, with the thread for progress"
HEADRACE_TRANSPORT=shm ranks 2 "$programs/collective/collectives" || fail "collectives, with the thread for progress"
