/* SPDX-License-Identifier: BSD-3-Clause */
/* Executable graphs with nodes of several servers (graph_spread.h): how a graph is cut, launched and changed. */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/graph/graph_spread.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/peer/peer_calls.h"
#include "cuda_remote/client/session.h"
#include "rdma_channel/base/log.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

struct piece {
	struct rc_session *session;
	CUcontext context;
	CUgraph graph;        /* its nodes are those of the cut graph */
	CUgraphExec exec;
	CUDA_MEMCPY3D copy;   /* without a graph: between two servers */
	struct rc_session *to, *from; /* of the copy */
	bool across, disabled;
	CUstream stream;
	bool lends_stream;    /* a later piece uses the stream too, and ends it */
	CUevent event;        /* recorded behind the piece at each launch */
	bool followed;        /* by another piece */
	uint32_t *before;     /* the pieces that it waits for */
	uint32_t n_before;
};

/* What is known of a node of the clone, by its number. */
struct node_place {
	uint32_t piece; /* NONE: the node is no more, as one whose graph became part of the graph above */
	CUgraphNode node; /* in the piece's graph; NULL: the piece is the node's copy */
};

struct rc_graph_spread {
	struct piece *pieces; /* each comes behind those that it waits for */
	uint32_t n_pieces;
	struct node_place *nodes;
	uint32_t n_nodes;
	bool launched;
	bool incomplete; /* the last launch has failed: some pieces may not have been launched */
};

/* ---- where a node's work is done ---- */

static struct rc_graph_place place_of(uint64_t context)
{
	return (struct rc_graph_place){ .session = rc_handle_session(context), .context = (CUcontext)(uintptr_t)context };
}

static struct rc_graph_place place_of_address(uint64_t address)
{
	struct rc_span span;
	if (!rc_memory_find(address, &span) || !span.session)
		return (struct rc_graph_place){ .session = NULL };
	/* Memory of another process's pool that was imported without a context has none. */
	CUcontext primary = (CUcontext)(uintptr_t)span.session->primary;
	return (struct rc_graph_place){ .session = span.session, .context = span.context ? span.context : primary };
}

static struct rc_graph_place place_of_side(CUmemorytype type, CUdeviceptr device, CUarray array)
{
	uint64_t handle = (uint64_t)(uintptr_t)array;
	if (type == CU_MEMORYTYPE_ARRAY)
		return (struct rc_graph_place){ .session = rc_handle_session(handle),
						.context = rc_handle_data(RC_KIND_ARRAY, handle) };
	if (type == CU_MEMORYTYPE_DEVICE || (type == CU_MEMORYTYPE_UNIFIED && rc_memory_is_device(device)))
		return place_of_address(device);
	return (struct rc_graph_place){ .session = NULL };
}

/* The place of two things together. */
static struct rc_graph_place join(struct rc_graph_place one, struct rc_graph_place other)
{
	if (!one.session)
		return other;
	one.across = one.across || other.across || (other.session && other.session != one.session);
	return one;
}

static struct rc_graph_place place_of_target(const CUDA_MEMCPY3D *copy)
{
	return place_of_side(copy->dstMemoryType, copy->dstDevice, copy->dstArray);
}

static struct rc_graph_place place_of_source(const CUDA_MEMCPY3D *copy)
{
	return place_of_side(copy->srcMemoryType, copy->srcDevice, copy->srcArray);
}

static struct rc_graph_place place_of_copy(const CUDA_MEMCPY3D *copy, CUcontext context)
{
	struct rc_graph_place place = join(place_of_target(copy), place_of_source(copy));
	return place.session ? place : place_of((uint64_t)(uintptr_t)context);
}

