/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs, their nodes and edges. */
#include "cuda_remote/graph/graph.h"

#include <stdlib.h>
#include <string.h>

static uint64_t next_id(void)
{
	static uint64_t last;
	return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

CUgraph graph_new(CUgraphNode owner)
{
	CUgraph graph = handle_new(HANDLE_GRAPH, sizeof *graph);
	if (!graph)
		return NULL;
	graph->id = next_id();
	graph->owner = owner;
	graph->references = 1;
	return graph;
}

/* Enters the node at the end of the graph's list. */
static void list_enter(CUgraphNode node, CUgraph graph)
{
	node->graph = graph;
	node->previous = graph->last;
	node->next = NULL;
	if (graph->last)
		graph->last->next = node;
	else
		graph->first = node;
	graph->last = node;
	graph->count++;
}

static void list_leave(CUgraphNode node)
{
	CUgraph graph = node->graph;
	if (node->next)
		node->next->previous = node->previous;
	else
		graph->last = node->previous;
	if (node->previous)
		node->previous->next = node->next;
	else
		graph->first = node->next;
	graph->count--;
}

void graph_node_move(CUgraphNode node, CUgraph to)
{
	list_leave(node);
	list_enter(node, to);
}

static CUgraphNode node_new(CUgraph graph)
{
	CUgraphNode node = handle_new(HANDLE_GRAPH_NODE, sizeof *node);
	if (!node)
		return NULL;
	node->id = next_id();
	list_enter(node, graph);
	return node;
}

static void edges_remove(graph_edges_t *edges, uint32_t index)
{
	memmove(&edges->at[index], &edges->at[index + 1], (--edges->count - index) * sizeof *edges->at);
}

static void edges_remove_all(graph_edges_t *edges, CUgraphNode to)
{
	for (uint32_t i = edges->count; i--;)
		if (edges->at[i].node == to)
			edges_remove(edges, i);
}

void graph_disconnect(CUgraphNode from, CUgraphNode to)
{
	edges_remove_all(&from->after, to);
	edges_remove_all(&to->before, from);
}

/* Removes all edges of node from its neighbours' lists. */
static void disconnect(CUgraphNode node)
{
	for (uint32_t i = 0; i < node->before.count; i++)
		edges_remove_all(&node->before.at[i].node->after, node);
	for (uint32_t i = 0; i < node->after.count; i++)
		edges_remove_all(&node->after.at[i].node->before, node);
}

/* Frees the node itself; the caller has removed its edges. */
static void node_release(CUgraphNode node)
{
	list_leave(node);
	handle_retire(node);
	graph_params_drop(node);
	free(node->before.at);
	free(node->after.at);
	handle_release(node);
}

void graph_node_free(CUgraphNode node)
{
	disconnect(node);
	node_release(node);
}

void graph_free(CUgraph graph)
{
	handle_retire(graph);
	while (graph->first)
		node_release(graph->first);
	while (graph->conditionals) {
		graph_handle_t *handle = graph->conditionals;
		graph->conditionals = handle->next;
		graph_conditional_release(handle->value);
		free(handle);
	}
	graph_objects_release(graph);
	handle_release(graph);
}

static bool edges_room(graph_edges_t *edges)
{
	if (edges->count < edges->room)
		return true;
	uint32_t room = edges->room ? 2 * edges->room : 4;
	graph_edge_t *at = realloc(edges->at, room * sizeof *at);
	if (!at)
		return false;
	edges->at = at;
	edges->room = room;
	return true;
}

/*
 * CUgraphEdgeData and CUgraphKernelNodePort in cuda.h: only kernels have ports, and only kernels use the programmatic.
 */
static bool edge_known(CUgraphNode from, CUgraphNode to, const CUgraphEdgeData *data)
{
	static const unsigned char zero[sizeof data->reserved];
	bool from_kernel = from->params.type == CU_GRAPH_NODE_TYPE_KERNEL;
	if (data->to_port || memcmp(data->reserved, zero, sizeof zero) ||
	    data->from_port > CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER || (data->from_port && !from_kernel))
		return false;
	if (data->type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT)
		return true;
	return data->type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC && from_kernel && data->from_port &&
	       to->params.type == CU_GRAPH_NODE_TYPE_KERNEL;
}

CUresult graph_connect(CUgraphNode from, CUgraphNode to, const CUgraphEdgeData *data)
{
	static const CUgraphEdgeData plain;
	if (!data)
		data = &plain;
	if (!handle_valid(from, HANDLE_GRAPH_NODE) || !handle_valid(to, HANDLE_GRAPH_NODE) ||
	    from->graph != to->graph || from == to || !edge_known(from, to, data))
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < to->before.count; i++)
		if (to->before.at[i].node == from && !memcmp(&to->before.at[i].data, data, sizeof *data))
			return CUDA_ERROR_INVALID_VALUE;
	if (!edges_room(&from->after) || !edges_room(&to->before))
		return CUDA_ERROR_OUT_OF_MEMORY;
	from->after.at[from->after.count++] = (graph_edge_t){ to, *data };
	to->before.at[to->before.count++] = (graph_edge_t){ from, *data };
	return CUDA_SUCCESS;
}

