/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Creates, destroys and resets contexts for the client. Each call names its current context (thread.c). The driver waits for
 * the work of a context before it ends, and that work may need other calls: a host function that another thread lets go,
 * for example. So the handles of the context's objects end in the call order, and the driver is called outside of it.
 */
#include "cuda_remote/server/internal.h"

#include <stdlib.h>

static uint64_t ended; /* atomic */

/* Contexts whose handles have ended while the driver is still ending them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t none_is_ending = PTHREAD_COND_INITIALIZER;
static unsigned ending;

/* Acquire pairs with the release at the end of a reset, which is outside of the call order: the reader sees the new primary
 * context. A call that is issued in a context whose reset is in progress is the client's mistake. */
uint64_t server_contexts_ended(void)
{
	return __atomic_load_n(&ended, __ATOMIC_ACQUIRE);
}

/* The context is about to end: no call that is issued from now on finds its objects, and no chunk of a copy is issued to its
 * streams. Then leaves the call order. Returns the number for server_slots_forget. */
static uint64_t context_ends(struct server_call *call, CUcontext context)
{
	pthread_mutex_lock(&lock);
	ending++;
	pthread_mutex_unlock(&lock);
	server_links_bar_trials();
	server_early_close();
	server_streams_lock();
	uint64_t end = server_slots_end(context);
	server_object_unbind_context(context);
	server_greens_forget(context);
	server_numbers_forget(context);
	server_peer_forget(context);
	server_links_forget(context);
	server_mirrors_forget(context);
	__atomic_add_fetch(&ended, 1, __ATOMIC_RELAXED);
	server_streams_unlock();
	server_order_release(call);
	return end;
}

/* The driver has ended the context. */
static void context_has_ended(uint64_t end)
{
	server_slots_forget(end);
	pthread_mutex_lock(&lock);
	if (!--ending)
		pthread_cond_broadcast(&none_is_ending);
	pthread_mutex_unlock(&lock);
}

CUresult server_contexts_wait(struct server_thread *thread)
{
	size_t room = server_object_contexts(NULL, 0);
	CUcontext *contexts = calloc(room + 1, sizeof *contexts);
	if (!contexts)
		return CUDA_ERROR_OUT_OF_MEMORY;
	size_t n = server_object_contexts(contexts, room);
	if (n > room)
		n = room;
	/* Work that has failed is over too. The next call that waits for it reports the failure. */
	for (size_t i = 0; i < n; i++)
		if (driver.cuCtxSynchronize && driver.cuCtxSetCurrent(contexts[i]) == CUDA_SUCCESS)
			driver.cuCtxSynchronize();
	free(contexts);
	thread->context = 0;
	driver.cuCtxSetCurrent(NULL);
	pthread_mutex_lock(&lock);
	while (ending)
		pthread_cond_wait(&none_is_ending, &lock);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

void server_contexts_finish(void)
{
	size_t room = server_object_contexts(NULL, 0);
	CUcontext *contexts = calloc(room + 1, sizeof *contexts);
	size_t n = contexts ? server_object_contexts(contexts, room) : 0;
	for (size_t i = 0; i < n && i < room && driver.cuCtxDestroy_v2; i++) {
		bool primary = false;
		for (uint32_t gpu = 0; gpu < worker.gpus; gpu++)
			primary |= contexts[i] == worker.primary[gpu];
		if (!primary)
			driver.cuCtxDestroy_v2(contexts[i]);
	}
	free(contexts);
	for (uint32_t gpu = 0; gpu < worker.gpus && driver.cuDevicePrimaryCtxReset_v2; gpu++)
		driver.cuDevicePrimaryCtxReset_v2(worker.device[gpu]);
}

CUresult serve_context_create(struct server_call *call)
{
	struct rc_wire_context_create args;
	CUcontext made;
	if (!server_take_into(call, &args, sizeof args) || args.device >= worker.gpus)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuCtxCreate_v4)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = driver.cuCtxCreate_v4(&made, NULL, args.flags, worker.device[args.device]);
	if (result != CUDA_SUCCESS)
		return result;
	/* cuCtxCreate has made the new context current. The next call selects the client's current context. */
	call->thread->context = 0;
	driver.cuCtxSetCurrent(NULL);
	result = server_object_bind(RC_KIND_CONTEXT, args.context, made, NULL);
	if (result != CUDA_SUCCESS && driver.cuCtxDestroy_v2)
		driver.cuCtxDestroy_v2(made);
	return result;
}

