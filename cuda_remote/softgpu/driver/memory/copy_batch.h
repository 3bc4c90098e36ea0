/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many copies with one call. All are checked before the first is submitted; they run in the stream's order, one after
 * another, which the calls leave open. failed: NULL or where to put the index of a copy that is refused (SIZE_MAX: the
 * call as a whole is).
 */
#ifndef SOFTGPU_COPY_BATCH_H
#define SOFTGPU_COPY_BATCH_H

#include "cuda_remote/softgpu/driver/memory/copy.h"

/* cuMemcpyBatchAsync's arguments. */
typedef struct copy_batch {
	const CUdeviceptr *to, *from;
	const size_t *sizes;
	size_t count;
	const CUmemcpyAttributes *attributes;
	const size_t *attribute_starts;
	size_t attribute_count;
} copy_batch_t;

/* In the current context's stream with this handle; CUDA_ERROR_INVALID_VALUE for the legacy default stream, as CUDA. */
CUresult copy_batch_submit(CUstream handle, const copy_batch_t *batch, size_t *failed);
CUresult copy_batch_submit_3d(CUstream handle, const CUDA_MEMCPY3D_BATCH_OP *list, size_t count,
			      unsigned long long flags, size_t *failed);

#endif
