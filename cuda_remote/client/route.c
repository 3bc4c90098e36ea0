/* SPDX-License-Identifier: BSD-3-Clause */
/* Which session a call belongs to, and the calling thread's connection to it. */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/kernel.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/session.h"
#include "cuda_remote/client/stream.h"
#include "rdma_channel/base/log.h"

static bool one_session(void)
{
	struct rc_process *process;
	return rc_process_get(&process) != CUDA_SUCCESS || process->sessions == 1;
}

/* The context that the object of a handle belongs to; 0: the handle does not say. */
static uint64_t context_of(enum rc_kind kind, uint64_t handle)
{
	struct rc_module *module;
	struct rc_kernel *kernel;
	struct rc_stream *stream;
	struct rc_context *context;
	switch (kind) {
	case RC_KIND_CONTEXT:
		context = rc_handle_data(kind, handle);
		return context && context->owner ? (uint64_t)(uintptr_t)context->owner->handle : handle;
	case RC_KIND_STREAM:
		stream = rc_handle_data(kind, handle);
		return stream ? (uint64_t)(uintptr_t)stream->context : 0;
	case RC_KIND_EVENT:
	case RC_KIND_ARRAY:
	case RC_KIND_MIPMAP:
	case RC_KIND_TEXTURE_REF:
	case RC_KIND_SURFACE_REF:
		return (uint64_t)(uintptr_t)rc_handle_data(kind, handle);
	case RC_KIND_MODULE:
		module = rc_handle_data(kind, handle);
		return module ? (uint64_t)(uintptr_t)module->context : 0;
	case RC_KIND_FUNCTION:
		kernel = rc_kernel_find(handle);
		return kernel ? (uint64_t)(uintptr_t)kernel->module->context : 0;
	default:
		return 0;
	}
}

CUresult rc_route_handle(struct rc_route *route, enum rc_kind kind, uint64_t handle)
{
	CUresult result = rc_handle_check(kind, handle);
	if (result != CUDA_SUCCESS || one_session())
		return result;
	bool special = kind == RC_KIND_STREAM && rc_stream_is_special(handle);
	if (special && route->by_address)
		return CUDA_SUCCESS;
	struct rc_session *session = special ? rc_context_session() : rc_handle_session(handle);
	if (route->session && session && route->session != session)
		return kind == RC_KIND_CONTEXT ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
	if (!route->session && session)
		*route = (struct rc_route){ session, special ? 0 : context_of(kind, handle), false };
	return CUDA_SUCCESS;
}

CUresult rc_route_address(struct rc_route *route, uint64_t address)
{
	struct rc_span span;
	if (one_session() || !rc_memory_find(address, &span) || !span.session)
		return CUDA_SUCCESS;
	if (!route->session) {
		*route = (struct rc_route){ span.session, (uint64_t)(uintptr_t)span.context, true };
		return CUDA_SUCCESS;
	}
	if (route->session == span.session)
		return CUDA_SUCCESS;
	hr_log_once(HR_LOG_WARN, "a call that uses memory of two servers is not supported; copy through host memory");
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult rc_send_device(struct rc_route *route, int *device)
{
	struct rc_device *found;
	CUresult result = rc_device_get(*device, &found);
	if (result != CUDA_SUCCESS)
		return result;
	if (route->session && route->session != found->session)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!route->session)
		route->session = found->session;
	*device = found->ordinal;
	return CUDA_SUCCESS;
}

CUresult rc_route_settle(const struct rc_route *route)
{
	if (!route->by_address || route->session == rc_context_session())
		return CUDA_SUCCESS;
	return cuCtxSynchronize_v2((CUcontext)(uintptr_t)route->context);
}

CUresult rc_route_same(enum rc_kind kind, uint64_t handle, CUresult different)
{
	if ((kind == RC_KIND_STREAM && rc_stream_is_special(handle)) || one_session())
		return CUDA_SUCCESS;
	struct rc_session *session = rc_handle_session(handle), *current = rc_context_session();
	return !session || !current || session == current ? CUDA_SUCCESS : different;
}

CUresult rc_route_in_stream(enum rc_kind kind, uint64_t handle, CUstream stream)
{
	struct rc_session *session = rc_context_session();
	uint64_t in = (uint64_t)(uintptr_t)stream;
	/* With one context nothing is looked up. */
	if (!session || !__atomic_load_n(&session->several, __ATOMIC_RELAXED))
		return CUDA_SUCCESS;
	uint64_t own = context_of(kind, handle);
	uint64_t other = rc_stream_is_special(in) ? (uint64_t)(uintptr_t)rc_context_current() : context_of(RC_KIND_STREAM, in);
	return !own || !other || own == other ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult rc_link_get(const struct rc_route *route, bool need_context, struct rc_link **link)
{
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	if (result == CUDA_SUCCESS)
		result = rc_callback_check();
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t current = (uint64_t)(uintptr_t)rc_context_current();
	if (need_context && !current)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (need_context && (result = rc_context_check_green()) != CUDA_SUCCESS)
		return result;
	/* A context that was destroyed while another one was current is still on the stack. */
	if (!need_context && current && rc_handle_check(RC_KIND_CONTEXT, current) != CUDA_SUCCESS)
		current = 0;
	if (!route->session || route->session == rc_context_session()) {
		struct rc_session *session = current ? rc_context_session() : &process->session[0];
		return rc_link_to(session, current, link);
	}
	/* The server does not know the current context. */
	return rc_link_to(route->session, route->context ? route->context : route->session->primary, link);
}
