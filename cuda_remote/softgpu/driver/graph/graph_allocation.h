/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of allocation nodes. An allocation has its address from the creation of its node until no node, executable
 * graph or running launch refers to it. In between, launches allocate and free it. When its context is destroyed the
 * memory is freed, and graphs that still refer to it cannot be launched.
 *
 * Each allocation has pages of its own. CUDA's graphs share pages; here they do not, so the reserved memory that
 * cuDeviceGetGraphMemAttribute returns is the sum of the allocations of all graphs launched so far, less trimmed
 * memory. Any thread. Its creation and its references: graph/driver.h.
 */
#ifndef SOFTGPU_GRAPH_ALLOCATION_H
#define SOFTGPU_GRAPH_ALLOCATION_H

#include "cuda_remote/graph/driver.h"
#include "cuda_remote/softgpu/driver/context/context.h"
#include "cuda_remote/softgpu/space/space.h"

/* In softgpu_allocation_t.flags: the allocation belongs to a graph. */
#define GRAPH_MEMORY_FLAG (1u << 31)

/* True if its own graph frees it: no other graph and no call can. */
bool graph_memory_balanced(const graph_memory_t *memory);

/* A launch will need its pages: they count as reserved from this call on, as CUDA maps them at the launch. */
void graph_memory_reserve(graph_memory_t *memory);
/* A launch allocates it and reserves its pages. False: it is allocated already. */
bool graph_memory_allocate(graph_memory_t *memory);
/* Frees it. False: it was not allocated. */
bool graph_memory_free(graph_memory_t *memory);
bool graph_memory_used(const graph_memory_t *memory);

/*
 * For cuMemFree and cuMemFreeAsync of memory that a graph's node allocated. Launches after this call may allocate it
 * again. Outputs a reference, which the caller releases when all work submitted before is done; the address may become
 * invalid with it. CUDA_ERROR_INVALID_VALUE: it is not allocated, or its own graph frees it.
 */
CUresult graph_memory_freed_by_call(CUdeviceptr address, graph_memory_t **memory);

#endif
