/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversion of node parameters between the runtime's form and the driver's. */
#include "cuda_remote/runtime/graph/graph_params.h"

#include "cuda_remote/runtime/copy.h"

#include <string.h>

_Static_assert(sizeof(struct cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS_v2) &&
	       sizeof(struct cudaMemsetParams) == offsetof(CUDA_MEMSET_NODE_PARAMS_v2, ctx) &&
	       sizeof(struct cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v2) &&
	       sizeof(struct cudaKernelNodeParams) == sizeof(struct cudaKernelNodeParamsV2) &&
	       sizeof(struct cudaConditionalNodeParams) <= sizeof(CUDA_CONDITIONAL_NODE_PARAMS) &&
	       sizeof(struct cudaChildGraphNodeParams) == sizeof(CUDA_CHILD_GRAPH_NODE_PARAMS) &&
	       (int)cudaGraphCondTypeSwitch == (int)CU_GRAPH_COND_TYPE_SWITCH, "these are passed through");

static cudaError_t begin(const void *from, CUgraphNodeType type, CUgraphNodeParams *to)
{
	memset(to, 0, sizeof *to);
	to->type = type;
	return from ? runtime_enter() : runtime_fail(cudaErrorInvalidValue);
}

cudaError_t graph_params_kernel(const struct cudaKernelNodeParams *from, CUgraphNodeParams *to)
{
	cudaError_t error = begin(from, CU_GRAPH_NODE_TYPE_KERNEL, to);
	CUfunction function = NULL;
	if (!error)
		error = runtime_function(from->func, &function);
	if (error)
		return error;
	to->kernel = (CUDA_KERNEL_NODE_PARAMS_v3){
		.func = function, .gridDimX = from->gridDim.x, .gridDimY = from->gridDim.y, .gridDimZ = from->gridDim.z,
		.blockDimX = from->blockDim.x, .blockDimY = from->blockDim.y, .blockDimZ = from->blockDim.z,
		.sharedMemBytes = from->sharedMemBytes, .kernelParams = from->kernelParams, .extra = from->extra,
	};
	return cudaSuccess;
}

cudaError_t graph_params_memcpy(const struct cudaMemcpy3DParms *from, CUgraphNodeParams *to)
{
	bool empty;
	cudaError_t error = begin(from, CU_GRAPH_NODE_TYPE_MEMCPY, to);
	return error ? error : copy_3d(from, &to->memcpy.copyParams, &empty);
}

cudaError_t graph_params_memcpy_1d(void *to_memory, const void *from, size_t size, enum cudaMemcpyKind kind,
				   CUgraphNodeParams *to)
{
	if (!copy_kind_valid(kind))
		return runtime_fail(cudaErrorInvalidMemcpyDirection);
	cudaError_t error = begin(to, CU_GRAPH_NODE_TYPE_MEMCPY, to);
	to->memcpy.copyParams = (CUDA_MEMCPY3D){
		.srcMemoryType = copy_source_type(kind), .srcHost = from, .srcDevice = runtime_address(from),
		.dstMemoryType = copy_target_type(kind), .dstHost = to_memory, .dstDevice = runtime_address(to_memory),
		.WidthInBytes = size, .Height = 1, .Depth = 1,
	};
	return error;
}

cudaError_t graph_params_memset(const struct cudaMemsetParams *from, CUgraphNodeParams *to)
{
	cudaError_t error = begin(from, CU_GRAPH_NODE_TYPE_MEMSET, to);
	if (!error)
		memcpy(&to->memset, from, sizeof *from);
	return error;
}

cudaError_t graph_params_host(const struct cudaHostNodeParams *from, CUgraphNodeParams *to)
{
	cudaError_t error = begin(from, CU_GRAPH_NODE_TYPE_HOST, to);
	if (!error)
		memcpy(&to->host, from, sizeof *from);
	return error;
}

cudaError_t graph_params_event(CUgraphNodeType type, cudaEvent_t event, CUgraphNodeParams *to)
{
	cudaError_t error = begin(event, type, to);
	to->eventRecord.event = event;
	return error;
}

cudaError_t graph_params_alloc(const struct cudaMemAllocNodeParams *from, CUgraphNodeParams *to)
{
	cudaError_t error = begin(from, CU_GRAPH_NODE_TYPE_MEM_ALLOC, to);
	if (!error)
		memcpy(&to->alloc, from, sizeof *from);
	return error;
}

