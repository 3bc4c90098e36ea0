#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A call that blocks in the driver holds up no other call.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
export HEADRACE_SOFTGPU_MEMORY=256M
remote_start
timeout 120 "$build/test/cuda/remote/order"
