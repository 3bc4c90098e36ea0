/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams, events and memory pools: the calls that block, and those whose arguments the generated code cannot check. */
#include "cuda_remote/api/attributes.h"
#include "cuda_remote/server/internal.h"

/* Chunks of copies are issued, and times between events asked for, outside of the call order. A thread that destroys a stream or a
 * context holds this for writing, so that no stream is destroyed while a chunk is being issued to it, and no context while the time
 * of its events is asked for. */
static pthread_rwlock_t streams = PTHREAD_RWLOCK_INITIALIZER;
/* A thread that destroys an event, or asks for its time, holds this. It is not held for long, unlike `streams`: a driver may delay
 * the issue of a chunk. */
static pthread_mutex_t events = PTHREAD_MUTEX_INITIALIZER;

CUresult server_stream_hold(struct server_thread *thread, uint64_t handle, CUstream *stream)
{
	pthread_rwlock_rdlock(&streams);
	CUresult result = server_thread_follow(thread, thread->context);
	if (result == CUDA_SUCCESS)
		result = server_object(RC_KIND_STREAM, handle, (void **)stream);
	if (result != CUDA_SUCCESS)
		pthread_rwlock_unlock(&streams);
	return result;
}

CUresult server_context_hold(uint32_t index, CUcontext *context)
{
	pthread_rwlock_rdlock(&streams);
	CUresult result = server_object_context(index, context);
	if (result == CUDA_SUCCESS)
		result = driver.cuCtxSetCurrent(*context);
	if (result != CUDA_SUCCESS)
		pthread_rwlock_unlock(&streams);
	return result;
}

void server_stream_let_go(void)
{
	pthread_rwlock_unlock(&streams);
}

void server_streams_lock(void)
{
	pthread_rwlock_wrlock(&streams);
}

void server_streams_unlock(void)
{
	pthread_rwlock_unlock(&streams);
}

CUresult serve_stream_destroy(struct server_call *call)
{
	struct rc_args_cuStreamDestroy_v2 args;
	void *stream;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuStreamDestroy_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	server_early_close();
	server_streams_lock();
	CUresult result = server_object(RC_KIND_STREAM, args.hStream, &stream);
	if (result == CUDA_SUCCESS) {
		result = driver.cuStreamDestroy_v2(stream);
		server_object_unbind(args.hStream);
	}
	server_streams_unlock();
	return result;
}

static CUresult await_stream(struct server_call *call, uint64_t named)
{
	void *stream;
	CUresult result = server_object(RC_KIND_STREAM, named, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (!driver.cuStreamSynchronize)
		return CUDA_ERROR_NOT_SUPPORTED;
	server_order_release(call);
	return driver.cuStreamSynchronize(stream);
}

CUresult serve_stream_synchronize(struct server_call *call)
{
	struct rc_args_cuStreamSynchronize args;
	return server_take_into(call, &args, sizeof args) ? await_stream(call, args.hStream) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult await_event(struct server_call *call, uint64_t named)
{
	void *event;
	CUresult result = server_object(RC_KIND_EVENT, named, &event);
	if (result != CUDA_SUCCESS)
		return result;
	server_order_release(call);
	return driver.cuEventSynchronize(event);
}

CUresult serve_event_synchronize(struct server_call *call)
{
	struct rc_args_cuEventSynchronize args;
	return server_take_into(call, &args, sizeof args) ? await_event(call, args.hEvent) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult elapsed(float *milliseconds, CUevent start, CUevent end)
{
	if (driver.cuEventElapsedTime_v2)
		return driver.cuEventElapsedTime_v2(milliseconds, start, end);
	return driver.cuEventElapsedTime ? driver.cuEventElapsedTime(milliseconds, start, end) : CUDA_ERROR_NOT_SUPPORTED;
}

/* The program waits for one of the events only, so it may destroy the other one while the call waits. So both are looked up again
 * after the wait, under the lock under which events are destroyed. */
static CUresult give_elapsed(struct server_call *call, const struct rc_wire_event_elapsed *args)
{
	void *start, *end;
	float milliseconds;
	pthread_rwlock_rdlock(&streams);
	pthread_mutex_lock(&events);
	bool known = server_object(RC_KIND_EVENT, args->start, &start) == CUDA_SUCCESS &&
		     server_object(RC_KIND_EVENT, args->event, &end) == CUDA_SUCCESS &&
		     elapsed(&milliseconds, start, end) == CUDA_SUCCESS;
	pthread_mutex_unlock(&events);
	pthread_rwlock_unlock(&streams);
	return known ? server_give_bytes(call, &milliseconds, sizeof milliseconds) : CUDA_SUCCESS;
}

CUresult serve_event_elapsed(struct server_call *call)
{
	struct rc_wire_event_elapsed args;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = args.stream ? await_stream(call, args.stream) : await_event(call, args.event);
	return result == CUDA_SUCCESS ? give_elapsed(call, &args) : result;
}

CUresult serve_event_destroy(struct server_call *call)
{
	struct rc_args_cuEventDestroy_v2 args;
	void *event;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&events);
	CUresult result = server_object(RC_KIND_EVENT, args.hEvent, &event);
	if (result == CUDA_SUCCESS) {
		result = driver.cuEventDestroy_v2(event);
		server_object_unbind(args.hEvent);
	}
	pthread_mutex_unlock(&events);
	return result;
}

CUresult serve_stream_get_attribute(struct server_call *call)
{
	struct rc_args_cuStreamGetAttribute args;
	CUstreamAttrValue value = { 0 };
	void *stream;
	if (!server_take_into(call, &args, sizeof args) || !rc_stream_attribute_travels((CUstreamAttrID)args.attr))
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuStreamGetAttribute)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = server_object(RC_KIND_STREAM, args.hStream, &stream);
	if (result == CUDA_SUCCESS)
		result = driver.cuStreamGetAttribute(stream, (CUstreamAttrID)args.attr, &value);
	return result == CUDA_SUCCESS ? server_give_bytes(call, &value, sizeof value) : result;
}

CUresult serve_stream_set_attribute(struct server_call *call)
{
	struct rc_args_cuStreamSetAttribute args;
	CUstreamAttrValue value;
	void *stream;
	if (!server_take_into(call, &args, sizeof args) || !server_take_into(call, &value, sizeof value) ||
	    !rc_stream_attribute_travels((CUstreamAttrID)args.attr))
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuStreamSetAttribute)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = server_object(RC_KIND_STREAM, args.hStream, &stream);
	return result == CUDA_SUCCESS ? driver.cuStreamSetAttribute(stream, (CUstreamAttrID)args.attr, &value) : result;
}

