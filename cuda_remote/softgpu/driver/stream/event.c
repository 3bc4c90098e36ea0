/* SPDX-License-Identifier: BSD-3-Clause */
/* Events: recording, waiting, elapsed time; recordings inside graphs. */
#include "cuda_remote/softgpu/driver/stream/event.h"

#include "cuda_remote/graph/capture.h"
#include "cuda_remote/softgpu/driver/stream/ipc_event.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

typedef struct record_command {
	command_t command;
	CUevent event;
	uint64_t record;
} record_command_t;

static pthread_mutex_t events_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void drop(CUevent event)
{
	pthread_mutex_lock(&events_lock);
	bool last = !--event->references;
	pthread_mutex_unlock(&events_lock);
	if (!last)
		return;
	if (event->stream)
		queue_stream_release(event->stream);
	if (event->shared)
		ipc_event_drop(event->shared);
	capture_mark_forget(&event->mark);
	handle_release(event);
}

static CUresult record_run(command_t *command)
{
	record_command_t *record = (record_command_t *)command;
	uint64_t time = now();
	pthread_mutex_lock(&events_lock);
	if (record->event->record == record->record)
		record->event->time = time;
	pthread_mutex_unlock(&events_lock);
	return CUDA_SUCCESS;
}

static void record_finish(command_t *command)
{
	drop(((record_command_t *)command)->event);
}

/* Sets the place that the event marks; with the events' lock held. Returns the stream that it marked before. */
static CUstream move(CUevent event, CUstream stream, uint64_t sequence)
{
	CUstream before = event->stream;
	event->stream = stream;
	event->sequence = sequence;
	return before;
}

CUresult event_record(CUevent event, CUstream stream, bool external)
{
	if (!handle_valid(event, HANDLE_EVENT) || event->context != stream->context)
		return CUDA_ERROR_INVALID_HANDLE;
	CUstream before;
	bool captured;
	CUresult result = capture_record(stream, event, &event->mark, external, &captured);
	if (result || captured)
		return result;
	if (event->shared)
		return ipc_event_record(event->shared, stream);
	if (queue_is_free(stream)) {
		uint64_t time = now();
		pthread_mutex_lock(&events_lock);
		event->record++;
		event->time = time;
		before = move(event, NULL, 0);
		pthread_mutex_unlock(&events_lock);
	} else {
		record_command_t *record = calloc(1, sizeof *record);
		if (!record)
			return CUDA_ERROR_OUT_OF_MEMORY;
		record->command.run = record_run;
		record->command.finish = record_finish;
		record->command.despite_fault = true;
		record->event = event;
		queue_stream_hold(stream);
		/* Submitted under the lock, so that place and number match if two threads record one event. */
		pthread_mutex_lock(&events_lock);
		event->references++;
		record->record = ++event->record;
		before = move(event, stream, queue_submit(stream, &record->command));
		pthread_mutex_unlock(&events_lock);
	}
	if (before)
		queue_stream_release(before);
	return CUDA_SUCCESS;
}

CUstream event_place(CUevent event, uint64_t *sequence)
{
	pthread_mutex_lock(&events_lock);
	CUstream stream = event->stream;
	*sequence = event->sequence;
	if (stream && queue_done(stream, *sequence))
		stream = NULL;
	if (stream)
		queue_stream_hold(stream);
	pthread_mutex_unlock(&events_lock);
	return stream;
}

uint64_t event_graph_submit(CUstream stream, command_t *command, event_in_graph_t *events, unsigned count)
{
	unsigned recordings = 0;
	pthread_mutex_lock(&events_lock);
	for (unsigned i = 0; i < count; i++) {
		if (!events[i].event)
			continue;
		recordings++;
		events[i].event->references++;
		events[i].record = ++events[i].event->record;
		queue_stream_hold(stream);
	}
	/*
	 * If no event is recorded, the command may free the list as soon as it is submitted. With recordings the list
	 * stays: the command's end needs the lock to drop them.
	 */
	uint64_t sequence = queue_submit(stream, command);
	for (unsigned i = 0; i < count && recordings; i++) {
		CUstream before = events[i].event ? move(events[i].event, stream, sequence) : NULL;
		if (before)
			queue_stream_release(before);
	}
	pthread_mutex_unlock(&events_lock);
	return sequence;
}

void event_graph_reached(const event_in_graph_t *event)
{
	CUevent of = event->event;
	CUstream before = NULL;
	uint64_t time = now();
	pthread_mutex_lock(&events_lock);
	if (of->record == event->record) {
		of->time = time;
		before = move(of, NULL, 0);
	}
	pthread_mutex_unlock(&events_lock);
	if (before)
		queue_stream_release(before);
}

void event_graph_end(event_in_graph_t *event)
{
	if (event->event)
		drop(event->event);
	if (event->on)
		queue_stream_release(event->on);
}

