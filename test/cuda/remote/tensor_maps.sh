#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Tensor maps: the test of the software GPU passes behind a worker too. The server's driver encodes them.
HEADRACE_TEST_DRIVER=${top_builddir:?run by make check}/cuda_remote/softgpu/.libs/libcuda.so
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
export HEADRACE_SOFTGPU_CAPABILITY=90
remote_start
timeout 120 "$build/test/cuda/remote/softgpu_tensor_maps"
