/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory pools, with the driver's handles, structures and numbers. */
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

_Static_assert(sizeof(struct cudaMemPoolPtrExportData) == sizeof(CUmemPoolPtrExportData) &&
	       (int)cudaMemHandleTypePosixFileDescriptor == (int)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
	       (int)cudaMemAllocationTypePinned == (int)CU_MEM_ALLOCATION_TYPE_PINNED, "what pools share is passed on");

RUNTIME_API cudaError_t cudaMemPoolExportToShareableHandle(void *shareable, cudaMemPool_t pool,
							   enum cudaMemAllocationHandleType type, unsigned flags)
{
	cudaError_t error = runtime_driver_init();
	return error ? runtime_fail(error)
		     : runtime_done(runtime_driver.cuMemPoolExportToShareableHandle(
				       shareable, pool, (CUmemAllocationHandleType)type, flags));
}

RUNTIME_API cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *pool, void *shareable,
							     enum cudaMemAllocationHandleType type, unsigned flags)
{
	cudaError_t error = runtime_driver_init();
	return error ? runtime_fail(error)
		     : runtime_done(runtime_driver.cuMemPoolImportFromShareableHandle(
				       pool, shareable, (CUmemAllocationHandleType)type, flags));
}

RUNTIME_API cudaError_t cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData *data, void *pointer)
{
	cudaError_t error = runtime_enter();
	return error ? error
		     : runtime_done(runtime_driver.cuMemPoolExportPointer((CUmemPoolPtrExportData *)data,
									  runtime_address(pointer)));
}

RUNTIME_API cudaError_t cudaMemPoolImportPointer(void **pointer, cudaMemPool_t pool,
						 struct cudaMemPoolPtrExportData *data)
{
	CUdeviceptr address;
	if (!pointer)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	CUresult result = runtime_driver.cuMemPoolImportPointer(&address, pool, (CUmemPoolPtrExportData *)data);
	if (result == CUDA_SUCCESS)
		*pointer = (void *)(uintptr_t)address;
	return runtime_done(result);
}

RUNTIME_API cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *pool, struct cudaMemLocation *location,
						 enum cudaMemAllocationType type)
{
	cudaError_t error = runtime_driver_init();
	return error ? runtime_fail(error)
		     : runtime_done(runtime_driver.cuMemGetDefaultMemPool(pool, (CUmemLocation *)location,
									  (CUmemAllocationType)type));
}

RUNTIME_API cudaError_t cudaMemGetMemPool(cudaMemPool_t *pool, struct cudaMemLocation *location,
					  enum cudaMemAllocationType type)
{
	cudaError_t error = runtime_driver_init();
	return error ? runtime_fail(error)
		     : runtime_done(runtime_driver.cuMemGetMemPool(pool, (CUmemLocation *)location,
								   (CUmemAllocationType)type));
}

RUNTIME_API cudaError_t cudaMemSetMemPool(struct cudaMemLocation *location, enum cudaMemAllocationType type,
					  cudaMemPool_t pool)
{
	cudaError_t error = runtime_driver_init();
	return error ? runtime_fail(error)
		     : runtime_done(runtime_driver.cuMemSetMemPool((CUmemLocation *)location, (CUmemAllocationType)type,
								   pool));
}
