/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams and events: queries that the client answers itself, hooks of the generated calls. Stream-ordered memory. */
#include "cuda_remote/api/attributes.h"
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/graph/capture_calls.h"
#include "cuda_remote/client/graph/graph_calls.h"
#include "cuda_remote/client/green/green.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/hooks.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/session.h"
#include "cuda_remote/client/stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static uint64_t next_id = 2; /* 1 and 2 are CUDA's own streams, legacy and per-thread */

/* While a green context is current, streams are made in it. */
CUresult stream_check_create_priority(CUstream *stream, unsigned flags, int priority)
{
	if (!stream || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	CUgreenCtx green = rc_green_current();
	if (!green)
		return CUDA_SUCCESS;
	CUresult result = rc_context_check_green();
	if (result == CUDA_SUCCESS)
		result = rc_green_stream(green, flags, priority, stream);
	return result == CUDA_SUCCESS ? RC_ANSWERED : result;
}

CUresult stream_check_create(CUstream *stream, unsigned flags)
{
	return stream_check_create_priority(stream, flags, 0);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rc_stream *unused;

void rc_stream_recycle(struct rc_stream *stream)
{
	pthread_mutex_lock(&lock);
	stream->next = unused;
	unused = stream;
	pthread_mutex_unlock(&lock);
}

static struct rc_stream *stream_new(void)
{
	pthread_mutex_lock(&lock);
	struct rc_stream *stream = unused;
	if (stream)
		unused = stream->next;
	pthread_mutex_unlock(&lock);
	return stream ? stream : malloc(sizeof *stream);
}

CUresult stream_done_destroy(CUstream stream)
{
	struct rc_stream *known = rc_handle_data(RC_KIND_STREAM, (uint64_t)(uintptr_t)stream);
	rc_capture_stream_destroyed((uint64_t)(uintptr_t)stream);
	if (known)
		rc_stream_recycle(known);
	return CUDA_SUCCESS;
}

CUresult rc_stream_add(uint64_t handle, const struct rc_stream *value)
{
	struct rc_stream *known = stream_new();
	if (!known)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* A smaller number is a higher priority. A priority out of range is clamped to the range. */
	const struct rc_context *context = rc_handle_data(RC_KIND_CONTEXT, (uint64_t)(uintptr_t)value->context);
	struct rc_device *device;
	int least = 0, greatest = 0;
	if (context && rc_device_get(context->device, &device) == CUDA_SUCCESS) {
		least = device->wire.least_priority;
		greatest = device->wire.greatest_priority;
	}
	*known = *value;
	known->priority = value->priority > least ? least : value->priority < greatest ? greatest : value->priority;
	known->id = __atomic_add_fetch(&next_id, 1, __ATOMIC_RELAXED);
	rc_handle_attach(handle, known);
	return CUDA_SUCCESS;
}

CUresult stream_done_create_priority(CUstream *stream, unsigned flags, int priority)
{
	CUresult result = rc_stream_add((uint64_t)(uintptr_t)*stream,
					&(struct rc_stream){ .context = rc_context_current(), .flags = flags,
							     .priority = priority });
	if (result != CUDA_SUCCESS)
		cuStreamDestroy_v2(*stream);
	return result;
}

CUresult stream_done_create(CUstream *stream, unsigned flags)
{
	return stream_done_create_priority(stream, flags, 0);
}

/* Copies the client's record of a stream: another thread may destroy the stream. place: the query's output pointer. */
static CUresult stream_get(CUstream stream, const void *place, struct rc_stream *known)
{
	struct rc_context *context;
	uint64_t handle = (uint64_t)(uintptr_t)stream;
	if (!place)
		return CUDA_ERROR_INVALID_VALUE;
	if (rc_stream_is_special(handle)) {
		CUresult result = rc_context_get(&context);
		if (result == CUDA_SUCCESS)
			*known = (struct rc_stream){ .context = context->handle, .id = stream == CU_STREAM_PER_THREAD ? 2 : 1,
						     .green = stream == CU_STREAM_PER_THREAD ? NULL : rc_green_current() };
		return result;
	}
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	if (result != CUDA_SUCCESS)
		return result;
	struct rc_stream *found = rc_handle_data(RC_KIND_STREAM, handle);
	if (!found)
		return rc_green_orphan(handle) ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_HANDLE;
	*known = *found;
	return CUDA_SUCCESS;
}

CUresult stream_check_wait_event(CUstream stream, CUevent event, unsigned flags)
{
	uint64_t waits = (uint64_t)(uintptr_t)stream, waited = (uint64_t)(uintptr_t)event;
	CUresult captured = rc_capture_wait(stream, event, flags);
	if (captured != CUDA_SUCCESS)
		return captured;
	/* An event of another server that exists is waited for by peer_wait_event. */
	if (rc_stream_is_special(waits))
		return rc_route_same(RC_KIND_EVENT, waited, CUDA_ERROR_INVALID_HANDLE);
	struct rc_session *of = rc_handle_session(waits), *other = rc_handle_session(waited);
	return !of || !other || of == other ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult stream_check_destroy(CUstream stream)
{
	if (rc_stream_is_special((uint64_t)(uintptr_t)stream))
		return CUDA_ERROR_INVALID_HANDLE;
	return CUDA_SUCCESS;
}

/* Accepts the attributes that are forwarded (api/attributes.h). The others refer to objects of the client. */
CUresult stream_check_set_attribute(CUstream stream, CUstreamAttrID attribute, const CUstreamAttrValue *value)
{
	(void)stream;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	return rc_stream_attribute_travels(attribute) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult stream_check_get_attribute(CUstream stream, CUstreamAttrID attribute, CUstreamAttrValue *value)
{
	return stream_check_set_attribute(stream, attribute, value);
}

CUresult cuStreamDestroy(CUstream stream)
{
	return cuStreamDestroy_v2(stream);
}

CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
	struct rc_stream known;
	CUresult result = stream_get(stream, priority, &known);
	if (result == CUDA_SUCCESS)
		*priority = known.priority;
	return result;
}

CUresult cuStreamGetFlags(CUstream stream, unsigned *flags)
{
	struct rc_stream known;
	CUresult result = stream_get(stream, flags, &known);
	if (result == CUDA_SUCCESS)
		*flags = known.flags;
	return result;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
	struct rc_stream known;
	CUresult result = stream_get(stream, context, &known);
	if (result == CUDA_SUCCESS)
		*context = known.green ? (CUcontext)(void *)known.green : known.context;
	return result;
}

CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *context, CUgreenCtx *green)
{
	struct rc_stream known;
	CUresult result = stream_get(stream, context, &known);
	if (result != CUDA_SUCCESS)
		return result;
	if (stream == CU_STREAM_PER_THREAD && rc_green_current())
		return CUDA_ERROR_INVALID_HANDLE;
	*context = known.context;
	if (green)
		*green = known.green;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetGreenCtx(CUstream stream, CUgreenCtx *green)
{
	struct rc_stream known;
	CUresult result = stream_get(stream, green, &known);
	if (result == CUDA_SUCCESS)
		*green = known.green;
	return result;
}

unsigned rc_green_multiprocessors(CUstream stream)
{
	struct rc_stream known;
	struct rc_context *green;
	if (stream_get(stream, &known, &known) != CUDA_SUCCESS || !known.green ||
	    rc_green_get(known.green, &green) != CUDA_SUCCESS)
		return 0;
	return green->multiprocessors;
}

CUresult cuStreamGetDevice(CUstream stream, CUdevice *device)
{
	struct rc_stream known;
	CUresult result = stream_get(stream, device, &known);
	return result == CUDA_SUCCESS ? cuCtxGetDevice_v2(device, known.context) : result;
}

CUresult cuStreamGetId(CUstream stream, unsigned long long *id)
{
	struct rc_stream known;
	CUresult result = stream_get(stream, id, &known);
	if (result == CUDA_SUCCESS)
		*id = known.id;
	return result;
}

static CUstream own(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

CUresult cuStreamGetPriority_ptsz(CUstream stream, int *priority)
{
	return cuStreamGetPriority(own(stream), priority);
}

CUresult cuStreamGetFlags_ptsz(CUstream stream, unsigned *flags)
{
	return cuStreamGetFlags(own(stream), flags);
}

CUresult cuStreamGetCtx_ptsz(CUstream stream, CUcontext *context)
{
	return cuStreamGetCtx(own(stream), context);
}

CUresult cuStreamGetCtx_v2_ptsz(CUstream stream, CUcontext *context, CUgreenCtx *green)
{
	return cuStreamGetCtx_v2(own(stream), context, green);
}

CUresult cuStreamGetDevice_ptsz(CUstream stream, CUdevice *device)
{
	return cuStreamGetDevice(own(stream), device);
}

CUresult cuStreamGetId_ptsz(CUstream stream, unsigned long long *id)
{
	return cuStreamGetId(own(stream), id);
}

/* ---- events ---- */

CUresult event_check_create(CUevent *event, unsigned flags)
{
	const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
	if (!event || flags & ~known)
		return CUDA_ERROR_INVALID_VALUE;
	/* Other processes cannot read the time. */
	return flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event)
{
	return cuEventDestroy_v2(event);
}
