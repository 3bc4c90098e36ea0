/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Executable graphs: the clone is sent once, when it is made; an update sends the nodes that differ; a launch is one message.
 * The format is in wire.h.
 */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/graph/graph_spread.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/hostmem.h"
#include "cuda_remote/client/kernel.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/peer/peer_calls.h"
#include "cuda_remote/client/pinned.h"
#include "cuda_remote/client/session.h"

#include "cuda_remote/api/attributes.h"

#include <stdlib.h>
#include <string.h>

/* How a copy is sent: not yet, as an empty node, as one that the driver makes, or with the client's help. */
enum way { WAY_NEW, WAY_EMPTY, WAY_ACROSS, WAY_UP, WAY_DOWN, WAY_ON_HOST };

struct graph_runner {
	struct rc_session *session;
	uint64_t handle;
	uint32_t nodes; /* numbered so far */
	uint8_t *ways;  /* by number: enum way of a copy */
	uint32_t room;
	bool memory;    /* some node allocates or frees memory */
	uint64_t ends;  /* rc_handle_ends when all objects of the graph were there */
	rc_graph_hosts_t hosts;
	CUcontext context; /* in which `stream` is made */
	CUstream stream;   /* for launches in streams of other servers; or NULL */
	CUevent event;     /* recorded behind such a launch */
	struct rc_graph_spread *spread; /* the graph has nodes of several servers: nothing is sent for the whole; or NULL */
};

/* Bytes of a message that is being written. */
struct bytes {
	uint8_t *at;
	size_t len, room;
	bool failed; /* no memory */
};

/* What a node is written for. */
struct writer {
	struct bytes bytes;
	struct graph_runner *run;
	bool in_body;
	struct bytes *numbers; /* of the nodes, which have them already; NULL: they are new */
};

static void put(struct bytes *to, const void *from, size_t len)
{
	if (to->len + len > to->room) {
		size_t room = 2 * (to->len + len);
		uint8_t *at = realloc(to->at, room);
		to->failed = to->failed || !at;
		if (!at)
			return;
		to->at = at;
		to->room = room;
	}
	if (len)
		memcpy(to->at + to->len, from, len);
	to->len += len;
}

static void pad(struct bytes *to)
{
	static const uint8_t zero[8];
	put(to, zero, (8 - to->len % 8) % 8);
}

