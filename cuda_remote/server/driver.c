/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads the libcuda.so.1 that serves the calls and looks its functions up by name. */
#include "cuda_remote/server/internal.h"

#include <dlfcn.h>
#include <errno.h>

struct server_driver driver;

const char *server_error_name(CUresult result)
{
	const char *name;
	if (driver.cuGetErrorName && driver.cuGetErrorName(result, &name) == CUDA_SUCCESS)
		return name;
	return "an unknown error";
}

/* The library stays open as long as the process. */
int server_driver_load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		hr_log(HR_LOG_ERROR, "no CUDA driver: %s", dlerror());
		return -ENOENT;
	}
#define LOOK_UP(name) driver.name = (__typeof__(driver.name))dlsym(library, #name);
	RC_DRIVER_FUNCTIONS(LOOK_UP)
	if (!driver.cuInit || !driver.cuDriverGetVersion || !driver.cuGetErrorName || !driver.cuDeviceGetCount ||
	    !driver.cuDeviceGet || !driver.cuDevicePrimaryCtxRetain || !driver.cuCtxSetCurrent || !driver.cuCtxGetCurrent ||
	    !driver.cuEventCreate || !driver.cuEventRecord || !driver.cuEventQuery ||
	    !driver.cuEventSynchronize || !driver.cuEventDestroy_v2 || !driver.cuMemcpyHtoDAsync_v2 ||
	    !driver.cuMemcpyDtoHAsync_v2) {
		hr_log(HR_LOG_ERROR, "%s is not a CUDA driver", path);
		return -ENOENT;
	}
	server_usage_watch();
	server_traffic_watch();
	int version;
	if (driver.cuDriverGetVersion(&version) == CUDA_SUCCESS && version < 12040) {
		hr_log(HR_LOG_ERROR, "%s: CUDA driver %d.%d is too old: 12.4 or later is needed", path, version / 1000,
		       version % 1000 / 10);
		return -ENOENT;
	}
	return 0;
}
