/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The advice for ranges of managed memory, and the location of their last prefetch. It has no effect except that
 * cuMemRangeGetAttribute returns it. Any thread.
 */
#ifndef RC_MANAGED_RANGE_H
#define RC_MANAGED_RANGE_H

#include "cuda_remote/managed/managed.h"

#include <stdbool.h>
#include <stdint.h>

/* A location of type 0: not set. */
typedef struct managed_state {
	bool read_mostly;
	bool host_accesses;
	uint64_t device_accesses; /* bit d: visible device d */
	CUmemLocation preferred, prefetched;
} managed_state_t;

/* Calls change with the state of each part of a range, which lies in one allocation. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult managed_range_change(const managed_memory_t *memory, uint64_t base, uint64_t bytes,
			      void (*change)(managed_state_t *state, const void *argument), const void *argument);

/* Calls look with the state of each part of the range. */
void managed_range_each(const managed_memory_t *memory, uint64_t base, uint64_t bytes,
			void (*look)(const managed_state_t *state, void *argument), void *argument);

#endif
