/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many copies in one call. All are checked before the first is submitted. They run one after another in the stream;
 * CUDA leaves their order open. *failed (failed may be NULL) becomes the index of a refused copy, or SIZE_MAX if the
 * call itself is wrong.
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

/* In the current context's stream with this handle. CUDA_ERROR_INVALID_VALUE for the legacy stream, as in CUDA. */
CUresult copy_batch_submit(CUstream handle, const copy_batch_t *batch, size_t *failed);
CUresult copy_batch_submit_3d(CUstream handle, const CUDA_MEMCPY3D_BATCH_OP *list, size_t count,
			      unsigned long long flags, size_t *failed);

#endif
