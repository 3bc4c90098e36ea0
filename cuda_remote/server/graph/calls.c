/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs in the worker: the calls on executable graphs. */
#include "cuda_remote/server/graph/graph.h"

#include <stdlib.h>
#include <string.h>

static bool can_build(void)
{
	return driver.cuGraphCreate && driver.cuGraphDestroy && driver.cuGraphAddNode_v2 && driver.cuGraphAddDependencies_v2 &&
	       driver.cuGraphInstantiateWithFlags && driver.cuGraphLaunch && driver.cuGraphExecDestroy;
}

static void graph_free(struct graph *graph)
{
	if (graph->exec)
		driver.cuGraphExecDestroy(graph->exec);
	if (graph->graph)
		graph_conditionals_return(graph);
	free(graph->node);
	free(graph);
}

/* A node of an executable graph is enabled or not as in the client's graph. */
static CUresult set_state(struct graph *exec, struct graph_node *node, bool disabled)
{
	if (!node->disabled && !disabled)
		return CUDA_SUCCESS;
	if (!driver.cuGraphNodeSetEnabled)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = driver.cuGraphNodeSetEnabled(exec->exec, node->work, !disabled);
	if (result == CUDA_SUCCESS)
		node->disabled = disabled;
	return result;
}

/* Nodes that are disabled in the client's graph are so from the start. */
static CUresult instantiate(struct graph *graph, unsigned long long flags)
{
	CUresult result = host_places_keep(graph->graph, &graph->hosts, &graph->keeper);
	if (result == CUDA_SUCCESS)
		result = driver.cuGraphInstantiateWithFlags(&graph->exec, graph->graph, flags);
	for (uint32_t i = 0; i < graph->n && result == CUDA_SUCCESS; i++) {
		bool disabled = graph->node[i].disabled;
		graph->node[i].disabled = false;
		result = set_state(graph, &graph->node[i], disabled);
	}
	return result;
}

/* Takes the arguments and the graph of a call. *made must be freed, also after a failure. */
static CUresult take(struct server_call *call, struct rc_wire_graph_new *wire, struct graph **made)
{
	if (!server_take_into(call, wire, sizeof *wire))
		return CUDA_ERROR_INVALID_VALUE;
	if (!can_build())
		return CUDA_ERROR_NOT_SUPPORTED;
	struct graph *graph = *made = calloc(1, sizeof *graph);
	if (!graph)
		return CUDA_ERROR_OUT_OF_MEMORY;
	graph->conditionals = wire->conditionals ? graph_conditionals(wire->conditionals) : NULL;
	if (wire->conditionals && !graph->conditionals)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = graph->conditionals ? graph_conditionals_copy(graph->conditionals, wire->conditionals, graph)
					      : driver.cuGraphCreate(&graph->graph, 0);
	if (result == CUDA_SUCCESS)
		result = graph_take(call, graph);
	graph->conditionals = NULL; /* they may end before the graph */
	return result;
}

CUresult serve_graph_instantiate(struct server_call *call)
{
	struct rc_wire_graph_new wire;
	struct graph *graph = NULL;
	CUresult result = take(call, &wire, &graph);
	if (result == CUDA_SUCCESS)
		result = instantiate(graph, wire.flags);
	if (result == CUDA_SUCCESS)
		result = server_object_bind(RC_KIND_GRAPH_EXEC, wire.exec, graph->exec, graph);
	if (result != CUDA_SUCCESS && graph) {
		host_places_drop(&graph->hosts);
		graph_free(graph);
	}
	return result;
}

/* True if each node of the executable graph is named once, by one of its own kind. */
static bool numbers_fit(const uint8_t *numbers, const struct graph *from, const struct graph *exec, bool *named)
{
	for (uint32_t i = 0; i < from->n; i++) {
		uint32_t number;
		memcpy(&number, numbers + i * sizeof number, sizeof number);
		if (number >= exec->n || named[number] || exec->node[number].type != from->node[i].type ||
		    !exec->node[number].host != !from->node[i].host)
			return false;
		named[number] = true;
	}
	return true;
}

/* The numbers that the nodes of an update have in the executable graph. */
static const uint8_t *take_numbers(struct server_call *call, const struct graph *from, const struct graph *exec)
{
	const uint8_t *numbers = from->n == exec->n ? server_take(call, from->n, sizeof(uint32_t)) : NULL;
	bool *named = numbers ? calloc(from->n + 1, sizeof *named) : NULL;
	bool fit = named && numbers_fit(numbers, from, exec, named);
	free(named);
	return fit ? numbers : NULL;
}

