/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Managed memory, where one memory serves host and devices: prefetches and advice are only recorded. The software GPU and
 * the forwarding client each compile these files, and define the functions that are named managed_driver_. Contexts and
 * streams: cuda_remote/graph/driver.h.
 */
#ifndef RC_MANAGED_H
#define RC_MANAGED_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#define MANAGED_DEVICES 64 /* that advice can name */

/* An allocation. id: never used twice. */
typedef struct managed_memory {
	uint64_t base, size, id;
} managed_memory_t;

/* The managed allocation that holds address. */
bool managed_driver_find(CUdeviceptr address, managed_memory_t *found);
/* The memory is attached as the flags of cuStreamAttachMemAsync say. */
void managed_driver_attach(const managed_memory_t *memory, unsigned flags);
/* True if the program has a device of this number, which is below MANAGED_DEVICES. */
bool managed_driver_device(CUdevice device);

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
