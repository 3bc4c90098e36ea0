#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
remote_start --gpu-memory=16M
timeout 120 "$build/test/cuda/remote/quota" || exit
# The client has all 16 MiB set aside, of which 4 MiB are unused, and asks for the rest of the 5 MiB.
grep -q "refused: 1048576 bytes of memory of GPU 0, where the session has 16777216 of its 16777216 (gpu-memory)" \
	"$folder/log" || fail "the refusal is not in the log"
remote_stop
driver=$build/test/cuda/remote/.libs/keeping.so
remote_start --gpu-memory=16M
timeout 120 "$build/test/cuda/remote/quota" kept || fail "memory that pools keep"
remote_stop
driver=$build/cuda_remote/softgpu/.libs/libcuda.so.1
[ -e "$driver" ] || exit 0
remote_start --gpu-memory=16M
timeout 120 "$build/test/cuda/remote/quota" variables || fail "variables of modules"
remote_stop
[ "$(grep -c "refused: " "$folder/log")" = 14 ] || fail "the log has not the 14 calls that were refused in the end"