/* CUDA_ERROR_INVALID_VALUE: the object is of another server than the graph. */
static CUresult check_session(const struct graph_runner *run, uint64_t handle)
{
	return rc_handle_session(handle) == run->session ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- a node, by type ---- */

static bool travels(uint32_t attribute)
{
	return attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE || rc_launch_attribute_travels((CUlaunchAttributeID)attribute);
}

static CUresult put_kernel(struct writer *writer, CUgraphNode node)
{
	const graph_kernel_t *kernel = node->kernel;
	const launch_shape_t *shape = &kernel->shape;
	struct rc_wire_graph_kernel wire = {
		.function = kernel->function_id, .grid = { shape->grid[0], shape->grid[1], shape->grid[2] },
		.block = { shape->block[0], shape->block[1], shape->block[2] }, .shared = shape->dynamic_shared,
		.parameters = (uint32_t)kernel->bytes,
	};
	CUresult result = check_session(writer->run, wire.function);
	struct rc_kernel *known = rc_kernel_find(wire.function);
	if (result == CUDA_SUCCESS && known && known->block == kernel->bytes && rc_memory_any_unmapped())
		rc_unmapped_launch(writer->run->session, known, kernel->block);
	for (uint32_t i = 0; i < GRAPH_ATTRIBUTES; i++)
		if (kernel->set & 1u << i && travels(i))
			wire.set |= 1u << i;
	put(&writer->bytes, &wire, sizeof wire);
	put(&writer->bytes, kernel->block, kernel->bytes);
	pad(&writer->bytes);
	for (uint32_t i = 0; i < GRAPH_ATTRIBUTES; i++)
		if (wire.set & 1u << i)
			put(&writer->bytes, &kernel->values[i], sizeof kernel->values[i]);
	return result;
}

/* How a copy is sent. The worker has a node or two for it, so a change cannot send it in another way. */
static CUresult copy_way(const struct writer *writer, CUgraphNode node, struct rc_graph_side *to, struct rc_graph_side *from,
			 enum way *way)
{
	const CUDA_MEMCPY3D *copy = &node->params.memcpy.copyParams;
	uint8_t *before = &writer->run->ways[node->number];
	if (*before == WAY_NEW || *before == WAY_ACROSS) {
		rc_graph_side_map(to, copy, writer->run->session);
		rc_graph_side_map(from, copy, writer->run->session);
	}
	if (!copy->WidthInBytes || !copy->Height || !copy->Depth)
		*way = WAY_EMPTY;
	else if (to->host && from->host)
		*way = WAY_ON_HOST;
	else
		*way = to->host ? WAY_DOWN : from->host ? WAY_UP : WAY_ACROSS;
	/* The worker asks for host memory by a host function, which CUDA does not allow in the body of a condition. */
	if ((*before != WAY_NEW && *before != *way) || (writer->in_body && *way > WAY_ACROSS))
		return CUDA_ERROR_NOT_SUPPORTED;
	*before = *way;
	return CUDA_SUCCESS;
}

/* The host's side has only what the client keeps. Pitch and height as given: the driver checks x and y against those that are
 * not 0. */
static struct rc_wire_side wire_side(const struct rc_graph_side *side, uint64_t pitch, uint64_t height)
{
	struct rc_wire_side wire = { .object = 0 };
	if (side->host)
		return wire;
	wire = side->wire;
	wire.pitch = pitch;
	wire.height = height;
	return wire;
}

/* A copy between two places of the host is a host function for the worker. */
static CUresult put_copy(struct writer *writer, struct rc_wire_node *head, CUgraphNode node)
{
	static const uint32_t kinds[] = { [WAY_UP] = RC_GRAPH_COPY_UP, [WAY_DOWN] = RC_GRAPH_COPY_DOWN,
					  [WAY_ON_HOST] = RC_GRAPH_COPY_ACROSS };
	const CUDA_MEMCPY3D *copy = &node->params.memcpy.copyParams;
	struct rc_graph_side to, from;
	uint64_t id = 0;
	enum way way;
	CUresult result = rc_graph_copy_sides(copy, &to, &from);
	if (result == CUDA_SUCCESS)
		result = copy_way(writer, node, &to, &from, &way);
	if (result == CUDA_SUCCESS && way > WAY_ACROSS)
		result = rc_graph_host_copy(&writer->run->hosts, writer->run->session, node->number, copy, &to, &from,
					    node->disabled, &id);
	if (result != CUDA_SUCCESS)
		return result;
	if (way == WAY_EMPTY)
		*head = (struct rc_wire_node){ .type = CU_GRAPH_NODE_TYPE_EMPTY };
	else if (way == WAY_ON_HOST)
		head->type = CU_GRAPH_NODE_TYPE_HOST, head->context = 0;
	put(&writer->bytes, head, sizeof *head);
	struct rc_wire_graph_copy wire = {
		.to = wire_side(&to, copy->dstPitch, copy->dstHeight), .from = wire_side(&from, copy->srcPitch, copy->srcHeight),
		.width = copy->WidthInBytes, .height = copy->Height, .depth = copy->Depth, .function = id, .kind = kinds[way],
	};
	if (way == WAY_ON_HOST)
		put(&writer->bytes, &id, sizeof id);
	else if (way != WAY_EMPTY)
		put(&writer->bytes, &wire, sizeof wire);
	return CUDA_SUCCESS;
}

static CUresult put_memops(struct writer *writer, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *params)
{
	struct rc_wire_memop sent[RC_MEMOPS_MAX];
	uint64_t count = params->count;
	CUresult result = rc_memops_translate(writer->run->session, params->paramArray, params->count, params->flags, sent);
	if (result != CUDA_SUCCESS)
		return result;
	put(&writer->bytes, &count, sizeof count);
	put(&writer->bytes, sent, count * sizeof *sent);
	return CUDA_SUCCESS;
}

static void put_fill(struct bytes *bytes, const CUDA_MEMSET_NODE_PARAMS_v2 *fill)
{
	struct rc_wire_graph_fill wire = { fill->dst, fill->pitch, fill->width, fill->height, fill->value, fill->elementSize };
	put(bytes, &wire, sizeof wire);
}

static CUresult put_graph(struct writer *writer, CUgraph graph);

static CUresult put_host(struct writer *writer, CUgraphNode node)
{
	uint64_t id = 0;
	CUresult result = rc_graph_host_function(&writer->run->hosts, writer->run->session, node->number,
						 node->params.host.fn, node->params.host.userData, &id);
	put(&writer->bytes, &id, sizeof id);
	return result;
}

static CUresult put_conditional(struct writer *writer, CUgraphNode node)
{
	const CUDA_CONDITIONAL_NODE_PARAMS *params = &node->params.conditional;
	struct rc_wire_graph_condition wire = { node->value->handle, params->type, params->size };
	CUresult result = CUDA_SUCCESS;
	bool in_body = writer->in_body;
	put(&writer->bytes, &wire, sizeof wire);
	writer->in_body = true;
	for (unsigned i = 0; i < params->size && result == CUDA_SUCCESS; i++)
		result = put_graph(writer, params->phGraph_out[i]);
	writer->in_body = in_body;
	return result;
}

static CUcontext context_of(CUgraphNode node)
{
	switch (node->params.type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return node->params.kernel.ctx;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return node->params.memcpy.copyCtx;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return node->params.memset.ctx;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return node->params.conditional.ctx;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return node->params.memOp.ctx;
	default:
		return NULL;
	}
}

/* A copy or fill of memory of this server that was made in a context of another one is made in the memory's context.
 * CUDA_ERROR_INVALID_VALUE: the memory is of another server than before. */
static CUresult settle_context(const struct graph_runner *run, CUgraphNode node, uint64_t *context)
{
	struct rc_graph_place place = rc_graph_place(node);
	if (place.across || (place.session && place.session != run->session))
		return CUDA_ERROR_INVALID_VALUE;
	if (*context && place.session && check_session(run, *context) != CUDA_SUCCESS)
		*context = (uint64_t)(uintptr_t)place.context;
	return CUDA_SUCCESS;
}

static CUresult put_node(struct writer *writer, CUgraphNode node)
{
	struct rc_wire_node head = { .type = node->params.type, .flags = node->disabled ? RC_NODE_DISABLED : 0,
				     .context = (uint64_t)(uintptr_t)context_of(node) };
	CUresult result = graph_params_there(node);
	if (result == CUDA_SUCCESS && rc_peer_possible() && head.type != CU_GRAPH_NODE_TYPE_GRAPH)
		result = settle_context(writer->run, node, &head.context);
	if (result == CUDA_SUCCESS && head.context)
		result = check_session(writer->run, head.context);
	if (result != CUDA_SUCCESS)
		return result;
	if (head.type == CU_GRAPH_NODE_TYPE_MEMCPY)
		return put_copy(writer, &head, node);
	if (node->memory) /* allocated by the client: graph_allocation.c */
		head.type = CU_GRAPH_NODE_TYPE_EMPTY;
	put(&writer->bytes, &head, sizeof head);
	switch (node->params.type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return put_kernel(writer, node);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		put_fill(&writer->bytes, &node->params.memset);
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_HOST:
		return put_host(writer, node);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return put_graph(writer, node->params.graph.graph);
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return put_conditional(writer, node);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return put_memops(writer, &node->params.memOp);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		put(&writer->bytes, &node->named[0], sizeof node->named[0]);
		return check_session(writer->run, node->named[0]);
	case CU_GRAPH_NODE_TYPE_EMPTY:
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

static bool number(struct graph_runner *run, CUgraphNode node)
{
	if (run->nodes == run->room) {
		uint32_t room = run->room ? 2 * run->room : 64;
		uint8_t *ways = realloc(run->ways, room);
		if (!ways)
			return false;
		run->ways = ways;
		run->room = room;
	}
	run->ways[run->nodes] = WAY_NEW;
	node->number = run->nodes++;
	return true;
}

static CUresult put_graph(struct writer *writer, CUgraph graph)
{
	struct rc_wire_graph head = { .nodes = graph->count };
	uint32_t index = 0;
	for (CUgraphNode node = graph->first; node; node = node->next) {
		node->index = index++;
		head.edges += node->before.count;
	}
	put(&writer->bytes, &head, sizeof head);
	for (CUgraphNode node = graph->first; node; node = node->next) {
		if (writer->numbers)
			put(writer->numbers, &node->number, sizeof node->number);
		else if (!number(writer->run, node))
			return CUDA_ERROR_OUT_OF_MEMORY;
		CUresult result = put_node(writer, node);
		if (result != CUDA_SUCCESS)
			return result;
	}
	/* Each node's dependencies in their order, by which the driver pairs the nodes of two graphs in an update. */
	for (CUgraphNode node = graph->first; node; node = node->next)
		for (uint32_t i = 0; i < node->before.count; i++) {
			struct rc_wire_graph_edge edge = { .from = node->before.at[i].node->index, .to = node->index };
			memcpy(edge.data, &node->before.at[i].data, sizeof edge.data);
			put(&writer->bytes, &edge, sizeof edge);
		}
	return CUDA_SUCCESS;
}

/* ---- executable graphs ---- */

static CUresult link_of(struct graph_runner *run, struct rc_link **link)
{
	struct rc_route route = { run->session, run->session->primary, false };
	return rc_link_get(&route, false, link);
}

/* Sends a whole graph. call: graph_instantiate; graph_update, and the nodes have the numbers. */
static CUresult send_graph(CUgraphExec exec, enum rc_call call, const struct bytes *bytes, const struct bytes *numbers)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_graph_new call;
	} message = { .call = { exec->run->handle, exec->flags, 0 } };
	struct rc_link *link;
	struct iovec iov[2] = { { bytes->at, bytes->len }, { numbers->at, numbers->len } };
	if (bytes->failed || numbers->failed)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (bytes->len + numbers->len > RC_CALL_BYTES_MAX - sizeof message)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = rc_graph_conditionals(exec->graph, exec->run->session, &message.call.conditionals);
	if (result == CUDA_SUCCESS)
		result = link_of(exec->run, &link);
	if (result != CUDA_SUCCESS)
		return result;
	return rc_link_call(link, call, 0, &message.head, sizeof message, iov, numbers->len ? 2 : 1);
}

static void runner_free(struct graph_runner *run)
{
	rc_graph_hosts_end(&run->hosts);
	if (run->spread)
		rc_graph_spread_end(run->spread);
	if (run->handle)
		rc_handle_delete(run->handle);
	if (run->stream)
		cuStreamDestroy_v2(run->stream);
	if (run->event)
		cuEventDestroy_v2(run->event);
	free(run->ways);
	free(run);
}

static CUresult send_new(CUgraphExec exec)
{
	struct graph_runner *run = exec->run;
	struct writer writer = { .run = run };
	CUresult result = rc_handle_new(RC_KIND_GRAPH_EXEC, run->session, &run->handle);
	if (result == CUDA_SUCCESS)
		result = put_graph(&writer, exec->graph);
	if (result == CUDA_SUCCESS)
		result = send_graph(exec, RC_CALL_graph_instantiate, &writer.bytes, &(struct bytes){ .at = NULL });
	free(writer.bytes.at);
	return result;
}

CUresult graph_driver_instantiate(CUgraphExec exec)
{
	struct rc_context *context;
	CUresult result = rc_context_get(&context);
	struct graph_runner *run = calloc(1, sizeof *run);
	if (result != CUDA_SUCCESS || !run) {
		free(run);
		return result != CUDA_SUCCESS ? result : CUDA_ERROR_OUT_OF_MEMORY;
	}
	struct rc_graph_place place = { .session = NULL };
	if (rc_peer_possible())
		place = rc_graph_place_all(exec->graph);
	exec->run = run;
	run->session = place.session ? place.session : rc_context_session();
	run->context = place.session ? place.context : context->handle;
	run->memory = graph_has_memory(exec->graph);
	result = place.across ? rc_graph_spread_make(exec, &run->spread) : send_new(exec);
	if (result != CUDA_SUCCESS)
		runner_free(run);
	return result;
}

/* The worker's driver lets launches that are running complete. */
void graph_driver_exec_free(CUgraphExec exec)
{
	struct {
		struct rc_wire_call head;
		uint64_t exec;
	} message = { .exec = exec->run->handle };
	struct rc_link *link;
	if (!exec->run->spread && link_of(exec->run, &link) == CUDA_SUCCESS)
		rc_link_post(link, RC_CALL_graph_destroy, 0, &message.head, sizeof message, NULL, 0);
	runner_free(exec->run);
}

static CUresult send_node(CUgraphExec exec, uint32_t number, const struct bytes *bytes)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_graph_change call;
	} message = { .call = { exec->run->handle, number, 0 } };
	struct rc_link *link;
	struct iovec iov = { bytes->at, bytes->len };
	CUresult result = bytes->failed ? CUDA_ERROR_OUT_OF_MEMORY : link_of(exec->run, &link);
	if (result != CUDA_SUCCESS)
		return result;
	return rc_link_call(link, RC_CALL_graph_node, 0, &message.head, sizeof message, &iov, 1);
}

