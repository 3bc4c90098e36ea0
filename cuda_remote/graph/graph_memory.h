/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of allocation nodes. An allocation has its address from the creation of its node until no node, executable
 * graph or running launch refers to it. In between, launches allocate and free it. When its context is destroyed the
 * memory is freed, and graphs that still refer to it cannot be launched.
 *
 * Each allocation has pages of its own. CUDA's graphs share pages; here they do not, so the reserved memory that
 * cuDeviceGetGraphMemAttribute returns is the sum of the allocations of all graphs launched so far, less trimmed
 * memory. Any thread.
 */
#ifndef RC_GRAPH_MEMORY_H
#define RC_GRAPH_MEMORY_H

#include "cuda_remote/graph/graph.h"

/* Creates memory with one reference. CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE: no such device. */
CUresult graph_memory_new(CUcontext context, CUdevice device, size_t bytes, graph_memory_t **memory);
void graph_memory_hold(graph_memory_t *memory);
void graph_memory_release(graph_memory_t *memory);
CUdeviceptr graph_memory_address(const graph_memory_t *memory);

/* False once its context was destroyed, and the memory with it. */
bool graph_memory_there(const graph_memory_t *memory);
/* Its context is destroyed, and the driver frees the memory. */
void graph_memory_lost(graph_memory_t *memory);

/* The memory of the allocation node with this address, with a reference for the caller; NULL: none. */
graph_memory_t *graph_memory_find(CUdeviceptr address);

/*
 * Records that the graph with this id has a free node for the allocation. CUDA_ERROR_INVALID_VALUE: this graph has one
 * already, or both the allocation's own graph and another graph would free it.
 */
CUresult graph_memory_note_free(graph_memory_t *memory, uint64_t graph);
/* Records the id of the graph that allocates it. */
void graph_memory_note_owner(graph_memory_t *memory, uint64_t graph);

/* True if its own graph frees it: no other graph and no call can. */
bool graph_memory_balanced(const graph_memory_t *memory);

/* A node or a launch allocates it and reserves its pages. False: it is allocated already. */
bool graph_memory_allocate(graph_memory_t *memory);
/* Frees it. False: it was not allocated. */
bool graph_memory_free(graph_memory_t *memory);

/*
 * For cuMemFree and cuMemFreeAsync of memory that a graph's node allocated. Launches after this call may allocate it
 * again. Outputs a reference, which the caller releases when all work submitted before is done; the address may become
 * invalid with it. CUDA_ERROR_INVALID_VALUE: it is not allocated, or its own graph frees it.
 */
CUresult graph_memory_freed_by_call(CUdeviceptr address, graph_memory_t **memory);

/*
 * For each node of a launch; nodes of other types do nothing. The check: CUDA_ERROR_INVALID_VALUE if the node's memory is
 * still allocated. The second: the pages count as reserved from the launch on, as CUDA maps them then; memory that its own
 * graph does not free is allocated or freed in the order of launches and calls, like memory of the stream-ordered
 * allocator.
 */
CUresult graph_memory_check_launch(CUgraphNode node, unsigned long long flags);
void graph_memory_note_launch(CUgraphNode node);

#endif
