/* SPDX-License-Identifier: BSD-3-Clause */
/* Launching graphs and capturing streams. */
#include "cuda_remote/runtime/default_stream.h"

_Static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS) &&
	       (int)cudaGraphInstantiateConditionalHandleUnused ==
		       (int)CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED &&
	       (int)cudaStreamSetCaptureDependencies == (int)CU_STREAM_SET_CAPTURE_DEPENDENCIES &&
	       (int)cudaStreamCaptureStatusInvalidated == (int)CU_STREAM_CAPTURE_STATUS_INVALIDATED,
	       "parameters and results are passed through");

RUNTIME_API cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphLaunch(exec, DRIVER_STREAM(stream)));
}

RUNTIME_API cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuGraphUpload(exec, DRIVER_STREAM(stream)));
}

RUNTIME_API cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *exec, cudaGraph_t graph,
						       cudaGraphInstantiateParams *params)
{
	if (!params)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	CUDA_GRAPH_INSTANTIATE_PARAMS driver = { .flags = params->flags, .hUploadStream =
			DRIVER_STREAM(params->uploadStream) };
	CUresult result = runtime_driver.cuGraphInstantiateWithParams(exec, graph, &driver);
	params->errNode_out = driver.hErrNode_out;
	params->result_out = (cudaGraphInstantiateResult)driver.result_out;
	return runtime_done(result);
}

RUNTIME_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuStreamBeginCapture_v2(DRIVER_STREAM(stream),
			(CUstreamCaptureMode)mode));
}

RUNTIME_API cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
						      const cudaGraphNode_t *dependencies,
						      const cudaGraphEdgeData *data, size_t count,
						      enum cudaStreamCaptureMode mode)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuStreamBeginCaptureToGraph(DRIVER_STREAM(stream), graph,
			dependencies, (const CUgraphEdgeData *)data, count, (CUstreamCaptureMode)mode));
}

RUNTIME_API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuStreamEndCapture(DRIVER_STREAM(stream), graph));
}

RUNTIME_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
						 unsigned long long *id, cudaGraph_t *graph,
						 const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **data,
						 size_t *count)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuStreamGetCaptureInfo_v3(DRIVER_STREAM(stream),
			(CUstreamCaptureStatus *)status, (cuuint64_t *)id, graph, dependencies,
			(const CUgraphEdgeData **)data, count));
}

RUNTIME_API cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *dependencies,
							    const cudaGraphEdgeData *data, size_t count, unsigned flags)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuStreamUpdateCaptureDependencies_v2(DRIVER_STREAM(stream),
			dependencies, (const CUgraphEdgeData *)data, count, flags));
}
