/* SPDX-License-Identifier: BSD-3-Clause */
/* Adds nodes, and gets and sets their parameters. All types of node use the driver's CUgraphNodeParams. */
#include "cuda_remote/runtime/copy.h"
#include "cuda_remote/runtime/graph/graph_params.h"

#include <string.h>

/* The arguments that place a new node in a graph. */
struct place {
	cudaGraphNode_t *node;
	cudaGraph_t graph;
	const cudaGraphNode_t *dependencies;
	size_t count;
};

static cudaError_t add(const struct place *place, cudaError_t error, CUgraphNodeParams *params)
{
	if (error)
		return error;
	return runtime_done(runtime_driver.cuGraphAddNode_v2(place->node, place->graph, place->dependencies, NULL,
			place->count, params));
}

static cudaError_t set(cudaGraphNode_t node, cudaError_t error, CUgraphNodeParams *params)
{
	return error ? error : runtime_done(runtime_driver.cuGraphNodeSetParams(node, params));
}

static cudaError_t set_exec(cudaGraphExec_t exec, cudaGraphNode_t node, cudaError_t error, CUgraphNodeParams *params)
{
	return error ? error : runtime_done(runtime_driver.cuGraphExecNodeSetParams(exec, node, params));
}

/*
 * Defines the three calls for a type of node: add a node, change a node of a graph, change a node of an executable
 * graph. After their names: the function that converts the program's parameters, and the parameter's declaration.
 */
#define NODE_CALLS(add_name, set_name, set_exec_name, make, ...)						\
	RUNTIME_API cudaError_t add_name(cudaGraphNode_t *node, cudaGraph_t graph,				\
					 const cudaGraphNode_t *dependencies, size_t count, __VA_ARGS__)	\
	{													\
		CUgraphNodeParams driver;									\
		const struct place place = { node, graph, dependencies, count };				\
		return add(&place, make, &driver);								\
	}													\
	RUNTIME_API cudaError_t set_name(cudaGraphNode_t node, __VA_ARGS__)					\
	{													\
		CUgraphNodeParams driver;									\
		return set(node, make, &driver);								\
	}													\
	RUNTIME_API cudaError_t set_exec_name(cudaGraphExec_t exec, cudaGraphNode_t node, __VA_ARGS__)		\
	{													\
		CUgraphNodeParams driver;									\
		return set_exec(exec, node, make, &driver);							\
	}

RUNTIME_API cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
					 const cudaGraphEdgeData *data, size_t count,
							struct cudaGraphNodeParams *params)
{
	CUgraphNodeParams driver;
	cudaError_t error = graph_params_any(params, &driver);
	if (error)
		return error;
	CUresult result = runtime_driver.cuGraphAddNode_v2(node, graph, dependencies, (const CUgraphEdgeData *)data,
			count, &driver);
	if (result == CUDA_SUCCESS)
		graph_params_made(&driver, params);
	return runtime_done(result);
}

RUNTIME_API cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams *params)
{
	CUgraphNodeParams driver;
	return set(node, graph_params_any(params, &driver), &driver);
}

RUNTIME_API cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
						   struct cudaGraphNodeParams *params)
{
	CUgraphNodeParams driver;
	return set_exec(exec, node, graph_params_any(params, &driver), &driver);
}

/* ---- kernels ---- */

NODE_CALLS(cudaGraphAddKernelNode, cudaGraphKernelNodeSetParams, cudaGraphExecKernelNodeSetParams,
	   graph_params_kernel(params, &driver),
	   const struct cudaKernelNodeParams *params)

RUNTIME_API cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, struct cudaKernelNodeParams *params)
{
	CUDA_KERNEL_NODE_PARAMS driver;
	if (!params)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	CUresult result = runtime_driver.cuGraphKernelNodeGetParams_v2(node, &driver);
	if (result != CUDA_SUCCESS)
		return runtime_done(result);
	/*
	 * The host address that the program knows for the kernel; for a kernel of the driver its handle, which is
	 * accepted as a kernel too.
	 */
	void *function = driver.func ? (void *)driver.func : (void *)driver.kern;
	const void *host = runtime_symbol_of_function(driver.func);
	*params = (struct cudaKernelNodeParams){
		.func = host ? (void *)(uintptr_t)host : function,
		.gridDim = { driver.gridDimX, driver.gridDimY, driver.gridDimZ },
		.blockDim = { driver.blockDimX, driver.blockDimY, driver.blockDimZ },
		.sharedMemBytes = driver.sharedMemBytes, .kernelParams = driver.kernelParams, .extra = driver.extra,
	};
	return host ? cudaSuccess : runtime_fail(runtime_symbol_remember(function));
}

_Static_assert(sizeof(cudaLaunchAttributeValue) == sizeof(CUlaunchAttributeValue), "attributes are passed through");

RUNTIME_API cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphKernelNodeCopyAttributes(to, from));
}

RUNTIME_API cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
							cudaLaunchAttributeValue *value)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphKernelNodeGetAttribute(node,
			(CUlaunchAttributeID)attribute, (CUlaunchAttributeValue *)value));
}

RUNTIME_API cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
							const cudaLaunchAttributeValue *value)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphKernelNodeSetAttribute(node,
			(CUlaunchAttributeID)attribute, (const CUlaunchAttributeValue *)value));
}

/* ---- copies and fills ---- */

NODE_CALLS(cudaGraphAddMemcpyNode, cudaGraphMemcpyNodeSetParams, cudaGraphExecMemcpyNodeSetParams,
	   graph_params_memcpy(params, &driver),
	   const struct cudaMemcpy3DParms *params)