/* A driver changes no copy or fill of several rows by itself (cuGraphExecMemcpyNodeSetParams), but as part of a whole graph. */
static bool has_rows(CUgraphNode node)
{
	const CUDA_MEMCPY3D *copy = &node->params.memcpy.copyParams;
	if (node->params.type == CU_GRAPH_NODE_TYPE_MEMCPY)
		return copy->Height > 1 || copy->Depth > 1;
	return node->params.type == CU_GRAPH_NODE_TYPE_MEMSET && node->params.memset.height > 1;
}

static bool in_body(CUgraphNode node)
{
	CUgraphNode owner = node->graph->owner;
	while (owner && owner->params.type != CU_GRAPH_NODE_TYPE_CONDITIONAL)
		owner = owner->graph->owner;
	return owner;
}

static CUresult send_whole(CUgraphExec exec);

CUresult graph_driver_node_changed(CUgraphExec exec, CUgraphNode node)
{
	if (exec->run->spread)
		return rc_graph_spread_changed(exec->run->spread, node);
	if (has_rows(node))
		return send_whole(exec);
	struct writer writer = { .run = exec->run, .in_body = in_body(node) };
	if (node->params.type == CU_GRAPH_NODE_TYPE_GRAPH || node->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		return CUDA_SUCCESS;
	const struct rc_graph_host *before = exec->run->hosts.first;
	CUresult result = put_node(&writer, node);
	if (result == CUDA_SUCCESS)
		result = send_node(exec, node->number, &writer.bytes);
	free(writer.bytes.at);
	if (result == CUDA_SUCCESS)
		rc_graph_hosts_retire(&exec->run->hosts, node->number);
	else
		rc_graph_hosts_undo(&exec->run->hosts, before);
	return result;
}

static bool same_kernel(CUgraphNode node, CUgraphNode other)
{
	const graph_kernel_t *a = node->kernel, *b = other->kernel;
	if (a->function_id != b->function_id || a->bytes != b->bytes || a->set != b->set ||
	    memcmp(&a->shape.grid, &b->shape.grid, sizeof a->shape.grid) ||
	    memcmp(&a->shape.block, &b->shape.block, sizeof a->shape.block) ||
	    a->shape.dynamic_shared != b->shape.dynamic_shared || memcmp(a->block, b->block, a->bytes))
		return false;
	return !a->set || !memcmp(a->values, b->values, GRAPH_ATTRIBUTES * sizeof *a->values);
}

bool rc_graph_nodes_same(CUgraphNode node, CUgraphNode other)
{
	if (node->params.type == CU_GRAPH_NODE_TYPE_KERNEL)
		return same_kernel(node, other);
	if (node->params.type == CU_GRAPH_NODE_TYPE_GRAPH || node->params.type == CU_GRAPH_NODE_TYPE_EMPTY ||
	    node->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		return true;
	if (node->params.type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
		return false; /* the list is compared nowhere else */
	return !memcmp(&node->params, &other->params, sizeof node->params) && node->named[0] == other->named[0];
}

static CUresult send_changes(CUgraphExec exec, CUgraph graph, CUgraphNode *old)
{
	CUresult result = CUDA_SUCCESS;
	for (CUgraphNode node = graph->first; node && result == CUDA_SUCCESS; node = node->next) {
		unsigned count;
		CUgraph *below = graph_below(node, &count);
		for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
			result = send_changes(exec, below[i], old);
		if (result == CUDA_SUCCESS && (!old[node->number] || !rc_graph_nodes_same(node, old[node->number])))
			result = graph_driver_node_changed(exec, node);
	}
	return result;
}

static void by_number(CUgraph graph, CUgraphNode *nodes)
{
	for (CUgraphNode node = graph->first; node; node = node->next) {
		unsigned count;
		CUgraph *below = graph_below(node, &count);
		nodes[node->number] = node;
		for (unsigned i = 0; i < count; i++)
			by_number(below[i], nodes);
	}
}

/* True if a conditional node has another handle than before, or a copy or fill of several rows is another one. */
static bool whole_changed(CUgraph graph, CUgraphNode *old)
{
	for (CUgraphNode node = graph->first; node; node = node->next) {
		unsigned count;
		CUgraph *below = graph_below(node, &count);
		CUgraphNode before = old[node->number];
		if (node->value && (!before || before->value != node->value))
			return true;
		if (has_rows(node) && (!before || !rc_graph_nodes_same(node, before)))
			return true;
		for (unsigned i = 0; i < count; i++)
			if (whole_changed(below[i], old))
				return true;
	}
	return false;
}

/* What cannot be changed node by node. */
static CUresult send_whole(CUgraphExec exec)
{
	struct bytes numbers = { .at = NULL };
	struct writer writer = { .run = exec->run, .numbers = &numbers };
	struct rc_graph_host *before = exec->run->hosts.first;
	CUresult result = put_graph(&writer, exec->graph);
	if (result == CUDA_SUCCESS)
		result = send_graph(exec, RC_CALL_graph_update, &writer.bytes, &numbers);
	free(writer.bytes.at);
	free(numbers.at);
	if (result == CUDA_SUCCESS)
		rc_graph_hosts_retire_from(&exec->run->hosts, before);
	else
		rc_graph_hosts_undo(&exec->run->hosts, before);
	return result;
}

CUresult graph_driver_replaced(CUgraphExec exec, CUgraph old, CUgraph now)
{
	if (exec->run->spread)
		return rc_graph_spread_replaced(exec->run->spread, now);
	CUgraphNode *nodes = calloc(exec->run->nodes + 1, sizeof(CUgraphNode));
	if (!nodes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	by_number(old, nodes);
	CUresult result = whole_changed(now, nodes) ? send_whole(exec) : send_changes(exec, now, nodes);
	/* Later updates pair nodes by their place in the graph. */
	uint32_t index = 0;
	for (CUgraphNode node = now->first; node; node = node->next)
		node->index = index++;
	free(nodes);
	return result;
}

static CUresult check_node(CUgraphNode node, void *with)
{
	(void)with;
	return graph_params_there(node);
}

/* The objects that the nodes refer to were there when none had ended: they need no second look. */
static CUresult check_objects(CUgraphExec exec)
{
	uint64_t ends = rc_handle_ends();
	if (ends == exec->run->ends)
		return CUDA_SUCCESS;
	CUresult result = graph_visit(exec->graph, check_node, NULL);
	if (result == CUDA_SUCCESS)
		exec->run->ends = ends;
	return result;
}

static CUresult post_launch(CUgraphExec exec, uint64_t stream, const struct rc_route *route)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_graph_launch call;
	} message = { .call = { exec->run->handle, stream } };
	struct rc_link *link;
	CUresult result = rc_link_get(route, true, &link);
	if (result != CUDA_SUCCESS)
		return result;
	rc_graph_hosts_launch(&exec->run->hosts);
	result = rc_link_post(link, RC_CALL_graph_launch, 0, &message.head, sizeof message, NULL, 0);
	if (result != CUDA_SUCCESS)
		rc_graph_hosts_not_launched(&exec->run->hosts);
	return result;
}

/* Launches the graph in a stream of its own server. Events order this stream with the stream of the other server that was named. */
static CUresult launch_between(CUgraphExec exec, CUstream stream, CUevent begin)
{
	struct graph_runner *run = exec->run;
	struct rc_route route = { NULL, 0, false };
	CUcontext popped;
	CUresult result = cuCtxPushCurrent_v2(run->context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!run->stream)
		result = cuStreamCreate(&run->stream, CU_STREAM_NON_BLOCKING);
	if (result == CUDA_SUCCESS && !run->event)
		result = cuEventCreate(&run->event, CU_EVENT_DISABLE_TIMING);
	if (result == CUDA_SUCCESS)
		result = cuStreamWaitEvent(run->stream, begin, 0);
	if (result == CUDA_SUCCESS)
		result = post_launch(exec, (uint64_t)(uintptr_t)run->stream, &route);
	if (result == CUDA_SUCCESS)
		result = cuEventRecord(run->event, run->stream);
	cuCtxPopCurrent_v2(&popped);
	return result == CUDA_SUCCESS ? cuStreamWaitEvent(stream, run->event, 0) : result;
}

/* In a stream of another server than the graph. */
static CUresult launch_elsewhere(CUgraphExec exec, CUstream stream)
{
	CUstream given = (CUstream)(uintptr_t)rc_capture_stream_handle(stream);
	CUevent begin;
	CUcontext popped;
	CUresult result = cuCtxPushCurrent_v2(graph_driver_stream_context(stream));
	if (result != CUDA_SUCCESS)
		return result;
	result = cuEventCreate(&begin, CU_EVENT_DISABLE_TIMING);
	if (result == CUDA_SUCCESS) {
		result = cuEventRecord(begin, given);
		if (result == CUDA_SUCCESS)
			result = launch_between(exec, given, begin);
		cuEventDestroy_v2(begin);
	}
	cuCtxPopCurrent_v2(&popped);
	return result;
}

static CUresult launch(CUgraphExec exec, CUstream stream)
{
	uint64_t handle = rc_capture_stream_handle(stream);
	struct rc_route route = { NULL, 0, false };
	if (exec->run->spread)
		return rc_graph_spread_launch(exec->run->spread, stream);
	CUresult result = rc_route_handle(&route, RC_KIND_STREAM, handle);
	if (result != CUDA_SUCCESS)
		return result;
	struct rc_session *session = route.session ? route.session : rc_context_session();
	return session == exec->run->session ? post_launch(exec, handle, &route) : launch_elsewhere(exec, stream);
}

CUresult graph_driver_launch(CUgraphExec exec, CUstream stream)
{
	CUresult result = check_objects(exec);
	if (result == CUDA_SUCCESS && exec->run->memory)
		result = rc_graph_memory_launch(exec);
	if (result != CUDA_SUCCESS)
		return result;
	result = launch(exec, stream);
	if (exec->run->memory)
		rc_graph_memory_launched(exec, result == CUDA_SUCCESS);
	return result;
}
