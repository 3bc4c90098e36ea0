/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions of CUDA 12 that CUDA 13 does not have, or has under the same name with other arguments. Compiled into
 * libcudart.so.12 only. Those with a variant for each kind of default stream are in first_versions_twice.c.
 */
#include "cuda_remote/runtime/cuda12/first_versions.h"

#include <string.h>

#undef cudaGetDeviceProperties
#undef cudaMemAdvise
#undef cudaEventElapsedTime
#undef cudaGraphAddDependencies
#undef cudaGraphAddNode
#undef cudaGraphGetEdges
#undef cudaGraphNodeGetDependencies
#undef cudaGraphNodeGetDependentNodes
#undef cudaGraphRemoveDependencies

/* Under this name, CUDA 12 still fills in the structure of CUDA 11, the first part of its own. */
DEFINE(cudaGetDeviceProperties, void *prop, int ordinal)
{
	struct cudaDeviceProp all;
	if (!prop)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = cudaGetDeviceProperties_v2(&all, ordinal);
	if (!error)
		memcpy(prop, &all, offsetof(struct cudaDeviceProp, hostRegisterSupported));
	return error;
}

DEFINE(cudaMemAdvise, const void *pointer, size_t size, enum cudaMemoryAdvise advice, int device)
{
	return cudaMemAdvise_v2(pointer, size, advice, runtime_location(device));
}

DEFINE(cudaEventElapsedTime, float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
	return cudaEventElapsedTime_v2(milliseconds, start, end);
}

/* ---- graphs whose edges have no data ---- */

DEFINE(cudaGraphAddNode, cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
       struct cudaGraphNodeParams *params)
{
	return cudaGraphAddNode_v2(node, graph, dependencies, NULL, count, params);
}

DEFINE(cudaGraphAddDependencies, cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
       size_t count)
{
	return cudaGraphAddDependencies_v2(graph, from, to, NULL, count);
}

DEFINE(cudaGraphRemoveDependencies, cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
       size_t count)
{
	return cudaGraphRemoveDependencies_v2(graph, from, to, NULL, count);
}

DEFINE(cudaGraphGetEdges, cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, size_t *count)
{
	return cudaGraphGetEdges_v2(graph, from, to, NULL, count);
}

DEFINE(cudaGraphNodeGetDependencies, cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count)
{
	return cudaGraphNodeGetDependencies_v2(node, nodes, NULL, count);
}

DEFINE(cudaGraphNodeGetDependentNodes, cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count)
{
	return cudaGraphNodeGetDependentNodes_v2(node, nodes, NULL, count);
}

/* ---- the names of the first CUDA versions for functions of a device ---- */

DEFINE(cudaThreadExit, void)
{
	return cudaDeviceReset();
}

DEFINE(cudaThreadSynchronize, void)
{
	return cudaDeviceSynchronize();
}

DEFINE(cudaThreadSetLimit, enum cudaLimit limit, size_t value)
{
	return cudaDeviceSetLimit(limit, value);
}

DEFINE(cudaThreadGetLimit, size_t *value, enum cudaLimit limit)
{
	return cudaDeviceGetLimit(value, limit);
}

DEFINE(cudaThreadGetCacheConfig, enum cudaFuncCache *config)
{
	return cudaDeviceGetCacheConfig(config);
}

DEFINE(cudaThreadSetCacheConfig, enum cudaFuncCache config)
{
	return cudaDeviceSetCacheConfig(config);
}

/* These convert a double for a device without doubles. Every device that CUDA 12 supports has them. */

DEFINE(cudaSetDoubleForDevice, double *value)
{
	(void)value;
	return cudaSuccess;
}

DEFINE(cudaSetDoubleForHost, double *value)
{
	(void)value;
	return cudaSuccess;
}