struct rc_graph_place rc_graph_place(CUgraphNode node)
{
	const CUgraphNodeParams *params = &node->params;
	struct rc_graph_place place = { .session = NULL };
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return place_of((uint64_t)(uintptr_t)params->kernel.ctx);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return place_of_copy(&params->memcpy.copyParams, params->memcpy.copyCtx);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		place = place_of_address(params->memset.dst);
		return place.session ? place : place_of((uint64_t)(uintptr_t)params->memset.ctx);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return place_of((uint64_t)(uintptr_t)params->memOp.ctx);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return (struct rc_graph_place){ .session = rc_handle_session(node->named[0]),
						.context = rc_handle_data(RC_KIND_EVENT, node->named[0]) };
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return rc_graph_place_all(params->graph.graph);
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		place = place_of((uint64_t)(uintptr_t)params->conditional.ctx);
		for (unsigned i = 0; i < params->conditional.size; i++)
			place = join(place, rc_graph_place_all(params->conditional.phGraph_out[i]));
		return place;
	default:
		return place;
	}
}

struct rc_graph_place rc_graph_place_all(CUgraph graph)
{
	struct rc_graph_place place = { .session = NULL };
	for (CUgraphNode node = graph->first; node && !place.across; node = node->next)
		place = join(place, rc_graph_place(node));
	return place;
}

/* ---- cutting ---- */

/* What cutting knows of each node, by the node's index. */
struct cut {
	struct rc_graph_place *place;
	uint32_t *stage; /* grows along an edge where the server changes */
	uint32_t *group; /* index of a node that stands for all nodes of the piece */
	uint32_t *piece;
	CUgraphNode *order;
	uint32_t count;
};

static CUresult number_node(CUgraphNode node, void *with)
{
	uint32_t *next = with;
	node->number = (*next)++;
	return CUDA_SUCCESS;
}

/* Puts the nodes of a graph below in the place of their node. */
static CUresult unwrap(CUgraph flat, CUgraphNode node)
{
	CUgraph below = node->params.graph.graph;
	CUgraphNode last = flat->last;
	CUresult result = CUDA_SUCCESS;
	while (below->first)
		graph_node_move(below->first, flat);
	for (CUgraphNode inner = last->next; inner && result == CUDA_SUCCESS; inner = inner->next) {
		bool first = !inner->before.count, ends = !inner->after.count;
		for (uint32_t i = 0; first && i < node->before.count && result == CUDA_SUCCESS; i++)
			result = graph_connect(node->before.at[i].node, inner, NULL);
		for (uint32_t i = 0; ends && i < node->after.count && result == CUDA_SUCCESS; i++)
			result = graph_connect(inner, node->after.at[i].node, NULL);
	}
	graph_node_free(node);
	return result;
}

static CUresult flatten(CUgraph flat)
{
	CUresult result = CUDA_SUCCESS;
	for (CUgraphNode node = flat->first, next; node && result == CUDA_SUCCESS; node = next) {
		bool wraps = node->params.type == CU_GRAPH_NODE_TYPE_GRAPH && rc_graph_place(node).across;
		if (wraps)
			result = unwrap(flat, node); /* the nodes come to the end of the list */
		next = wraps ? flat->first : node->next;
	}
	return result;
}

static bool cut_begin(struct cut *cut, CUgraph flat)
{
	size_t n = cut->count = flat->count;
	cut->place = calloc(n, sizeof *cut->place);
	cut->stage = calloc(n, sizeof *cut->stage);
	cut->group = calloc(n, sizeof *cut->group);
	cut->piece = calloc(n, sizeof *cut->piece);
	cut->order = calloc(n, sizeof(CUgraphNode));
	return cut->place && cut->stage && cut->group && cut->piece && cut->order;
}

static void cut_end(struct cut *cut)
{
	free(cut->place);
	free(cut->stage);
	free(cut->group);
	free(cut->piece);
	free(cut->order);
}

/* Each node behind those that it depends on. The graph has no cycle. */
static void put_in_order(struct cut *cut, CUgraph flat)
{
	uint32_t index = 0, ready = 0;
	for (CUgraphNode node = flat->first; node; node = node->next) {
		node->index = index;
		cut->piece[index++] = node->before.count; /* that are not in the order yet */
		if (!node->before.count)
			cut->order[ready++] = node;
	}
	for (uint32_t taken = 0; taken < ready; taken++)
		for (uint32_t i = 0; i < cut->order[taken]->after.count; i++) {
			CUgraphNode after = cut->order[taken]->after.at[i].node;
			if (!--cut->piece[after->index])
				cut->order[ready++] = after;
		}
}

