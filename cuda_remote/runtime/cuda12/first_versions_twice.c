/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of CUDA 12 that CUDA 13 has under the same name with other arguments: those that take a stream. */
#include "cuda_remote/runtime/cuda12/first_versions.h"
#include "cuda_remote/runtime/default_stream.h"

#undef cudaMemPrefetchAsync
#undef cudaMemPrefetchAsync_ptsz
#undef cudaMemcpyBatchAsync
#undef cudaMemcpyBatchAsync_ptsz
#undef cudaMemcpy3DBatchAsync
#undef cudaMemcpy3DBatchAsync_ptsz
#undef cudaStreamGetCaptureInfo
#undef cudaStreamGetCaptureInfo_ptsz
#undef cudaStreamUpdateCaptureDependencies
#undef cudaStreamUpdateCaptureDependencies_ptsz

DEFINE(PRIVATE_NAME(cudaMemPrefetchAsync), const void *pointer, size_t size, int device, cudaStream_t stream)
{
	return PRIVATE_NAME(cudaMemPrefetchAsync_v2)(pointer, size, runtime_location(device), 0, stream);
}

/* The index of the copy that failed; SIZE_MAX says that the error is not one copy's. */
static cudaError_t without_index(cudaError_t error, size_t *index)
{
	if (error && index)
		*index = SIZE_MAX;
	return error;
}

DEFINE(PRIVATE_NAME(cudaMemcpyBatchAsync), void **to, void **from, size_t *sizes, size_t count,
       struct cudaMemcpyAttributes *attributes, size_t *attribute_starts, size_t attribute_count, size_t *failed,
       cudaStream_t stream)
{
	return without_index(PRIVATE_NAME(runtime_memcpy_batch)(to, (const void *const *)from, sizes, count, attributes,
								attribute_starts, attribute_count, stream),
			     failed);
}

DEFINE(PRIVATE_NAME(cudaMemcpy3DBatchAsync), size_t count, struct cudaMemcpy3DBatchOp *list, size_t *failed,
       unsigned long long flags, cudaStream_t stream)
{
	return without_index(PRIVATE_NAME(runtime_memcpy_3d_batch)(count, list, flags, stream), failed);
}

DEFINE(PRIVATE_NAME(cudaStreamGetCaptureInfo_v2), cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
       cudaGraph_t *graph, const cudaGraphNode_t **dependencies, size_t *count)
{
	return PRIVATE_NAME(cudaStreamGetCaptureInfo_v3)(stream, status, id, graph, dependencies, NULL, count);
}

DEFINE(PRIVATE_NAME(cudaStreamGetCaptureInfo), cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id)
{
	return PRIVATE_NAME(cudaStreamGetCaptureInfo_v3)(stream, status, id, NULL, NULL, NULL, NULL);
}

DEFINE(PRIVATE_NAME(cudaStreamUpdateCaptureDependencies), cudaStream_t stream, cudaGraphNode_t *dependencies, size_t count,
       unsigned flags)
{
	return PRIVATE_NAME(cudaStreamUpdateCaptureDependencies_v2)(stream, dependencies, NULL, count, flags);
}
