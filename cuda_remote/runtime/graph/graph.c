/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Graphs. Handles, edges, flags and results are the driver's. The parameters of nodes are in graph_node.c; functions
 * with a variant for each kind of default stream are in graph_twice.c.
 */
#include "cuda_remote/runtime/runtime.h"

_Static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData) &&
	       sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo) &&
	       sizeof(cudaGraphConditionalHandle) == sizeof(CUgraphConditionalHandle) &&
	       sizeof(enum cudaGraphNodeType) == sizeof(CUgraphNodeType) &&
	       (int)cudaGraphNodeTypeConditional == (int)CU_GRAPH_NODE_TYPE_CONDITIONAL &&
	       (int)cudaGraphExecUpdateErrorAttributesChanged == (int)CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED &&
	       (int)cudaGraphInstantiateFlagUseNodePriority == (int)CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY &&
	       (int)cudaGraphMemAttrReservedMemHigh == (int)CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH &&
	       (int)cudaStreamCaptureModeRelaxed == (int)CU_STREAM_CAPTURE_MODE_RELAXED &&
	       (int)cudaUserObjectNoDestructorSync == (int)CU_USER_OBJECT_NO_DESTRUCTOR_SYNC &&
	       (int)cudaGraphUserObjectMove == (int)CU_GRAPH_USER_OBJECT_MOVE, "graphs are passed through");

RUNTIME_API cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphCreate(graph, flags));
}

RUNTIME_API cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphDestroy(graph));
}

RUNTIME_API cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t original)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphClone(clone, original));
}

RUNTIME_API cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *node, cudaGraphNode_t original, cudaGraph_t clone)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphNodeFindInClone(node, original, clone));
}

RUNTIME_API cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphNodeGetType(node, (CUgraphNodeType *)type));
}

RUNTIME_API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphGetNodes(graph, nodes, count));
}

RUNTIME_API cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphGetRootNodes(graph, nodes, count));
}

RUNTIME_API cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
		cudaGraphEdgeData *data,
				      size_t *count)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphGetEdges_v2(graph, from, to, (CUgraphEdgeData *)data,
			count));
}

RUNTIME_API cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *nodes,
		cudaGraphEdgeData *data,
						 size_t *count)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphNodeGetDependencies_v2(node, nodes,
			(CUgraphEdgeData *)data,
			count));
}

RUNTIME_API cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *nodes,
		cudaGraphEdgeData *data,
						   size_t *count)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphNodeGetDependentNodes_v2(node, nodes,
			(CUgraphEdgeData *)data,
			count));
}

RUNTIME_API cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
		const cudaGraphNode_t *to,
					     const cudaGraphEdgeData *data, size_t count)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphAddDependencies_v2(graph, from, to,
			(const CUgraphEdgeData *)data, count));
}

RUNTIME_API cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
						const cudaGraphNode_t *to, const cudaGraphEdgeData *data,
						size_t count)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphRemoveDependencies_v2(graph, from, to,
			(const CUgraphEdgeData *)data, count));
}

RUNTIME_API cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphDestroyNode(node));
}

RUNTIME_API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
		unsigned long long flags)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphInstantiateWithFlags(exec, graph, flags));
}

RUNTIME_API cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long *flags)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphExecGetFlags(exec, (cuuint64_t *)flags));
}

RUNTIME_API cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
		cudaGraphExecUpdateResultInfo *info)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphExecUpdate_v2(exec, graph,
			(CUgraphExecUpdateResultInfo *)info));
}

RUNTIME_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphExecDestroy(exec));
}

RUNTIME_API cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphNodeSetEnabled(exec, node, enabled));
}

RUNTIME_API cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned *enabled)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphNodeGetEnabled(exec, node, enabled));
}

RUNTIME_API cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned flags)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphDebugDotPrint(graph, path, flags));
}

RUNTIME_API cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *data, cudaHostFn_t destroy, unsigned count,
					 unsigned flags)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuUserObjectCreate(object, data, destroy, count, flags));
}

RUNTIME_API cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuUserObjectRetain(object, count));
}

RUNTIME_API cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuUserObjectRelease(object, count));
}

RUNTIME_API cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count,
		unsigned flags)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphRetainUserObject(graph, object, count, flags));
}

RUNTIME_API cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphReleaseUserObject(graph, object, count));
}

RUNTIME_API cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t graph,
						     unsigned value, unsigned flags)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphConditionalHandleCreate(
			(CUgraphConditionalHandle *)handle, graph, NULL, value, flags));
}

RUNTIME_API cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuThreadExchangeStreamCaptureMode(
			(CUstreamCaptureMode *)mode));
}

RUNTIME_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
	return cudaGraphInstantiateWithFlags(exec, graph, flags);
}

RUNTIME_API cudaError_t cudaDeviceGraphMemTrim(int ordinal)
{
	CUdevice device;
	cudaError_t error = runtime_device(ordinal, &device);
	return error ? runtime_fail(error) : runtime_done(runtime_driver.cuDeviceGraphMemTrim(device));
}

RUNTIME_API cudaError_t cudaDeviceGetGraphMemAttribute(int ordinal, enum cudaGraphMemAttributeType attribute,
		void *value)
{
	CUdevice device;
	cudaError_t error = runtime_device(ordinal, &device);
	return error ? runtime_fail(error)
		     : runtime_done(runtime_driver.cuDeviceGetGraphMemAttribute(device, (CUgraphMem_attribute)attribute,
				value));
}

RUNTIME_API cudaError_t cudaDeviceSetGraphMemAttribute(int ordinal, enum cudaGraphMemAttributeType attribute,
		void *value)
{
	CUdevice device;
	cudaError_t error = runtime_device(ordinal, &device);
	return error ? runtime_fail(error)
		     : runtime_done(runtime_driver.cuDeviceSetGraphMemAttribute(device, (CUgraphMem_attribute)attribute,
				value));
}
