#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Green contexts over a worker: the software GPU's test of them passes there too.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
export HEADRACE_SOFTGPU_DEVICES=2 SOFTGPU_DOUBLE_THREADS=4
program=$build/test/cuda/remote/softgpu_green_contexts
remote_start
timeout 120 "$program" remote || fail "green contexts"
