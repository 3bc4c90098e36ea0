#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
remote_start --gpu-memory=16M
timeout 120 "$build/test/cuda/remote/quota" || exit
grep -q "refused: 5242880 bytes of memory of GPU 0, where the session has 12582912 of its 16777216 (gpu-memory)" \
	"$folder/log" || fail "the refusal is not in the log"
