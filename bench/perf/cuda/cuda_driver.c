/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads libcuda.so.1. */
#include "config.h"
#include "cuda_driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *symbol(void *library, const char *name)
{
	void *address = dlsym(library, name);
	if (!address) {
		fprintf(stderr, "headrace-perf: libcuda.so.1 has no %s\n", name);
		exit(EXIT_FAILURE);
	}
	return address;
}

void cuda_driver_open(struct cuda_driver *d)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library) {
		fprintf(stderr, "headrace-perf: %s\n", dlerror());
		exit(EXIT_FAILURE);
	}
	*(void **)&d->init = symbol(library, "cuInit");
	*(void **)&d->device_count = symbol(library, "cuDeviceGetCount");
	*(void **)&d->retain = symbol(library, "cuDevicePrimaryCtxRetain");
	*(void **)&d->set_current = symbol(library, "cuCtxSetCurrent");
	*(void **)&d->mem_get_info = symbol(library, "cuMemGetInfo_v2");
	*(void **)&d->module_load = symbol(library, "cuModuleLoadData");
	*(void **)&d->get_function = symbol(library, "cuModuleGetFunction");
	*(void **)&d->launch = symbol(library, "cuLaunchKernel");
	*(void **)&d->synchronize = symbol(library, "cuCtxSynchronize");
	*(void **)&d->alloc = symbol(library, "cuMemAlloc_v2");
	*(void **)&d->free = symbol(library, "cuMemFree_v2");
	*(void **)&d->alloc_host = symbol(library, "cuMemAllocHost_v2");
	*(void **)&d->free_host = symbol(library, "cuMemFreeHost");
	*(void **)&d->to_device = symbol(library, "cuMemcpyHtoD_v2");
	*(void **)&d->from_device = symbol(library, "cuMemcpyDtoH_v2");
	*(void **)&d->to_device_async = symbol(library, "cuMemcpyHtoDAsync_v2");
	*(void **)&d->from_device_async = symbol(library, "cuMemcpyDtoHAsync_v2");
	*(void **)&d->copy_3d = symbol(library, "cuMemcpy3D_v2");
	*(void **)&d->copy_peer_async = symbol(library, "cuMemcpyPeerAsync");
	*(void **)&d->stream_create = symbol(library, "cuStreamCreate");
	*(void **)&d->stream_synchronize = symbol(library, "cuStreamSynchronize");
	*(void **)&d->event_create = symbol(library, "cuEventCreate");
	*(void **)&d->event_record = symbol(library, "cuEventRecord");
	*(void **)&d->event_synchronize = symbol(library, "cuEventSynchronize");
}

void cuda_check(CUresult result, const char *call)
{
	if (result != CUDA_SUCCESS) {
		fprintf(stderr, "headrace-perf: %s: CUDA error %d\n", call, (int)result);
		exit(EXIT_FAILURE);
	}
}