static void set_edge_data(const graph_edges_t *edges, CUgraphNode node, const CUgraphEdgeData *data)
{
	for (uint32_t i = 0; i < edges->count; i++)
		if (edges->at[i].node == node)
			edges->at[i].data = *data;
}

void graph_edge_overlap(CUgraphNode from, CUgraphNode to)
{
	static const CUgraphEdgeData plain;
	const CUgraphEdgeData programmatic = { .from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
					       .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC };
	const graph_edge_t *edge = to->before.at;
	if (!from || to->before.count != 1 || edge->node != from || from->params.type != CU_GRAPH_NODE_TYPE_KERNEL ||
	    memcmp(&edge->data, &plain, sizeof plain))
		return;
	set_edge_data(&to->before, from, &programmatic);
	set_edge_data(&from->after, to, &programmatic);
}

CUresult graph_add(CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count,
		   CUgraphNodeParams *params, CUgraphNode *output)
{
	if (count && !dependencies)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNode node = node_new(graph);
	if (!node)
		return CUDA_ERROR_OUT_OF_MEMORY;
	node->params.type = params->type;
	CUresult result = CUDA_SUCCESS;
	for (size_t i = 0; i < count && !result; i++)
		result = graph_connect(dependencies[i], node, data ? &data[i] : NULL);
	if (!result)
		result = graph_params_take(node, params);
	if (result)
		graph_node_free(node);
	else
		*output = node;
	return result;
}

/* The clone of a node of the graph that is being cloned: found by its index. */
static CUresult clone_edges(CUgraph from, CUgraphNode *clones)
{
	for (CUgraphNode node = from->first; node; node = node->next)
		for (uint32_t i = 0; i < node->before.count; i++) {
			const graph_edge_t *edge = &node->before.at[i];
			graph_edges_t *before = &clones[node->index]->before;
			if (!edges_room(before))
				return CUDA_ERROR_OUT_OF_MEMORY;
			before->at[before->count++] = (graph_edge_t){ clones[edge->node->index], edge->data };
		}
	for (CUgraphNode node = from->first; node; node = node->next)
		for (uint32_t i = 0; i < node->after.count; i++) {
			const graph_edge_t *edge = &node->after.at[i];
			graph_edges_t *after = &clones[node->index]->after;
			if (!edges_room(after))
				return CUDA_ERROR_OUT_OF_MEMORY;
			after->at[after->count++] = (graph_edge_t){ clones[edge->node->index], edge->data };
		}
	return CUDA_SUCCESS;
}

static CUresult clone_nodes(CUgraph from, bool exact, CUgraph to)
{
	CUgraphNode *clones = calloc(from->count + 1, sizeof *clones);
	if (!clones)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = CUDA_SUCCESS;
	uint32_t index = 0;
	for (CUgraphNode node = from->first; node && !result; node = node->next) {
		CUgraphNode clone = node_new(to);
		if (!clone) {
			result = CUDA_ERROR_OUT_OF_MEMORY;
			break;
		}
		clone->origin = exact ? node->origin : node->id;
		clone->index = index;
		if (node->index != index) /* no write if it is right: a launch may be reading it */
			node->index = index;
		clone->event_slot = node->event_slot;
		clone->disabled = node->disabled;
		clone->number = node->number;
		clones[index++] = clone;
		result = graph_params_clone(clone, node, exact);
	}
	if (!result)
		result = clone_edges(from, clones);
	free(clones);
	return result;
}

