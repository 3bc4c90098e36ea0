/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Executable graphs: creation, changes of nodes, launches, destruction. Updates by a whole graph are in graph_update.c.
 */
#include "cuda_remote/graph/capture.h"
#include "cuda_remote/graph/graph_exec.h"

#include <stdlib.h>
#include <string.h>

#define KNOWN_FLAGS (CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD | \
		     CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)

/* The reason why a graph cannot be executed, and the node that causes it. */
struct refusal {
	CUgraphInstantiateResult reason;
	CUgraphNode node;
};

/* CUDA_CONDITIONAL_NODE_PARAMS in cuda.h lists the permitted nodes of a body. */
static bool allowed_in_body(CUgraphNodeType type)
{
	return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_EMPTY ||
	       type == CU_GRAPH_NODE_TYPE_GRAPH || type == CU_GRAPH_NODE_TYPE_MEMSET ||
	       type == CU_GRAPH_NODE_TYPE_MEMCPY || type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
}

static bool executable(CUgraph graph, bool in_body, struct refusal *refusal)
{
	if (graph_circular(graph)) {
		*refusal = (struct refusal){ CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, NULL };
		return false;
	}
	for (graph_handle_t *handle = graph->conditionals; handle; handle = handle->next)
		if (!graph_conditional_bound(graph, handle->value)) {
			*refusal = (struct refusal){ CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED, NULL };
			return false;
		}
	for (CUgraphNode node = graph->first; node; node = node->next) {
		if (in_body && !allowed_in_body(node->params.type)) {
			*refusal = (struct refusal){ CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, node };
			return false;
		}
		unsigned count;
		CUgraph *below = graph_below(node, &count);
		bool body = in_body || node->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
		for (unsigned i = 0; i < count; i++)
			if (!executable(below[i], body, refusal))
				return false;
	}
	return true;
}

static CUresult refuse(CUDA_GRAPH_INSTANTIATE_PARAMS *told, struct refusal refusal)
{
	told->result_out = refusal.reason;
	told->hErrNode_out = refusal.node;
	return CUDA_ERROR_INVALID_VALUE;
}

/* A graph that allocates or frees memory, or has conditions, may have only one executable graph. */
static bool only_one(CUgraph graph)
{
	return graph_has_memory(graph) || graph_has(graph, CU_GRAPH_NODE_TYPE_CONDITIONAL, true);
}

CUresult graph_exec_new(CUgraph graph, unsigned long long flags, CUDA_GRAPH_INSTANTIATE_PARAMS *told,
			CUgraphExec *output)
{
	struct refusal refusal;
	told->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
	told->hErrNode_out = NULL;
	if (!output || !handle_valid(graph, HANDLE_GRAPH) || (flags & ~(unsigned long long)KNOWN_FLAGS) ||
	    graph_capturing(graph) || graph->owner)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) /* kernels here cannot launch graphs */
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!executable(graph, false, &refusal))
		return refuse(told, refusal);
	if (only_one(graph) && __atomic_load_n(&graph->executables, __ATOMIC_RELAXED))
		return CUDA_ERROR_NOT_SUPPORTED;
	CUgraphExec exec = handle_new(HANDLE_GRAPH_EXEC, sizeof *exec);
	if (!exec)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = graph_clone(graph, false, &exec->graph);
	if (result) {
		handle_retire(exec);
		handle_release(exec);
		return result;
	}
	graph_hide(exec->graph);
	exec->source = graph;
	exec->source_id = graph->id;
	exec->flags = flags & ~(unsigned long long)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
	exec->references = 1;
	result = graph_driver_instantiate(exec);
	if (result) {
		graph_release(exec->graph);
		handle_retire(exec);
		handle_release(exec);
		return result;
	}
	pthread_mutex_init(&exec->lock, NULL);
	__atomic_add_fetch(&graph->executables, 1, __ATOMIC_RELAXED);
	told->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
	*output = exec;
	return CUDA_SUCCESS;
}