/* Not of a green context. */
static CUresult context_of(struct server_call *call, uint64_t *handle, CUcontext *context)
{
	struct rc_wire_context args;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	*handle = args.context;
	if (server_object_data(RC_KIND_CONTEXT, args.context))
		return CUDA_ERROR_INVALID_CONTEXT;
	return server_object(RC_KIND_CONTEXT, args.context, (void **)context);
}

CUresult serve_context_destroy(struct server_call *call)
{
	uint64_t handle;
	CUcontext context;
	CUresult result = context_of(call, &handle, &context);
	if (result != CUDA_SUCCESS)
		return result;
	for (uint32_t i = 0; i < worker.gpus; i++)
		if (context == __atomic_load_n(&worker.primary[i], __ATOMIC_RELAXED))
			return CUDA_ERROR_INVALID_CONTEXT;
	if (!driver.cuCtxDestroy_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	server_object_unbind(handle);
	uint64_t end = context_ends(call, context);
	result = driver.cuCtxDestroy_v2(context);
	if (result == CUDA_SUCCESS)
		server_latch_forget(rc_handle_index(handle));
	call->thread->context = 0;
	driver.cuCtxSetCurrent(NULL);
	context_has_ended(end);
	server_links_allow_trials();
	return result;
}

/* The primary context keeps its handle, as the worker retains it again after the reset. */
CUresult serve_context_reset(struct server_call *call)
{
	uint64_t handle;
	CUcontext context, again;
	CUresult result = context_of(call, &handle, &context);
	if (result != CUDA_SUCCESS)
		return result;
	uint32_t i = 0;
	while (i < worker.gpus && context != __atomic_load_n(&worker.primary[i], __ATOMIC_RELAXED))
		i++;
	if (i == worker.gpus)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!driver.cuDevicePrimaryCtxReset_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	uint64_t end = context_ends(call, context);
	result = driver.cuDevicePrimaryCtxReset_v2(worker.device[i]);
	if (result == CUDA_SUCCESS)
		server_latch_forget(rc_handle_index(handle));
	context_has_ended(end);
	/* Later calls make it current, and a primary context that is not retained may not be made current. */
	if (result == CUDA_SUCCESS)
		result = driver.cuDevicePrimaryCtxRetain(&again, worker.device[i]);
	if (result == CUDA_SUCCESS) {
		__atomic_store_n(&worker.primary[i], again, __ATOMIC_RELAXED);
		server_object_replace(handle, again);
		if (i == 0)
			server_pinned_renew();
	}
	server_links_allow_trials(); /* a trial makes the primary context of GPU 0 current */
	__atomic_add_fetch(&ended, 1, __ATOMIC_RELEASE);
	call->thread->context = 0;
	return result;
}

CUresult serve_context_synchronize(struct server_call *call)
{
	uint64_t handle;
	CUcontext context;
	CUresult result = context_of(call, &handle, &context);
	if (result == CUDA_SUCCESS)
		result = driver.cuCtxSetCurrent(context);
	if (result != CUDA_SUCCESS)
		return result;
	call->thread->context = rc_handle_index(handle);
	call->thread->current = context;
	server_order_release(call);
	return driver.cuCtxSynchronize ? driver.cuCtxSynchronize() : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult serve_context_event(struct server_call *call)
{
	struct rc_wire_context_event args;
	void *context, *event;
	if (!server_take_into(call, &args, sizeof args) || args.wait > 1)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_CONTEXT, args.context, &context);
	if (result == CUDA_SUCCESS)
		result = server_object(RC_KIND_EVENT, args.event, &event);
	if (result != CUDA_SUCCESS)
		return result;
	if (server_object_data(RC_KIND_CONTEXT, args.context))
		return server_green_event(args.context, event, args.wait);
	if (args.wait ? !driver.cuCtxWaitEvent : !driver.cuCtxRecordEvent)
		return CUDA_ERROR_NOT_SUPPORTED;
	return args.wait ? driver.cuCtxWaitEvent(context, event) : driver.cuCtxRecordEvent(context, event);
}
