#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Collectives in the shared segment while other programs use the processors.
. "$top_srcdir/test/adi/common.sh"
need_mpirun
HEADRACE_TRANSPORT=shm ranks 2 "$programs/collective/crowded" || fail "crowded, 2 ranks"
