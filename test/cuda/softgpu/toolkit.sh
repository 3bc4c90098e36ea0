#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What NVRTC and nvJitLink return as machine code runs on the software GPU, local and remote, however the program has found
# these libraries: by dlopen, linked, or as the libraries of a library that it has opened. For another GPU nothing changes.
set -euo pipefail
[ -n "${NVCC:-}" ] || { echo "skipped: there is no nvcc"; exit 77; }
runtime=$top_builddir/cuda_remote/runtime/.libs
softgpu=$top_builddir/cuda_remote/softgpu/.libs
libraries=$(ldd "$softgpu/libcuda.so.1")
if [[ $libraries == *lib[at]san* ]]; then
	echo "skipped: a sanitizer's library would have to be preloaded too"
	exit 77
fi
toolkit=$(dirname "$(dirname "$(readlink -f "$(command -v "$NVCC")")")")
nvrtc=$(find "$toolkit/" -name 'libnvrtc.so.13' -print -quit)
jitlink=$(find "$toolkit/" -name 'libnvJitLink.so.13' -print -quit)
if [ -z "$nvrtc" ] || [ -z "$jitlink" ]; then
	echo "skipped: the toolkit has no libnvrtc or no libnvJitLink"
	exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
run=$top_builddir/cuda_remote/run/headrace-run
source=${top_srcdir:?}/test/cuda/softgpu/toolkit.cpp

compile() { # OUTPUT ARGUMENT...
	"$NVCC" -std=c++14 -Wno-deprecated-gpu-targets -cudart none -o "$work/$1" "${@:2}" -lcuda -L"$softgpu" -ldl ||
		{ echo "nvcc fails"; exit 1; }
}
linked=(-DLINKED -lnvrtc -lnvJitLink -Xlinker --disable-new-dtags -Xlinker -rpath -Xlinker "${nvrtc%/*}"
	-Xlinker -rpath -Xlinker "${jitlink%/*}")
compile opens "$source"
compile linked "$source" "${linked[@]}"
compile libuser.so "$source" "${linked[@]}" -DLIBRARY -shared -Xcompiler -fPIC
cat >"$work/loads.c" <<'C'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	int (*toolkit_main)(int, char **);
	void *library = dlopen(USER, RTLD_NOW | RTLD_LOCAL);
	*(void **)&toolkit_main = library ? dlsym(library, "toolkit_main") : NULL;
	return toolkit_main ? toolkit_main(argc, argv) : (puts(dlerror()), 3);
}
C
"${CC:-cc}" "-DUSER=\"$work/libuser.so\"" -o "$work/loads" "$work/loads.c" -ldl

# A driver with a GPU that is not a software GPU.
mkdir "$work/other"
cat >"$work/other.c" <<'C'
#include <string.h>
int cuInit(unsigned flags) { return (int)flags; }
int cuGetExportTable(const void **table, const void *id) { (void)id; *table = 0; return 801; } /* the compilers call it */
int cuCtxGetDevice(int *device) { (void)device; return 201; }
int cuDeviceGet(int *device, int index) { *device = index; return 0; }
int cuDeviceGetName(char *name, int bytes, int device) { strncpy(name, "Other GPU", (size_t)bytes); return device; }
int cuCtxGetCurrent, cuCtxPushCurrent_v2, cuCtxPopCurrent_v2, cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRelease_v2;
int cuLinkCreate_v2, cuLinkAddData_v2, cuLinkComplete, cuLinkDestroy, cuMemAlloc_v2, cuMemFree_v2, cuMemcpyDtoH_v2;
int cuModuleLoadData, cuModuleGetFunction, cuModuleUnload, cuLaunchKernel;
C
"${CC:-cc}" -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$work/other/libcuda.so.1" "$work/other.c"

for program in opens linked loads; do
	for how in --local --driver=softgpu; do
		timeout 100 "$run" $how "$work/$program" run "$nvrtc" "$jitlink" || { echo "fails: $program, $how"; exit 1; }
		echo "passed: $program, $how"
	done
	LD_PRELOAD=$softgpu/libheadrace-nvrtc.so LD_LIBRARY_PATH=$work/other:$runtime timeout 100 \
		"$work/$program" machine "$nvrtc" "$jitlink" || { echo "fails: $program, another GPU"; exit 1; }
	echo "passed: $program, another GPU"
done
# Without the preloaded library the driver gets machine code, so that the tests above prove something.
LD_LIBRARY_PATH=$runtime:$softgpu timeout 100 "$work/opens" machine "$nvrtc" "$jitlink"