/* The executable graph keeps the driver's nodes by which changes name its own. */
static CUresult update(struct server_call *call, struct graph *from, struct graph *exec)
{
	CUgraphExecUpdateResultInfo info;
	const uint8_t *numbers = take_numbers(call, from, exec);
	if (!numbers)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = host_places_keep(from->graph, &from->hosts, &from->keeper);
	if (result == CUDA_SUCCESS)
		result = driver.cuGraphExecUpdate_v2(exec->exec, from->graph, &info);
	for (uint32_t i = 0; i < from->n && result == CUDA_SUCCESS; i++) {
		uint32_t number;
		memcpy(&number, numbers + i * sizeof number, sizeof number);
		exec->node[number].host = from->node[i].host;
		if (exec->node[number].host)
			host_place_born(exec->node[number].host, exec->launches);
	}
	for (uint32_t i = 0; i < from->n && result == CUDA_SUCCESS; i++) {
		uint32_t number;
		memcpy(&number, numbers + i * sizeof number, sizeof number);
		result = set_state(exec, &exec->node[number], from->node[i].disabled);
	}
	return result;
}

CUresult serve_graph_update(struct server_call *call)
{
	struct rc_wire_graph_new wire;
	struct graph *graph = NULL;
	CUresult result = take(call, &wire, &graph);
	struct graph *exec = result == CUDA_SUCCESS ? server_object_data(RC_KIND_GRAPH_EXEC, wire.exec) : NULL;
	if (result == CUDA_SUCCESS && !exec)
		result = CUDA_ERROR_INVALID_HANDLE;
	if (result == CUDA_SUCCESS)
		result = driver.cuGraphExecUpdate_v2 ? update(call, graph, exec) : CUDA_ERROR_NOT_SUPPORTED;
	if (graph) {
		host_places_drop(&graph->hosts);
		graph_free(graph);
	}
	return result;
}

CUresult serve_graph_launch(struct server_call *call)
{
	struct rc_wire_graph_launch wire;
	void *stream;
	if (!server_take_into(call, &wire, sizeof wire))
		return CUDA_ERROR_INVALID_VALUE;
	struct graph *graph = server_object_data(RC_KIND_GRAPH_EXEC, wire.exec);
	CUresult result = graph ? server_object(RC_KIND_STREAM, wire.stream, &stream) : CUDA_ERROR_INVALID_HANDLE;
	if (result != CUDA_SUCCESS)
		return result;
	graph->launches++;
	return driver.cuGraphLaunch(graph->exec, stream);
}

CUresult serve_graph_destroy(struct server_call *call)
{
	uint64_t handle;
	if (!server_take_into(call, &handle, sizeof handle))
		return CUDA_ERROR_INVALID_VALUE;
	struct graph *graph = server_object_data(RC_KIND_GRAPH_EXEC, handle);
	if (!graph)
		return CUDA_ERROR_INVALID_HANDLE;
	server_object_unbind(handle);
	graph_free(graph);
	return CUDA_SUCCESS;
}

/* The node that asks the client keeps step with the copy. */
static CUresult change_asking(struct graph *graph, const struct graph_node *node, const struct arrived *arrived)
{
	CUgraphNode asks = node->first == node->work ? node->last : node->first;
	CUgraphNodeParams host = { .type = CU_GRAPH_NODE_TYPE_HOST,
				   .host = { .fn = graph_host_function(arrived), .userData = arrived->host } };
	return asks == node->work ? CUDA_SUCCESS : driver.cuGraphExecNodeSetParams(graph->exec, asks, &host);
}

/* Copies to and from the host keep the direction that they have. */
static CUresult change(struct graph *graph, struct graph_node *node, struct arrived *arrived)
{
	if (arrived->params.type != node->type || !arrived->host != !node->host)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = driver.cuGraphExecNodeSetParams(graph->exec, node->work, &arrived->params);
	if (result != CUDA_SUCCESS)
		return result;
	if (arrived->host) { /* the executable graph uses it from here on, whatever fails */
		result = change_asking(graph, node, arrived);
		host_place_change(node->host, arrived->host, graph->launches, result == CUDA_SUCCESS);
		arrived->host = NULL;
	}
	if (result == CUDA_SUCCESS && graph_can_be_disabled(node->type))
		result = set_state(graph, node, arrived->wire.flags & RC_NODE_DISABLED);
	return result;
}

CUresult serve_graph_node(struct server_call *call)
{
	struct rc_wire_graph_change wire;
	struct arrived arrived = { .wire = { 0 } };
	if (!server_take_into(call, &wire, sizeof wire) || !server_take_into(call, &arrived.wire, sizeof arrived.wire))
		return CUDA_ERROR_INVALID_VALUE;
	struct graph *graph = server_object_data(RC_KIND_GRAPH_EXEC, wire.exec);
	if (!graph)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!driver.cuGraphExecNodeSetParams || !driver.cuGraphNodeSetEnabled)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (wire.node >= graph->n)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = graph_take_node(call, &arrived);
	if (result == CUDA_SUCCESS)
		result = change(graph, &graph->node[wire.node], &arrived);
	free(arrived.temporary);
	host_version_free(arrived.host);
	return result;
}
