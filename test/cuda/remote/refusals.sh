#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A driver that refuses single calls.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
truncate -s 4096 "$folder/refusing"
export HEADRACE_TEST_REFUSING=$folder/refusing
driver=$build/test/cuda/remote/.libs/refusing.so HEADRACE_STAGING=16M remote_start
timeout 120 "$build/test/cuda/remote/refusals" "$folder/refusing" || fail "refused calls"
