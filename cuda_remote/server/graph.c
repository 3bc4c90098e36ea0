/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Executable graphs. The client sends the graph once; the worker builds it in its driver and instantiates it. Where the
 * client's graph has host memory or a host function, the worker's has a host function that asks the client (hostfn.c):
 * before a copy to the device, which reads memory of the worker, or after a copy to the host, which writes it.
 */
#include "cuda_remote/api/attributes.h"
#include "cuda_remote/server/internal.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 64 /* graphs in graphs */

/* A node of the client's graph. */
struct node {
	CUgraphNode first, last; /* edges to the node end at first, edges from it begin at last */
	CUgraphNode work;        /* that an update changes; one of the two */
	CUgraphNodeType type;    /* of work */
	bool disabled;           /* when the graph arrived */
	struct server_host_node *host; /* of a host function, or of a copy's memory; NULL */
};

struct graph {
	CUgraph graph;
	CUgraphExec exec;
	uint32_t n, room;
	struct node *node;
	struct server_host_node *hosts; /* freed with the executable graph, after its last launch */
};

/* A node as it arrives. kernelParams and the copies' memory are of the worker. */
struct arrived {
	struct rc_wire_node wire;
	CUgraphNodeParams params;
	struct server_host_node *host;
	enum rc_graph_copy kind;
	CUcontext context;
	uint32_t set; /* attributes of a kernel */
	const uint8_t *values;
	void **pointers; /* to a kernel's parameters; freed after use */
};

/* ---- what arrives for each type of node ---- */

static bool travels(uint32_t attribute)
{
	return attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE || rc_launch_attribute_travels((CUlaunchAttributeID)attribute);
}

static CUresult take_kernel(struct server_call *call, struct arrived *node)
{
	struct rc_wire_graph_kernel wire;
	if (!server_take_into(call, &wire, sizeof wire))
		return CUDA_ERROR_INVALID_VALUE;
	struct server_kernel *kernel = server_object_kernel(wire.function);
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	CUDA_KERNEL_NODE_PARAMS_v3 *to = &node->params.kernel;
	/* The driver finds a library's kernel in the current context. */
	CUresult result = node->context ? driver.cuCtxSetCurrent(node->context) : CUDA_SUCCESS;
	if (result == CUDA_SUCCESS)
		result = server_object(RC_KIND_FUNCTION, wire.function, (void **)&to->func);
	if (node->context)
		(void)driver.cuCtxSetCurrent(call->thread->current);
	if (result != CUDA_SUCCESS)
		return result;
	const uint8_t *block = server_take(call, ((uint64_t)wire.parameters + 7) / 8, 8);
	node->values = server_take(call, (uint64_t)__builtin_popcount(wire.set), sizeof(CUlaunchAttributeValue));
	if (!block || !node->values || wire.parameters != kernel->block)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < 32; i++)
		if (wire.set & 1u << i && !travels(i))
			return CUDA_ERROR_INVALID_VALUE;
	node->set = wire.set;
	node->pointers = calloc(kernel->parameters + 1, sizeof(void *));
	if (!node->pointers)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < kernel->parameters; i++)
		node->pointers[i] = (void *)(uintptr_t)(block + kernel->parameter[i].offset);
	to->gridDimX = wire.grid[0];
	to->gridDimY = wire.grid[1];
	to->gridDimZ = wire.grid[2];
	to->blockDimX = wire.block[0];
	to->blockDimY = wire.block[1];
	to->blockDimZ = wire.block[2];
	to->sharedMemBytes = wire.shared;
	to->kernelParams = node->pointers;
	to->ctx = node->context;
	return CUDA_SUCCESS;
}

/* Bytes of a copy with a side on the host; 0: too many. */
static uint64_t copy_bytes(const struct rc_wire_graph_copy *wire)
{
	struct rc_wire_box box = { .width = wire->width, .height = wire->height, .depth = wire->depth };
	uint64_t bytes = rc_box_bytes(&box);
	return bytes <= RC_CALL_BYTES_MAX ? bytes : 0;
}

