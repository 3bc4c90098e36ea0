#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Images with pointers, lengths and offsets of the client's own are refused, and no worker dies of them.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
remote_start 2>"$folder/log"
timeout 100 "$build/test/cuda/server/images" || fail "see above; the daemon's log: $(cat "$folder/log")"
grep -E 'signal|ERROR: |runtime error' "$folder/log" && fail "a worker died"
exit 0