CUresult graph_clone(CUgraph from, bool exact, CUgraph *output)
{
	CUgraph to = graph_new(NULL);
	if (!to)
		return CUDA_ERROR_OUT_OF_MEMORY;
	to->origin = exact ? from->origin : from->id;
	CUresult result = CUDA_SUCCESS;
	for (graph_handle_t *handle = from->conditionals; handle && !result; handle = handle->next)
		result = graph_conditional_list(to, handle->value);
	if (!result)
		result = graph_objects_clone(to, from);
	if (!result)
		result = clone_nodes(from, exact, to);
	if (result)
		graph_free(to);
	else
		*output = to;
	return result;
}

void graph_hide(CUgraph graph)
{
	handle_retire(graph);
	for (CUgraphNode node = graph->first; node; node = node->next) {
		handle_retire(node);
		unsigned count;
		CUgraph *below = graph_below(node, &count);
		for (unsigned i = 0; i < count; i++)
			graph_hide(below[i]);
	}
}

CUgraph *graph_below(CUgraphNode node, unsigned *count)
{
	if (node->params.type == CU_GRAPH_NODE_TYPE_GRAPH) {
		*count = node->params.graph.graph ? 1 : 0;
		return &node->params.graph.graph;
	}
	bool conditional = node->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL && node->params.conditional.phGraph_out;
	*count = conditional ? node->params.conditional.size : 0;
	return conditional ? node->params.conditional.phGraph_out : NULL;
}

CUresult graph_visit(CUgraph graph, CUresult (*visit)(CUgraphNode node, void *with), void *with)
{
	for (CUgraphNode node = graph->first; node; node = node->next) {
		CUresult result = visit(node, with);
		unsigned count;
		CUgraph *below = graph_below(node, &count);
		for (unsigned i = 0; i < count && !result; i++)
			result = graph_visit(below[i], visit, with);
		if (result)
			return result;
	}
	return CUDA_SUCCESS;
}

CUgraphNode graph_find(CUgraph graph, uint64_t origin)
{
	for (CUgraphNode node = graph->first; node; node = node->next) {
		if (node->origin == origin)
			return node;
		unsigned count;
		CUgraph *below = graph_below(node, &count);
		for (unsigned i = 0; i < count; i++) {
			CUgraphNode found = graph_find(below[i], origin);
			if (found)
				return found;
		}
	}
	return NULL;
}

bool graph_has(CUgraph graph, CUgraphNodeType type, bool deep)
{
	for (CUgraphNode node = graph->first; node; node = node->next) {
		if (node->params.type == type)
			return true;
		unsigned count;
		CUgraph *below = graph_below(node, &count);
		for (unsigned i = 0; deep && i < count; i++)
			if (graph_has(below[i], type, true))
				return true;
	}
	return false;
}

bool graph_capturing(CUgraph graph)
{
	if (graph->capturing)
		return true;
	for (CUgraphNode node = graph->first; node; node = node->next) {
		unsigned count;
		CUgraph *below = graph_below(node, &count);
		for (unsigned i = 0; i < count; i++)
			if (graph_capturing(below[i]))
				return true;
	}
	return false;
}

/* Kahn, Topological sorting of large networks (1962): the nodes that it cannot remove are on a cycle, or behind one. */
bool graph_circular(CUgraph graph)
{
	uint32_t taken = 0, ready = 0, count = 0;
	CUgraphNode *order = calloc(graph->count + 1, sizeof *order);
	uint32_t *waiting = calloc(graph->count + 1, sizeof *waiting);
	if (order && waiting) {
		for (CUgraphNode node = graph->first; node; node = node->next) {
			node->index = count;
			waiting[count++] = node->before.count;
			if (!node->before.count)
				order[ready++] = node;
		}
		while (taken < ready) {
			CUgraphNode node = order[taken++];
			for (uint32_t i = 0; i < node->after.count; i++)
				if (!--waiting[node->after.at[i].node->index])
					order[ready++] = node->after.at[i].node;
		}
	}
	free(order);
	free(waiting);
	return taken < graph->count;
}
