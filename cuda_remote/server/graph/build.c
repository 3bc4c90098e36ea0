/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs in the worker: builds a graph that arrives, and the graphs in it. */
#include "cuda_remote/server/graph/graph.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 64 /* graphs in graphs */

static CUresult add_plain(CUgraph to, CUgraphNodeParams *params, CUgraphNode *node)
{
	return driver.cuGraphAddNode_v2(node, to, NULL, NULL, 0, params);
}

static CUresult join_nodes(CUgraph graph, CUgraphNode from, CUgraphNode to)
{
	return driver.cuGraphAddDependencies_v2(graph, &from, &to, NULL, 1);
}

static CUresult set_attributes(CUgraphNode node, const struct arrived *arrived)
{
	const uint8_t *value = arrived->values;
	CUresult result = CUDA_SUCCESS;
	for (uint32_t i = 0; i < 32 && result == CUDA_SUCCESS; i++) {
		CUlaunchAttributeValue copy;
		if (!(arrived->set & 1u << i))
			continue;
		memcpy(&copy, value, sizeof copy);
		value += sizeof copy;
		result = driver.cuGraphKernelNodeSetAttribute ?
			 driver.cuGraphKernelNodeSetAttribute(node, (CUlaunchAttributeID)i, &copy) : CUDA_ERROR_NOT_SUPPORTED;
	}
	return result;
}

bool graph_can_be_disabled(CUgraphNodeType type)
{
	return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY || type == CU_GRAPH_NODE_TYPE_MEMSET;
}

/* Adds the node that asks the client, before or after the copy. */
static CUresult add_asking(CUgraph to, const struct arrived *arrived, struct graph_node *node)
{
	CUgraphNode asks;
	CUgraphNodeParams host = { .type = CU_GRAPH_NODE_TYPE_HOST,
				   .host = { .fn = graph_host_function(arrived), .userData = arrived->host } };
	CUresult result = add_plain(to, &host, &asks);
	if (result != CUDA_SUCCESS)
		return result;
	if (arrived->kind == RC_GRAPH_COPY_UP)
		node->first = asks;
	else
		node->last = asks;
	return join_nodes(to, node->first, node->last);
}

/* Adds the driver's nodes for one of the client's: two for a copy between device and host. */
static CUresult add_node(struct graph *graph, CUgraph to, struct arrived *arrived, struct graph_node *node)
{
	CUresult result = add_plain(to, &arrived->params, &node->work);
	if (result != CUDA_SUCCESS)
		return result;
	node->first = node->last = node->work;
	node->type = arrived->params.type;
	node->disabled = arrived->wire.flags & RC_NODE_DISABLED && graph_can_be_disabled(node->type);
	if (node->type == CU_GRAPH_NODE_TYPE_KERNEL)
		return set_attributes(node->work, arrived);
	if (!arrived->host)
		return CUDA_SUCCESS;
	if (node->type == CU_GRAPH_NODE_TYPE_MEMCPY)
		result = add_asking(to, arrived, node);
	if (result == CUDA_SUCCESS)
		result = host_place_new(&graph->hosts, arrived->host, &node->host);
	if (result == CUDA_SUCCESS)
		arrived->host = NULL;
	return result;
}

static struct graph_node *node_new(struct graph *graph)
{
	if (graph->n == graph->room) {
		uint32_t room = graph->room ? 2 * graph->room : 64;
		struct graph_node *node = realloc(graph->node, room * sizeof *node);
		if (!node)
			return NULL;
		graph->node = node;
		graph->room = room;
	}
	graph->node[graph->n] = (struct graph_node){ .type = CU_GRAPH_NODE_TYPE_EMPTY };
	return &graph->node[graph->n++];
}

static CUresult take_graph(struct server_call *call, struct graph *graph, CUgraph to, unsigned depth);

/* The driver moves the child, so that the handles of its nodes stay those that an update names. */
static CUresult take_child(struct server_call *call, struct graph *graph, CUgraph to, uint32_t number, unsigned depth)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_GRAPH,
				     .graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE };
	CUresult result = depth < DEPTH_MAX ? driver.cuGraphCreate(&params.graph.graph, 0) : CUDA_ERROR_NOT_SUPPORTED;
	if (result != CUDA_SUCCESS)
		return result;
	CUgraphNode node = NULL;
	result = take_graph(call, graph, params.graph.graph, depth + 1);
	CUgraph child = params.graph.graph;
	if (result == CUDA_SUCCESS)
		result = add_plain(to, &params, &node);
	if (result != CUDA_SUCCESS) {
		driver.cuGraphDestroy(child);
		return result;
	}
	struct graph_node *made = &graph->node[number];
	made->first = made->last = made->work = node;
	made->type = CU_GRAPH_NODE_TYPE_GRAPH;
	return CUDA_SUCCESS;
}

