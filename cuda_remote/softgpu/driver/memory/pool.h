/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stream-ordered allocation. A pool keeps no free memory: an allocation is made at once, and memory is returned to the
 * device when the stream reaches the free. A pool counts the bytes in use and enforces maxSize.
 */
#ifndef SOFTGPU_POOL_H
#define SOFTGPU_POOL_H

#include "cuda_remote/softgpu/driver/context/context.h"
#include "cuda_remote/softgpu/space/space.h"

/* Allocates from pool, or from the current pool of the stream's device if pool is NULL. */
CUresult pool_alloc(CUmemoryPool pool, size_t bytes, CUstream stream, CUdeviceptr *address);

/* Frees when stream reaches it. CUDA_ERROR_INVALID_VALUE: no allocation starts at this address. */
CUresult pool_free(CUdeviceptr address, CUstream stream);

/* Every function that frees an allocation calls this. It updates the pool that the allocation came from, if any. */
void pool_note_free(const softgpu_allocation_t *allocation);

/* CUmemAllocationHandleType bits by which a pool can be exported to another process. */
unsigned pool_handle_types(const void *pool);

#endif
