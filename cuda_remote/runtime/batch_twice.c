/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches of copies and prefetches, passed on to the driver, which uses the same structures. */
#include "cuda_remote/runtime/default_stream.h"

_Static_assert(sizeof(struct cudaMemcpyAttributes) == sizeof(CUmemcpyAttributes) &&
	       offsetof(struct cudaMemcpyAttributes, flags) == offsetof(CUmemcpyAttributes, flags) &&
	       sizeof(struct cudaMemcpy3DBatchOp) == sizeof(CUDA_MEMCPY3D_BATCH_OP) &&
	       offsetof(struct cudaMemcpy3DBatchOp, extent) == offsetof(CUDA_MEMCPY3D_BATCH_OP, extent) &&
	       (int)cudaMemcpySrcAccessOrderAny == (int)CU_MEMCPY_SRC_ACCESS_ORDER_ANY &&
	       (int)cudaMemcpyOperandTypeArray == (int)CU_MEMCPY_OPERAND_TYPE_ARRAY &&
	       sizeof(struct cudaMemLocation) == sizeof(CUmemLocation) && sizeof(void *) == sizeof(CUdeviceptr),
	       "batches are passed through");

RUNTIME_API cudaError_t cudaMemcpyBatchAsync(void *const *to, const void *const *from, const size_t *sizes,
					     size_t count, struct cudaMemcpyAttributes *attributes,
					     size_t *attribute_starts, size_t attribute_count, cudaStream_t stream)
{
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	return runtime_done(runtime_driver.cuMemcpyBatchAsync_v2(
			(CUdeviceptr *)(uintptr_t)to, (CUdeviceptr *)(uintptr_t)from, (size_t *)(uintptr_t)sizes, count,
			(CUmemcpyAttributes *)attributes, attribute_starts, attribute_count, DRIVER_STREAM(stream)));
}

RUNTIME_API cudaError_t cudaMemcpy3DBatchAsync(size_t count, struct cudaMemcpy3DBatchOp *list,
					       unsigned long long flags, cudaStream_t stream)
{
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	return runtime_done(runtime_driver.cuMemcpy3DBatchAsync_v2(count, (CUDA_MEMCPY3D_BATCH_OP *)list, flags,
								   DRIVER_STREAM(stream)));
}

RUNTIME_API cudaError_t cudaMemPrefetchBatchAsync(void **pointers, size_t *sizes, size_t count,
						  struct cudaMemLocation *locations, size_t *location_starts,
						  size_t location_count, unsigned long long flags, cudaStream_t stream)
{
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	return runtime_done(runtime_driver.cuMemPrefetchBatchAsync((CUdeviceptr *)pointers, sizes, count,
								   (CUmemLocation *)locations, location_starts,
								   location_count, flags, DRIVER_STREAM(stream)));
}

RUNTIME_API cudaError_t cudaMemDiscardBatchAsync(void **pointers, size_t *sizes, size_t count,
						 unsigned long long flags, cudaStream_t stream)
{
	cudaError_t error = runtime_enter();
	return error ? error
		     : runtime_done(runtime_driver.cuMemDiscardBatchAsync((CUdeviceptr *)pointers, sizes, count, flags,
									  DRIVER_STREAM(stream)));
}

RUNTIME_API cudaError_t cudaMemDiscardAndPrefetchBatchAsync(void **pointers, size_t *sizes, size_t count,
							    struct cudaMemLocation *locations, size_t *location_starts,
							    size_t location_count, unsigned long long flags,
							    cudaStream_t stream)
{
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	return runtime_done(runtime_driver.cuMemDiscardAndPrefetchBatchAsync((CUdeviceptr *)pointers, sizes, count,
			(CUmemLocation *)locations, location_starts, location_count, flags, DRIVER_STREAM(stream)));
}
