/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A libcuda.so.1 whose pools keep what is freed in streams, as a GPU's do, in front of the driver with the engine double, whose
 * pools keep nothing. A worker loads it with --driver. It has one account for all pools. With a release threshold of 1 a pool
 * gives nothing back, as if streams had not reached the frees.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

static void *driver;
static uint64_t kept; /* atomic */
static bool stubborn; /* atomic */
/* The linker keeps a library only if something is used of it. */
static CUresult (*const volatile needs_the_driver)(unsigned) = cuInit;

__attribute__((constructor)) static void start(void)
{
	driver = dlopen("libcuda_double.so", RTLD_NOW | RTLD_NOLOAD);
	if (!driver || !needs_the_driver)
		abort();
}

#define REAL(name) ((__typeof__(&name))dlsym(driver, #name))

__attribute__((visibility("default"))) CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
	size_t bytes = 0;
	CUdeviceptr base;
	if (REAL(cuMemGetAddressRange_v2)(&base, &bytes, address) == CUDA_SUCCESS)
		__atomic_add_fetch(&kept, bytes, __ATOMIC_RELAXED);
	return REAL(cuMemFreeAsync)(address, stream);
}

__attribute__((visibility("default"))) CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	if (!keep && !__atomic_load_n(&stubborn, __ATOMIC_RELAXED))
		__atomic_store_n(&kept, 0, __ATOMIC_RELAXED);
	return REAL(cuMemPoolTrimTo)(pool, keep);
}

__attribute__((visibility("default"))) CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		__atomic_store_n(&stubborn, *(const cuuint64_t *)value == 1, __ATOMIC_RELAXED);
	return REAL(cuMemPoolSetAttribute)(pool, attribute, value);
}

__attribute__((visibility("default"))) CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	CUresult result = REAL(cuMemPoolGetAttribute)(pool, attribute, value);
	if (result == CUDA_SUCCESS && attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
		*(cuuint64_t *)value += __atomic_load_n(&kept, __ATOMIC_RELAXED);
	return result;
}
