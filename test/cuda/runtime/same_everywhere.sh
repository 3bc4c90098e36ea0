#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# One CUDA program prints the same under every instruction set of the software GPU, with one worker and with two.
set -euo pipefail
program=$top_builddir/test/cuda/runtime/programs/same_everywhere.cutest
[ -x "$program" ] || { echo "skipped: there is no nvcc to build the program with"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
builds="baseline avx2 avx512"
if grep -q '^SOFTGPU_X86_64_TRUE = #' "$top_builddir/Makefile"; then
	echo "the tree was configured with the build for baseline alone"
	builds=baseline
fi
for build in $builds; do
	for threads in 1 2; do
		HEADRACE_SOFTGPU_ISA=$build HEADRACE_SOFTGPU_THREADS=$threads \
			"$top_srcdir/test/cuda/runtime/over_softgpu.sh" "$program" >"$work/$build.$threads"
		[ "$(wc -l <"$work/$build.$threads")" = 6 ] || { echo "not all results are there"; exit 1; }
		cmp "$work/baseline.1" "$work/$build.$threads"
	done
done
