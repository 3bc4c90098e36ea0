/* SPDX-License-Identifier: BSD-3-Clause */
/* Green contexts: their calls, their streams, and what remains of both after their end. */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/copy.h"
#include "cuda_remote/client/graph/graph_calls.h"
#include "cuda_remote/client/green/green.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/session.h"
#include "cuda_remote/client/stream.h"

#include "cuda_remote/client/graph/capture_calls.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Handles of streams that the program had not destroyed when their green context was destroyed. */
static uint64_t *orphans;
static size_t orphans_n, orphans_room;

static struct rc_context *find(CUgreenCtx handle)
{
	struct rc_context *context = rc_handle_data(RC_KIND_CONTEXT, (uint64_t)(uintptr_t)handle);
	return context && context->owner ? context : NULL;
}

/* Orders nothing: a call that overlaps the reset of the primary context may succeed or fail. */
static bool alive(const struct rc_context *green)
{
	return green->resets == __atomic_load_n(&green->owner->resets, __ATOMIC_RELAXED);
}

CUresult rc_green_get(CUgreenCtx handle, struct rc_context **found)
{
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	if (result != CUDA_SUCCESS)
		return result;
	struct rc_context *green = find(handle);
	if (!green)
		return CUDA_ERROR_INVALID_CONTEXT;
	*found = green;
	return alive(green) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

bool rc_green_is(CUgreenCtx handle)
{
	const struct rc_context *green = find(handle);
	return green && alive(green);
}

bool rc_green_orphan(uint64_t stream)
{
	bool found = false;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < orphans_n && !found; i++)
		found = orphans[i] == stream;
	pthread_mutex_unlock(&lock);
	return found;
}

/* ---- creation ---- */

/* Sends the call; outputs the green context's multiprocessors. */
static CUresult send_create(struct rc_link *link, uint64_t green, uint64_t descriptor, const struct rc_device *device,
			    unsigned flags, uint32_t *multiprocessors)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_green_create call;
	} message = { .call = { green, descriptor, (uint32_t)device->ordinal, flags } };
	CUresult result = rc_link_call(link, RC_CALL_green_create, 0, &message.head, sizeof message, NULL, 0);
	if (result != CUDA_SUCCESS)
		return result;
	if (link->reply_len != sizeof *multiprocessors)
		return rc_link_broken(link, RC_CALL_green_create);
	memcpy(multiprocessors, link->reply, sizeof *multiprocessors);
	return CUDA_SUCCESS;
}

/* The caller has retained the primary context. */
static CUresult create(CUcontext primary, CUdevResourceDesc descriptor, const struct rc_device *device, unsigned flags,
		       CUgreenCtx *green)
{
	struct rc_context *owner = rc_handle_data(RC_KIND_CONTEXT, (uint64_t)(uintptr_t)primary);
	struct rc_link *link;
	uint64_t handle;
	uint32_t multiprocessors = 0;
	CUresult result = rc_link_to(device->session, 0, &link);
	if (result == CUDA_SUCCESS)
		result = rc_handle_new(RC_KIND_CONTEXT, device->session, &handle);
	if (result != CUDA_SUCCESS)
		return result;
	result = send_create(link, handle, (uint64_t)(uintptr_t)descriptor, device, flags, &multiprocessors);
	if (result == CUDA_SUCCESS)
		result = rc_context_attach(handle, &(struct rc_context){
			.device = owner->device, .owner = owner, .multiprocessors = multiprocessors,
			.resets = __atomic_load_n(&owner->resets, __ATOMIC_RELAXED) });
	if (result == CUDA_SUCCESS)
		*green = (CUgreenCtx)(uintptr_t)handle;
	else
		rc_handle_delete(handle);
	return result;
}

CUresult cuGreenCtxCreate(CUgreenCtx *green, CUdevResourceDesc descriptor, CUdevice number, unsigned flags)
{
	struct rc_device *device;
	CUcontext primary;
	uint64_t handle = (uint64_t)(uintptr_t)descriptor;
	CUresult result = rc_device_get(number, &device);
	if (result != CUDA_SUCCESS)
		return result;
	if (!green || flags != CU_GREEN_CTX_DEFAULT_STREAM || rc_handle_check(RC_KIND_DESCRIPTOR, handle) != CUDA_SUCCESS ||
	    rc_handle_session(handle) != device->session)
		return CUDA_ERROR_INVALID_VALUE;
	result = cuDevicePrimaryCtxRetain(&primary, number);
	if (result != CUDA_SUCCESS)
		return result;
	result = create(primary, descriptor, device, flags, green);
	if (result != CUDA_SUCCESS)
		cuDevicePrimaryCtxRelease_v2(number);
	return result;
}

