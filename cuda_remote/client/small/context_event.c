/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of whole contexts and green contexts: cuCtxRecordEvent (the event completes when all work of the context is complete)
 * and cuCtxWaitEvent (later work of the context waits for the event). */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/graph/graph_calls.h"
#include "cuda_remote/client/green/green.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/hooks.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/session.h"
#include "cuda_remote/graph/capture.h"

/* What a call works on: a context, and if the call is about a green context of it, that one. */
struct meant {
	CUcontext context, green; /* green: NULL, or the handle of the green context */
};

static CUresult post(const struct meant *meant, uint64_t event, bool waits)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_context_event call;
	} message = { .call = { (uint64_t)(uintptr_t)(meant->green ? meant->green : meant->context), event, waits, 0 } };
	struct rc_route route = { NULL, 0, false };
	struct rc_link *link;
	CUresult result = rc_route_handle(&route, RC_KIND_CONTEXT, message.call.context);
	if (result == CUDA_SUCCESS)
		result = rc_route_handle(&route, RC_KIND_EVENT, event);
	if (result == CUDA_SUCCESS)
		result = rc_link_get(&route, false, &link);
	return result == CUDA_SUCCESS ? rc_link_post(link, RC_CALL_context_event, 0, &message.head, sizeof message, NULL, 0) :
					result;
}

/* Of the handle that a call was given; NULL is the current context. Checks the event too. */
static CUresult enter(CUcontext handle, CUevent event, struct meant *meant)
{
	struct rc_context *context;
	CUcontext given = handle ? handle : (CUcontext)(void *)rc_green_current();
	CUresult result = rc_context_meant(handle, &context);
	if (result != CUDA_SUCCESS)
		return result;
	*meant = (struct meant){ context->handle, given != context->handle ? given : NULL };
	return rc_handle_check(RC_KIND_EVENT, (uint64_t)(uintptr_t)event);
}

static CUresult enter_green(CUgreenCtx green, CUevent event, struct meant *meant)
{
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	if (result == CUDA_SUCCESS && !rc_green_is(green))
		result = CUDA_ERROR_INVALID_CONTEXT;
	return result == CUDA_SUCCESS ? enter((CUcontext)(void *)green, event, meant) : result;
}

static CUresult refuse_captures(const struct meant *meant)
{
	return meant->green ? rc_capture_refuse_green((CUgreenCtx)(void *)meant->green) :
			      capture_refuse_context(meant->context);
}

static CUresult record(const struct meant *meant, CUevent event)
{
	if (rc_handle_data(RC_KIND_EVENT, (uint64_t)(uintptr_t)event) != (void *)meant->context)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = refuse_captures(meant);
	if (result == CUDA_SUCCESS)
		result = post(meant, (uint64_t)(uintptr_t)event, false);
	if (result == CUDA_SUCCESS)
		result = capture_done_event(event); /* the event's last recording is no longer one of a capture */
	return result == CUDA_SUCCESS ? rc_ipc_event_settle(event) : result;
}

static CUresult wait(const struct meant *meant, CUevent event)
{
	if (capture_check_event(event) != CUDA_SUCCESS)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	CUresult result = refuse_captures(meant);
	if (result == CUDA_SUCCESS)
		result = post(meant, (uint64_t)(uintptr_t)event, true);
	return result == CUDA_SUCCESS ? rc_ipc_event_settle(event) : result;
}

CUresult cuCtxRecordEvent(CUcontext context, CUevent event)
{
	struct meant meant;
	CUresult result = enter(context, event, &meant);
	return result == CUDA_SUCCESS ? record(&meant, event) : result;
}

CUresult cuCtxWaitEvent(CUcontext context, CUevent event)
{
	struct meant meant;
	CUresult result = enter(context, event, &meant);
	return result == CUDA_SUCCESS ? wait(&meant, event) : result;
}

CUresult cuGreenCtxRecordEvent(CUgreenCtx green, CUevent event)
{
	struct meant meant;
	CUresult result = enter_green(green, event, &meant);
	return result == CUDA_SUCCESS ? record(&meant, event) : result;
}

CUresult cuGreenCtxWaitEvent(CUgreenCtx green, CUevent event)
{
	struct meant meant;
	CUresult result = enter_green(green, event, &meant);
	return result == CUDA_SUCCESS ? wait(&meant, event) : result;
}
