/* SPDX-License-Identifier: BSD-3-Clause */
/* Adds nodes, and gets and sets their parameters. All types of node use CUgraphNodeParams. */
#include "cuda_remote/graph/graph_exec.h"

#include <stdlib.h>
#include <string.h>

static CUresult add(CUgraphNode *output, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data,
		    size_t count, CUgraphNodeParams *params)
{
	CUresult result = graph_driver_enter();
	if (result)
		return result;
	if (!output || !params || !handle_valid(graph, HANDLE_GRAPH))
		return CUDA_ERROR_INVALID_VALUE;
	return graph_add(graph, dependencies, data, count, params, output);
}

CUresult cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
			   const CUgraphEdgeData *dependencyData, size_t numDependencies, CUgraphNodeParams *nodeParams)
{
	static const int zero[3];
	if (nodeParams && (memcmp(nodeParams->reserved0, zero, sizeof zero) || nodeParams->reserved2))
		return CUDA_ERROR_INVALID_VALUE;
	return add(phGraphNode, hGraph, dependencies, dependencyData, numDependencies, nodeParams);
}

CUresult cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
			size_t numDependencies, CUgraphNodeParams *nodeParams)
{
	return cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, NULL, numDependencies, nodeParams);
}

/* Checks that the node is of this type. */
static CUresult enter(CUgraphNode node, CUgraphNodeType type, const void *params)
{
	CUresult result = graph_driver_enter();
	if (result)
		return result;
	if (!params || !handle_valid(node, HANDLE_GRAPH_NODE) || node->params.type != type)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* Setters may not change a child graph, an address or a condition (cuda.h, cuGraphNodeSetParams). */
static bool settable(CUgraphNodeType type)
{
	return type != CU_GRAPH_NODE_TYPE_GRAPH && type != CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
	       type != CU_GRAPH_NODE_TYPE_MEM_FREE && type != CU_GRAPH_NODE_TYPE_CONDITIONAL;
}

CUresult cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
	CUresult result = nodeParams ? enter(hNode, nodeParams->type, nodeParams) : CUDA_ERROR_INVALID_VALUE;
	if (result)
		return result;
	return settable(nodeParams->type) ? graph_params_take(hNode, nodeParams) : CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult set(CUgraphNode node, CUgraphNodeParams params, const void *given)
{
	CUresult result = enter(node, params.type, given);
	return result ? result : graph_params_take(node, &params);
}

/* The same in an executable graph. */
static CUresult set_exec(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams params, const void *given)
{
	return given ? graph_exec_change(exec, node, &params) : CUDA_ERROR_INVALID_VALUE;
}

/* ---- kernels ---- */

static CUgraphNodeParams from_kernel(const CUDA_KERNEL_NODE_PARAMS *given)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_KERNEL };
	_Static_assert(sizeof params.kernel == sizeof *given, "the second and third version are the same");
	if (given)
		memcpy(&params.kernel, given, sizeof params.kernel);
	return params;
}

static CUDA_KERNEL_NODE_PARAMS from_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *given)
{
	CUDA_KERNEL_NODE_PARAMS params = { 0 };
	_Static_assert(offsetof(CUDA_KERNEL_NODE_PARAMS, kern) == sizeof *given, "the first version is a prefix");
	if (given)
		memcpy(&params, given, sizeof *given);
	return params;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
				 size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	CUgraphNodeParams params = from_kernel(nodeParams);
	return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, nodeParams ? &params : NULL);
}

CUresult cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
			      size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	CUDA_KERNEL_NODE_PARAMS params = from_v1(nodeParams);
	return cuGraphAddKernelNode_v2(phGraphNode, hGraph, dependencies, numDependencies, nodeParams ? &params : NULL);
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	CUresult result = enter(hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams);
	if (!result)
		memcpy(nodeParams, &hNode->params.kernel, sizeof *nodeParams);
	return result;
}