/* A node that names no server goes to one of a neighbour, or of the current context. */
static void find_places(struct cut *cut)
{
	struct rc_graph_place here = place_of((uint64_t)(uintptr_t)rc_context_current());
	for (uint32_t i = 0; i < cut->count; i++) {
		CUgraphNode node = cut->order[i];
		struct rc_graph_place *place = &cut->place[node->index];
		*place = rc_graph_place(node);
		if (!place->session && node->before.count) {
			*place = cut->place[node->before.at[0].node->index];
			place->across = false;
		}
	}
	for (uint32_t i = cut->count; i--;) {
		CUgraphNode node = cut->order[i];
		struct rc_graph_place *place = &cut->place[node->index];
		if (!place->session && node->after.count) {
			*place = cut->place[node->after.at[0].node->index];
			place->across = false;
		}
		if (!place->session)
			*place = here;
	}
}

static bool together(const struct cut *cut, CUgraphNode one, CUgraphNode other)
{
	const struct rc_graph_place *a = &cut->place[one->index], *b = &cut->place[other->index];
	return a->session == b->session && !a->across && !b->across;
}

static uint32_t group_of(const struct cut *cut, uint32_t index)
{
	while (cut->group[index] != index)
		index = cut->group[index] = cut->group[cut->group[index]];
	return index;
}

/* A piece has nodes of one stage that edges connect. So an edge between two pieces leads to a higher stage, and no two pieces wait
 * for each other. */
static void find_groups(struct cut *cut)
{
	for (uint32_t i = 0; i < cut->count; i++) {
		CUgraphNode node = cut->order[i];
		cut->group[node->index] = node->index;
		for (uint32_t j = 0; j < node->before.count; j++) {
			CUgraphNode before = node->before.at[j].node;
			uint32_t least = cut->stage[before->index] + !together(cut, before, node);
			if (cut->stage[node->index] < least)
				cut->stage[node->index] = least;
		}
		for (uint32_t j = 0; j < node->before.count; j++) {
			CUgraphNode before = node->before.at[j].node;
			if (together(cut, before, node) && cut->stage[before->index] == cut->stage[node->index])
				cut->group[group_of(cut, before->index)] = group_of(cut, node->index);
		}
	}
}

/* A node in the order of stages. */
struct staged {
	CUgraphNode node;
	uint32_t stage;
};

static int by_stage(const void *a, const void *b)
{
	const struct staged *one = a, *other = b;
	if (one->stage != other->stage)
		return one->stage < other->stage ? -1 : 1;
	return one->node->index < other->node->index ? -1 : one->node->index > other->node->index;
}

static CUresult sort_by_stage(struct cut *cut)
{
	struct staged *sorted = calloc(cut->count, sizeof *sorted);
	if (!sorted)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < cut->count; i++)
		sorted[i] = (struct staged){ cut->order[i], cut->stage[cut->order[i]->index] };
	qsort(sorted, cut->count, sizeof *sorted, by_stage);
	for (uint32_t i = 0; i < cut->count; i++)
		cut->order[i] = sorted[i].node;
	free(sorted);
	return CUDA_SUCCESS;
}

