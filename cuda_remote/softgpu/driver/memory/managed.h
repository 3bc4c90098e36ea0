/* SPDX-License-Identifier: BSD-3-Clause */
/* Managed memory: where it is asked to be, and what is advised. */
#ifndef SOFTGPU_MANAGED_H
#define SOFTGPU_MANAGED_H

#include "cuda_remote/softgpu/driver/cuda_api.h"

#include <stdbool.h>

/*
 * Notes that the range was prefetched: it is everywhere already. CUDA_ERROR_INVALID_VALUE: the range is not managed memory
 * as a whole, or the location none; _INVALID_DEVICE.
 */
CUresult managed_prefetch(CUdeviceptr address, size_t bytes, const CUmemLocation *location);

/* Arguments of cuMemPrefetchBatchAsync and its like. */
typedef struct managed_batch {
	const CUdeviceptr *addresses;
	const size_t *sizes;
	size_t count;
	const CUmemLocation *locations;
	const size_t *location_starts; /* location k is that of the ranges from location_starts[k] on */
	size_t location_count;
} managed_batch_t;

/* All ranges are checked before the first is noted. discard: their contents may be lost; they are not. */
CUresult managed_prefetch_batch(CUstream handle, const managed_batch_t *batch, unsigned long long flags, bool discard);
CUresult managed_discard_batch(CUstream handle, const managed_batch_t *batch, unsigned long long flags);

#endif