static CUresult take_copy(struct server_call *call, struct graph *graph, struct arrived *node)
{
	struct rc_wire_graph_copy wire;
	CUDA_MEMCPY3D *to = &node->params.memcpy.copyParams;
	if (!server_take_into(call, &wire, sizeof wire) || wire.kind > RC_GRAPH_COPY_DOWN || !wire.width || !wire.height ||
	    !wire.depth)
		return CUDA_ERROR_INVALID_VALUE;
	node->params.memcpy.copyCtx = node->context;
	*to = (CUDA_MEMCPY3D){
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = wire.from.address, .srcXInBytes = wire.from.x,
		.srcY = wire.from.y, .srcZ = wire.from.z, .srcPitch = wire.from.pitch, .srcHeight = wire.from.height,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = wire.to.address, .dstXInBytes = wire.to.x,
		.dstY = wire.to.y, .dstZ = wire.to.z, .dstPitch = wire.to.pitch, .dstHeight = wire.to.height,
		.WidthInBytes = wire.width, .Height = wire.height, .Depth = wire.depth,
	};
	node->kind = wire.kind;
	if (wire.kind == RC_GRAPH_COPY_ACROSS)
		return CUDA_SUCCESS;
	uint64_t bytes = copy_bytes(&wire);
	if (!bytes || node->wire.flags & RC_NODE_DISABLED)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = server_host_node_new(&graph->hosts, wire.function, bytes, wire.kind == RC_GRAPH_COPY_UP, &node->host);
	if (result != CUDA_SUCCESS)
		return result;
	if (wire.kind == RC_GRAPH_COPY_UP) {
		to->srcMemoryType = CU_MEMORYTYPE_HOST;
		to->srcHost = server_host_node_memory(node->host);
		to->srcDevice = to->srcXInBytes = to->srcY = to->srcZ = 0;
		to->srcPitch = wire.width;
		to->srcHeight = wire.height;
	} else {
		to->dstMemoryType = CU_MEMORYTYPE_HOST;
		to->dstHost = server_host_node_memory(node->host);
		to->dstDevice = to->dstXInBytes = to->dstY = to->dstZ = 0;
		to->dstPitch = wire.width;
		to->dstHeight = wire.height;
	}
	return CUDA_SUCCESS;
}

static CUresult take_fill(struct server_call *call, struct arrived *node)
{
	struct rc_wire_graph_fill wire;
	if (!server_take_into(call, &wire, sizeof wire))
		return CUDA_ERROR_INVALID_VALUE;
	node->params.memset = (CUDA_MEMSET_NODE_PARAMS_v2){ .dst = wire.to, .pitch = wire.pitch, .value = wire.value,
							    .elementSize = wire.element, .width = wire.width,
							    .height = wire.height, .ctx = node->context };
	return CUDA_SUCCESS;
}

static CUresult take_host(struct server_call *call, struct graph *graph, struct arrived *node)
{
	uint64_t id;
	if (!server_take_into(call, &id, sizeof id))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_host_node_new(&graph->hosts, id, 0, false, &node->host);
	if (result == CUDA_SUCCESS)
		node->params.host = (CUDA_HOST_NODE_PARAMS_v2){ .fn = server_host_node_run, .userData = node->host };
	return result;
}

static CUresult take_event(struct server_call *call, struct arrived *node)
{
	uint64_t handle;
	void *event;
	if (!server_take_into(call, &handle, sizeof handle))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_EVENT, handle, &event);
	if (result == CUDA_SUCCESS)
		node->params.eventRecord.event = event; /* the member of both types of node */
	return result;
}