/* Numbers the pieces, stage by stage. */
static CUresult number_pieces(struct rc_graph_spread *spread, struct cut *cut)
{
	uint32_t n = 0;
	CUresult result = sort_by_stage(cut);
	if (result != CUDA_SUCCESS)
		return result;
	memset(cut->piece, 0xff, cut->count * sizeof *cut->piece);
	for (uint32_t i = 0; i < cut->count; i++) {
		uint32_t group = group_of(cut, cut->order[i]->index);
		if (cut->piece[group] == NONE)
			cut->piece[group] = n++;
		cut->piece[cut->order[i]->index] = cut->piece[group];
	}
	spread->pieces = calloc(n, sizeof *spread->pieces);
	spread->n_pieces = spread->pieces ? n : 0;
	return spread->pieces ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult wait_for(struct rc_graph_spread *spread, uint32_t piece, uint32_t before)
{
	struct piece *waits = &spread->pieces[piece];
	for (uint32_t i = 0; i < waits->n_before; i++)
		if (waits->before[i] == before)
			return CUDA_SUCCESS;
	uint32_t *list = realloc(waits->before, (waits->n_before + 1) * sizeof *list);
	if (!list)
		return CUDA_ERROR_OUT_OF_MEMORY;
	list[waits->n_before++] = before;
	waits->before = list;
	spread->pieces[before].followed = true;
	return CUDA_SUCCESS;
}

/* Cuts the edges between pieces: in their place, pieces wait for each other. */
static CUresult cut_edges(struct rc_graph_spread *spread, const struct cut *cut)
{
	for (uint32_t i = 0; i < cut->count; i++) {
		CUgraphNode node = cut->order[i];
		uint32_t piece = cut->piece[node->index];
		for (uint32_t j = node->before.count; j--;) {
			CUgraphNode before = node->before.at[j].node;
			uint32_t other = cut->piece[before->index];
			CUresult result = other == piece ? CUDA_SUCCESS : wait_for(spread, piece, other);
			if (result != CUDA_SUCCESS)
				return result;
			if (other != piece) {
				graph_disconnect(before, node);
				j = node->before.count;
			}
		}
	}
	return CUDA_SUCCESS;
}

/* The client allocates the memory of allocation nodes, and counts it for the whole graph: for a piece such a node is empty. */
static CUresult forget_memory(CUgraphNode node, void *with)
{
	(void)with;
	if (!node->memory)
		return CUDA_SUCCESS;
	graph_params_drop(node);
	node->memory = NULL;
	node->params = (CUgraphNodeParams){ .type = CU_GRAPH_NODE_TYPE_EMPTY };
	return CUDA_SUCCESS;
}

/* Whose nodes are being remembered. */
struct remembered {
	struct node_place *nodes;
	uint32_t piece;
};

static CUresult remember_node(CUgraphNode node, void *with)
{
	const struct remembered *of = with;
	of->nodes[node->number] = (struct node_place){ of->piece, node };
	return CUDA_SUCCESS;
}

/* True if the graph or one below it lists the handle. */
static bool has_handle(CUgraph graph, const struct graph_conditional *value)
{
	for (graph_handle_t *handle = graph->conditionals; handle; handle = handle->next)
		if (handle->value == value)
			return true;
	for (CUgraphNode node = graph->first; node; node = node->next) {
		unsigned count;
		CUgraph *below = graph_below(node, &count);
		for (unsigned i = 0; i < count; i++)
			if (has_handle(below[i], value))
				return true;
	}
	return false;
}

/* The handles of conditions of a piece's graph. A handle is set by kernels of the executable graph that has its nodes. The body
 * in which a handle was made lists it already. */
static CUresult list_handle(CUgraphNode node, void *with)
{
	return !node->value || has_handle(with, node->value) ? CUDA_SUCCESS : graph_conditional_list(with, node->value);
}

/* False: a piece has a condition, and another piece of its server a kernel, which may set it. */
static bool conditions_are_whole(const struct rc_graph_spread *spread)
{
	for (uint32_t i = 0; i < spread->n_pieces; i++) {
		const struct piece *piece = &spread->pieces[i];
		if (!piece->graph || !graph_has(piece->graph, CU_GRAPH_NODE_TYPE_CONDITIONAL, true))
			continue;
		for (uint32_t j = 0; j < spread->n_pieces; j++) {
			const struct piece *other = &spread->pieces[j];
			if (other != piece && other->graph && other->session == piece->session &&
			    (graph_has(other->graph, CU_GRAPH_NODE_TYPE_KERNEL, true) ||
			     graph_has(other->graph, CU_GRAPH_NODE_TYPE_CONDITIONAL, true)))
				return false;
		}
	}
	return true;
}

/* Moves the node from the flat graph to its piece. */
static CUresult give_node(struct rc_graph_spread *spread, const struct cut *cut, CUgraphNode node)
{
	const struct rc_graph_place *place = &cut->place[node->index];
	struct remembered of = { spread->nodes, cut->piece[node->index] };
	struct piece *piece = &spread->pieces[of.piece];
	piece->session = place->session;
	piece->context = place->context;
	if (place->across && node->params.type == CU_GRAPH_NODE_TYPE_MEMCPY) {
		piece->copy = node->params.memcpy.copyParams;
		piece->to = place_of_target(&piece->copy).session;
		piece->from = place_of_source(&piece->copy).session;
		piece->disabled = node->disabled;
		piece->across = true;
		of.nodes[node->number] = (struct node_place){ of.piece, NULL };
		return CUDA_SUCCESS;
	}
	if (place->across) { /* the body of a condition, which CUDA keeps on one device, too */
		hr_log_once(HR_LOG_WARN, "the body of a graph's conditional node can have nodes of one server only");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	if (!piece->graph && !(piece->graph = graph_new(NULL)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	graph_node_move(node, piece->graph);
	remember_node(node, &of);
	unsigned count;
	CUgraph *below = graph_below(node, &count);
	for (unsigned i = 0; i < count; i++)
		graph_visit(below[i], remember_node, &of);
	CUresult result = list_handle(node, piece->graph);
	for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
		result = graph_visit(below[i], list_handle, piece->graph);
	return result;
}

static CUresult cut_flat(struct rc_graph_spread *spread, CUgraph flat)
{
	struct cut cut;
	CUresult result = flatten(flat);
	if (result != CUDA_SUCCESS)
		return result;
	bool begun = cut_begin(&cut, flat);
	if (begun) {
		put_in_order(&cut, flat);
		find_places(&cut);
		find_groups(&cut);
		result = number_pieces(spread, &cut);
	}
	if (begun && result == CUDA_SUCCESS)
		result = cut_edges(spread, &cut);
	for (uint32_t i = 0; begun && i < cut.count && result == CUDA_SUCCESS; i++)
		result = give_node(spread, &cut, cut.order[i]);
	cut_end(&cut);
	if (result == CUDA_SUCCESS && begun && !conditions_are_whole(spread)) {
		hr_log_once(HR_LOG_WARN, "a graph of several servers has a conditional node apart from a kernel of its server, "
			    "which may set the condition");
		result = CUDA_ERROR_NOT_SUPPORTED;
	}
	return begun ? result : CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- pieces ---- */

/* Links are open before a stream waits for their copies. */
static void meet_servers(const struct piece *piece)
{
	const CUDA_MEMCPY3D *copy = &piece->copy;
	if (copy->dstMemoryType != CU_MEMORYTYPE_ARRAY && copy->srcMemoryType != CU_MEMORYTYPE_ARRAY)
		rc_peer_meet(piece->to, piece->from);
}

/* A piece goes on in the stream of one that it waits for, if no other piece does. */
static CUresult find_stream(struct rc_graph_spread *spread, struct piece *piece)
{
	for (uint32_t i = 0; i < piece->n_before; i++) {
		struct piece *before = &spread->pieces[piece->before[i]];
		if (before->context != piece->context || before->lends_stream)
			continue;
		before->lends_stream = true;
		piece->stream = before->stream;
		return CUDA_SUCCESS;
	}
	return cuStreamCreate(&piece->stream, CU_STREAM_NON_BLOCKING);
}

static CUresult piece_begin(struct rc_graph_spread *spread, struct piece *piece, unsigned long long flags)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS told;
	CUcontext popped;
	CUresult result = piece->graph ? graph_visit(piece->graph, forget_memory, NULL) : CUDA_SUCCESS;
	if (result == CUDA_SUCCESS)
		result = cuCtxPushCurrent_v2(piece->context);
	if (result != CUDA_SUCCESS)
		return result;
	if (piece->across)
		meet_servers(piece);
	else
		result = graph_exec_new(piece->graph, flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY, &told, &piece->exec);
	if (result == CUDA_SUCCESS)
		result = find_stream(spread, piece);
	if (result == CUDA_SUCCESS)
		result = cuEventCreate(&piece->event, CU_EVENT_DISABLE_TIMING);
	cuCtxPopCurrent_v2(&popped);
	return result;
}

/* In an order in which no piece loses what another one uses. A context that has ended has ended its streams and events. */
void rc_graph_spread_end(struct rc_graph_spread *spread)
{
	for (uint32_t i = 0; i < spread->n_pieces; i++) {
		struct piece *piece = &spread->pieces[i];
		if (piece->exec)
			cuGraphExecDestroy(piece->exec);
		if (piece->graph)
			graph_free(piece->graph);
		if (piece->stream && !piece->lends_stream)
			cuStreamDestroy_v2(piece->stream);
		if (piece->event)
			cuEventDestroy_v2(piece->event);
		free(piece->before);
	}
	free(spread->pieces);
	free(spread->nodes);
	free(spread);
}

CUresult rc_graph_spread_make(CUgraphExec exec, struct rc_graph_spread **output)
{
	CUgraph flat;
	struct rc_graph_spread *spread = calloc(1, sizeof *spread);
	if (!spread)
		return CUDA_ERROR_OUT_OF_MEMORY;
	graph_visit(exec->graph, number_node, &spread->n_nodes);
	spread->nodes = calloc(spread->n_nodes, sizeof *spread->nodes);
	for (uint32_t i = 0; spread->nodes && i < spread->n_nodes; i++)
		spread->nodes[i].piece = NONE;
	CUresult result = spread->nodes ? graph_clone(exec->graph, true, &flat) : CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS) {
		result = cut_flat(spread, flat);
		graph_free(flat);
	}
	for (uint32_t i = 0; i < spread->n_pieces && result == CUDA_SUCCESS; i++)
		result = piece_begin(spread, &spread->pieces[i], exec->flags);
	if (result == CUDA_SUCCESS)
		*output = spread;
	else
		rc_graph_spread_end(spread);
	return result;
}

/* ---- launches ---- */

static CUresult piece_run(const struct piece *piece)
{
	if (piece->exec)
		return cuGraphLaunch(piece->exec, piece->stream);
	return piece->disabled ? CUDA_SUCCESS : cuMemcpy3DAsync_v2(&piece->copy, piece->stream);
}

/* Behind the pieces that it waits for; if there are none, behind the event. */
static CUresult piece_launch(const struct rc_graph_spread *spread, const struct piece *piece, CUevent begin)
{
	CUcontext popped;
	CUresult result = cuCtxPushCurrent_v2(piece->context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!piece->n_before)
		result = cuStreamWaitEvent(piece->stream, begin, 0);
	for (uint32_t i = 0; i < piece->n_before && result == CUDA_SUCCESS; i++) {
		const struct piece *before = &spread->pieces[piece->before[i]];
		if (before->stream != piece->stream)
			result = cuStreamWaitEvent(piece->stream, before->event, 0);
	}
	if (result == CUDA_SUCCESS)
		result = piece_run(piece);
	if (result == CUDA_SUCCESS)
		result = cuEventRecord(piece->event, piece->stream);
	cuCtxPopCurrent_v2(&popped);
	return result;
}

/* The stream waits for the pieces behind which no other comes. If the last launch has failed, it waits for each piece: those that
 * should follow may not have been launched. */
static CUresult follow_all(const struct rc_graph_spread *spread, CUstream stream)
{
	CUresult result = CUDA_SUCCESS;
	for (uint32_t i = 0; i < spread->n_pieces; i++) {
		if (spread->pieces[i].followed && !spread->incomplete)
			continue;
		CUresult followed = cuStreamWaitEvent(stream, spread->pieces[i].event, 0);
		if (result == CUDA_SUCCESS)
			result = followed;
	}
	return result;
}

static CUresult launch_all(struct rc_graph_spread *spread, CUstream stream)
{
	CUevent begin;
	CUresult result = spread->launched ? follow_all(spread, stream) : CUDA_SUCCESS;
	if (result == CUDA_SUCCESS)
		result = cuEventCreate(&begin, CU_EVENT_DISABLE_TIMING);
	if (result != CUDA_SUCCESS)
		return result;
	result = cuEventRecord(begin, stream);
	for (uint32_t i = 0; i < spread->n_pieces && result == CUDA_SUCCESS; i++)
		result = piece_launch(spread, &spread->pieces[i], begin);
	cuEventDestroy_v2(begin);
	spread->incomplete = result != CUDA_SUCCESS;
	/* After a failure too, behind what has been launched. */
	CUresult followed = follow_all(spread, stream);
	spread->launched = true;
	return result == CUDA_SUCCESS ? followed : result;
}

CUresult rc_graph_spread_launch(struct rc_graph_spread *spread, CUstream stream)
{
	CUcontext popped;
	CUresult result = cuCtxPushCurrent_v2(graph_driver_stream_context(stream));
	if (result != CUDA_SUCCESS)
		return result;
	result = launch_all(spread, (CUstream)(uintptr_t)rc_capture_stream_handle(stream));
	cuCtxPopCurrent_v2(&popped);
	return result;
}

/* ---- changes ---- */

static CUresult copy_changed(struct piece *piece, CUgraphNode node)
{
	const CUDA_MEMCPY3D *now = &node->params.memcpy.copyParams;
	/* If the copy stays as it was, its memory may have been freed. */
	bool stays = !memcmp(now, &piece->copy, sizeof *now);
	if (!stays && (place_of_target(now).session != piece->to || place_of_source(now).session != piece->from))
		return CUDA_ERROR_INVALID_VALUE;
	piece->copy = *now;
	piece->disabled = node->disabled;
	return CUDA_SUCCESS;
}

/* The piece's clone of the node takes over the parameters. Under the lock of the piece's executable graph. */
static CUresult take_params(const struct piece *piece, CUgraphNode mine, CUgraphNode node)
{
	struct rc_graph_place place = rc_graph_place(node);
	if (place.across || (place.session && place.session != piece->session))
		return CUDA_ERROR_INVALID_VALUE;
	struct CUgraphNode_st other = { .params.type = CU_GRAPH_NODE_TYPE_EMPTY };
	bool disabled = mine->disabled;
	CUresult result = graph_params_clone(&other, node, true);
	if (result == CUDA_SUCCESS) {
		graph_params_swap(mine, &other);
		mine->disabled = node->disabled;
		result = graph_driver_node_changed(piece->exec, mine);
		if (result != CUDA_SUCCESS) { /* the node stays as the server has it */
			graph_params_swap(mine, &other);
			mine->disabled = disabled;
		}
	}
	graph_params_drop(&other);
	return result;
}

static CUresult node_changed(const struct piece *piece, CUgraphNode original, CUgraphNode node)
{
	CUgraphNode mine;
	CUresult result = graph_exec_lock_node(piece->exec, original, &mine);
	if (result != CUDA_SUCCESS)
		return result;
	/* If the node stays as it was, its memory may have been freed. */
	if (mine->disabled == node->disabled && rc_graph_nodes_same(node, mine)) {
		pthread_mutex_unlock(&piece->exec->lock);
		return CUDA_SUCCESS;
	}
	result = take_params(piece, mine, node);
	pthread_mutex_unlock(&piece->exec->lock);
	return result;
}

CUresult rc_graph_spread_changed(struct rc_graph_spread *spread, CUgraphNode node)
{
	const struct node_place *place = &spread->nodes[node->number];
	CUcontext popped;
	bool plain = node->params.type != CU_GRAPH_NODE_TYPE_GRAPH && node->params.type != CU_GRAPH_NODE_TYPE_CONDITIONAL;
	if (place->piece == NONE || !plain || node->memory || node->params.type == CU_GRAPH_NODE_TYPE_EMPTY)
		return CUDA_SUCCESS;
	struct piece *piece = &spread->pieces[place->piece];
	if (!place->node)
		return copy_changed(piece, node);
	CUresult result = cuCtxPushCurrent_v2(piece->context);
	if (result != CUDA_SUCCESS)
		return result;
	result = node_changed(piece, place->node, node);
	cuCtxPopCurrent_v2(&popped);
	return result;
}

static CUresult change(CUgraphNode node, void *with)
{
	return rc_graph_spread_changed(with, node);
}

static CUresult check_condition(CUgraphNode node, void *with)
{
	const struct rc_graph_spread *spread = with;
	CUgraphNode mine = spread->nodes[node->number].node;
	return !node->value || (mine && mine->value == node->value) ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult rc_graph_spread_replaced(struct rc_graph_spread *spread, CUgraph now)
{
	CUresult result = graph_visit(now, check_condition, spread);
	if (result != CUDA_SUCCESS)
		hr_log_once(HR_LOG_WARN, "an update of a graph of several servers has other conditional handles than the graph");
	return result == CUDA_SUCCESS ? graph_visit(now, change, spread) : result;
}
