/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of allocation nodes: its life, and the accounts that cuDeviceGetGraphMemAttribute reports. */
#include "cuda_remote/softgpu/driver/graph/graph_allocation.h"

#include "cuda_remote/softgpu/driver/device/device.h"
#include "cuda_remote/softgpu/driver/init.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct graph_memory {
	graph_memory_t *next; /* of all */
	owned_t owned;        /* by context */
	uint64_t base, size;
	int physical;         /* device */
	unsigned references;  /* nodes; one more while it is allocated */
	uint64_t owner, freed_in; /* ids of graphs: the node's own, and the first one that has a free node; 0: none */
	CUcontext context;        /* NULL once that is destroyed, and the memory with it */
	bool used, reserved;
};

/* Bytes of one device's graphs. */
struct usage {
	uint64_t used, used_high, reserved, reserved_high;
};

static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;
static graph_memory_t *all;
static struct usage usages[SOFTGPU_MAX_DEVICES];

static void grow(uint64_t *now, uint64_t *high, uint64_t bytes)
{
	*now += bytes;
	if (*now > *high)
		*high = *now;
}

void graph_memory_hold(graph_memory_t *memory)
{
	pthread_mutex_lock(&memory_lock);
	memory->references++;
	pthread_mutex_unlock(&memory_lock);
}

/* With the lock held. */
static void drop(graph_memory_t *memory)
{
	if (--memory->references)
		return;
	graph_memory_t **at = &all;
	while (*at != memory)
		at = &(*at)->next;
	*at = memory->next;
	if (memory->reserved)
		usages[memory->physical].reserved -= memory->size;
	if (!memory->context) {
		free(memory);
	} else if (owned_take(&memory->owned)) {
		softgpu_space_free(memory->base);
		free(memory);
	} /* else its context is being destroyed and has taken it: lose frees it */
}

void graph_memory_release(graph_memory_t *memory)
{
	pthread_mutex_lock(&memory_lock);
	drop(memory);
	pthread_mutex_unlock(&memory_lock);
}

CUdeviceptr graph_memory_address(const graph_memory_t *memory)
{
	return memory->base;
}

static graph_memory_t *find(uint64_t base)
{
	graph_memory_t *memory = all;
	while (memory && (memory->base != base || !memory->context))
		memory = memory->next;
	return memory;
}

graph_memory_t *graph_memory_find(CUdeviceptr address)
{
	pthread_mutex_lock(&memory_lock);
	graph_memory_t *memory = find(address);
	if (memory)
		memory->references++;
	pthread_mutex_unlock(&memory_lock);
	return memory;
}

void graph_memory_note_owner(graph_memory_t *memory, uint64_t graph)
{
	pthread_mutex_lock(&memory_lock);
	memory->owner = graph;
	pthread_mutex_unlock(&memory_lock);
}

CUresult graph_memory_note_free(graph_memory_t *memory, uint64_t graph)
{
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&memory_lock);
	if (!memory->freed_in)
		memory->freed_in = graph;
	else if (memory->freed_in == graph || memory->freed_in == memory->owner || graph == memory->owner)
		result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&memory_lock);
	return result;
}

bool graph_memory_balanced(const graph_memory_t *memory)
{
	pthread_mutex_lock(&memory_lock);
	bool balanced = memory->freed_in && memory->freed_in == memory->owner;
	pthread_mutex_unlock(&memory_lock);
	return balanced;
}

/* With the lock held. */
static void reserve(graph_memory_t *memory)
{
	struct usage *usage = &usages[memory->physical];
	if (memory->reserved || !memory->context)
		return;
	grow(&usage->reserved, &usage->reserved_high, memory->size);
	memory->reserved = true;
}

void graph_memory_reserve(graph_memory_t *memory)
{
	pthread_mutex_lock(&memory_lock);
	reserve(memory);
	pthread_mutex_unlock(&memory_lock);
}

bool graph_memory_allocate(graph_memory_t *memory)
{
	pthread_mutex_lock(&memory_lock);
	struct usage *usage = &usages[memory->physical];
	bool free_before = !memory->used && memory->context;
	if (free_before) {
		memory->used = true;
		memory->references++;
		grow(&usage->used, &usage->used_high, memory->size);
		reserve(memory);
	}
	pthread_mutex_unlock(&memory_lock);
	return free_before;
}

static bool give_back(graph_memory_t *memory)
{
	if (!memory->used)
		return false;
	memory->used = false;
	usages[memory->physical].used -= memory->size;
	drop(memory);
	return true;
}

