/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Launching and capturing graphs. Compiled twice, the second time with CUDA_PER_THREAD: for programs with a default
 * stream for each thread.
 */
#include "cuda_remote/graph/capture.h"
#include "cuda_remote/graph/graph_capture.h"
#include "cuda_remote/graph/graph_exec.h"

#ifdef CUDA_PER_THREAD
#define PTSZ(name) name##_ptsz
#define DEFAULT_STREAM CU_STREAM_PER_THREAD
#else
#define PTSZ(name) name
#define DEFAULT_STREAM CU_STREAM_LEGACY
#endif

static CUresult enter_stream(CUstream given, CUstream *stream)
{
	return graph_driver_stream(given ? given : DEFAULT_STREAM, stream);
}

static CUresult enter(CUgraphExec exec, CUstream handle, CUstream *stream)
{
	CUresult result = enter_stream(handle, stream);
	if (result)
		return result;
	return handle_valid(exec, HANDLE_GRAPH_EXEC) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult PTSZ(cuGraphLaunch)(CUgraphExec hGraphExec, CUstream hStream)
{
	CUstream stream;
	CUresult result = enter(hGraphExec, hStream, &stream);
	return result ? result : graph_launch(hGraphExec, stream);
}

/* A launch needs nothing to be uploaded. */
CUresult PTSZ(cuGraphUpload)(CUgraphExec hGraphExec, CUstream hStream)
{
	CUstream stream;
	CUresult result = enter(hGraphExec, hStream, &stream);
	if (!result && capture_stream_busy(stream))
		result = capture_refuse_stream(stream);
	return result;
}

CUresult PTSZ(cuGraphInstantiateWithParams)(CUgraphExec *phGraphExec, CUgraph hGraph,
					    CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
	if (!instantiateParams)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = CUDA_SUCCESS;
	if (instantiateParams->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) {
		CUstream stream;
		result = enter_stream(instantiateParams->hUploadStream, &stream);
	}
	if (result)
		return result;
	return graph_exec_new(hGraph, instantiateParams->flags, instantiateParams, phGraphExec);
}

static CUresult begin(CUstream handle, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data,
		      size_t count, CUstreamCaptureMode mode)
{
	CUstream stream;
	CUresult result = enter_stream(handle, &stream);
	return result ? result : graph_capture_begin(stream, graph, dependencies, data, count, mode);
}

CUresult PTSZ(cuStreamBeginCapture_v2)(CUstream hStream, CUstreamCaptureMode mode)
{
	return begin(hStream, NULL, NULL, NULL, 0, mode);
}

CUresult PTSZ(cuStreamBeginCapture)(CUstream hStream)
{
	return begin(hStream, NULL, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult PTSZ(cuStreamBeginCaptureToGraph)(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
					   const CUgraphEdgeData *dependencyData, size_t numDependencies,
					   CUstreamCaptureMode mode)
{
	if (!hGraph)
		return CUDA_ERROR_INVALID_VALUE;
	return begin(hStream, hGraph, dependencies, dependencyData, numDependencies, mode);
}

CUresult PTSZ(cuStreamEndCapture)(CUstream hStream, CUgraph *phGraph)
{
	CUstream stream;
	CUresult result = enter_stream(hStream, &stream);
	return result ? result : capture_end(stream, phGraph);
}

CUresult PTSZ(cuStreamGetCaptureInfo_v3)(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
					 cuuint64_t *id_out, CUgraph *graph_out, const CUgraphNode **dependencies_out,
					 const CUgraphEdgeData **edgeData_out, size_t *numDependencies_out)
{
	CUstream stream;
	capture_info_t info;
	CUresult result = enter_stream(hStream, &stream);
	if (result)
		return result;
	if (!captureStatus_out || (edgeData_out && !dependencies_out))
		return CUDA_ERROR_INVALID_VALUE;
	result = capture_info(stream, &info);
	if (result)
		return result;
	*captureStatus_out = info.status;
	if (info.status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return CUDA_SUCCESS;
	if (dependencies_out && !edgeData_out && info.lossy)
		return CUDA_ERROR_LOSSY_QUERY;
	if (id_out)
		*id_out = info.id;
	if (graph_out)
		*graph_out = info.graph;
	if (dependencies_out)
		*dependencies_out = info.dependencies;
	if (edgeData_out)
		*edgeData_out = info.data;
	if (numDependencies_out)
		*numDependencies_out = info.count;
	return CUDA_SUCCESS;
}

CUresult PTSZ(cuStreamGetCaptureInfo_v2)(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
					 cuuint64_t *id_out, CUgraph *graph_out, const CUgraphNode **dependencies_out,
					 size_t *numDependencies_out)
{
	return PTSZ(cuStreamGetCaptureInfo_v3)(hStream, captureStatus_out, id_out, graph_out, dependencies_out, NULL,
					       numDependencies_out);
}

CUresult PTSZ(cuStreamGetCaptureInfo)(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out)
{
	return PTSZ(cuStreamGetCaptureInfo_v3)(hStream, captureStatus_out, id_out, NULL, NULL, NULL, NULL);
}

CUresult PTSZ(cuStreamIsCapturing)(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
	return PTSZ(cuStreamGetCaptureInfo_v3)(hStream, captureStatus, NULL, NULL, NULL, NULL, NULL);
}

CUresult PTSZ(cuStreamUpdateCaptureDependencies_v2)(CUstream hStream, CUgraphNode *dependencies,
						    const CUgraphEdgeData *dependencyData, size_t numDependencies,
						    unsigned int flags)
{
	CUstream stream;
	CUresult result = enter_stream(hStream, &stream);
	return result ? result : graph_capture_update(stream, dependencies, dependencyData, numDependencies, flags);
}

CUresult PTSZ(cuStreamUpdateCaptureDependencies)(CUstream hStream, CUgraphNode *dependencies, size_t numDependencies,
						 unsigned int flags)
{
	return PTSZ(cuStreamUpdateCaptureDependencies_v2)(hStream, dependencies, NULL, numDependencies, flags);
}