/* ---- destruction ---- */

/* The handle of a stream of a green context that has ended. If there is no memory, it is an invalid handle from now on. */
static void keep_orphan(uint64_t handle)
{
	pthread_mutex_lock(&lock);
	if (orphans_n == orphans_room) {
		size_t room = orphans_room ? 2 * orphans_room : 64;
		uint64_t *more = realloc(orphans, room * sizeof *more);
		if (more) {
			orphans = more;
			orphans_room = room;
		}
	}
	if (orphans_n < orphans_room)
		orphans[orphans_n++] = handle;
	pthread_mutex_unlock(&lock);
}

/* Captures that began in the stream are lost, as no call can end them. */
static void orphan(uint64_t handle, void *data, void *green)
{
	struct rc_stream *stream = data;
	if (!stream || stream->green != green)
		return;
	rc_capture_stream_destroyed(handle);
	keep_orphan(handle);
	rc_handle_delete(handle);
	rc_stream_recycle(stream);
}

CUresult cuGreenCtxDestroy(CUgreenCtx handle)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_context call;
	} message = { .call.context = (uint64_t)(uintptr_t)handle };
	struct rc_context *green;
	struct rc_link *link;
	CUresult result = rc_green_get(handle, &green);
	bool there = result == CUDA_SUCCESS; /* else a reset has ended the streams, and the reference to the primary context */
	if (result != CUDA_SUCCESS && result != CUDA_ERROR_CONTEXT_IS_DESTROYED)
		return result;
	rc_copy_settle(); /* copies wait for the streams */
	result = rc_link_to(rc_handle_session(message.call.context), 0, &link);
	if (result == CUDA_SUCCESS)
		result = rc_link_call(link, RC_CALL_green_destroy, 0, &message.head, sizeof message, NULL, 0);
	/* Whatever the driver returns, the worker has ended the handles. */
	CUdevice device = green->device;
	rc_handle_each(RC_KIND_STREAM, orphan, handle);
	rc_handle_delete(message.call.context);
	rc_context_recycle(green);
	CUresult released = there ? cuDevicePrimaryCtxRelease_v2(device) : CUDA_SUCCESS;
	return result == CUDA_SUCCESS ? released : result;
}

/* ---- queries ---- */

CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx handle)
{
	struct rc_context *green;
	CUresult result = rc_green_get(handle, &green);
	if (result != CUDA_SUCCESS)
		return result;
	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	*context = (CUcontext)(void *)handle;
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxGetId(CUgreenCtx handle, unsigned long long *id)
{
	struct rc_context *green;
	CUresult result = rc_green_get(handle ? handle : rc_green_current(), &green);
	if (result != CUDA_SUCCESS)
		return result;
	if (!id)
		return CUDA_ERROR_INVALID_VALUE;
	*id = green->id;
	return CUDA_SUCCESS;
}

/* ---- streams ---- */

CUresult rc_green_stream(CUgreenCtx handle, unsigned flags, int priority, CUstream *stream)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_green_stream call;
	} message = { .call = { .green = (uint64_t)(uintptr_t)handle, .flags = flags, .priority = priority } };
	struct rc_session *session = rc_handle_session(message.call.green);
	struct rc_context *green;
	struct rc_link *link;
	CUresult result = rc_green_get(handle, &green);
	if (result == CUDA_SUCCESS)
		result = rc_link_to(session, (uint64_t)(uintptr_t)green->owner->handle, &link);
	if (result == CUDA_SUCCESS)
		result = rc_handle_new(RC_KIND_STREAM, session, &message.call.stream);
	if (result != CUDA_SUCCESS)
		return result;
	result = rc_link_call(link, RC_CALL_green_stream, 0, &message.head, sizeof message, NULL, 0);
	if (result == CUDA_SUCCESS)
		result = rc_stream_add(message.call.stream, &(struct rc_stream){
			.context = green->owner->handle, .green = handle, .flags = flags, .priority = priority });
	if (result == CUDA_SUCCESS)
		*stream = (CUstream)(uintptr_t)message.call.stream;
	else
		rc_handle_delete(message.call.stream);
	return result;
}

CUresult cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx handle, unsigned flags, int priority)
{
	struct rc_context *green;
	CUresult result = rc_green_get(handle, &green);
	if (result != CUDA_SUCCESS)
		return result;
	if (!stream || flags != CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	return rc_green_stream(handle, flags, priority, stream);
}
