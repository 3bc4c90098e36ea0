#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# over_softgpu.sh PROGRAM: a CUDA program with our runtime on the software GPU, in one process.
set -euo pipefail

runtime=${top_builddir:?run by make check}/cuda_remote/runtime/.libs
softgpu=$top_builddir/cuda_remote/softgpu/.libs
if [ ! -e "$softgpu/libcuda.so.1" ]; then
	echo "skipped: the software GPU is not built"
	exit 77
fi
# nvcc's host compiler did not instrument the program, so a sanitizer's own library must be brought in before it.
sanitizer=$(ldd "$runtime/libcudart.so.13" | awk '/lib(a|t)san/ {print $3}')
if [ -n "$sanitizer" ]; then
	export LD_PRELOAD=$sanitizer
	# What is loaded into the device stays there to the end of the process, behind handles that hide it from a search.
	export ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS:-}
fi
export LD_LIBRARY_PATH=$runtime:$softgpu
exec timeout 120 "$@"
