/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of whole contexts and green contexts. The event is recorded in a new stream, which first waits for the work of
 * all streams of the context. A context waits for an event through its gate: a stream that waits for the event, and
 * for which all streams of the context wait, those created later too.
 */
#include "cuda_remote/softgpu/driver/init.h"
#include "cuda_remote/graph/capture.h"
#include "cuda_remote/softgpu/driver/stream/event.h"

#include <stdlib.h>

static void let_go(CUstream *streams, size_t count)
{
	for (size_t i = 0; i < count; i++)
		queue_stream_release(streams[i]);
	free(streams);
}

/* The streams of a context or of a green context. Fails if one of them captures. */
static CUresult list(CUcontext context, CUgreenCtx green, CUstream **streams, size_t *count)
{
	CUresult result = green ? CUDA_SUCCESS : capture_refuse_context(context);
	if (result)
		return result;
	*streams = queue_group_streams(&context->group, green, count);
	if (!*streams)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* The loop does not stop at the first capture: all of them are invalidated. */
	for (size_t i = 0; i < *count && green; i++) {
		CUresult refused = capture_refuse_stream((*streams)[i]);
		result = refused ? refused : result;
	}
	if (result)
		let_go(*streams, *count);
	return result;
}

static CUresult gather(CUstream into, CUcontext context, CUgreenCtx green)
{
	size_t count;
	CUstream *streams;
	CUresult result = list(context, green, &streams, &count);
	if (result)
		return result;
	bool done = !green || queue_submit_wait(into, context->group.legacy, queue_submitted(context->group.legacy));
	for (size_t i = 0; i < count && done; i++)
		if (streams[i] != into)
			done = queue_submit_wait(into, streams[i], queue_submitted(streams[i]));
	let_go(streams, count);
	return done ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult record(CUcontext context, CUgreenCtx green, CUevent event)
{
	if (!handle_valid(event, HANDLE_EVENT) || event->context != context)
		return CUDA_ERROR_INVALID_HANDLE;
	CUstream recorder = queue_stream_new(context, &context->group, CU_STREAM_NON_BLOCKING, 0, false);
	if (!recorder)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = gather(recorder, context, green);
	if (!result)
		result = event_record(event, recorder, false);
	handle_retire(recorder);
	queue_stream_release(recorder);
	return result;
}

static CUresult wait(CUcontext context, CUgreenCtx green, CUevent event)
{
	if (!handle_valid(event, HANDLE_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	if (capture_mark_refuse(&event->mark))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	CUstream gate = green ? green->gate : queue_group_gate(context, &context->group);
	size_t count;
	CUstream *streams;
	if (!gate)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = list(context, green, &streams, &count);
	if (result)
		return result;
	result = event_wait(event, gate, false);
	uint64_t sequence = queue_submitted(gate);
	CUstream legacy = context->group.legacy;
	bool done = result || !green || queue_submit_wait(legacy, gate, sequence);
	for (size_t i = 0; i < count && !result && done; i++)
		if (streams[i] != gate)
			done = queue_submit_wait(streams[i], gate, sequence);
	let_go(streams, count);
	return !result && !done ? CUDA_ERROR_OUT_OF_MEMORY : result;
}

/* context_enter_this; also outputs the green context, or NULL. */
static CUresult enter(CUcontext *context, CUgreenCtx *green)
{
	*green = *context ? (CUgreenCtx)(void *)*context : context_current_green();
	if (!context_of_green(*green))
		*green = NULL;
	return context_enter_this(context);
}

CUresult cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)
{
	CUgreenCtx green;
	CUresult result = enter(&hCtx, &green);
	return result ? result : record(hCtx, green, hEvent);
}

CUresult cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent)
{
	CUgreenCtx green;
	CUresult result = enter(&hCtx, &green);
	return result ? result : wait(hCtx, green, hEvent);
}

static CUresult enter_green(CUgreenCtx green, CUcontext *context)
{
	CUresult result = init_check();
	if (result)
		return result;
	*context = context_of_green(green);
	return *context ? context_error(*context) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent)
{
	CUcontext context;
	CUresult result = enter_green(hCtx, &context);
	return result ? result : record(context, hCtx, hEvent);
}

CUresult cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent)
{
	CUcontext context;
	CUresult result = enter_green(hCtx, &context);
	return result ? result : wait(context, hCtx, hEvent);
}