CUresult event_wait(CUevent event, CUstream stream, bool external)
{
	if (!handle_valid(event, HANDLE_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	bool captured;
	CUresult result = capture_wait(stream, event, &event->mark, external, &captured);
	if (result || captured)
		return result;
	if (event->shared)
		return ipc_event_wait(event->shared, stream);
	uint64_t sequence;
	CUstream on = event_place(event, &sequence);
	if (!on)
		return CUDA_SUCCESS;
	bool done = queue_submit_wait(stream, on, sequence);
	queue_stream_release(on);
	return done ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult enter(CUevent event)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	if (!handle_valid(event, HANDLE_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	return capture_mark_refuse(&event->mark) ? CUDA_ERROR_CAPTURED_EVENT : context_error(event->context);
}

/* The context is being destroyed. */
static void destroy_owned(owned_t *owned)
{
	CUevent event = OWNER_OF(owned, struct CUevent_st);
	handle_retire(event);
	drop(event);
}

/* Takes ownership of shared. */
static CUresult create(CUcontext context, unsigned flags, struct ipc_event *shared, CUevent *output)
{
	static uint64_t last_id;
	CUevent event = handle_new(HANDLE_EVENT, sizeof *event);
	if (!event) {
		if (shared)
			ipc_event_drop(shared);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	event->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
	event->shared = shared;
	event->context = context;
	event->flags = flags;
	event->references = 1;
	owned_add(&context->owned, &event->owned, OWNED_EVENT, destroy_owned);
	*output = event;
	return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
	if (!phEvent || (Flags & ~known) || ((Flags & CU_EVENT_INTERPROCESS) && !(Flags & CU_EVENT_DISABLE_TIMING)))
		return CUDA_ERROR_INVALID_VALUE;
	struct ipc_event *shared = NULL;
	if (Flags & CU_EVENT_INTERPROCESS)
		result = ipc_event_new(&shared);
	return result ? result : create(context, Flags, shared, phEvent);
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event)
{
	CUresult result = enter(event);
	if (result)
		return result;
	return pHandle && event->shared ? ipc_event_export(event->shared, pHandle) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	struct ipc_event *shared;
	if (!phEvent)
		return CUDA_ERROR_INVALID_VALUE;
	result = ipc_event_import(&handle, &shared);
	return result ? result
		      : create(context, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING, shared, phEvent);
}

CUresult cuEventDestroy_v2(CUevent hEvent)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	if (!handle_valid(hEvent, HANDLE_EVENT) || !handle_retire(hEvent))
		return CUDA_ERROR_INVALID_HANDLE;
	if (owned_take(&hEvent->owned))
		drop(hEvent);
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent hEvent)
{
	return cuEventDestroy_v2(hEvent);
}

CUresult cuEventQuery(CUevent hEvent)
{
	CUresult result = enter(hEvent);
	if (result)
		return result;
	if (hEvent->shared)
		return ipc_event_query(hEvent->shared, false);
	uint64_t sequence;
	CUstream stream = event_place(hEvent, &sequence);
	if (!stream)
		return CUDA_SUCCESS;
	queue_stream_release(stream);
	return CUDA_ERROR_NOT_READY;
}

/* Takes a reference to an event that another thread may be destroying; false: it was destroyed. */
static bool hold(CUevent event)
{
	pthread_mutex_lock(&events_lock);
	/* A destroying thread retires the handle first, then takes the lock. */
	bool valid = handle_valid(event, HANDLE_EVENT);
	if (valid)
		event->references++;
	pthread_mutex_unlock(&events_lock);
	return valid;
}

/* The event may be destroyed during the wait. */
CUresult cuEventSynchronize(CUevent hEvent)
{
	CUresult result = enter(hEvent);
	if (result)
		return result;
	if (!hold(hEvent))
		return CUDA_ERROR_INVALID_HANDLE;
	uint64_t sequence;
	CUstream stream = hEvent->shared ? NULL : event_place(hEvent, &sequence);
	if (hEvent->shared)
		result = ipc_event_query(hEvent->shared, true);
	if (stream) {
		queue_wait(stream, sequence);
		queue_stream_release(stream);
	}
	if (!result)
		result = context_error(hEvent->context);
	drop(hEvent);
	return result;
}

CUresult cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	CUresult result = enter(hStart);
	if (!result)
		result = enter(hEnd);
	if (result)
		return result;
	if (!pMilliseconds)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&events_lock);
	CUevent both[2] = { hStart, hEnd };
	for (int i = 0; i < 2; i++) {
		if ((both[i]->flags & CU_EVENT_DISABLE_TIMING) || !both[i]->record)
			result = CUDA_ERROR_INVALID_HANDLE;
		else if (!result && both[i]->stream && !queue_done(both[i]->stream, both[i]->sequence))
			result = CUDA_ERROR_NOT_READY;
	}
	if (!result)
		*pMilliseconds = (float)((double)(int64_t)(hEnd->time - hStart->time) / 1e6);
	pthread_mutex_unlock(&events_lock);
	return result;
}

CUresult cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	return cuEventElapsedTime_v2(pMilliseconds, hStart, hEnd);
}
