/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuGraphExecUpdate: the new graph's nodes are paired with those of the executable graph from the last ones (those that
 * nothing depends on) backwards along the edges, all in the order in which they were added, as cuda.h says. If every
 * pair may change as requested, a clone of the new graph replaces the old clone. Its nodes are found by the handles of
 * the graph that was instantiated.
 */
#include "cuda_remote/graph/graph_exec.h"

#include <stdlib.h>
#include <string.h>

typedef struct pairing {
	CUgraphNode *mine;  /* indexed by the new graph's nodes */
	bool *taken;        /* by the index of mine */
	CUgraphNode *stack; /* new nodes whose dependencies are not paired yet */
	uint32_t depth;
	unsigned long long flags;
	CUgraphExecUpdateResultInfo *info;
} pairing_t;

static bool pair_graphs(CUgraph mine, CUgraph theirs, unsigned long long flags, CUgraphExecUpdateResultInfo *info);

static bool fail(CUgraphExecUpdateResultInfo *info, CUgraphExecUpdateResult result, CUgraphNode node, CUgraphNode from)
{
	*info = (CUgraphExecUpdateResultInfo){ .result = result, .errorNode = node, .errorFromNode = from };
	return false;
}

/* dependent: the new graph's node whose dependency theirs is; NULL for a last one. */
static bool pair(pairing_t *pairing, CUgraphNode mine, CUgraphNode theirs, CUgraphNode dependent)
{
	CUgraphNode known = pairing->mine[theirs->index];
	if (known == mine)
		return true;
	if (known || pairing->taken[mine->index])
		return fail(pairing->info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, dependent ? dependent : theirs,
			    dependent ? theirs : NULL);
	pairing->mine[theirs->index] = mine;
	pairing->taken[mine->index] = true;
	pairing->stack[pairing->depth++] = theirs;
	return true;
}

static bool priority_changed(const graph_kernel_t *from, const graph_kernel_t *to)
{
	const uint32_t bit = 1u << CU_LAUNCH_ATTRIBUTE_PRIORITY;
	int before = from->set & bit ? from->values[CU_LAUNCH_ATTRIBUTE_PRIORITY].priority : 0;
	int after = to->set & bit ? to->values[CU_LAUNCH_ATTRIBUTE_PRIORITY].priority : 0;
	return before != after;
}

static bool kernel_may_become(CUgraphNode mine, CUgraphNode theirs, pairing_t *pairing)
{
	const graph_kernel_t *from = mine->kernel, *to = theirs->kernel;
	if (mine->params.kernel.ctx != theirs->params.kernel.ctx)
		return fail(pairing->info, CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE, theirs, NULL);
	if (from->shape.cooperative != to->shape.cooperative ||
	    memcmp(from->shape.cluster, to->shape.cluster, sizeof from->shape.cluster) ||
	    ((pairing->flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) && priority_changed(from, to)))
		return fail(pairing->info, CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED, theirs, NULL);
	return true;
}

static bool below_may_become(CUgraphNode mine, CUgraphNode theirs, pairing_t *pairing)
{
	unsigned count, other;
	CUgraph *from = graph_below(mine, &count), *to = graph_below(theirs, &other);
	if (count != other)
		return fail(pairing->info, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, theirs, NULL);
	for (unsigned i = 0; i < count; i++)
		if (!pair_graphs(from[i], to[i], pairing->flags, pairing->info))
			return false;
	return true;
}

/* The limitations that cuda.h lists at cuGraphExecUpdate. */
static bool may_become(CUgraphNode mine, CUgraphNode theirs, pairing_t *pairing)
{
	const CUgraphNodeParams *from = &mine->params, *to = &theirs->params;
	bool same = true;
	if (from->type != to->type)
		return fail(pairing->info, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, theirs, NULL);
	switch (from->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return kernel_may_become(mine, theirs, pairing);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		same = from->memcpy.copyParams.srcMemoryType == to->memcpy.copyParams.srcMemoryType &&
		       from->memcpy.copyParams.dstMemoryType == to->memcpy.copyParams.dstMemoryType &&
		       from->memcpy.copyCtx == to->memcpy.copyCtx;
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		same = from->memset.height == to->memset.height && from->memset.ctx == to->memset.ctx &&
		       (from->memset.height == 1 || (from->memset.width == to->memset.width &&
						     from->memset.elementSize == to->memset.elementSize));
		break;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		same = from->conditional.type == to->conditional.type;
		if (same)
			return below_may_become(mine, theirs, pairing);
		break;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return below_may_become(mine, theirs, pairing);
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
	case CU_GRAPH_NODE_TYPE_MEM_FREE: /* the address of an executable graph's memory cannot change */
		return fail(pairing->info, CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, theirs, NULL);
	default:
		break;
	}
	return same || fail(pairing->info, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, theirs, NULL);
}

static CUgraphNode next_last(CUgraphNode node)
{
	while (node && node->after.count)
		node = node->next;
	return node;
}

static bool pair_all(CUgraph mine, CUgraph theirs, pairing_t *pairing)
{
	CUgraphNode last = next_last(mine->first), other = next_last(theirs->first);
	for (; last && other; last = next_last(last->next), other = next_last(other->next))
		if (!pair(pairing, last, other, NULL))
			return false;
	if (last || other)
		return fail(pairing->info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, other, NULL);
	while (pairing->depth) {
		CUgraphNode new = pairing->stack[--pairing->depth], old = pairing->mine[new->index];
		if (new->before.count != old->before.count)
			return fail(pairing->info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, new, NULL);
		for (uint32_t i = 0; i < new->before.count; i++)
			if (!pair(pairing, old->before.at[i].node, new->before.at[i].node, new))
				return false;
		if (!may_become(old, new, pairing))
			return false;
	}
	return true;
}

