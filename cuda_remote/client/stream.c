/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams and events: queries that the client answers itself, hooks of the generated calls. Stream-ordered memory. */
#include "cuda_remote/api/attributes.h"
#include "cuda_remote/client/client.h"
#include "cuda_remote/client/graph/capture_calls.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static uint64_t next_id = 2; /* 1 and 2 are CUDA's own streams, legacy and per-thread */

CUresult stream_check_create(CUstream *stream, unsigned flags)
{
	return stream && !(flags & ~(unsigned)CU_STREAM_NON_BLOCKING) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult stream_check_create_priority(CUstream *stream, unsigned flags, int priority)
{
	(void)priority;
	return stream_check_create(stream, flags);
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

CUresult stream_done_create_priority(CUstream *stream, unsigned flags, int priority)
{
	struct rc_stream *known = stream_new();
	if (!known) {
		cuStreamDestroy_v2(*stream);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	/* A smaller number is a higher priority. A priority out of range is clamped to the range. */
	int least = 0, greatest = 0;
	cuCtxGetStreamPriorityRange(&least, &greatest);
	priority = priority > least ? least : priority < greatest ? greatest : priority;
	*known = (struct rc_stream){ .context = rc_context_current(), .flags = flags, .priority = priority,
				     .id = __atomic_add_fetch(&next_id, 1, __ATOMIC_RELAXED) };
	rc_handle_attach((uint64_t)(uintptr_t)*stream, known);
	return CUDA_SUCCESS;
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
			*known = (struct rc_stream){ .context = context->handle, .id = stream == CU_STREAM_PER_THREAD ? 2 : 1 };
		return result;
	}
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	if (result != CUDA_SUCCESS)
		return result;
	struct rc_stream *found = rc_handle_data(RC_KIND_STREAM, handle);
	if (!found)
		return CUDA_ERROR_INVALID_HANDLE;
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
		*context = known.context;
	return result;
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
	return flags & CU_EVENT_INTERPROCESS ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

/* An event ends with its context (context.c). */
CUresult event_done_create(CUevent *event, unsigned flags)
{
	(void)flags;
	rc_handle_attach((uint64_t)(uintptr_t)*event, rc_context_current());
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event)
{
	return cuEventDestroy_v2(event);
}

/* ---- stream-ordered memory ---- */

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
	struct rc_device *device;
	if (!pool || !properties)
		return CUDA_ERROR_INVALID_VALUE;
	if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || properties->handleTypes)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = rc_device_get(properties->location.id, &device);
	if (result != CUDA_SUCCESS)
		return result;
	CUmemPoolProps sent = *properties;
	sent.location.id = device->ordinal;
	struct {
		struct rc_wire_call head;
		uint64_t pool;
	} message = { .pool = 0 };
	struct iovec iov = { &sent, sizeof sent };
	struct rc_link *link;
	result = rc_context_current() ? rc_link_to(device->session, device->primary, &link) : CUDA_ERROR_INVALID_CONTEXT;
	if (result == CUDA_SUCCESS)
		result = rc_handle_new(RC_KIND_POOL, link->session, &message.pool);
	if (result != CUDA_SUCCESS)
		return result;
	result = rc_link_call(link, RC_CALL_pool_create, 0, &message.head, sizeof message, &iov, 1);
	if (result == CUDA_SUCCESS)
		*pool = (CUmemoryPool)(uintptr_t)message.pool;
	else
		rc_handle_delete(message.pool);
	return result;
}

static CUresult free_async(struct rc_link *link, CUdeviceptr pointer, uint64_t stream, uint64_t *number)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_free call;
	} message = { .call = { pointer, stream } };
	CUresult result = rc_link_post(link, RC_CALL_memory_free_async, 0, &message.head, sizeof message, NULL, 0);
	*number = message.head.number;
	return result;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream stream)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_alloc call;
	} message = { .call = { size, (uint64_t)(uintptr_t)stream, (uint64_t)(uintptr_t)pool } };
	if (!pointer || !size)
		return CUDA_ERROR_INVALID_VALUE;
	bool captured;
	struct rc_route route = { NULL, 0, false };
	CUresult result = rc_capture_alloc(stream, size, pointer, &captured);
	if (result != CUDA_SUCCESS || captured)
		return result;
	result = rc_route_handle(&route, RC_KIND_STREAM, message.call.stream);
	if (result == CUDA_SUCCESS && pool)
		result = rc_route_handle(&route, RC_KIND_POOL, message.call.pool);
	struct rc_link *link;
	if (result == CUDA_SUCCESS)
		result = rc_link_get(&route, true, &link);
	if (result == CUDA_SUCCESS)
		result = rc_link_call(link, RC_CALL_memory_alloc_async, 0, &message.head, sizeof message, NULL, 0);
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t address, number;
	if (link->reply_len != sizeof address)
		return rc_link_broken(link, RC_CALL_memory_alloc_async);
	memcpy(&address, link->reply, sizeof address);
	struct rc_span span = { .base = address, .size = size, .kind = RC_MEMORY_DEVICE, .session = link->session,
				.context = route.context ? (CUcontext)(uintptr_t)route.context : rc_context_current(),
				.pooled = true };
	result = rc_memory_add(&span);
	if (result == CUDA_SUCCESS)
		*pointer = address;
	else
		free_async(link, address, message.call.stream, &number);
	if (result != CUDA_ERROR_ALREADY_MAPPED)
		return result;
	hr_log(HR_LOG_ERROR, "server %s allocates memory at %#llx, where the program has other memory; run the program again",
	       link->server, (unsigned long long)address);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t size, CUstream stream)
{
	return cuMemAllocFromPoolAsync(pointer, size, NULL, stream);
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
	bool captured;
	struct rc_route route = { NULL, 0, false };
	CUresult result = rc_capture_free(stream, pointer, &captured);
	if (result != CUDA_SUCCESS || captured)
		return result;
	result = rc_route_handle(&route, RC_KIND_STREAM, (uint64_t)(uintptr_t)stream);
	if (result == CUDA_SUCCESS)
		result = rc_route_address(&route, pointer);
	if (result != CUDA_SUCCESS || !pointer)
		return result;
	struct rc_link *link;
	struct rc_span span;
	uint64_t number;
	result = rc_link_get(&route, true, &link);
	if (result == CUDA_SUCCESS && !rc_memory_take(pointer, &span))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = free_async(link, pointer, (uint64_t)(uintptr_t)stream, &number);
	if (result == CUDA_SUCCESS && span.placing)
		rc_placing_leave(&span, number);
	return result;
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream stream)
{
	return cuMemAllocFromPoolAsync(pointer, size, pool, own(stream));
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *pointer, size_t size, CUstream stream)
{
	return cuMemAllocAsync(pointer, size, own(stream));
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream)
{
	return cuMemFreeAsync(pointer, own(stream));
}