/* Accepts only a pool on a device of the session, which may be exported as a descriptor. */
CUresult serve_pool_create(struct server_call *call)
{
	uint64_t handle;
	CUmemPoolProps properties;
	CUmemoryPool pool = NULL;
	CUdevice device;
	if (!server_take_into(call, &handle, sizeof handle) || !server_take_into(call, &properties, sizeof properties))
		return CUDA_ERROR_INVALID_VALUE;
	if (properties.allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuMemPoolCreate || !driver.cuMemPoolDestroy ||
	    properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE || properties.win32SecurityAttributes ||
	    (properties.handleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = server_device((uint32_t)properties.location.id, &device);
	if (result != CUDA_SUCCESS)
		return result;
	properties.location.id = device;
	result = driver.cuMemPoolCreate(&pool, &properties);
	if (result != CUDA_SUCCESS)
		return result;
	result = server_object_bind(RC_KIND_POOL, handle, pool, NULL);
	if (result != CUDA_SUCCESS)
		driver.cuMemPoolDestroy(pool);
	return result;
}

CUresult serve_memory_alloc_async(struct server_call *call)
{
	struct rc_wire_alloc args;
	void *stream, *pool = NULL;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_STREAM, args.stream, &stream);
	if (result == CUDA_SUCCESS && args.pool)
		result = server_object(RC_KIND_POOL, args.pool, &pool);
	if (result != CUDA_SUCCESS)
		return result;
	CUdeviceptr address;
	if (pool)
		result = driver.cuMemAllocFromPoolAsync ?
				 driver.cuMemAllocFromPoolAsync(&address, args.bytes, pool, stream) :
				 CUDA_ERROR_NOT_SUPPORTED;
	else
		result = driver.cuMemAllocAsync ? driver.cuMemAllocAsync(&address, args.bytes, stream) :
						  CUDA_ERROR_NOT_SUPPORTED;
	return result == CUDA_SUCCESS ? server_give_bytes(call, &address, sizeof address) : result;
}

CUresult serve_memory_free_async(struct server_call *call)
{
	struct rc_wire_free args;
	void *stream;
	if (!server_take_into(call, &args, sizeof args) || server_mirror_at(args.address))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_STREAM, args.stream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	return driver.cuMemFreeAsync ? driver.cuMemFreeAsync(args.address, stream) : CUDA_ERROR_NOT_SUPPORTED;
}
