#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One-sided communication.
. "$top_srcdir/test/adi/common.sh"
need_mpirun
with_ranks "1 2 4" windows
