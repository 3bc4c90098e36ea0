/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of allocation nodes. An allocation has its address from the moment its node is made until the node, the
 * executable graph and the allocation itself are gone; in between, launches allocate it and free it again. Its context
 * takes it away before that: what still refers to it then cannot be launched any more. It keeps its
 * own pages: allocations of different graphs share none (CUDA's do), so that what cuDeviceGetGraphMemAttribute tells as
 * reserved is what the allocations of the graphs launched so far sum up to, less what was trimmed. Any thread.
 */
#ifndef SOFTGPU_GRAPH_ALLOCATION_H
#define SOFTGPU_GRAPH_ALLOCATION_H

#include "cuda_remote/softgpu/driver/context/context.h"
#include "cuda_remote/softgpu/space/space.h"

typedef struct graph_memory graph_memory_t;

/* In softgpu_allocation_t.flags: belongs to a graph. */
#define GRAPH_MEMORY_FLAG (1u << 31)

/* One reference is the caller's. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult graph_memory_new(CUcontext context, CUdevice device, size_t bytes, graph_memory_t **memory);
void graph_memory_hold(graph_memory_t *memory);
void graph_memory_release(graph_memory_t *memory);
CUdeviceptr graph_memory_address(const graph_memory_t *memory);

/* False once its context was destroyed, and the memory with it. */
bool graph_memory_there(const graph_memory_t *memory);

/* The allocation node's memory at exactly this address, with a reference; NULL. */
graph_memory_t *graph_memory_find(CUdeviceptr address);

/*
 * A graph has the allocation's free node: graph is its number. An allocation is freed by its own graph alone or by
 * others: CUDA_ERROR_INVALID_VALUE for what is freed twice in one graph or in both.
 */
CUresult graph_memory_note_free(graph_memory_t *memory, uint64_t graph);
/* The number of the graph that allocates it. */
void graph_memory_note_owner(graph_memory_t *memory, uint64_t graph);
/* True if its own graph frees it: nobody else can. */
bool graph_memory_balanced(const graph_memory_t *memory);

/* A launch will need its pages: they count as the device's from the call on, as CUDA maps them then. */
void graph_memory_reserve(graph_memory_t *memory);
/* A launch allocates it: false if it is allocated already. Its pages are the device's from now on. */
bool graph_memory_allocate(graph_memory_t *memory);
/* It is free again: false if it was. */
bool graph_memory_free(graph_memory_t *memory);
bool graph_memory_used(const graph_memory_t *memory);

/*
 * For cuMemFree and cuMemFreeAsync, of memory that a graph's node allocated: it may be allocated again by what is
 * launched after this call. A reference is put out, to be released when what was submitted before is done: the address
 * may go with it. CUDA_ERROR_INVALID_VALUE: it is not allocated, or its own graph frees it.
 */
CUresult graph_memory_freed_by_call(CUdeviceptr address, graph_memory_t **memory);

#endif
