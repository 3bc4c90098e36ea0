#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What nvcc makes of one source: PTX text and fat binaries in every --compress-mode run; machine code alone is refused
# with an explanation; damaged ones never crash.
set -euo pipefail
[ -n "${NVCC:-}" ] || { echo "skipped: there is no nvcc"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/scale.cu" <<'CU'
__constant__ int table[4] = { 10, 20, 30, 40 };
extern "C" __global__ void scale(int *data, int factor, int count)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < count)
		data[i] = factor * data[i] + table[i % 4];
}
CU
for mode in default size speed balance none; do
	"$NVCC" -fatbin --compress-mode=$mode -o "$work/$mode.fatbin" "$work/scale.cu" 2>"$work/log" ||
		{ grep -qi "compress-mode" "$work/log" && rm -f "$work/$mode.fatbin"; }
done
"$NVCC" -ptx -arch=compute_75 -o "$work/scale.ptx" "$work/scale.cu"
"$NVCC" -cubin -arch=sm_90 -o "$work/scale.cubin" "$work/scale.cu"
"$NVCC" -fatbin -gencode arch=compute_90,code=sm_90 -o "$work/elf-only" "$work/scale.cu"
"$NVCC" -fatbin -gencode arch=compute_120,code=compute_120 -o "$work/too-new" "$work/scale.cu"
"$NVCC" -fatbin -gencode arch=compute_75,code=compute_75 -gencode arch=compute_90,code=compute_90 \
	-gencode arch=compute_120,code=[sm_120,compute_120] -o "$work/several.fatbin" "$work/scale.cu"
load=$top_builddir/test/cuda/softgpu/load_image
HEADRACE_SOFTGPU_CAPABILITY=90 timeout 100 "$load" "$work"/*.fatbin "$work/scale.ptx" --refused "$work/scale.cubin" \
	--refused "$work/elf-only" --refused "$work/too-new"
HEADRACE_SOFTGPU_CAPABILITY=120 timeout 60 "$load" "$work/too-new"
timeout 60 "$load" --damaged "$work/none.fatbin" --damaged "$work/default.fatbin" 2>/dev/null
