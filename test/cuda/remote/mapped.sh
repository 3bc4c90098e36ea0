#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Pinned memory that kernels use at the host's address, and what a device says that cannot: one whose worker maps no memory.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
remote_start
timeout 60 "$build/test/cuda/remote/mapped" mapped || fail "memory that kernels use"
remote_stop
rm "$folder/ready"
HEADRACE_SESSION_PINNED=0 remote_start
timeout 60 "$build/test/cuda/remote/mapped" refused || fail "memory that kernels cannot use"
