/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stream-ordered allocation. A pool keeps no memory of its own: an allocation comes from the device at once, and a free
 * gives it back when the stream gets there. A pool counts what is in use of it and holds its size under maxSize.
 */
#ifndef SOFTGPU_POOL_H
#define SOFTGPU_POOL_H

#include "cuda_remote/softgpu/driver/context/context.h"
#include "cuda_remote/softgpu/space/space.h"

/* From pool, or from the current pool of the stream's device where pool is NULL. */
CUresult pool_alloc(CUmemoryPool pool, size_t bytes, CUstream stream, CUdeviceptr *address);

/* Frees in the order of stream. CUDA_ERROR_INVALID_VALUE: no allocation starts there. */
CUresult pool_free(CUdeviceptr address, CUstream stream);

/* An allocation was freed: whoever does it tells the pool it came from, if it came from one. */
void pool_note_free(const softgpu_allocation_t *allocation);

/* CUmemAllocationHandleType bits by which an allocation's pool can be given to another process. */
unsigned pool_handle_types(const void *pool);

#endif