/* The context is being destroyed and takes its memory along. */
static void lose(owned_t *owned)
{
	graph_memory_t *memory = OWNER_OF(owned, graph_memory_t);
	pthread_mutex_lock(&memory_lock);
	if (!memory->references) {
		softgpu_space_free(memory->base);
		free(memory);
	} else {
		memory->context = NULL;
		if (memory->reserved)
			usages[memory->physical].reserved -= memory->size;
		memory->reserved = false;
		give_back(memory);
	}
	pthread_mutex_unlock(&memory_lock);
}

CUresult graph_memory_new(CUcontext context, CUdevice device, size_t bytes, graph_memory_t **output)
{
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_VALUE;
	graph_memory_t *memory = calloc(1, sizeof *memory);
	if (!memory)
		return CUDA_ERROR_OUT_OF_MEMORY;
	softgpu_allocation_t want = { .size = bytes, .kind = SOFTGPU_SPACE_DEVICE, .owner = context,
				      .flags = GRAPH_MEMORY_FLAG, .device = device_physical(device) };
	if (softgpu_space_alloc(&want, SOFTGPU_GRANULE)) {
		free(memory);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*memory = (graph_memory_t){ .base = want.base, .size = bytes, .physical = want.device,
				    .references = 1, .context = context };
	pthread_mutex_lock(&memory_lock);
	memory->next = all;
	all = memory;
	owned_add(&context->owned, &memory->owned, OWNED_GRAPH_MEMORY, lose);
	pthread_mutex_unlock(&memory_lock);
	*output = memory;
	return CUDA_SUCCESS;
}

bool graph_memory_free(graph_memory_t *memory)
{
	pthread_mutex_lock(&memory_lock);
	bool done = give_back(memory);
	pthread_mutex_unlock(&memory_lock);
	return done;
}

bool graph_memory_there(const graph_memory_t *memory)
{
	pthread_mutex_lock(&memory_lock);
	bool there = memory->context;
	pthread_mutex_unlock(&memory_lock);
	return there;
}

bool graph_memory_used(const graph_memory_t *memory)
{
	pthread_mutex_lock(&memory_lock);
	bool used = memory->used;
	pthread_mutex_unlock(&memory_lock);
	return used;
}

CUresult graph_memory_freed_by_call(CUdeviceptr address, graph_memory_t **output)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	graph_memory_t *memory = find(address);
	if (memory && memory->used && !(memory->freed_in && memory->freed_in == memory->owner)) {
		memory->references++;
		give_back(memory);
		*output = memory;
		result = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&memory_lock);
	return result;
}

/* Returns whole pages to the kernel; the address stays reserved. */
static void discard(const graph_memory_t *memory)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t start = (memory->base + page - 1) & ~(page - 1), end = (memory->base + memory->size) & ~(page - 1);
	if (end > start)
		madvise((void *)(uintptr_t)start, end - start, MADV_DONTNEED);
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	int physical = device_physical(device);
	pthread_mutex_lock(&memory_lock);
	for (graph_memory_t *memory = all; memory; memory = memory->next) {
		if (memory->physical != physical || memory->used || !memory->reserved)
			continue;
		memory->reserved = false;
		usages[physical].reserved -= memory->size;
		discard(memory);
	}
	pthread_mutex_unlock(&memory_lock);
	return CUDA_SUCCESS;
}

static CUresult enter(CUdevice device, const void *value, struct usage **usage)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*usage = &usages[device_physical(device)];
	return value ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
	struct usage *usage;
	CUresult result = enter(device, value, &usage);
	if (result)
		return result;
	pthread_mutex_lock(&memory_lock);
	switch (attr) {
	case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
		*(cuuint64_t *)value = usage->used;
		break;
	case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
		*(cuuint64_t *)value = usage->used_high;
		break;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
		*(cuuint64_t *)value = usage->reserved;
		break;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
		*(cuuint64_t *)value = usage->reserved_high;
		break;
	default:
		result = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&memory_lock);
	return result;
}

/* Only the high watermarks can be set, and only to 0, which resets them to the current values. */
CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
	struct usage *usage;
	CUresult result = enter(device, value, &usage);
	if (result)
		return result;
	if (*(const cuuint64_t *)value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	if (attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
		usage->used_high = usage->used;
	else if (attr == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
		usage->reserved_high = usage->reserved;
	else
		result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&memory_lock);
	return result;
}
