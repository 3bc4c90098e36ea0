/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What was advised of ranges of managed memory, and where they were last prefetched to. Nothing moves for it; it is kept
 * to be told again (cuMemRangeGetAttribute). Any thread.
 */
#ifndef SOFTGPU_MANAGED_RANGE_H
#define SOFTGPU_MANAGED_RANGE_H

#include "cuda_remote/softgpu/driver/cuda_api.h"
#include "cuda_remote/softgpu/space/space.h"

#include <stdbool.h>
#include <stdint.h>

/* A location of type 0 is none. */
typedef struct managed_state {
	bool read_mostly;
	bool host_accesses;
	uint16_t device_accesses; /* bit d: visible device d */
	CUmemLocation preferred, prefetched;
} managed_state_t;
_Static_assert(SOFTGPU_MAX_DEVICES <= 16, "a bit for each device");

/* Applies change to the states of the bytes from base on, all of one allocation. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult managed_range_change(const softgpu_allocation_t *allocation, uint64_t base, uint64_t bytes,
			      void (*change)(managed_state_t *state, const void *argument), const void *argument);

/* Calls look with each state that a part of the range has. */
void managed_range_each(const softgpu_allocation_t *allocation, uint64_t base, uint64_t bytes,
			void (*look)(const managed_state_t *state, void *argument), void *argument);

#endif
