#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# All results of all vectors, NaNs and approximations too, are the same bits under every instruction set that the tree has
# a build for, with one worker and with two.
set -euo pipefail
vectors=$top_builddir/test/cuda/softgpu/vectors/vectors
driver=$top_builddir/cuda_remote/softgpu/.libs/libcuda.so.1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
digest() {
	HEADRACE_SOFTGPU_ISA=$1 HEADRACE_SOFTGPU_THREADS=$2 timeout 600 "$vectors" --driver "$driver" --digest
}
digest baseline 1 >"$work/wanted"
[ "$(wc -l <"$work/wanted")" -gt 1000 ] || { echo "too few forms ran"; exit 1; }
for run in "avx512 2" "avx2 1" "baseline 2"; do
	read -r build threads <<<"$run"
	if [ "$build" != baseline ] && grep -q '^SOFTGPU_X86_64_TRUE = #' "$top_builddir/Makefile"; then
		echo "the tree was configured without the build for $build"
		continue
	fi
	digest "$build" "$threads" >"$work/got"
	if ! diff "$work/wanted" "$work/got" >"$work/difference"; then
		echo "$build with $threads workers gives other results than baseline with one:"
		head -n 20 "$work/difference"
		exit 1
	fi
done
