/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls on a stream, legacy and per-thread (see cuda_api.h): compiled twice. */
#include "cuda_remote/softgpu/driver/stream/default_stream.h"
#include "cuda_remote/graph/capture.h"
#include "cuda_remote/softgpu/driver/stream/event.h"
#include "cuda_remote/softgpu/driver/stream/host_function.h"
#include "cuda_remote/softgpu/space/space.h"

CUresult PTSZ(cuStreamGetPriority)(CUstream hStream, int *priority)
{
	CUstream stream;
	CUresult result = enter_stream_to_tell(hStream, priority, &stream);
	if (!result)
		*priority = stream->priority;
	return result;
}

CUresult PTSZ(cuStreamGetFlags)(CUstream hStream, unsigned int *flags)
{
	CUstream stream;
	CUresult result = enter_stream_to_tell(hStream, flags, &stream);
	if (!result)
		*flags = stream->flags;
	return result;
}

CUresult PTSZ(cuStreamGetId)(CUstream hStream, unsigned long long *streamId)
{
	CUstream stream;
	CUresult result = enter_stream_to_tell(hStream, streamId, &stream);
	if (!result)
		*streamId = stream->id;
	return result;
}

CUresult PTSZ(cuStreamGetDevice)(CUstream hStream, CUdevice *device)
{
	CUstream stream;
	CUresult result = enter_stream_to_tell(hStream, device, &stream);
	if (!result)
		*device = stream->context->device;
	return result;
}

/* The green context of a stream; for the legacy stream, the current one. */
static CUgreenCtx green_of(const struct CUstream_st *stream)
{
	return stream->legacy ? context_current_green() : __atomic_load_n(&stream->green, __ATOMIC_RELAXED);
}

CUresult PTSZ(cuStreamGetCtx)(CUstream hStream, CUcontext *pctx)
{
	CUstream stream;
	CUresult result = enter_stream_to_tell(hStream, pctx, &stream);
	if (result)
		return result;
	CUgreenCtx green = green_of(stream);
	*pctx = green ? (CUcontext)(void *)green : stream->context;
	return CUDA_SUCCESS;
}

CUresult PTSZ(cuStreamGetCtx_v2)(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
	CUstream stream;
	CUresult result = enter_stream_to_tell(hStream, pCtx, &stream);
	if (result)
		return result;
	if (STREAM_OR_DEFAULT(hStream) == CU_STREAM_PER_THREAD && context_current_green())
		return CUDA_ERROR_INVALID_HANDLE;
	*pCtx = stream->context;
	if (pGreenCtx)
		*pGreenCtx = green_of(stream);
	return CUDA_SUCCESS;
}

CUresult PTSZ(cuStreamQuery)(CUstream hStream)
{
	CUstream stream;
	CUresult result = enter_stream(hStream, &stream);
	if (!result)
		result = capture_refuse_stream(stream);
	if (result)
		return result;
	if (!queue_done(stream, queue_submitted(stream)))
		return CUDA_ERROR_NOT_READY;
	return context_error(stream->context);
}

CUresult PTSZ(cuStreamSynchronize)(CUstream hStream)
{
	CUstream stream;
	CUresult result = enter_stream(hStream, &stream);
	if (!result)
		result = capture_refuse_stream(stream);
	if (result)
		return result;
	CUcontext context = stream->context;
	queue_wait(stream, queue_submitted(stream));
	return context_error(context);
}

CUresult PTSZ(cuStreamWaitEvent)(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
	CUstream stream;
	CUresult result = enter_stream(hStream, &stream);
	if (result)
		return result;
	if (Flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	return event_wait(hEvent, stream, Flags & CU_EVENT_WAIT_EXTERNAL);
}

CUresult PTSZ(cuEventRecordWithFlags)(CUevent hEvent, CUstream hStream, unsigned int flags)
{
	CUstream stream;
	CUresult result = enter_stream(hStream, &stream);
	if (result)
		return result;
	if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	return event_record(hEvent, stream, flags & CU_EVENT_RECORD_EXTERNAL);
}

CUresult PTSZ(cuEventRecord)(CUevent hEvent, CUstream hStream)
{
	return PTSZ(cuEventRecordWithFlags)(hEvent, hStream, 0);
}

CUresult PTSZ(cuLaunchHostFunc)(CUstream hStream, CUhostFn fn, void *userData)
{
	CUstream stream;
	CUresult result = enter_stream(hStream, &stream);
	return result ? result : host_function_submit(stream, fn, userData);
}

CUresult PTSZ(cuStreamAddCallback)(CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags)
{
	CUstream stream;
	CUresult result = enter_stream(hStream, &stream);
	if (result)
		return result;
	return flags ? CUDA_ERROR_INVALID_VALUE : host_callback_submit(stream, hStream, callback, userData);
}
