/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of allocation nodes: its life, and the accounts that cuDeviceGetGraphMemAttribute reports. */
#include "cuda_remote/graph/graph_memory.h"

#include <pthread.h>
#include <stdlib.h>

struct graph_memory {
	graph_memory_t *next; /* of all */
	graph_memory_part_t *part; /* the driver's */
	uint64_t base, size;
	graph_usage_t *usage; /* of its device */
	unsigned references;  /* nodes; one more while it is allocated */
	uint64_t owner, freed_in; /* ids of graphs: the node's own, and the first one that has a free node; 0: none */
	CUcontext context;        /* NULL once that is destroyed, and the memory with it */
	bool used, reserved;
};

static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;
static graph_memory_t *all;

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
		memory->usage->reserved -= memory->size;
	/* If the context is being destroyed and has taken the memory, graph_memory_lost frees the struct. */
	if (!memory->context || graph_driver_memory_free(memory->part))
		free(memory);
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
	if (memory->reserved || !memory->context)
		return;
	grow(&memory->usage->reserved, &memory->usage->reserved_high, memory->size);
	memory->reserved = true;
}

bool graph_memory_allocate(graph_memory_t *memory)
{
	pthread_mutex_lock(&memory_lock);
	bool free_before = !memory->used && memory->context;
	if (free_before) {
		memory->used = true;
		memory->references++;
		grow(&memory->usage->used, &memory->usage->used_high, memory->size);
		reserve(memory);
	}
	pthread_mutex_unlock(&memory_lock);
	return free_before;
}

/* With the lock held. */
static bool give_back(graph_memory_t *memory)
{
	if (!memory->used)
		return false;
	memory->used = false;
	memory->usage->used -= memory->size;
	drop(memory);
	return true;
}

bool graph_memory_free(graph_memory_t *memory)
{
	pthread_mutex_lock(&memory_lock);
	bool done = give_back(memory);
	pthread_mutex_unlock(&memory_lock);
	return done;
}

void graph_memory_lost(graph_memory_t *memory)
{
	pthread_mutex_lock(&memory_lock);
	if (!memory->references) {
		free(memory);
	} else {
		memory->context = NULL;
		if (memory->reserved)
			memory->usage->reserved -= memory->size;
		memory->reserved = false;
		give_back(memory);
	}
	pthread_mutex_unlock(&memory_lock);
}

CUresult graph_memory_new(CUcontext context, CUdevice device, size_t bytes, graph_memory_t **output)
{
	graph_usage_t *usage;
	CUdeviceptr base;
	if (graph_driver_usage(device, &usage))
		return CUDA_ERROR_INVALID_VALUE;
	graph_memory_t *memory = calloc(1, sizeof *memory);
	if (!memory)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = graph_driver_memory_new(context, device, bytes, memory, &memory->part, &base);
	if (result) {
		free(memory);
		return result;
	}
	pthread_mutex_lock(&memory_lock);
	memory->base = base;
	memory->size = bytes;
	memory->usage = usage;
	memory->references = 1;
	memory->context = context;
	memory->next = all;
	all = memory;
	pthread_mutex_unlock(&memory_lock);
	*output = memory;
	return CUDA_SUCCESS;
}

bool graph_memory_there(const graph_memory_t *memory)
{
	pthread_mutex_lock(&memory_lock);
	bool there = memory->context;
	pthread_mutex_unlock(&memory_lock);
	return there;
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

/* ---- launches ---- */

CUresult graph_memory_check_launch(CUgraphNode node, unsigned long long flags)
{
	if (node->params.type != CU_GRAPH_NODE_TYPE_MEM_ALLOC || graph_memory_balanced(node->memory) ||
	    flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&memory_lock);
	bool used = node->memory->used;
	pthread_mutex_unlock(&memory_lock);
	return used ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

void graph_memory_note_launch(CUgraphNode node)
{
	if (node->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
		pthread_mutex_lock(&memory_lock);
		reserve(node->memory);
		pthread_mutex_unlock(&memory_lock);
		if (graph_memory_balanced(node->memory))
			return;
		graph_memory_free(node->memory); /* left by the previous launch, with AUTO_FREE_ON_LAUNCH */
		graph_memory_allocate(node->memory);
	} else if (node->params.type == CU_GRAPH_NODE_TYPE_MEM_FREE && !graph_memory_balanced(node->memory)) {
		graph_memory_free(node->memory);
	}
}

/* ---- calls ---- */

static CUresult enter(CUdevice device, graph_usage_t **usage)
{
	CUresult result = graph_driver_enter();
	return result ? result : graph_driver_usage(device, usage);
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
	graph_usage_t *usage;
	CUresult result = enter(device, &usage);
	if (result)
		return result;
	graph_driver_trim_begin();
	pthread_mutex_lock(&memory_lock);
	for (graph_memory_t *memory = all; memory; memory = memory->next) {
		if (memory->usage != usage || memory->used || !memory->reserved || !graph_driver_memory_discard(memory->part))
			continue;
		memory->reserved = false;
		usage->reserved -= memory->size;
	}
	pthread_mutex_unlock(&memory_lock);
	graph_driver_trim_end();
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
	graph_usage_t *usage;
	CUresult result = enter(device, &usage);
	if (result)
		return result;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
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
	graph_usage_t *usage;
	CUresult result = enter(device, &usage);
	if (result)
		return result;
	if (!value || *(const cuuint64_t *)value)
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
