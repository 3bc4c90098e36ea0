/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of whole contexts: an event that all work of a context completes, and a context whose work waits for an event. */
#include "cuda_remote/client/client.h"
#include "cuda_remote/graph/capture.h"

static CUresult post(uint64_t context, uint64_t event, bool wait)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_context_event call;
	} message = { .call = { .context = context, .event = event, .wait = wait } };
	struct rc_route route = { NULL, 0, false };
	struct rc_link *link;
	CUresult result = rc_route_handle(&route, RC_KIND_CONTEXT, context);
	if (result == CUDA_SUCCESS)
		result = rc_route_handle(&route, RC_KIND_EVENT, event);
	if (result == CUDA_SUCCESS)
		result = rc_link_get(&route, false, &link);
	return result == CUDA_SUCCESS ? rc_link_post(link, RC_CALL_context_event, 0, &message.head, sizeof message, NULL, 0) :
					result;
}

/* Replaces NULL by the current context, and checks both. */
static CUresult enter(CUcontext *context, CUevent event)
{
	struct rc_context *current;
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	if (result == CUDA_SUCCESS && *context)
		result = rc_handle_check(RC_KIND_CONTEXT, (uint64_t)(uintptr_t)*context);
	else if (result == CUDA_SUCCESS && (result = rc_context_get(&current)) == CUDA_SUCCESS)
		*context = current->handle;
	return result == CUDA_SUCCESS ? rc_handle_check(RC_KIND_EVENT, (uint64_t)(uintptr_t)event) : result;
}

CUresult cuCtxRecordEvent(CUcontext context, CUevent event)
{
	CUresult result = enter(&context, event);
	if (result != CUDA_SUCCESS)
		return result;
	if (rc_handle_data(RC_KIND_EVENT, (uint64_t)(uintptr_t)event) != (void *)context)
		return CUDA_ERROR_INVALID_HANDLE;
	result = capture_refuse_context(context);
	if (result == CUDA_SUCCESS)
		result = post((uint64_t)(uintptr_t)context, (uint64_t)(uintptr_t)event, false);
	if (result == CUDA_SUCCESS)
		result = capture_done_event(event); /* the event's last recording is no longer one of a capture */
	return result == CUDA_SUCCESS ? rc_ipc_event_settle(event) : result;
}

CUresult cuCtxWaitEvent(CUcontext context, CUevent event)
{
	CUresult result = enter(&context, event);
	if (result != CUDA_SUCCESS)
		return result;
	if (capture_check_event(event) != CUDA_SUCCESS)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	result = capture_refuse_context(context);
	if (result == CUDA_SUCCESS)
		result = post((uint64_t)(uintptr_t)context, (uint64_t)(uintptr_t)event, true);
	return result == CUDA_SUCCESS ? rc_ipc_event_settle(event) : result;
}