/* On success, event_slot of each of theirs' nodes holds the index of its pair in mine, until the clone is numbered. */
static bool pair_graphs(CUgraph mine, CUgraph theirs, unsigned long long flags, CUgraphExecUpdateResultInfo *info)
{
	if (mine->count != theirs->count)
		return fail(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL, NULL);
	/* Without a cycle, every node is reachable from the last nodes. */
	if (graph_circular(theirs))
		return fail(info, CU_GRAPH_EXEC_UPDATE_ERROR, NULL, NULL);
	size_t room = mine->count + 1;
	pairing_t pairing = { .mine = calloc(room, sizeof(CUgraphNode)), .taken = calloc(room, sizeof(bool)),
			      .stack = calloc(room, sizeof(CUgraphNode)), .flags = flags, .info = info };
	bool done = pairing.mine && pairing.taken && pairing.stack;
	done = done ? pair_all(mine, theirs, &pairing) : fail(info, CU_GRAPH_EXEC_UPDATE_ERROR, NULL, NULL);
	for (CUgraphNode node = theirs->first; node && done; node = node->next)
		node->event_slot = pairing.mine[node->index]->index;
	free(pairing.mine);
	free(pairing.taken);
	free(pairing.stack);
	return done;
}

static CUgraphNode nth(CUgraph graph, uint32_t index)
{
	CUgraphNode node = graph->first;
	while (node && node->index != index)
		node = node->next;
	return node;
}

/* The nodes by their index, for inherit. NULL: no memory, and nth searches for them. */
static CUgraphNode *index_of(CUgraph graph)
{
	CUgraphNode *nodes = calloc(graph->count + 1, sizeof *nodes);
	for (CUgraphNode node = graph->first; node && nodes; node = node->next)
		nodes[node->index] = node;
	return nodes;
}

/* The clone's nodes take the origins of the old clone's nodes. It cannot fail: the update has been accepted. */
static void inherit(CUgraph clone, CUgraph old)
{
	CUgraphNode *nodes = index_of(old);
	clone->origin = old->origin;
	for (CUgraphNode node = clone->first; node; node = node->next) {
		CUgraphNode before = nodes ? nodes[node->event_slot] : nth(old, node->event_slot);
		node->origin = before->origin;
		node->disabled = before->disabled;
		node->number = before->number;
		unsigned count, same;
		CUgraph *below = graph_below(node, &count), *under = graph_below(before, &same);
		for (unsigned i = 0; i < count; i++)
			inherit(below[i], under[i]);
	}
	free(nodes);
}

static void put_in_place(CUgraphExec exec, CUgraphNode at, CUgraph graph)
{
	if (at) {
		at->params.graph.graph = graph;
		graph->owner = at;
	} else {
		exec->graph = graph;
	}
}

CUresult graph_exec_replace(CUgraphExec exec, CUgraphNode at, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	CUgraph old = at ? at->params.graph.graph : exec->graph, clone;
	if (!pair_graphs(old, graph, exec->flags, info))
		return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	CUresult result = graph_clone(graph, false, &clone);
	if (result) {
		fail(info, CU_GRAPH_EXEC_UPDATE_ERROR, NULL, NULL);
		return result;
	}
	inherit(clone, old);
	graph_hide(clone);
	put_in_place(exec, at, clone);
	result = graph_driver_replaced(exec, old, clone);
	if (result) {
		/* The driver may have taken over some of the nodes. */
		put_in_place(exec, at, old);
		if (graph_driver_replaced(exec, clone, old))
			put_in_place(exec, at, clone);
		else
			old = clone;
	}
	if (at)
		graph_free(old);
	else
		graph_release(old);
	*info = (CUgraphExecUpdateResultInfo){ .result = result ? CU_GRAPH_EXEC_UPDATE_ERROR
								: CU_GRAPH_EXEC_UPDATE_SUCCESS };
	return result;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo)
{
	CUgraphExecUpdateResultInfo ignored, *info = resultInfo ? resultInfo : &ignored;
	CUresult result = graph_driver_enter();
	if (result)
		return result;
	fail(info, CU_GRAPH_EXEC_UPDATE_ERROR, NULL, NULL);
	if (!handle_valid(hGraphExec, HANDLE_GRAPH_EXEC) || !handle_valid(hGraph, HANDLE_GRAPH) ||
	    graph_capturing(hGraph) || hGraph->owner)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&hGraphExec->lock);
	result = graph_exec_replace(hGraphExec, NULL, hGraph, info);
	pthread_mutex_unlock(&hGraphExec->lock);
	return result;
}

CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
			   CUgraphExecUpdateResult *updateResult_out)
{
	CUgraphExecUpdateResultInfo info = { .result = CU_GRAPH_EXEC_UPDATE_ERROR };
	CUresult result = cuGraphExecUpdate_v2(hGraphExec, hGraph, &info);
	if (hErrorNode_out)
		*hErrorNode_out = info.errorNode;
	if (updateResult_out)
		*updateResult_out = info.result;
	return result;
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph)
{
	CUgraphNode node;
	CUgraphExecUpdateResultInfo info;
	if (!handle_valid(childGraph, HANDLE_GRAPH) || graph_capturing(childGraph))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = graph_exec_lock_node(hGraphExec, hNode, &node);
	if (result)
		return result;
	if (node->params.type != CU_GRAPH_NODE_TYPE_GRAPH)
		result = CUDA_ERROR_INVALID_VALUE;
	else
		result = graph_exec_replace(hGraphExec, node, childGraph, &info);
	pthread_mutex_unlock(&hGraphExec->lock);
	return result;
}