void graph_release(CUgraph clone)
{
	/* Orders the launches' uses before the free: all releases pair with each other. */
	if (!__atomic_sub_fetch(&clone->references, 1, __ATOMIC_ACQ_REL))
		graph_free(clone);
}

void graph_exec_release(CUgraphExec exec)
{
	/* As in graph_release. */
	if (__atomic_sub_fetch(&exec->references, 1, __ATOMIC_ACQ_REL))
		return;
	graph_driver_exec_free(exec);
	graph_release(exec->graph);
	pthread_mutex_destroy(&exec->lock);
	handle_release(exec);
}

CUresult graph_exec_own(CUgraphExec exec)
{
	/* Pairs with graph_release: a launch that has released the clone has completed its reads. */
	if (__atomic_load_n(&exec->graph->references, __ATOMIC_ACQUIRE) == 1)
		return CUDA_SUCCESS;
	CUgraph copy;
	CUresult result = graph_clone(exec->graph, true, &copy);
	if (result)
		return result;
	graph_hide(copy);
	graph_release(exec->graph);
	exec->graph = copy;
	return CUDA_SUCCESS;
}

static CUresult enter(CUgraphExec exec)
{
	CUresult result = graph_driver_enter();
	if (result)
		return result;
	return handle_valid(exec, HANDLE_GRAPH_EXEC) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult instantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS told;
	CUresult result = graph_driver_enter();
	if (result)
		return result;
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) /* this call names no stream to upload in */
		return CUDA_ERROR_INVALID_VALUE;
	return graph_exec_new(graph, flags, &told, exec);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags)
{
	return instantiate(phGraphExec, hGraph, flags);
}

/* The two versions before CUDA 12, which output a node and a text instead. */
CUresult cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer,
			       size_t bufferSize)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS told;
	CUresult result = graph_driver_enter();
	if (result)
		return result;
	result = graph_exec_new(hGraph, 0, &told, phGraphExec);
	if (phErrorNode)
		*phErrorNode = told.hErrNode_out;
	if (logBuffer && bufferSize)
		logBuffer[0] = '\0';
	return result;
}

CUresult cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer,
			    size_t bufferSize)
{
	return cuGraphInstantiate_v2(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

CUresult cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags)
{
	CUresult result = enter(hGraphExec);
	if (result)
		return result;
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = hGraphExec->flags;
	return CUDA_SUCCESS;
}

/* Launches that are running are not stopped. */
CUresult cuGraphExecDestroy(CUgraphExec hGraphExec)
{
	CUresult result = enter(hGraphExec);
	if (result)
		return result;
	if (!handle_retire(hGraphExec))
		return CUDA_ERROR_INVALID_VALUE;
	CUgraph source = hGraphExec->source;
	if (handle_valid(source, HANDLE_GRAPH) && source->id == hGraphExec->source_id)
		__atomic_sub_fetch(&source->executables, 1, __ATOMIC_RELAXED);
	graph_exec_release(hGraphExec);
	return CUDA_SUCCESS;
}

CUresult graph_exec_lock_node(CUgraphExec exec, CUgraphNode original, CUgraphNode *node)
{
	CUresult result = enter(exec);
	if (result)
		return result;
	if (!handle_valid(original, HANDLE_GRAPH_NODE))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&exec->lock);
	result = graph_exec_own(exec);
	*node = result ? NULL : graph_find(exec->graph, original->id);
	if (*node)
		return CUDA_SUCCESS;
	pthread_mutex_unlock(&exec->lock);
	return result ? result : CUDA_ERROR_INVALID_VALUE;
}

/* cuda.h, cuGraphExecKernelNodeSetParams: the context of the function cannot change. True also for a function that is none:
 * graph_params_take refuses it. */
static bool keeps_context(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v3 *to)
{
	CUcontext context = to->func ? NULL : to->ctx;
	CUfunction handle = to->func ? to->func : (CUfunction)(void *)to->kern;
	graph_function_t function;
	if (graph_driver_context(&context) || graph_driver_function(handle, context, &function))
		return true;
	return (function.context ? function.context : context) == node->params.kernel.ctx;
}

