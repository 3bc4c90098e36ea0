#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Datatypes.
. "$top_srcdir/test/adi/common.sh"
timeout 300 "$programs/streams" || fail "streams"
timeout 300 "$programs/datatypes" || fail "datatypes, alone"
need_mpirun
with_ranks "2 3" datatypes
