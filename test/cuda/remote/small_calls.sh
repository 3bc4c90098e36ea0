#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Calls that few programs make; and the software GPU's test of calls of CUDA 3.2 passes behind a worker too.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
export HEADRACE_SOFTGPU_DEVICES=2
remote_start
timeout 120 "$build/test/cuda/remote/small_calls" && timeout 120 "$build/test/cuda/remote/softgpu_old_calls"
