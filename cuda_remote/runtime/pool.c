/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory pools: the driver's, with the same handles, structures and numbers. */
#include "cuda_remote/runtime/runtime.h"

_Static_assert(sizeof(struct cudaMemPoolProps) == sizeof(CUmemPoolProps) &&
	       sizeof(struct cudaMemAccessDesc) == sizeof(CUmemAccessDesc) &&
	       (int)cudaMemPoolAttrReleaseThreshold == (int)CU_MEMPOOL_ATTR_RELEASE_THRESHOLD &&
	       (int)cudaMemPoolAttrUsedMemHigh == (int)CU_MEMPOOL_ATTR_USED_MEM_HIGH, "pools are passed through");

RUNTIME_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int ordinal)
{
	CUdevice device;
	cudaError_t error = runtime_device(ordinal, &device);
	return error ? runtime_fail(error) : runtime_done(runtime_driver.cuDeviceGetDefaultMemPool(pool, device));
}

RUNTIME_API cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int ordinal)
{
	CUdevice device;
	cudaError_t error = runtime_device(ordinal, &device);
	return error ? runtime_fail(error) : runtime_done(runtime_driver.cuDeviceGetMemPool(pool, device));
}

RUNTIME_API cudaError_t cudaDeviceSetMemPool(int ordinal, cudaMemPool_t pool)
{
	CUdevice device;
	cudaError_t error = runtime_device(ordinal, &device);
	return error ? runtime_fail(error) : runtime_done(runtime_driver.cuDeviceSetMemPool(device, pool));
}

RUNTIME_API cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties)
{
	cudaError_t error = runtime_driver_init();
	return error ? runtime_fail(error)
		     : runtime_done(runtime_driver.cuMemPoolCreate(pool, (const CUmemPoolProps *)properties));
}

RUNTIME_API cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
	cudaError_t error = runtime_driver_init();
	return error ? runtime_fail(error) : runtime_done(runtime_driver.cuMemPoolDestroy(pool));
}

RUNTIME_API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
	cudaError_t error = runtime_driver_init();
	return error ? runtime_fail(error) : runtime_done(runtime_driver.cuMemPoolTrimTo(pool, keep));
}

RUNTIME_API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
	cudaError_t error = runtime_driver_init();
	return error ? runtime_fail(error)
		     : runtime_done(runtime_driver.cuMemPoolSetAttribute(pool, (CUmemPool_attribute)attribute, value));
}

RUNTIME_API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
	cudaError_t error = runtime_driver_init();
	return error ? runtime_fail(error)
		     : runtime_done(runtime_driver.cuMemPoolGetAttribute(pool, (CUmemPool_attribute)attribute, value));
}

RUNTIME_API cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *list, size_t count)
{
	cudaError_t error = runtime_driver_init();
	return error ? runtime_fail(error)
		     : runtime_done(runtime_driver.cuMemPoolSetAccess(pool, (const CUmemAccessDesc *)list, count));
}

RUNTIME_API cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool,
					     struct cudaMemLocation *location)
{
	cudaError_t error = runtime_driver_init();
	return error ? runtime_fail(error)
		     : runtime_done(runtime_driver.cuMemPoolGetAccess((CUmemAccess_flags *)flags, pool,
				     (CUmemLocation *)location));
}
