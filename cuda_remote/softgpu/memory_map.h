/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The software GPU's memory map, as the execution engine sees it: which bytes a kernel may touch.
 * A device address is the host address of the same byte. Device memory comes out of one reserved range of address space
 * at a fixed high base, so that it never collides with a remote client's host addresses; host memory that was
 * allocated or registered as device-accessible has spans too, at its own address.
 */
#ifndef SOFTGPU_MEMORY_H
#define SOFTGPU_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* One allocation: bytes base .. base+size-1. */
typedef struct softgpu_span {
	uint64_t base, size;
	bool read_only;
} softgpu_span_t;

/*
 * Finds the allocation that holds address. False if there is none: an access there is CUDA_ERROR_ILLEGAL_ADDRESS.
 * Any thread, no lock held long; the result may be cached until softgpu_memory_generation changes.
 */
bool softgpu_memory_find(uint64_t address, softgpu_span_t *span);

/*
 * False: HEADRACE_SOFTGPU_BOUNDS=page, and softgpu_memory_find finds the whole 2 MiB pages that hold an allocation, as a
 * GPU's page tables do.
 */
bool softgpu_memory_bounds_exact(void);

/* Changes whenever an allocation goes away. */
uint64_t softgpu_memory_generation(void);

/* Module globals and the like: memory of the device, zeroed, align a power of two. 0 when there is none left. */
uint64_t softgpu_memory_alloc(uint64_t size, uint64_t align);
void softgpu_memory_free(uint64_t base);

/* What kernels allocate with malloc, of one context: CUDA C++ Programming Guide, "Dynamic Global Memory Allocation". */
typedef struct softgpu_heap {
	uint64_t limit, used; /* bytes; atomic */
	bool begun;           /* atomic: memory of it was requested */
	int device;           /* the device whose memory it uses */
	const void *owner;    /* of the allocations, which are freed with it */
} softgpu_heap_t;

/* 0: the heap's limit or the device's memory would be exceeded, or heap is NULL, or size 0. Any thread, as in
 * kernels. */
uint64_t softgpu_heap_alloc(softgpu_heap_t *heap, uint64_t size);
/* False: softgpu_heap_alloc did not return base, or it was freed. */
bool softgpu_heap_free(softgpu_heap_t *heap, uint64_t base);

static inline bool softgpu_heap_begun(const softgpu_heap_t *heap)
{
	return __atomic_load_n(&heap->begun, __ATOMIC_RELAXED);
}

static inline void softgpu_heap_resize(softgpu_heap_t *heap, uint64_t limit)
{
	__atomic_store_n(&heap->limit, limit, __ATOMIC_RELAXED);
}

#endif
