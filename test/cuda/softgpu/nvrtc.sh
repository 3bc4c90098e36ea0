#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A program that compiles a kernel for sm_XX with NVIDIA's run-time compiler and loads the "cubin" runs under headrace-run,
# local and remote; without the library that headrace-run preloads the driver refuses the machine code. If the device is
# no software GPU, the program gets the machine code.
set -euo pipefail
[ -n "${NVCC:-}" ] || { echo "skipped: there is no nvcc"; exit 77; }
runtime=$top_builddir/cuda_remote/runtime/.libs
softgpu=$top_builddir/cuda_remote/softgpu/.libs
libraries=$(ldd "$softgpu/libcuda.so.1")
if [[ $libraries == *lib[at]san* ]]; then
	echo "skipped: a sanitizer's library would have to be preloaded too"
	exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/program.cpp" <<'CC'
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <nvrtc.h>
#include <string>

#define OK(call)                                                                           \
	do {                                                                               \
		int result = (int)(call);                                                  \
		if (result) {                                                              \
			printf("line %d: %s: %d\n", __LINE__, #call, result);              \
			exit(result == CUDA_ERROR_NO_BINARY_FOR_GPU ? 3 : 1);              \
		}                                                                          \
	} while (0)

static nvrtcProgram compiled(const char *architecture)
{
	nvrtcProgram program;
	OK(nvrtcCreateProgram(&program, "extern \"C\" __global__ void k(int *p) { p[threadIdx.x] = 3 * threadIdx.x; }", "k.cu",
			      0, nullptr, nullptr));
	OK(nvrtcCompileProgram(program, 1, &architecture));
	return program;
}

int main(int argc, char **)
{
	size_t size = 1;
	nvrtcProgram ptx_alone = compiled("--gpu-architecture=compute_75");
	OK(nvrtcGetCUBINSize(ptx_alone, &size));
	if (size)
		return printf("machine code where none was asked for\n"), 1;
	OK(nvrtcDestroyProgram(&ptx_alone));
	nvrtcProgram program = compiled("--gpu-architecture=sm_75");
	OK(nvrtcGetCUBINSize(program, &size));
	std::string image(size, 'x');
	OK(nvrtcGetCUBIN(program, &image[0]));
	OK(nvrtcDestroyProgram(&program));
	if (argc > 1)
		return image.compare(0, 4, "\177ELF") ? printf("no machine code\n"), 1 : 0;
	CUcontext context;
	CUmodule module;
	CUfunction function;
	CUdeviceptr memory;
	int back[32];
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuModuleLoadData(&module, image.data()));
	OK(cuModuleGetFunction(&function, module, "k"));
	OK(cuMemAlloc(&memory, sizeof back));
	void *parameters[] = { &memory };
	OK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
	OK(cuMemcpyDtoH(back, memory, sizeof back));
	for (int i = 0; i < 32; i++)
		if (back[i] != 3 * i)
			return printf("element %d is %d\n", i, back[i]), 1;
	return 0;
}
CC
"$NVCC" -cudart none -o "$work/program" "$work/program.cpp" -lnvrtc -lcuda -L"$softgpu" -Xlinker -z,lazy 2>"$work/log" || {
	grep -q nvrtc "$work/log" && { echo "skipped: the toolkit has no libnvrtc"; exit 77; }
	cat "$work/log"
	exit 1
}
nvrtc=$(find "$(dirname "$(readlink -f "$(command -v "$NVCC")")")/.." -name 'libnvrtc.so.*' -print -quit)
export LD_LIBRARY_PATH=${nvrtc%/*}
timeout 100 "$top_builddir/cuda_remote/run/headrace-run" --local "$work/program"
timeout 100 "$top_builddir/cuda_remote/run/headrace-run" --driver=softgpu "$work/program"
status=0
LD_LIBRARY_PATH=$runtime:$softgpu:$LD_LIBRARY_PATH timeout 100 "$work/program" 2>/dev/null >"$work/log" || status=$?
[ $status -eq 3 ] || { echo "without the preloaded library the status is $status"; cat "$work/log"; exit 1; }
mkdir "$work/other"
cat >"$work/other.c" <<'C'
#include <string.h>
int cuInit(unsigned flags) { return (int)flags; }
int cuGetExportTable(const void **table, const void *id) { *table = id; return 801; } /* the compiler calls it */
int cuCtxGetDevice(int *device) { (void)device; return 201; }
int cuDeviceGet(int *device, int index) { *device = index; return 0; }
int cuDeviceGetName(char *name, int bytes, int device) { strncpy(name, "Other GPU", (size_t)bytes); return device; }
C
"${CC:-cc}" -shared -fPIC -o "$work/other/libcuda.so.1" "$work/other.c"
LD_PRELOAD=$softgpu/libheadrace-nvrtc.so LD_LIBRARY_PATH=$work/other:$runtime:$LD_LIBRARY_PATH timeout 100 "$work/program" machine