/* cuda.h, cuGraphExecMemcpyNodeSetParams: only copies of one row can change. */
static bool is_one_row(const CUDA_MEMCPY3D *copy)
{
	return copy->Height <= 1 && copy->Depth <= 1;
}

/* The limitations of cuGraphExecUpdate, which apply here too. */
static bool may_become(CUgraphNode node, const CUgraphNodeParams *params)
{
	const CUgraphNodeParams *now = &node->params;
	if (params->type != now->type)
		return false;
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_MEMCPY: {
		const CUDA_MEMCPY3D *from = &now->memcpy.copyParams, *to = &params->memcpy.copyParams;
		return from->srcMemoryType == to->srcMemoryType && from->dstMemoryType == to->dstMemoryType &&
		       is_one_row(from) && is_one_row(to);
	}
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return keeps_context(node, &params->kernel);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return now->memset.height == params->memset.height &&
		       (now->memset.height == 1 || now->memset.width == params->memset.width);
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return false;
	default:
		return true;
	}
}

CUresult graph_exec_change(CUgraphExec exec, CUgraphNode original, CUgraphNodeParams *params)
{
	CUgraphNode node;
	CUresult result = graph_exec_lock_node(exec, original, &node);
	if (result)
		return result;
	/* If the driver refuses the change, the node stays as the driver has it. */
	struct CUgraphNode_st before = { .params.type = CU_GRAPH_NODE_TYPE_EMPTY };
	result = may_become(node, params) ? graph_params_clone(&before, node, true) : CUDA_ERROR_INVALID_VALUE;
	if (!result)
		result = graph_params_take(node, params);
	if (!result) {
		result = graph_driver_node_changed(exec, node);
		if (result)
			graph_params_swap(node, &before);
	}
	graph_params_drop(&before);
	pthread_mutex_unlock(&exec->lock);
	return result;
}

CUresult cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
	if (!nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	if (nodeParams->type == CU_GRAPH_NODE_TYPE_GRAPH)
		return cuGraphExecChildGraphNodeSetParams(hGraphExec, hNode, nodeParams->graph.graph);
	return graph_exec_change(hGraphExec, hNode, nodeParams);
}

/* Only nodes that do work of their own can be disabled (cuGraphNodeSetEnabled). */
static bool can_be_disabled(CUgraphNodeType type)
{
	return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
	       type == CU_GRAPH_NODE_TYPE_MEMSET;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled)
{
	CUgraphNode node;
	CUresult result = graph_exec_lock_node(hGraphExec, hNode, &node);
	if (result)
		return result;
	if (can_be_disabled(node->params.type)) {
		bool before = node->disabled;
		node->disabled = !isEnabled;
		result = graph_driver_node_changed(hGraphExec, node);
		if (result)
			node->disabled = before;
	} else {
		result = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&hGraphExec->lock);
	return result;
}

CUresult cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int *isEnabled)
{
	CUgraphNode node;
	CUresult result = graph_exec_lock_node(hGraphExec, hNode, &node);
	if (result)
		return result;
	if (isEnabled && can_be_disabled(node->params.type))
		*isEnabled = !node->disabled;
	else
		result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&hGraphExec->lock);
	return result;
}

/* If the stream captures, the graph becomes a child of the captured graph. */
static CUresult launch_captured(CUgraphExec exec, CUstream stream, bool *captured)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_GRAPH,
				     .graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE };
	if (graph_has_memory(exec->graph))
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = graph_clone(exec->graph, false, &params.graph.graph);
	if (result)
		return result;
	result = capture_add(stream, &params, NULL, captured);
	if (result || !*captured)
		graph_free(params.graph.graph);
	return result;
}

CUresult graph_launch(CUgraphExec exec, CUstream stream)
{
	CUresult result = CUDA_SUCCESS;
	bool captured = false;
	pthread_mutex_lock(&exec->lock);
	if (capture_stream_busy(stream))
		result = launch_captured(exec, stream, &captured);
	if (!result && !captured)
		result = graph_driver_launch(exec, stream);
	pthread_mutex_unlock(&exec->lock);
	return result;
}