/* Takes a node that holds no graph. The caller frees node->pointers. */
static CUresult take_node(struct server_call *call, struct graph *graph, struct arrived *node)
{
	node->params.type = (CUgraphNodeType)node->wire.type;
	CUresult result = CUDA_SUCCESS;
	if (node->wire.context)
		result = server_object(RC_KIND_CONTEXT, node->wire.context, (void **)&node->context);
	if (result != CUDA_SUCCESS)
		return result;
	switch (node->wire.type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return take_kernel(call, node);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return take_copy(call, graph, node);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return take_fill(call, node);
	case CU_GRAPH_NODE_TYPE_HOST:
		return take_host(call, graph, node);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return take_event(call, node);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

/* ---- a graph ---- */

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

/* Adds the driver's nodes for one of the client's: two for a copy between device and host. */
static CUresult add_node(CUgraph to, struct arrived *arrived, struct node *node)
{
	CUresult result = add_plain(to, &arrived->params, &node->work);
	if (result != CUDA_SUCCESS)
		return result;
	node->first = node->last = node->work;
	node->type = arrived->params.type;
	node->host = arrived->host;
	node->disabled = arrived->wire.flags & RC_NODE_DISABLED;
	if (node->type == CU_GRAPH_NODE_TYPE_KERNEL)
		return set_attributes(node->work, arrived);
	if (node->type != CU_GRAPH_NODE_TYPE_MEMCPY || !arrived->host)
		return CUDA_SUCCESS;
	CUgraphNode asks;
	CUgraphNodeParams host = { .type = CU_GRAPH_NODE_TYPE_HOST,
				   .host = { .fn = server_host_node_run, .userData = arrived->host } };
	result = add_plain(to, &host, &asks);
	if (result != CUDA_SUCCESS)
		return result;
	if (arrived->kind == RC_GRAPH_COPY_UP)
		node->first = asks;
	else
		node->last = asks;
	return join_nodes(to, node->first, node->last);
}

static struct node *node_new(struct graph *graph)
{
	if (graph->n == graph->room) {
		uint32_t room = graph->room ? 2 * graph->room : 64;
		struct node *node = realloc(graph->node, room * sizeof *node);
		if (!node)
			return NULL;
		graph->node = node;
		graph->room = room;
	}
	graph->node[graph->n] = (struct node){ .type = CU_GRAPH_NODE_TYPE_EMPTY };
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
	struct node *made = &graph->node[number];
	made->first = made->last = made->work = node;
	made->type = CU_GRAPH_NODE_TYPE_GRAPH;
	return CUDA_SUCCESS;
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
	CUresult result = take_node(call, graph, &arrived);
	if (result == CUDA_SUCCESS)
		result = add_node(to, &arrived, &graph->node[number]);
	free(arrived.pointers);
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

/* ---- calls ---- */

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
		driver.cuGraphDestroy(graph->graph);
	free(graph->node);
	free(graph);
}

/* Nodes that are disabled in the client's graph are so from the start. */
static CUresult instantiate(struct graph *graph, unsigned long long flags)
{
	CUresult result = server_host_nodes_keep(graph->graph, &graph->hosts);
	if (result == CUDA_SUCCESS)
		result = driver.cuGraphInstantiateWithFlags(&graph->exec, graph->graph, flags);
	for (uint32_t i = 0; i < graph->n && result == CUDA_SUCCESS; i++)
		if (graph->node[i].disabled)
			result = driver.cuGraphNodeSetEnabled ?
				 driver.cuGraphNodeSetEnabled(graph->exec, graph->node[i].work, 0) : CUDA_ERROR_NOT_SUPPORTED;
	return result;
}

CUresult serve_graph_instantiate(struct server_call *call)
{
	struct rc_wire_graph_new wire;
	if (!server_take_into(call, &wire, sizeof wire))
		return CUDA_ERROR_INVALID_VALUE;
	if (!can_build())
		return CUDA_ERROR_NOT_SUPPORTED;
	struct graph *graph = calloc(1, sizeof *graph);
	if (!graph)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = driver.cuGraphCreate(&graph->graph, 0);
	if (result == CUDA_SUCCESS)
		result = take_graph(call, graph, graph->graph, 0);
	if (result == CUDA_SUCCESS)
		result = instantiate(graph, wire.flags);
	if (result == CUDA_SUCCESS)
		result = server_object_bind(RC_KIND_GRAPH_EXEC, wire.exec, graph->exec, graph);
	if (result != CUDA_SUCCESS) {
		server_host_nodes_drop(&graph->hosts);
		graph_free(graph);
	}
	return result;
}

CUresult serve_graph_launch(struct server_call *call)
{
	struct rc_wire_graph_launch wire;
	void *exec, *stream;
	if (!server_take_into(call, &wire, sizeof wire))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_GRAPH_EXEC, wire.exec, &exec);
	if (result == CUDA_SUCCESS)
		result = server_object(RC_KIND_STREAM, wire.stream, &stream);
	return result == CUDA_SUCCESS ? driver.cuGraphLaunch(exec, stream) : result;
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

/* Copies to and from the host keep the direction that they have. */
/* *used: the executable graph uses the memory of arrived, also if the change then fails. */
static CUresult change(struct graph *graph, struct node *node, struct arrived *arrived, bool *used)
{
	if (arrived->params.type != node->type || !arrived->host != !node->host)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = driver.cuGraphExecNodeSetParams(graph->exec, node->work, &arrived->params);
	*used = result == CUDA_SUCCESS;
	CUgraphNode asks = node->first == node->work ? node->last : node->first;
	if (result == CUDA_SUCCESS && asks != node->work) {
		CUgraphNodeParams host = { .type = CU_GRAPH_NODE_TYPE_HOST,
					   .host = { .fn = server_host_node_run, .userData = arrived->host } };
		result = driver.cuGraphExecNodeSetParams(graph->exec, asks, &host);
	}
	bool has_state = node->type == CU_GRAPH_NODE_TYPE_KERNEL || node->type == CU_GRAPH_NODE_TYPE_MEMCPY ||
			 node->type == CU_GRAPH_NODE_TYPE_MEMSET;
	if (result == CUDA_SUCCESS && has_state && !node->host)
		result = driver.cuGraphNodeSetEnabled(graph->exec, node->work, !(arrived->wire.flags & RC_NODE_DISABLED));
	return result;
}

CUresult serve_graph_node(struct server_call *call)
{
	struct rc_wire_graph_change wire;
	struct arrived arrived = { .wire = { 0 } };
	bool used = false;
	if (!server_take_into(call, &wire, sizeof wire) || !server_take_into(call, &arrived.wire, sizeof arrived.wire))
		return CUDA_ERROR_INVALID_VALUE;
	struct graph *graph = server_object_data(RC_KIND_GRAPH_EXEC, wire.exec);
	if (!graph)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!driver.cuGraphExecNodeSetParams || !driver.cuGraphNodeSetEnabled)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (wire.node >= graph->n)
		return CUDA_ERROR_INVALID_VALUE;
	graph->hosts = NULL;
	CUresult result = take_node(call, graph, &arrived);
	if (result == CUDA_SUCCESS)
		result = change(graph, &graph->node[wire.node], &arrived, &used);
	free(arrived.pointers);
	/* The executable graph takes no more user objects: what it uses now stays until the worker ends. */
	if (used)
		server_host_nodes_leave(&graph->hosts);
	else
		server_host_nodes_drop(&graph->hosts);
	return result;
}
