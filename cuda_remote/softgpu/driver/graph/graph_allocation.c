/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of allocation nodes: the pages. Its life and its accounts are in cuda_remote/graph/graph_memory.c. */
#include "cuda_remote/softgpu/driver/graph/graph_allocation.h"

#include "cuda_remote/softgpu/driver/device/device.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct graph_memory_part {
	owned_t owned; /* by context */
	graph_memory_t *memory;
	uint64_t base, size;
};

static graph_usage_t usages[SOFTGPU_MAX_DEVICES];

CUresult graph_driver_usage(CUdevice device, graph_usage_t **usage)
{
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*usage = &usages[device_physical(device)];
	return CUDA_SUCCESS;
}

/* The context is being destroyed and takes its memory along. */
static void lose(owned_t *owned)
{
	graph_memory_part_t *part = OWNER_OF(owned, graph_memory_part_t);
	graph_memory_lost(part->memory);
	softgpu_space_free(part->base);
	free(part);
}

CUresult graph_driver_memory_new(CUcontext context, CUdevice device, size_t bytes, graph_memory_t *memory,
				 graph_memory_part_t **output, CUdeviceptr *address)
{
	graph_memory_part_t *part = calloc(1, sizeof *part);
	if (!part)
		return CUDA_ERROR_OUT_OF_MEMORY;
	softgpu_allocation_t want = { .size = bytes, .kind = SOFTGPU_SPACE_DEVICE, .owner = context,
				      .flags = GRAPH_MEMORY_FLAG, .device = device_physical(device) };
	if (softgpu_space_alloc(&want, SOFTGPU_GRANULE)) {
		free(part);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	part->memory = memory;
	part->base = want.base;
	part->size = bytes;
	owned_add(&context->owned, &part->owned, OWNED_GRAPH_MEMORY, lose);
	*output = part;
	*address = want.base;
	return CUDA_SUCCESS;
}

bool graph_driver_memory_free(graph_memory_part_t *part)
{
	if (!owned_take(&part->owned))
		return false;
	softgpu_space_free(part->base);
	free(part);
	return true;
}

/* Launches keep their memory: nothing is to be excluded. */
void graph_driver_trim_begin(void)
{
}

void graph_driver_trim_end(void)
{
}

/* Returns whole pages to the kernel. */
bool graph_driver_memory_discard(graph_memory_part_t *part)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t start = (part->base + page - 1) & ~(page - 1), end = (part->base + part->size) & ~(page - 1);
	if (end > start)
		madvise((void *)(uintptr_t)start, end - start, MADV_DONTNEED);
	return true;
}