RUNTIME_API cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, struct cudaMemcpy3DParms *params)
{
	CUDA_MEMCPY3D driver;
	if (!params)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	CUresult result = runtime_driver.cuGraphMemcpyNodeGetParams(node, &driver);
	return result == CUDA_SUCCESS ? runtime_fail(graph_params_memcpy_back(&driver, params)) : runtime_done(result);
}

NODE_CALLS(cudaGraphAddMemcpyNode1D, cudaGraphMemcpyNodeSetParams1D, cudaGraphExecMemcpyNodeSetParams1D,
	   graph_params_memcpy_1d(to, from, size, kind, &driver),
	   void *to, const void *from, size_t size, enum cudaMemcpyKind kind)

/* Copies to or from a device variable. */
static cudaError_t to_symbol(const void *symbol, const void *from, size_t size, size_t offset,
			     enum cudaMemcpyKind kind, CUgraphNodeParams *driver)
{
	void *to;
	cudaError_t error = copy_symbol_range(symbol, size, offset, kind, cudaMemcpyHostToDevice, &to);
	return error ? error : graph_params_memcpy_1d(to, from, size, kind, driver);
}

static cudaError_t from_symbol(void *to, const void *symbol, size_t size, size_t offset, enum cudaMemcpyKind kind,
			       CUgraphNodeParams *driver)
{
	void *from;
	cudaError_t error = copy_symbol_range(symbol, size, offset, kind, cudaMemcpyDeviceToHost, &from);
	return error ? error : graph_params_memcpy_1d(to, from, size, kind, driver);
}

NODE_CALLS(cudaGraphAddMemcpyNodeToSymbol, cudaGraphMemcpyNodeSetParamsToSymbol,
	   cudaGraphExecMemcpyNodeSetParamsToSymbol,
	   to_symbol(symbol, from, size, offset, kind, &driver),
	   const void *symbol, const void *from, size_t size, size_t offset, enum cudaMemcpyKind kind)

NODE_CALLS(cudaGraphAddMemcpyNodeFromSymbol, cudaGraphMemcpyNodeSetParamsFromSymbol,
	   cudaGraphExecMemcpyNodeSetParamsFromSymbol,
	   from_symbol(to, symbol, size, offset, kind, &driver),
	   void *to, const void *symbol, size_t size, size_t offset, enum cudaMemcpyKind kind)

NODE_CALLS(cudaGraphAddMemsetNode, cudaGraphMemsetNodeSetParams, cudaGraphExecMemsetNodeSetParams,
	   graph_params_memset(params, &driver),
	   const struct cudaMemsetParams *params)

RUNTIME_API cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, struct cudaMemsetParams *params)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphMemsetNodeGetParams(node,
			(CUDA_MEMSET_NODE_PARAMS *)params));
}

/* ---- host functions, child graphs, empty nodes ---- */

NODE_CALLS(cudaGraphAddHostNode, cudaGraphHostNodeSetParams, cudaGraphExecHostNodeSetParams,
	   graph_params_host(params, &driver),
	   const struct cudaHostNodeParams *params)

RUNTIME_API cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, struct cudaHostNodeParams *params)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphHostNodeGetParams(node,
			(CUDA_HOST_NODE_PARAMS *)params));
}

RUNTIME_API cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph,
		const cudaGraphNode_t *dependencies,
					       size_t count, cudaGraph_t child)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphAddChildGraphNode(node, graph, dependencies, count,
			child));
}

RUNTIME_API cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *graph)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphChildGraphNodeGetGraph(node, graph));
}

RUNTIME_API cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
		cudaGraph_t child)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphExecChildGraphNodeSetParams(exec, node, child));
}

RUNTIME_API cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph,
		const cudaGraphNode_t *dependencies,
					  size_t count)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphAddEmptyNode(node, graph, dependencies, count));
}

/* ---- events ---- */

NODE_CALLS(cudaGraphAddEventRecordNode, cudaGraphEventRecordNodeSetEvent, cudaGraphExecEventRecordNodeSetEvent,
	   graph_params_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event, &driver),
	   cudaEvent_t event)

RUNTIME_API cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphEventRecordNodeGetEvent(node, event));
}

NODE_CALLS(cudaGraphAddEventWaitNode, cudaGraphEventWaitNodeSetEvent, cudaGraphExecEventWaitNodeSetEvent,
	   graph_params_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event, &driver),
	   cudaEvent_t event)

RUNTIME_API cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphEventWaitNodeGetEvent(node, event));
}

/* ---- memory ---- */

RUNTIME_API cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph,
						 const cudaGraphNode_t *dependencies, size_t count,
						 struct cudaMemAllocNodeParams *params)
{
	CUgraphNodeParams driver;
	const struct place place = { node, graph, dependencies, count };
	cudaError_t error = add(&place, graph_params_alloc(params, &driver), &driver);
	if (!error)
		params->dptr = (void *)(uintptr_t)driver.alloc.dptr;
	return error;
}

RUNTIME_API cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, struct cudaMemAllocNodeParams *params)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphMemAllocNodeGetParams(node,
			(CUDA_MEM_ALLOC_NODE_PARAMS *)params));
}

RUNTIME_API cudaError_t cudaGraphAddMemFreeNode(
		cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
		size_t count, void *memory)
{
	CUgraphNodeParams driver;
	const struct place place = { node, graph, dependencies, count };
	return add(&place, graph_params_free(memory, &driver), &driver);
}

RUNTIME_API cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *address)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphMemFreeNodeGetParams(node, address));
}