/* The driver makes the bodies with the node. */
static CUresult take_conditional(struct server_call *call, struct graph *graph, CUgraph to, uint32_t number, uint64_t context,
				 unsigned depth)
{
	struct rc_wire_graph_condition wire;
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL };
	if (!server_take_into(call, &wire, sizeof wire) || wire.bodies > (call->in_len - call->in_at) / sizeof(struct rc_wire_graph) ||
	    !graph_conditionals_have(graph->conditionals, wire.number))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = depth < DEPTH_MAX ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
	if (result == CUDA_SUCCESS && context)
		result = server_object(RC_KIND_CONTEXT, context, (void **)&params.conditional.ctx);
	if (result != CUDA_SUCCESS)
		return result;
	params.conditional.handle = wire.number;
	params.conditional.type = (CUgraphConditionalNodeType)wire.type;
	params.conditional.size = wire.bodies;
	CUgraphNode node = NULL;
	result = add_plain(to, &params, &node);
	for (uint32_t i = 0; i < wire.bodies && result == CUDA_SUCCESS; i++)
		result = take_graph(call, graph, params.conditional.phGraph_out[i], depth + 1);
	struct graph_node *made = &graph->node[number];
	made->first = made->last = made->work = node;
	made->type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
	return result;
}

static CUresult take_one(struct server_call *call, struct graph *graph, CUgraph to, unsigned depth)
{
	struct arrived arrived = { .wire = { 0 } };
	uint32_t number = graph->n;
	if (!server_take_into(call, &arrived.wire, sizeof arrived.wire))
		return CUDA_ERROR_INVALID_VALUE;
	if (!node_new(graph))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (arrived.wire.type == CU_GRAPH_NODE_TYPE_GRAPH)
		return take_child(call, graph, to, number, depth);
	if (arrived.wire.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		return take_conditional(call, graph, to, number, arrived.wire.context, depth);
	CUresult result = graph_take_node(call, &arrived);
	if (result == CUDA_SUCCESS)
		result = add_node(graph, to, &arrived, &graph->node[number]);
	free(arrived.temporary);
	host_version_free(arrived.host);
	return result;
}

/* The numbers of the graph's nodes by their places: nodes of graphs in it come between. */
static CUresult take_edges(struct server_call *call, const struct graph *graph, CUgraph to, const uint32_t *number,
			   const struct rc_wire_graph *head)
{
	const uint8_t *from = server_take(call, head->edges, sizeof(struct rc_wire_graph_edge));
	if (!from)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < head->edges; i++) {
		struct rc_wire_graph_edge edge;
		CUgraphEdgeData data;
		_Static_assert(sizeof data == sizeof edge.data, "wire format");
		memcpy(&edge, from + i * sizeof edge, sizeof edge);
		memcpy(&data, edge.data, sizeof data);
		if (edge.from >= head->nodes || edge.to >= head->nodes)
			return CUDA_ERROR_INVALID_VALUE;
		CUresult result = driver.cuGraphAddDependencies_v2(to, &graph->node[number[edge.from]].last,
								   &graph->node[number[edge.to]].first, &data, 1);
		if (result != CUDA_SUCCESS)
			return result;
	}
	return CUDA_SUCCESS;
}

static CUresult take_graph(struct server_call *call, struct graph *graph, CUgraph to, unsigned depth)
{
	struct rc_wire_graph head;
	if (!server_take_into(call, &head, sizeof head) ||
	    head.nodes > (call->in_len - call->in_at) / sizeof(struct rc_wire_node))
		return CUDA_ERROR_INVALID_VALUE;
	uint32_t *number = malloc((head.nodes + 1) * sizeof *number);
	CUresult result = number ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < head.nodes && result == CUDA_SUCCESS; i++) {
		number[i] = graph->n;
		result = take_one(call, graph, to, depth);
	}
	if (result == CUDA_SUCCESS)
		result = take_edges(call, graph, to, number, &head);
	free(number);
	return result;
}

CUresult graph_take(struct server_call *call, struct graph *graph)
{
	return take_graph(call, graph, graph->graph, 0);
}