/* The first version of the structure has no CUkernel: it returns the function. */
CUresult cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	CUresult result = enter(hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams);
	if (result)
		return result;
	memcpy(nodeParams, &hNode->params.kernel, sizeof *nodeParams);
	if (!nodeParams->func)
		nodeParams->func = hNode->kernel->function;
	return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	return set(hNode, from_kernel(nodeParams), nodeParams);
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	CUDA_KERNEL_NODE_PARAMS params = from_v1(nodeParams);
	return cuGraphKernelNodeSetParams_v2(hNode, nodeParams ? &params : NULL);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
					   const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	return set_exec(hGraphExec, hNode, from_kernel(nodeParams), nodeParams);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
					const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	CUDA_KERNEL_NODE_PARAMS params = from_v1(nodeParams);
	return cuGraphExecKernelNodeSetParams_v2(hGraphExec, hNode, nodeParams ? &params : NULL);
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr, const CUkernelNodeAttrValue *value)
{
	CUresult result = enter(hNode, CU_GRAPH_NODE_TYPE_KERNEL, value);
	return result ? result : graph_attribute_set(hNode, attr, value);
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr, CUkernelNodeAttrValue *value_out)
{
	CUresult result = enter(hNode, CU_GRAPH_NODE_TYPE_KERNEL, value_out);
	return result ? result : graph_attribute_get(hNode, attr, value_out);
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
	CUresult result = enter(src, CU_GRAPH_NODE_TYPE_KERNEL, src);
	if (!result)
		result = enter(dst, CU_GRAPH_NODE_TYPE_KERNEL, dst);
	for (unsigned i = 0; i < GRAPH_ATTRIBUTES && !result; i++)
		if (src->kernel->set & (1u << i))
			result = graph_attribute_set(dst, (CUlaunchAttributeID)i, &src->kernel->values[i]);
	return result;
}

/* ---- copies and fills ---- */

static CUgraphNodeParams from_memcpy(const CUDA_MEMCPY3D *given, CUcontext context)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_MEMCPY, .memcpy.copyCtx = context };
	if (given)
		params.memcpy.copyParams = *given;
	return params;
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
			      size_t numDependencies, const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
	CUgraphNodeParams params = from_memcpy(copyParams, ctx);
	return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, copyParams ? &params : NULL);
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams)
{
	CUresult result = enter(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, nodeParams);
	if (!result)
		*nodeParams = hNode->params.memcpy.copyParams;
	return result;
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams)
{
	CUresult result = enter(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, nodeParams);
	return result ? result : set(hNode, from_memcpy(nodeParams, hNode->params.memcpy.copyCtx), nodeParams);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMCPY3D *copyParams,
					CUcontext ctx)
{
	return set_exec(hGraphExec, hNode, from_memcpy(copyParams, ctx), copyParams);
}

static CUgraphNodeParams from_memset(const CUDA_MEMSET_NODE_PARAMS *given, CUcontext context)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_MEMSET };
	_Static_assert(offsetof(CUDA_MEMSET_NODE_PARAMS_v2, ctx) == sizeof *given, "the first version is a prefix");
	if (given)
		memcpy(&params.memset, given, sizeof *given);
	params.memset.ctx = context;
	return params;
}

CUresult cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
			      size_t numDependencies, const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
	CUgraphNodeParams params = from_memset(memsetParams, ctx);
	return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, memsetParams ? &params : NULL);
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
	CUresult result = enter(hNode, CU_GRAPH_NODE_TYPE_MEMSET, nodeParams);
	if (!result)
		memcpy(nodeParams, &hNode->params.memset, sizeof *nodeParams);
	return result;
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
	CUresult result = enter(hNode, CU_GRAPH_NODE_TYPE_MEMSET, nodeParams);
	return result ? result : set(hNode, from_memset(nodeParams, hNode->params.memset.ctx), nodeParams);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
					const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
	return set_exec(hGraphExec, hNode, from_memset(memsetParams, ctx), memsetParams);
}

/* ---- the host, children, nothing ---- */

static CUgraphNodeParams from_host(const CUDA_HOST_NODE_PARAMS *given)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_HOST };
	if (given)
		params.host = (CUDA_HOST_NODE_PARAMS_v2){ .fn = given->fn, .userData = given->userData };
	return params;
}

