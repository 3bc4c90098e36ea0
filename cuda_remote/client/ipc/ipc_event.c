/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IPC of events. Another process may use such an event as soon as a call on it has returned, over another connection. So the
 * client waits until the worker has issued each recording of the event and each wait for it.
 */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/done.h"
#include "cuda_remote/client/early.h"
#include "cuda_remote/client/graph/capture_calls.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/hooks.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct shared {
	struct shared *next;
	CUevent event;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct shared *events;
static unsigned count; /* atomic */

static bool is_live(CUevent event)
{
	return rc_handle_check(RC_KIND_EVENT, (uint64_t)(uintptr_t)event) == CUDA_SUCCESS;
}

/* Removes the event, and those that have ended with their contexts. NULL: only those. */
static void forget(CUevent event)
{
	pthread_mutex_lock(&lock);
	for (struct shared **at = &events; *at;) {
		struct shared *entry = *at;
		if (entry->event != event && is_live(entry->event)) {
			at = &entry->next;
			continue;
		}
		*at = entry->next;
		free(entry);
		__atomic_sub_fetch(&count, 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&lock);
}

static CUresult add(CUevent event)
{
	struct shared *entry = malloc(sizeof *entry);
	if (!entry)
		return CUDA_ERROR_OUT_OF_MEMORY;
	forget(NULL);
	entry->event = event;
	pthread_mutex_lock(&lock);
	entry->next = events;
	events = entry;
	/* Orders nothing: a thread that has the handle has synchronized with the one that created the event. */
	__atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

bool rc_ipc_event_is(CUevent event)
{
	if (!__atomic_load_n(&count, __ATOMIC_RELAXED))
		return false;
	pthread_mutex_lock(&lock);
	struct shared *entry = events;
	while (entry && entry->event != event)
		entry = entry->next;
	pthread_mutex_unlock(&lock);
	return entry;
}

CUresult rc_ipc_event_settle(CUevent event)
{
	if (!rc_ipc_event_is(event))
		return CUDA_SUCCESS;
	CUresult result = cuEventQuery(event);
	return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
}

/* ---- hooks ---- */

/* An event ends with its context (context.c). */
CUresult event_done_create(CUevent *event, unsigned flags)
{
	rc_handle_attach((uint64_t)(uintptr_t)*event, rc_context_current());
	CUresult result = flags & CU_EVENT_INTERPROCESS ? add(*event) : CUDA_SUCCESS;
	if (result != CUDA_SUCCESS)
		cuEventDestroy_v2(*event);
	return result;
}

CUresult event_done_destroy(CUevent event)
{
	if (rc_ipc_event_is(event))
		forget(event);
	return capture_done_event(event);
}

CUresult event_done_record(CUevent event, CUstream stream)
{
	(void)stream;
	return rc_ipc_event_settle(event);
}

CUresult event_done_record_flags(CUevent event, CUstream stream, unsigned flags)
{
	(void)stream;
	(void)flags;
	return rc_ipc_event_settle(event);
}

static void nothing(void *argument)
{
	(void)argument;
}

/* When the event of another process completes, the stream goes on. Its work may then let another stream go on to a small copy whose
 * source was sent with the call (early.c), and this process makes no call in between. So the stream runs a host function behind
 * the wait: before the function ends, the client sends sources that have changed. */
CUresult stream_done_wait_event(CUstream stream, CUevent event, unsigned flags)
{
	CUresult result = rc_ipc_event_settle(event);
	(void)flags;
	if (result == CUDA_SUCCESS && rc_ipc_event_is(event) && rc_early_reads(NULL, RC_TRACK_SEVERAL, 0, UINT64_MAX))
		result = cuLaunchHostFunc(stream, nothing, NULL);
	return result;
}

/* ---- handles ---- */

CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_event call;
	} message = { .call = { (uint64_t)(uintptr_t)event } };
	struct rc_route route = { NULL, 0, false };
	struct rc_link *link;
	CUresult result = rc_route_handle(&route, RC_KIND_EVENT, message.call.event);
	if (result == CUDA_SUCCESS)
		result = rc_link_get(&route, true, &link);
	if (result != CUDA_SUCCESS)
		return result;
	if (!handle || !rc_ipc_event_is(event))
		return CUDA_ERROR_INVALID_VALUE;
	result = rc_link_call(link, RC_CALL_ipc_get_event, 0, &message.head, sizeof message, NULL, 0);
	if (result == CUDA_SUCCESS && link->reply_len != sizeof *handle)
		result = rc_link_broken(link, RC_CALL_ipc_get_event);
	if (result == CUDA_SUCCESS)
		memcpy(handle, link->reply, sizeof *handle);
	return result;
}

CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_open call;
	} message = { .call = { .flags = 0 } };
	struct rc_context *context;
	struct rc_link *link;
	CUresult result = rc_context_get(&context);
	if (result == CUDA_SUCCESS)
		result = rc_link_get(&(struct rc_route){ NULL, 0, false }, true, &link);
	if (result != CUDA_SUCCESS)
		return result;
	if (!event)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&message.call.handle, &handle, sizeof handle);
	result = rc_handle_new(RC_KIND_EVENT, link->session, &message.call.event);
	if (result != CUDA_SUCCESS)
		return result;
	result = rc_link_call(link, RC_CALL_ipc_open_event, 0, &message.head, sizeof message, NULL, 0);
	if (result != CUDA_SUCCESS) {
		rc_handle_delete(message.call.event);
		return result;
	}
	CUevent made = (CUevent)(uintptr_t)message.call.event;
	result = event_done_create(&made, CU_EVENT_INTERPROCESS);
	if (result == CUDA_SUCCESS)
		*event = made;
	return result;
}
