/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads the libcuda.so.1 that this library is installed beside: the software GPU, or the one that forwards to servers. */
#define _GNU_SOURCE /* dladdr */
#include "cuda_remote/nvml/internal.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

struct nvml_driver nvml_driver;

/* The path of libcuda.so.1 in this library's folder. */
static bool beside(char path[PATH_MAX])
{
	Dl_info own;
	if (!dladdr((const void *)&nvml_driver, &own) || !own.dli_fname)
		return false;
	const char *slash = strrchr(own.dli_fname, '/');
	int n = slash ? snprintf(path, PATH_MAX, "%.*s/libcuda.so.1", (int)(slash - own.dli_fname), own.dli_fname) : 0;
	return n > 0 && n < PATH_MAX;
}

int nvml_driver_load(void)
{
	char path[PATH_MAX];
	void *library = beside(path) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!library)
		library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return NVML_DRIVER_NOT_LOADED;
	bool complete = true;
#define LOOK_UP(name)                                                          \
	nvml_driver.name = (__typeof__(nvml_driver.name))dlsym(library, #name); \
	complete &= nvml_driver.name != NULL;
	LOOK_UP(cuInit)
	LOOK_UP(cuDriverGetVersion)
	LOOK_UP(cuDeviceGetCount)
	LOOK_UP(cuDeviceGet)
	LOOK_UP(cuDeviceGetName)
	LOOK_UP(cuDeviceGetUuid_v2)
	LOOK_UP(cuDeviceGetPCIBusId)
	LOOK_UP(cuDeviceGetAttribute)
	LOOK_UP(cuDeviceGetP2PAttribute)
	LOOK_UP(cuDevicePrimaryCtxRetain)
	LOOK_UP(cuDevicePrimaryCtxRelease_v2)
	LOOK_UP(cuCtxPushCurrent_v2)
	LOOK_UP(cuCtxPopCurrent_v2)
	LOOK_UP(cuMemGetInfo_v2)
#undef LOOK_UP
	return complete ? NVML_SUCCESS : NVML_FUNCTION_NOT_FOUND;
}

int nvml_result_of(CUresult result)
{
	switch (result) {
	case CUDA_SUCCESS: return NVML_SUCCESS;
	case CUDA_ERROR_INVALID_VALUE: return NVML_INVALID_ARGUMENT;
	case CUDA_ERROR_NOT_SUPPORTED: return NVML_NOT_SUPPORTED;
	case CUDA_ERROR_OUT_OF_MEMORY: return NVML_MEMORY;
	case CUDA_ERROR_NOT_PERMITTED: return NVML_NO_PERMISSION;
	case CUDA_ERROR_SYSTEM_NOT_READY: return NVML_DRIVER_NOT_LOADED;
	case CUDA_ERROR_DEVICE_UNAVAILABLE: return NVML_GPU_IS_LOST;
	default: return NVML_UNKNOWN;
	}
}
