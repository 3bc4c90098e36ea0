/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Conditional handles. A handle is the device address of its value, which kernels set with cudaGraphSetConditional (an
 * undefined function in PTX that the engine knows) and a conditional node reads.
 */
#include "cuda_remote/softgpu/driver/graph/graph.h"

#include "cuda_remote/softgpu/space/space.h"

#include <stdlib.h>

void graph_conditional_hold(struct graph_conditional *value)
{
	__atomic_add_fetch(&value->references, 1, __ATOMIC_RELAXED);
}

void graph_conditional_release(struct graph_conditional *value)
{
	/* Orders all uses before the free: all releases pair with each other. */
	if (__atomic_sub_fetch(&value->references, 1, __ATOMIC_ACQ_REL))
		return;
	softgpu_space_free(value->address);
	free(value);
}

CUresult graph_conditional_list(CUgraph graph, struct graph_conditional *value)
{
	graph_handle_t *entry = malloc(sizeof *entry);
	if (!entry)
		return CUDA_ERROR_OUT_OF_MEMORY;
	graph_conditional_hold(value);
	*entry = (graph_handle_t){ graph->conditionals, value };
	graph->conditionals = entry;
	return CUDA_SUCCESS;
}

struct graph_conditional *graph_conditional_find(CUgraph graph, CUgraphConditionalHandle handle)
{
	for (;;) {
		for (graph_handle_t *entry = graph->conditionals; entry; entry = entry->next)
			if (entry->value->address == handle)
				return entry->value;
		if (!graph->owner)
			return NULL;
		graph = graph->owner->graph;
	}
}

bool graph_conditional_bound(CUgraph graph, const struct graph_conditional *value)
{
	for (CUgraphNode node = graph->first; node; node = node->next) {
		if (node->value == value)
			return true;
		unsigned count;
		CUgraph *below = graph_below(node, &count);
		for (unsigned i = 0; i < count; i++)
			if (graph_conditional_bound(below[i], value))
				return true;
	}
	return false;
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *pHandle_out, CUgraph hGraph, CUcontext ctx,
					unsigned int defaultLaunchValue, unsigned int flags)
{
	CUresult result = context_enter_this(&ctx);
	if (result)
		return result;
	if (!pHandle_out || !handle_valid(hGraph, HANDLE_GRAPH) || (flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT))
		return CUDA_ERROR_INVALID_VALUE;
	struct graph_conditional *value = calloc(1, sizeof *value);
	if (!value)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/*
	 * Kernels cannot store to it: only cudaGraphSetConditional sets it. It belongs to no context: launches set the
	 * default as long as a graph has it.
	 */
	softgpu_allocation_t want = { .size = sizeof(softgpu_conditional_t), .kind = SOFTGPU_SPACE_MODULE,
				      .device = ctx->physical, .read_only = true };
	if (softgpu_space_alloc(&want, SOFTGPU_GRANULE)) {
		free(value);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*value = (struct graph_conditional){ .references = 1, .context = ctx, .address = want.base,
					     .default_value = defaultLaunchValue,
					     .assign_default = flags & CU_GRAPH_COND_ASSIGN_DEFAULT };
	*(softgpu_conditional_t *)(uintptr_t)want.base =
		(softgpu_conditional_t){ .value = defaultLaunchValue, .check = SOFTGPU_CONDITIONAL_CHECK };
	result = graph_conditional_list(hGraph, value);
	if (!result)
		*pHandle_out = value->address;
	graph_conditional_release(value); /* the list has its own reference */
	return result;
}
