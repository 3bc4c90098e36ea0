/* SPDX-License-Identifier: BSD-3-Clause */
/* A double of libcuda.so.1 that records the runtime's calls and answers as a test tells it to. */
#include "test/cuda/runtime/double.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT struct double_record double_record;

static void called(void)
{
	atomic_fetch_add(&double_record.calls, 1);
}

struct CUctx_st {
	CUdevice device;
	bool alive;
};

/* A kernel's name and the module it came from; a variable has its bytes here. */
struct CUfunc_st {
	char name[64];
	CUmodule module;
	struct CUfunc_st *next;
	unsigned char bytes[DOUBLE_VARIABLE_BYTES];
};

struct CUmod_st {
	CUcontext context;
	struct CUfunc_st *symbols;
	struct CUmod_st *next;
};

static struct CUctx_st primary[DOUBLE_DEVICES] = { { 0, false }, { 1, false } };
static __thread CUcontext current;
static struct CUmod_st *modules;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void discard(CUmodule module)
{
	for (struct CUfunc_st *f = module->symbols, *next; f; f = next) {
		next = f->next;
		free(f);
	}
	free(module);
}

EXPORT CUresult cuInit(unsigned flags)
{
	called();
	return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
	*version = 13000;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count)
{
	called();
	*count = DOUBLE_DEVICES;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	called();
	*device = ordinal;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
	called();
	snprintf(name, (size_t)length, "double %d", device);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	called();
	memset(uuid, device + 1, sizeof *uuid);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	called();
	*bytes = (size_t)(device + 1) << 33;
	return CUDA_SUCCESS;
}

/* Each attribute says its own number, but for the limits of a launch. */
EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	called();
	(void)device;
	switch (attribute) {
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X: *value = 1024; break;
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: *value = 65535; break;
	case CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST: *value = 0; break;
	default: *value = 1000 + (int)attribute;
	}
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	called();
	primary[device].alive = true;
	*context = &primary[device];
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	called();
	(void)device;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	called();
	primary[device].alive = false;
	pthread_mutex_lock(&lock);
	for (struct CUmod_st **link = &modules; *link;) {
		struct CUmod_st *module = *link;
		if (module->context != &primary[device]) {
			link = &module->next;
			continue;
		}
		*link = module->next;
		discard(module);
	}
	pthread_mutex_unlock(&lock);
	double_record.synchronize_result = CUDA_SUCCESS;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
	called();
	*flags = 0;
	*active = primary[device].alive;
	return CUDA_SUCCESS;
}

EXPORT CUresult double_make_context(CUcontext *context)
{
	*context = calloc(1, sizeof **context);
	if (!*context)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*context)->alive = true;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context)
{
	called();
	atomic_fetch_add(&double_record.get_current, 1);
	*context = current;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context)
{
	called();
	current = context;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
	called();
	if (!current)
		return CUDA_ERROR_INVALID_CONTEXT;
	*device = current->device;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSynchronize(void)
{
	called();
	return double_record.synchronize_result;
}

EXPORT CUresult cuStreamQuery(CUstream stream)
{
	called();
	(void)stream;
	return double_record.query_result;
}

EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	called();
	if (!current || !image)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (image == double_record.no_image)
		return CUDA_ERROR_INVALID_IMAGE;
	if (double_record.load_result != CUDA_SUCCESS)
		return double_record.load_result;
	atomic_fetch_add(&double_record.loads, 1);
	*module = calloc(1, sizeof **module);
	if (!*module)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*module)->context = current;
	double_record.image = image;
	pthread_mutex_lock(&lock);
	(*module)->next = modules;
	modules = *module;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleUnload(CUmodule module)
{
	called();
	atomic_fetch_add(&double_record.unloads, 1);
	pthread_mutex_lock(&lock);
	struct CUmod_st **link = &modules;
	while (*link && *link != module)
		link = &(*link)->next;
	if (*link)
		*link = module->next;
	pthread_mutex_unlock(&lock);
	discard(module);
	return CUDA_SUCCESS;
}

/* One that is called missing… is not there. */
static struct CUfunc_st *symbol(CUmodule module, const char *name)
{
	if (!strncmp(name, "missing", strlen("missing")))
		return NULL;
	pthread_mutex_lock(&lock);
	struct CUfunc_st *f = module->symbols;
	while (f && strcmp(f->name, name))
		f = f->next;
	if (!f) {
		f = calloc(1, sizeof *f);
		if (!f)
			abort();
		snprintf(f->name, sizeof f->name, "%s", name);
		f->module = module;
		f->next = module->symbols;
		module->symbols = f;
	}
	pthread_mutex_unlock(&lock);
	return f;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	called();
	*function = symbol(module, name);
	return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *size, CUmodule module, const char *name)
{
	called();
	struct CUfunc_st *variable = symbol(module, name);
	if (!variable)
		return CUDA_ERROR_NOT_FOUND;
	*address = (CUdeviceptr)(uintptr_t)variable->bytes;
	*size = sizeof variable->bytes;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
			       unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **args,
			       void **extra)
{
	called();
	atomic_fetch_add(&double_record.launches, 1);
	if (double_record.check_context && (!current || current != function->module->context))
		return current ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_CONTEXT;
	if (extra)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	snprintf(double_record.kernel, sizeof double_record.kernel, "%s", function->name);
	memcpy(double_record.grid, (unsigned[]){ grid_x, grid_y, grid_z }, sizeof double_record.grid);
	memcpy(double_record.block, (unsigned[]){ block_x, block_y, block_z }, sizeof double_record.block);
	double_record.shared = shared;
	double_record.stream = stream;
	double_record.context = function->module->context;
	double_record.args = args;
	pthread_mutex_unlock(&lock);
	return double_record.launch_result;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size)
{
	called();
	*address = (CUdeviceptr)(uintptr_t)malloc(size);
	return *address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr address)
{
	called();
	free((void *)(uintptr_t)address);
	return CUDA_SUCCESS;
}

static CUresult copy(const char *name, CUstream stream, CUdeviceptr to, CUdeviceptr from, size_t size)
{
	called();
	double_record.copy = name;
	double_record.copy_stream = stream;
	memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, size);
	return CUDA_SUCCESS;
}

static CUdeviceptr at(const void *pointer)
{
	return (CUdeviceptr)(uintptr_t)pointer;
}

#undef cuMemcpy
#undef cuMemcpyAsync
#undef cuMemcpyHtoDAsync_v2
CUresult cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, size_t size);
CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void *from, size_t size);

EXPORT CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	return copy("cuMemcpy", NULL, to, from, size);
}

EXPORT CUresult cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	return copy("cuMemcpy_ptds", NULL, to, from, size);
}

EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size)
{
	return copy("cuMemcpyHtoD_v2", NULL, to, at(from), size);
}

EXPORT CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void *from, size_t size)
{
	return copy("cuMemcpyHtoD_v2_ptds", NULL, to, at(from), size);
}

EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size)
{
	return copy("cuMemcpyDtoH_v2", NULL, at(to), from, size);
}

EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	return copy("cuMemcpyDtoD_v2", NULL, to, from, size);
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream)
{
	return copy("cuMemcpyHtoDAsync_v2", stream, to, at(from), size);
}
