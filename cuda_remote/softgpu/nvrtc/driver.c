/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the driver's functions, and recognises a software GPU by its name. */
#include "cuda_remote/api/softgpu_name.h"
#include "cuda_remote/softgpu/nvrtc/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static standin_driver_t found;
static bool complete;

static void find_functions(void)
{
	static const struct {
		void **function;
		const char *name;
	} functions[] = {
		{ (void **)&found.init, "cuInit" },
		{ (void **)&found.current_device, "cuCtxGetDevice" },
		{ (void **)&found.device, "cuDeviceGet" },
		{ (void **)&found.device_name, "cuDeviceGetName" },
		{ (void **)&found.current_context, "cuCtxGetCurrent" },
		{ (void **)&found.retain_primary, "cuDevicePrimaryCtxRetain" },
		{ (void **)&found.release_primary, "cuDevicePrimaryCtxRelease_v2" },
		{ (void **)&found.push_context, "cuCtxPushCurrent_v2" },
		{ (void **)&found.pop_context, "cuCtxPopCurrent_v2" },
		{ (void **)&found.link_create, "cuLinkCreate_v2" },
		{ (void **)&found.link_add, "cuLinkAddData_v2" },
		{ (void **)&found.link_complete, "cuLinkComplete" },
		{ (void **)&found.link_destroy, "cuLinkDestroy" },
	};
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY); /* stays open */
	complete = driver;
	for (size_t i = 0; i < sizeof functions / sizeof *functions && complete; i++) {
		*functions[i].function = dlsym(driver, functions[i].name);
		complete = *functions[i].function;
	}
}

const standin_driver_t *standin_driver(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, find_functions);
	return complete ? &found : NULL;
}

bool standin_device(const standin_driver_t *driver, int *device)
{
	return !driver->init(0) && (!driver->current_device(device) || !driver->device(device, 0));
}

bool standin_is_software_gpu(void)
{
	const standin_driver_t *driver = standin_driver();
	int device;
	char name[64] = "";
	return driver && standin_device(driver, &device) && !driver->device_name(name, sizeof name, device) &&
	       !strcmp(name, RC_SOFTGPU_NAME);
}
