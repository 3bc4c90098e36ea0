#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Every form that the engine decodes by its tables has vectors, and so has, or a test by hand, every one of the census.
set -euo pipefail
exec=$top_srcdir/cuda_remote/softgpu/exec
here=$top_srcdir/test/cuda/softgpu/vectors
"${PYTHON:-python3}" -B "$here/coverage.py" --check "$exec/generate.py" \
	"$top_builddir/test/cuda/softgpu/vectors/vectors" "$here/census.txt" \
	"$top_srcdir"/test/cuda/softgpu/ptx/*.c -- "$exec"/instructions/*.table