cudaError_t graph_params_free(void *memory, CUgraphNodeParams *to)
{
	cudaError_t error = begin(memory, CU_GRAPH_NODE_TYPE_MEM_FREE, to);
	to->free.dptr = runtime_address(memory);
	return error;
}

static cudaError_t any_memcpy(const struct cudaMemcpyNodeParams *from, CUgraphNodeParams *to)
{
	if (from->flags || from->reserved[0] || from->reserved[1] || from->reserved[2])
		return runtime_fail(cudaErrorInvalidValue);
	return graph_params_memcpy(&from->copyParams, to);
}

cudaError_t graph_params_any(const struct cudaGraphNodeParams *from, CUgraphNodeParams *to)
{
	cudaError_t error;
	if (!from)
		return runtime_fail(cudaErrorInvalidValue);
	switch (from->type) {
	case cudaGraphNodeTypeKernel: {
		struct cudaKernelNodeParams kernel;
		memcpy(&kernel, &from->kernel, sizeof kernel);
		return graph_params_kernel(&kernel, to);
	}
	case cudaGraphNodeTypeMemcpy:
		return any_memcpy(&from->memcpy, to);
	case cudaGraphNodeTypeMemset:
		error = begin(from, CU_GRAPH_NODE_TYPE_MEMSET, to);
		memcpy(&to->memset, &from->memset, sizeof from->memset);
		return error;
	case cudaGraphNodeTypeConditional:
		error = begin(from, CU_GRAPH_NODE_TYPE_CONDITIONAL, to);
		to->conditional = (CUDA_CONDITIONAL_NODE_PARAMS){
			.handle = from->conditional.handle, .type = (CUgraphConditionalNodeType)from->conditional.type,
			.size = from->conditional.size,
		};
		return error;
	default:
		/* The other types have the same form in both interfaces. */
		error = begin(from, (CUgraphNodeType)from->type, to);
		memcpy(to->reserved1, from->reserved1, sizeof to->reserved1);
		return error;
	}
}

void graph_params_made(const CUgraphNodeParams *from, struct cudaGraphNodeParams *to)
{
	if (from->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		to->alloc.dptr = (void *)(uintptr_t)from->alloc.dptr;
	else if (from->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		to->conditional.phGraph_out = from->conditional.phGraph_out;
}

static enum cudaMemcpyKind kind_of(CUmemorytype from, CUmemorytype to)
{
	if (from == CU_MEMORYTYPE_UNIFIED || to == CU_MEMORYTYPE_UNIFIED)
		return cudaMemcpyDefault;
	if (from == CU_MEMORYTYPE_HOST)
		return to == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
	return to == CU_MEMORYTYPE_HOST ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

cudaError_t graph_params_memcpy_back(const CUDA_MEMCPY3D *from, struct cudaMemcpy3DParms *to)
{
	/* As in copy_3d: if either end is an array, extents are in texels, and positions in an array are too. */
	size_t unit, source_unit, target_unit;
	cudaError_t error = copy_unit((cudaArray_t)from->srcArray, (cudaArray_t)from->dstArray, &unit);
	if (error)
		return error;
	source_unit = from->srcArray ? unit : 1;
	target_unit = from->dstArray ? unit : 1;
	void *source = from->srcMemoryType == CU_MEMORYTYPE_HOST ? (void *)(uintptr_t)from->srcHost
								 : (void *)(uintptr_t)from->srcDevice;
	void *target = from->dstMemoryType == CU_MEMORYTYPE_HOST ? from->dstHost : (void *)(uintptr_t)from->dstDevice;
	*to = (struct cudaMemcpy3DParms){
		.srcArray = (cudaArray_t)from->srcArray,
		.srcPos = { from->srcXInBytes / source_unit, from->srcY, from->srcZ },
		.srcPtr = { source, from->srcPitch, from->WidthInBytes, from->srcHeight },
		.dstArray = (cudaArray_t)from->dstArray,
		.dstPos = { from->dstXInBytes / target_unit, from->dstY, from->dstZ },
		.dstPtr = { target, from->dstPitch, from->WidthInBytes, from->dstHeight },
		.extent = { from->WidthInBytes / unit, from->Height, from->Depth },
		.kind = kind_of(from->srcMemoryType, from->dstMemoryType),
	};
	return cudaSuccess;
}
