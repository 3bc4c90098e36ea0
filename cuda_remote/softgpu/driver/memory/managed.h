/* SPDX-License-Identifier: BSD-3-Clause */
/* Managed memory: prefetches and advice, which are only recorded: one memory serves host and devices. */
#ifndef SOFTGPU_MANAGED_H
#define SOFTGPU_MANAGED_H

#include "cuda_remote/softgpu/driver/cuda_api.h"

#include <stdbool.h>

/*
 * Records that the range was prefetched; nothing moves. CUDA_ERROR_INVALID_VALUE: part of the range is not managed
 * memory, or the location is invalid; CUDA_ERROR_INVALID_DEVICE.
 */
CUresult managed_prefetch(CUdeviceptr address, size_t bytes, const CUmemLocation *location);

/* Arguments of cuMemPrefetchBatchAsync and its like. */
typedef struct managed_batch {
	const CUdeviceptr *addresses;
	const size_t *sizes;
	size_t count;
	const CUmemLocation *locations;
	const size_t *location_starts; /* location k is that of ranges location_starts[k] to location_starts[k + 1] - 1 */
	size_t location_count;
} managed_batch_t;

/* All ranges are checked before the first is recorded. discard permits to lose the contents; they are kept. */
CUresult managed_prefetch_batch(CUstream handle, const managed_batch_t *batch, unsigned long long flags, bool discard);
CUresult managed_discard_batch(CUstream handle, const managed_batch_t *batch, unsigned long long flags);

#endif
