#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Every form of the table gives what the references say, on the software GPU. With HEADRACE_TEST_LONG=1 under each
# instruction set; without, under the one that this CPU runs programs with (builds_agree.sh compares the others).
set -euo pipefail
driver=$top_builddir/cuda_remote/softgpu/.libs/libcuda.so.1
builds=auto
[ "${HEADRACE_TEST_LONG:-0}" = 0 ] || builds="avx512 avx2 baseline"
for build in $builds; do
	HEADRACE_SOFTGPU_ISA=$build timeout 600 "$top_builddir/test/cuda/softgpu/vectors/vectors" --driver "$driver"
done
