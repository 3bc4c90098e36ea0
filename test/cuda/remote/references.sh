#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Texture and surface references: the test of the software GPU passes behind a worker too.
HEADRACE_TEST_DRIVER=${top_builddir:?run by make check}/cuda_remote/softgpu/.libs/libcuda.so
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
remote_start
timeout 120 "$build/test/cuda/remote/softgpu_references"
