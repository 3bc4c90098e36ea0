/* SPDX-License-Identifier: BSD-3-Clause */
/* Conditional handles: the driver makes them, graphs and nodes hold references to them. */
#include "cuda_remote/graph/graph.h"

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
	graph_driver_conditional_free(value);
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
			if (entry->value->handle == handle)
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
	CUresult result = graph_driver_context(&ctx);
	if (result)
		return result;
	if (!pHandle_out || !handle_valid(hGraph, HANDLE_GRAPH) || (flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT))
		return CUDA_ERROR_INVALID_VALUE;
	struct graph_conditional *value = calloc(1, sizeof *value);
	if (!value)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*value = (struct graph_conditional){ .references = 1, .context = ctx, .default_value = defaultLaunchValue,
					     .assign_default = flags & CU_GRAPH_COND_ASSIGN_DEFAULT };
	result = graph_driver_conditional_new(hGraph, value);
	if (result) {
		free(value);
		return result;
	}
	result = graph_conditional_list(hGraph, value);
	if (!result)
		*pHandle_out = value->handle;
	graph_conditional_release(value); /* the list has its own reference */
	return result;
}