CUresult cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
			    size_t numDependencies, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	CUgraphNodeParams params = from_host(nodeParams);
	return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, nodeParams ? &params : NULL);
}

CUresult cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams)
{
	CUresult result = enter(hNode, CU_GRAPH_NODE_TYPE_HOST, nodeParams);
	if (!result)
		*nodeParams = (CUDA_HOST_NODE_PARAMS){ hNode->params.host.fn, hNode->params.host.userData };
	return result;
}

CUresult cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	return set(hNode, from_host(nodeParams), nodeParams);
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
				      const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	return set_exec(hGraphExec, hNode, from_host(nodeParams), nodeParams);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
				  size_t numDependencies, CUgraph childGraph)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_GRAPH, .graph.graph = childGraph };
	return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &params);
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph)
{
	CUresult result = enter(hNode, CU_GRAPH_NODE_TYPE_GRAPH, phGraph);
	if (!result)
		*phGraph = hNode->params.graph.graph;
	return result;
}

CUresult cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
			     size_t numDependencies)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
	return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &params);
}

/* ---- events ---- */

static CUgraphNodeParams from_event(CUgraphNodeType type, CUevent event)
{
	return (CUgraphNodeParams){ .type = type, .eventRecord.event = event };
}

static CUresult get_event(CUgraphNode node, CUgraphNodeType type, CUevent *event)
{
	CUresult result = enter(node, type, event);
	if (!result)
		*event = node->params.eventRecord.event;
	return result;
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
				   size_t numDependencies, CUevent event)
{
	CUgraphNodeParams params = from_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
	return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &params);
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
	return get_event(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event_out);
}

CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event)
{
	return set(hNode, from_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event), event);
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)
{
	CUgraphNodeParams params = from_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
	return graph_exec_change(hGraphExec, hNode, &params);
}

CUresult cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
				 size_t numDependencies, CUevent event)
{
	CUgraphNodeParams params = from_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
	return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &params);
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
	return get_event(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event_out);
}

CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event)
{
	return set(hNode, from_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event), event);
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)
{
	CUgraphNodeParams params = from_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
	return graph_exec_change(hGraphExec, hNode, &params);
}

/* ---- memory ---- */

CUresult cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
				size_t numDependencies, CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
	if (!nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC };
	_Static_assert(sizeof params.alloc == sizeof *nodeParams, "the two versions are the same");
	memcpy(&params.alloc, nodeParams, sizeof *nodeParams);
	CUresult result = add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &params);
	if (!result)
		nodeParams->dptr = params.alloc.dptr;
	return result;
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS *params_out)
{
	CUresult result = enter(hNode, CU_GRAPH_NODE_TYPE_MEM_ALLOC, params_out);
	if (!result)
		memcpy(params_out, &hNode->params.alloc, sizeof *params_out);
	return result;
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
			       size_t numDependencies, CUdeviceptr dptr)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free.dptr = dptr };
	return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &params);
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr *dptr_out)
{
	CUresult result = enter(hNode, CU_GRAPH_NODE_TYPE_MEM_FREE, dptr_out);
	if (!result)
		*dptr_out = hNode->params.free.dptr;
	return result;
}

static CUgraphNodeParams from_memop(const CUDA_BATCH_MEM_OP_NODE_PARAMS *given)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP };
	_Static_assert(sizeof params.memOp == sizeof *given, "the two versions are the same");
	if (given)
		memcpy(&params.memOp, given, sizeof *given);
	return params;
}

CUresult cuGraphAddBatchMemOpNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
				  size_t numDependencies, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
	CUgraphNodeParams params = from_memop(nodeParams);
	return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, nodeParams ? &params : NULL);
}

CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode hNode, CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams_out)
{
	CUresult result = enter(hNode, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, nodeParams_out);
	if (!result)
		memcpy(nodeParams_out, &hNode->params.memOp, sizeof *nodeParams_out);
	return result;
}

CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode hNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
	return set(hNode, from_memop(nodeParams), nodeParams);
}

CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
					    const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
	return set_exec(hGraphExec, hNode, from_memop(nodeParams), nodeParams);
}
