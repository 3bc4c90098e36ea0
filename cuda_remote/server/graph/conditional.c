/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Conditional handles, which the driver makes in a graph. The handles of one graph of the client are in one graph here, which
 * has no nodes: executable graphs are built in copies of it. A driver that does not clone such graphs (NVIDIA's) builds one
 * executable graph at a time, in the graph itself.
 */
#include "cuda_remote/server/graph/graph.h"

#include <stdlib.h>

struct conditionals {
	CUgraph graph; /* NULL: an executable graph has it */
	CUgraph lent;  /* the graph that an executable graph has; NULL: none */
	uint32_t n;
	uint64_t *number;
};

struct conditionals *graph_conditionals(uint64_t handle)
{
	return server_object_data(RC_KIND_CONDITIONALS, handle);
}

CUresult graph_conditionals_copy(struct conditionals *from, uint64_t handle, struct graph *graph)
{
	CUresult result = driver.cuGraphClone && from->graph ? driver.cuGraphClone(&graph->graph, from->graph)
							      : CUDA_ERROR_NOT_SUPPORTED;
	if (result != CUDA_ERROR_NOT_SUPPORTED || !from->graph)
		return result;
	graph->graph = from->lent = from->graph;
	graph->lender = handle;
	from->graph = NULL;
	return CUDA_SUCCESS;
}

/* Takes everything out of the graph but the conditional handles. False: the driver refuses. */
static bool clear(struct graph *graph)
{
	size_t n = 0;
	if (!driver.cuGraphGetNodes || !driver.cuGraphDestroyNode || (graph->keeper && !driver.cuGraphReleaseUserObject) ||
	    driver.cuGraphGetNodes(graph->graph, NULL, &n) != CUDA_SUCCESS)
		return false;
	CUgraphNode *nodes = calloc(n + 1, sizeof(CUgraphNode));
	CUresult result = nodes ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS && n)
		result = driver.cuGraphGetNodes(graph->graph, nodes, &n);
	for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++)
		result = driver.cuGraphDestroyNode(nodes[i]);
	if (result == CUDA_SUCCESS && graph->keeper)
		result = driver.cuGraphReleaseUserObject(graph->graph, graph->keeper, 1);
	free(nodes);
	return result == CUDA_SUCCESS;
}

void graph_conditionals_return(struct graph *graph)
{
	/* The handle may be that of later conditionals by now. */
	struct conditionals *lender = graph->lender ? graph_conditionals(graph->lender) : NULL;
	bool lent = lender && lender->lent == graph->graph;
	if (lent)
		lender->lent = NULL;
	if (lent && clear(graph))
		lender->graph = graph->graph;
	else
		driver.cuGraphDestroy(graph->graph);
}

bool graph_conditionals_have(const struct conditionals *conditionals, uint64_t number)
{
	for (uint32_t i = 0; conditionals && i < conditionals->n; i++)
		if (conditionals->number[i] == number)
			return true;
	return false;
}

static void conditionals_free(struct conditionals *conditionals)
{
	if (conditionals->graph)
		driver.cuGraphDestroy(conditionals->graph);
	free(conditionals->number);
	free(conditionals);
}

static CUresult conditionals_new(uint64_t handle, struct conditionals **made)
{
	if (!driver.cuGraphCreate || !driver.cuGraphDestroy)
		return CUDA_ERROR_NOT_SUPPORTED;
	struct conditionals *conditionals = calloc(1, sizeof *conditionals);
	if (!conditionals)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = driver.cuGraphCreate(&conditionals->graph, 0);
	if (result == CUDA_SUCCESS)
		result = server_object_bind(RC_KIND_CONDITIONALS, handle, conditionals->graph, conditionals);
	if (result == CUDA_SUCCESS)
		*made = conditionals;
	else
		conditionals_free(conditionals);
	return result;
}

/* Makes a handle of the driver. */
static CUresult add(struct conditionals *to, CUcontext context, const struct rc_wire_conditional *wire)
{
	CUgraphConditionalHandle number;
	if (!to->graph)
		return CUDA_ERROR_NOT_SUPPORTED;
	uint64_t *room = realloc(to->number, (to->n + 1) * sizeof *room);
	if (!room)
		return CUDA_ERROR_OUT_OF_MEMORY;
	to->number = room;
	CUresult result = driver.cuGraphConditionalHandleCreate(&number, to->graph, context, wire->value, wire->flags);
	if (result == CUDA_SUCCESS)
		to->number[to->n++] = number;
	return result;
}

CUresult serve_graph_conditional(struct server_call *call)
{
	struct rc_wire_conditional wire;
	CUcontext context;
	if (!server_take_into(call, &wire, sizeof wire) || wire.first > 1)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuGraphConditionalHandleCreate)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = server_object(RC_KIND_CONTEXT, wire.context, (void **)&context);
	if (result != CUDA_SUCCESS)
		return result;
	struct conditionals *conditionals = wire.first ? NULL : graph_conditionals(wire.conditionals);
	if (wire.first)
		result = conditionals_new(wire.conditionals, &conditionals);
	else if (!conditionals)
		result = CUDA_ERROR_INVALID_HANDLE;
	if (result != CUDA_SUCCESS)
		return result;
	result = add(conditionals, context, &wire);
	if (result == CUDA_SUCCESS)
		return server_give_bytes(call, &conditionals->number[conditionals->n - 1], sizeof *conditionals->number);
	if (wire.first) {
		server_object_unbind(wire.conditionals);
		conditionals_free(conditionals);
	}
	return result;
}

/* Graphs that were built in copies keep the handles that they use. */
CUresult serve_graph_conditionals_free(struct server_call *call)
{
	uint64_t handle;
	if (!server_take_into(call, &handle, sizeof handle))
		return CUDA_ERROR_INVALID_VALUE;
	struct conditionals *conditionals = graph_conditionals(handle);
	if (!conditionals)
		return CUDA_ERROR_INVALID_HANDLE;
	server_object_unbind(handle);
	conditionals_free(conditionals);
	return CUDA_SUCCESS;
}
