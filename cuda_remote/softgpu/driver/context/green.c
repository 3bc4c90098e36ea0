/* SPDX-License-Identifier: BSD-3-Clause */
/* Green contexts: their calls, and how many multiprocessors a launch may use. */
#include "cuda_remote/softgpu/driver/context/green.h"

#include "cuda_remote/softgpu/driver/device/device.h"
#include "cuda_remote/softgpu/driver/device/device_resource.h"
#include "cuda_remote/softgpu/driver/init.h"
#include "cuda_remote/graph/capture.h"
#include "cuda_remote/softgpu/driver/stream/stream.h"
#include "cuda_remote/softgpu/engine.h"

#include <stdlib.h>

unsigned green_multiprocessors(const struct CUstream_st *stream)
{
	CUgreenCtx green = stream->legacy ? context_current_green() : __atomic_load_n(&stream->green, __ATOMIC_RELAXED);
	return context_of_green(green) == stream->context ? green->resource.sm.smCount : softgpu_threads();
}

static CUresult enter(CUgreenCtx green, CUcontext *context)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!handle_valid(green, HANDLE_GREEN_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	*context = context_of_green(green);
	return *context ? context_error(*context) : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

struct creation {
	const CUdevResource *resource;
	CUgreenCtx *output;
};

/* Creates a green context. The primary context has been retained for it, and is not reset meanwhile. */
static CUresult create(CUcontext primary, void *with)
{
	static uint64_t next_id;
	const struct creation *creation = with;
	CUgreenCtx green = handle_new(HANDLE_GREEN_CONTEXT, sizeof *green);
	if (!green)
		return CUDA_ERROR_OUT_OF_MEMORY;
	green->gate = queue_stream_new(primary, &primary->group, CU_STREAM_NON_BLOCKING, 0, false);
	if (!green->gate) {
		handle_retire(green);
		handle_release(green);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	handle_retire(green->gate); /* the program never gets this handle */
	green->primary = primary;
	green->primary_id = primary->id;
	green->id = __atomic_add_fetch(&next_id, 1, __ATOMIC_RELAXED);
	green->resource = *creation->resource;
	device_resource_provision(&green->resource);
	*creation->output = green;
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!phCtx || flags != CU_GREEN_CTX_DEFAULT_STREAM || !handle_valid(desc, HANDLE_RESOURCE_DESCRIPTOR) ||
	    device_resource_device(&desc->resource) != dev)
		return CUDA_ERROR_INVALID_VALUE;
	return primary_retain(dev, create, &(struct creation){ &desc->resource, phCtx });
}

/*
 * Streams that the program has not destroyed return CUDA_ERROR_CONTEXT_IS_DESTROYED from now on. Captures that began in
 * them are lost, as no call can end them.
 */
static void orphan_streams(CUcontext context, CUgreenCtx green)
{
	size_t count;
	CUstream *streams = queue_group_streams(&context->group, green, &count);
	for (size_t i = 0; i < count && streams; i++) {
		__atomic_store_n(&streams[i]->orphan, true, __ATOMIC_RELAXED);
		capture_stream_destroyed(streams[i]);
		queue_stream_release(streams[i]);
	}
	free(streams);
}

CUresult cuGreenCtxDestroy(CUgreenCtx hCtx)
{
	CUresult result = init_check();
	if (result)
		return result;
	CUcontext context = context_of_green(hCtx);
	if (!handle_valid(hCtx, HANDLE_GREEN_CONTEXT) || !handle_retire(hCtx))
		return CUDA_ERROR_INVALID_CONTEXT;
	queue_stream_release(hCtx->gate);
	/* After a reset of the device, its other streams and its reference to the primary context are gone already. */
	if (context) {
		orphan_streams(context, hCtx);
		result = cuDevicePrimaryCtxRelease_v2(context->device);
	}
	handle_release(hCtx);
	return result;
}

CUresult cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx)
{
	CUcontext context;
	CUresult result = enter(hCtx, &context);
	if (result)
		return result;
	if (!pContext)
		return CUDA_ERROR_INVALID_VALUE;
	*pContext = (CUcontext)(void *)hCtx;
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long *greenCtxId)
{
	CUcontext context;
	if (!greenCtx)
		greenCtx = context_current_green();
	CUresult result = enter(greenCtx, &context);
	if (result)
		return result;
	if (!greenCtxId)
		return CUDA_ERROR_INVALID_VALUE;
	*greenCtxId = greenCtx->id;
	return CUDA_SUCCESS;
}

static CUresult tell(const CUdevResource *from, CUdevResource *resource, CUdevResourceType type)
{
	if (!resource)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	*resource = *from;
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx hCtx, CUdevResource *resource, CUdevResourceType type)
{
	CUcontext context;
	CUresult result = enter(hCtx, &context);
	return result ? result : tell(&hCtx->resource, resource, type);
}

CUresult cuCtxGetDevResource(CUcontext hCtx, CUdevResource *resource, CUdevResourceType type)
{
	CUgreenCtx green = hCtx ? (CUgreenCtx)(void *)hCtx : context_current_green();
	CUresult result = context_enter_this(&hCtx);
	if (result)
		return result;
	if (context_of_green(green))
		return tell(&green->resource, resource, type);
	CUdevResource all;
	device_resource(hCtx->device, &all);
	return tell(&all, resource, type);
}

CUresult cuGreenCtxStreamCreate(CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags, int priority)
{
	CUcontext context;
	CUresult result = enter(greenCtx, &context);
	if (result)
		return result;
	if (!phStream || flags != CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	return stream_new(context, greenCtx, flags, priority, phStream);
}

CUresult cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx *phCtx)
{
	CUcontext context;
	CUstream stream;
	CUresult result = stream_enter(hStream, &context, &stream);
	if (result)
		return result;
	if (!phCtx)
		return CUDA_ERROR_INVALID_VALUE;
	*phCtx = stream->legacy ? context_current_green() : __atomic_load_n(&stream->green, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}
