#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
# A worker's driver has the daemon's level, by default info, and its lines go to the program's stderr. There a program
# with a fault prints no more than without a server.
HEADRACE_LOG=info remote_start
timeout 120 "$build/test/cuda/remote/errors" 2>"$folder/err" || { cat "$folder/err" >&2; exit 1; }
! grep ' info: ' "$folder/err" || fail "a line that only a program with a server prints"
