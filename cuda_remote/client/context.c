/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts: the stack of each thread, primary contexts, and contexts that the program creates. */
#include "cuda_remote/client/array.h"
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/copy.h"
#include "cuda_remote/client/done.h"
#include "cuda_remote/client/early.h"
#include "cuda_remote/client/graph/graph_calls.h"
#include "cuda_remote/client/green/green.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/hooks.h"
#include "cuda_remote/client/kernel.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/mirror/client_mirror.h"
#include "cuda_remote/client/peer/peer_calls.h"
#include "cuda_remote/client/session.h"
#include "cuda_remote/client/stream.h"
#include "cuda_remote/graph/capture.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define API_VERSION 3020 /* of all contexts with 64-bit sizes and device addresses, which came with CUDA 3.2 */

static __thread struct rc_thread *thread __attribute__((tls_model("initial-exec")));
static pthread_key_t thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool have_key;
/* Guards the primary contexts' counts and flags. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t next_id;

/* When a thread of the program ends: leaves its connections to other threads. A child of fork has none. */
static void thread_ended(void *data)
{
	struct rc_thread *ended = data;
	struct rc_process *process;
	if (rc_process_get(&process) == CUDA_SUCCESS)
		for (unsigned i = 0; i < process->sessions; i++)
			if (ended->link[i])
				rc_link_leave(ended->link[i]);
	thread = NULL;
	free(ended);
}

static void make_key(void)
{
	have_key = !pthread_key_create(&thread_end, thread_ended);
}

struct rc_thread *rc_thread_get(void)
{
	if (thread)
		return thread;
	pthread_once(&once, make_key);
	thread = calloc(1, sizeof *thread);
	if (thread && have_key)
		pthread_setspecific(thread_end, thread);
	return thread;
}

CUcontext rc_context_current(void)
{
	return thread && thread->depth ? thread->stack[thread->depth - 1].handle : NULL;
}

struct rc_session *rc_context_session(void)
{
	return thread && thread->depth ? thread->stack[thread->depth - 1].session : NULL;
}

static struct rc_context *context_of(CUcontext handle)
{
	return rc_handle_data(RC_KIND_CONTEXT, (uint64_t)(uintptr_t)handle);
}

/* The context as the program named it. */
static CUcontext given(void)
{
	return thread && thread->depth ? thread->stack[thread->depth - 1].given : NULL;
}

CUgreenCtx rc_green_current(void)
{
	CUcontext current = given();
	return current == rc_context_current() ? NULL : (CUgreenCtx)(void *)current;
}

CUresult rc_context_check_green(void)
{
	CUgreenCtx green = rc_green_current();
	return !green || rc_green_is(green) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/* Puts a context onto the calling thread's stack. */
static void stack_set(int at, CUcontext handle)
{
	const struct rc_context *context = context_of(handle);
	thread->stack[at].handle = context && context->owner ? context->owner->handle : handle;
	thread->stack[at].given = handle;
	thread->stack[at].session = rc_handle_session((uint64_t)(uintptr_t)handle);
}

CUresult rc_context_get(struct rc_context **context)
{
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	if (result == CUDA_SUCCESS)
		result = rc_callback_check();
	if (result == CUDA_SUCCESS)
		result = rc_context_check_green();
	if (result != CUDA_SUCCESS)
		return result;
	CUcontext handle = rc_context_current();
	struct rc_context *current = context_of(handle);
	if (!current) /* a destroyed context stays on the stacks of threads, but for the top of the thread that destroyed it */
		return handle ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
	*context = current;
	return CUDA_SUCCESS;
}

CUresult rc_context_meant(CUcontext handle, struct rc_context **context)
{
	if (!handle)
		return rc_context_get(context);
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	if (result != CUDA_SUCCESS)
		return result;
	*context = context_of(handle);
	if (*context && (*context)->owner)
		*context = rc_green_is((CUgreenCtx)(void *)handle) ? (*context)->owner : NULL;
	return *context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

/* Structs of destroyed contexts, kept for reuse. They are never freed, as another thread may be reading one. */
static struct rc_context *unused;

void rc_context_recycle(struct rc_context *context)
{
	pthread_mutex_lock(&lock);
	context->next = unused;
	unused = context;
	pthread_mutex_unlock(&lock);
}

static struct rc_context *context_new(void)
{
	pthread_mutex_lock(&lock);
	struct rc_context *context = unused;
	if (context)
		unused = context->next;
	pthread_mutex_unlock(&lock);
	return context ? context : malloc(sizeof *context);
}

CUresult rc_context_attach(uint64_t handle, const struct rc_context *value)
{
	struct rc_context *context = context_new();
	if (!context)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*context = *value;
	context->handle = (CUcontext)(uintptr_t)handle;
	context->id = __atomic_add_fetch(&next_id, 1, __ATOMIC_RELAXED);
	rc_handle_attach(handle, context);
	return CUDA_SUCCESS;
}

CUresult rc_context_add_primary(CUdevice device, uint64_t handle)
{
	struct rc_context primary = { .device = device, .primary = true };
	struct rc_context *known = context_of((CUcontext)(uintptr_t)handle);
	if (known)
		rc_context_recycle(known); /* of a cuInit that failed */
	return rc_context_attach(handle, &primary);
}

/* ---- primary contexts: the worker holds them from the start, the program's references are counted here ---- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	struct rc_device *found;
	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_device_get(device, &found);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	found->retained++;
	pthread_mutex_unlock(&lock);
	*context = (CUcontext)(uintptr_t)found->primary;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
	struct rc_device *found;
	if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_device_get(device, &found);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	found->flags = flags;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags)
{
	return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
	struct rc_device *found;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_device_get(device, &found);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	*flags = found->flags;
	*active = found->retained > 0;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static void forget_stream(uint64_t handle, void *data, void *context)
{
	struct rc_stream *stream = data;
	if (!stream || stream->context != context)
		return;
	rc_capture_stream_destroyed(handle);
	rc_handle_delete(handle);
	rc_stream_recycle(stream);
}

/* The data of these objects is their context. */
static void forget_object(uint64_t handle, void *data, void *context)
{
	if (data != context)
		return;
	if (rc_handle_kind(handle) == RC_KIND_EVENT)
		(void)capture_done_event((CUevent)(uintptr_t)handle);
	rc_handle_delete(handle);
}

/* Forgets every object of a context that the worker has destroyed or reset. result: of its driver. */
static void context_forget(CUcontext context, CUresult result)
{
	rc_memory_forget_context(context, result == CUDA_SUCCESS);
	rc_module_forget_context(context);
	rc_textures_forget(context);
	rc_handle_each(RC_KIND_STREAM, forget_stream, context);
	rc_graph_memory_context_ended(context);
	rc_memory_left_with(context);
	rc_capture_context_ended(context);
	static const enum rc_kind kinds[] = { RC_KIND_EVENT, RC_KIND_ARRAY, RC_KIND_MIPMAP, RC_KIND_TEXTURE_REF,
					      RC_KIND_SURFACE_REF };
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		rc_handle_each(kinds[i], forget_object, context);
	rc_early_context_ended(rc_handle_session((uint64_t)(uintptr_t)context));
}

/* True if the worker has ended the context's handles, whatever its driver said. Not if the call reported the failure of an earlier
 * one: it was not executed then. */
static bool context_ended(const struct rc_link *link, uint64_t number, CUresult result)
{
	return result == CUDA_SUCCESS ||
	       (!link->error && link->head.failed == number && result != CUDA_ERROR_NOT_SUPPORTED);
}

static CUresult primary_reset(struct rc_device *device)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_context call;
	} message = { .call.context = device->primary };
	struct rc_link *link;
	rc_peer_settle((CUcontext)(uintptr_t)device->primary);
	rc_copy_settle(); /* streams may wait for a copy at a gate in memory of this context */
	CUresult result = rc_link_to(device->session, 0, &link);
	if (result != CUDA_SUCCESS)
		return result;
	rc_mirror_context_ending((CUcontext)(uintptr_t)device->primary, true);
	result = rc_link_call(link, RC_CALL_context_reset, 0, &message.head, sizeof message, NULL, 0);
	if (result == CUDA_SUCCESS)
		rc_link_settle(link->session, device->primary, message.head.number);
	if (!context_ended(link, message.head.number, result)) {
		rc_mirror_context_ending((CUcontext)(uintptr_t)device->primary, false);
	} else {
		struct rc_context *primary = context_of((CUcontext)(uintptr_t)device->primary);
		__atomic_add_fetch(&primary->resets, 1, __ATOMIC_RELAXED);
		context_forget((CUcontext)(uintptr_t)device->primary, result);
	}
	return result;
}

/* Ends the program's references too, as the driver does: the context is inactive until it is retained again. */
static CUresult primary_deactivate(struct rc_device *device)
{
	CUresult result = primary_reset(device);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	device->retained = 0;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	struct rc_device *found;
	CUresult result = rc_device_get(device, &found);
	return result == CUDA_SUCCESS ? primary_deactivate(found) : result;
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
	return cuDevicePrimaryCtxReset_v2(device);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	struct rc_device *found;
	CUresult result = rc_device_get(device, &found);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	unsigned before = found->retained;
	if (before)
		found->retained--;
	pthread_mutex_unlock(&lock);
	if (!before)
		return CUDA_ERROR_INVALID_CONTEXT;
	/* The last reference resets the context, as with the driver. */
	return before == 1 ? primary_reset(found) : CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	return cuDevicePrimaryCtxRelease_v2(device);
}

/* ---- the thread's stack of contexts ---- */

CUresult cuCtxPushCurrent_v2(CUcontext handle)
{
	struct rc_context *context;
	if (!handle)
		return CUDA_ERROR_INVALID_CONTEXT;
	CUresult result = rc_context_meant(handle, &context);
	if (result != CUDA_SUCCESS)
		return result;
	struct rc_thread *mine = rc_thread_get();
	if (!mine || mine->depth == RC_CONTEXT_STACK)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stack_set(mine->depth++, handle);
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext handle)
{
	return cuCtxPushCurrent_v2(handle);
}

CUresult cuCtxPopCurrent_v2(CUcontext *handle)
{
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	if (result != CUDA_SUCCESS)
		return result;
	if (!rc_context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	CUcontext popped = thread->stack[--thread->depth].given;
	if (handle)
		*handle = popped;
	return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *handle)
{
	return cuCtxPopCurrent_v2(handle);
}

CUresult cuCtxSetCurrent(CUcontext handle)
{
	struct rc_context *context;
	struct rc_process *process;
	CUresult result = handle ? rc_context_meant(handle, &context) : rc_process_get(&process);
	if (result != CUDA_SUCCESS)
		return result;
	struct rc_thread *mine = rc_thread_get();
	if (!mine)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!handle) {
		if (mine->depth)
			mine->depth--;
		return CUDA_SUCCESS;
	}
	if (!mine->depth)
		mine->depth = 1;
	stack_set(mine->depth - 1, handle);
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *handle)
{
	struct rc_process *process;
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_process_get(&process);
	if (result == CUDA_SUCCESS)
		*handle = given();
	return result;
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext handle)
{
	struct rc_context *context;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_context_meant(handle, &context);
	if (result == CUDA_SUCCESS)
		*device = context->device;
	return result;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	return cuCtxGetDevice_v2(device, NULL);
}

CUresult cuCtxGetFlags(unsigned *flags)
{
	struct rc_context *context;
	struct rc_device *device;
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_context_get(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!context->primary)
		*flags = context->flags;
	else if ((result = rc_device_get(context->device, &device)) == CUDA_SUCCESS)
		*flags = device->flags;
	return result;
}

CUresult cuCtxSetFlags(unsigned flags)
{
	struct rc_context *context;
	if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_context_get(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (context->primary)
		return cuDevicePrimaryCtxSetFlags_v2(context->device, flags);
	context->flags = flags;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long *id)
{
	struct rc_context *context;
	if (!id)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_context_meant(handle, &context);
	if (result == CUDA_SUCCESS)
		*id = context->id;
	return result;
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned *version)
{
	struct rc_context *context;
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_context_meant(handle, &context);
	if (result == CUDA_SUCCESS)
		*version = API_VERSION;
	return result;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	struct rc_context *context;
	struct rc_device *device;
	CUresult result = rc_context_get(&context);
	if (result == CUDA_SUCCESS)
		result = rc_device_get(context->device, &device);
	if (result != CUDA_SUCCESS)
		return result;
	if (least)
		*least = device->wire.least_priority;
	if (greatest)
		*greatest = device->wire.greatest_priority;
	return CUDA_SUCCESS;
}

/* Bank size of shared memory: no current GPU has more than one, but the calls remain part of the API. */
CUresult cuCtxGetSharedMemConfig(CUsharedconfig *config)
{
	struct rc_context *context;
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_context_get(&context);
	if (result == CUDA_SUCCESS)
		*config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
	return result;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
	struct rc_context *context;
	if ((unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
		return CUDA_ERROR_INVALID_VALUE;
	return rc_context_get(&context);
}

/* ---- contexts of the program's own ---- */

CUresult context_check_peer(CUcontext peer, unsigned flags)
{
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	return rc_route_same(RC_KIND_CONTEXT, (uint64_t)(uintptr_t)peer, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
}

CUresult context_check_cache(CUfunc_cache config)
{
	return (unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult context_create(CUcontext *handle, unsigned flags, CUdevice device)
{
	struct rc_device *found;
	if (!handle || flags & ~(unsigned)CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = rc_device_get(device, &found);
	if (result != CUDA_SUCCESS)
		return result;
	struct {
		struct rc_wire_call head;
		struct rc_wire_context_create call;
	} message = { .call = { .flags = flags, .device = (uint32_t)found->ordinal } };
	struct rc_link *link;
	result = rc_link_to(found->session, 0, &link);
	if (result != CUDA_SUCCESS)
		return result;
	result = rc_handle_new(RC_KIND_CONTEXT, found->session, &message.call.context);
	if (result != CUDA_SUCCESS)
		return result;
	struct rc_context made = { .device = device, .flags = flags };
	result = rc_context_attach(message.call.context, &made);
	if (result == CUDA_SUCCESS)
		result = rc_link_call(link, RC_CALL_context_create, 0, &message.head, sizeof message, NULL, 0);
	if (result == CUDA_SUCCESS)
		result = cuCtxPushCurrent_v2((CUcontext)(uintptr_t)message.call.context);
	if (result == CUDA_SUCCESS) {
		*handle = (CUcontext)(uintptr_t)message.call.context;
		return CUDA_SUCCESS;
	}
	free(context_of((CUcontext)(uintptr_t)message.call.context));
	rc_handle_delete(message.call.context);
	return result;
}

CUresult cuCtxCreate_v2(CUcontext *handle, unsigned flags, CUdevice device)
{
	return context_create(handle, flags, device);
}

CUresult cuCtxCreate_v3(CUcontext *handle, CUexecAffinityParam *affinity, int n, unsigned flags, CUdevice device)
{
	if (n || affinity)
		return n < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	return context_create(handle, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *handle, CUctxCreateParams *parameters, unsigned flags, CUdevice device)
{
	if (parameters && (parameters->numExecAffinityParams || parameters->cigParams))
		return CUDA_ERROR_NOT_SUPPORTED;
	return context_create(handle, flags, device);
}

/* cuCtxCreate counts as one use. A context whose count becomes 0 is destroyed. */
CUresult cuCtxAttach(CUcontext *handle, unsigned flags)
{
	struct rc_context *context;
	CUresult result = rc_context_get(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!handle || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (context->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	__atomic_add_fetch(&context->attached, 1, __ATOMIC_RELAXED);
	*handle = context->handle;
	return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext handle)
{
	struct rc_context *context;
	CUresult result = rc_context_get(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!handle || handle != context->handle || context->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	unsigned attached = __atomic_load_n(&context->attached, __ATOMIC_RELAXED);
	while (attached && !__atomic_compare_exchange_n(&context->attached, &attached, attached - 1, false,
							__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return attached ? CUDA_SUCCESS : cuCtxDestroy_v2(handle);
}

CUresult cuCtxDestroy_v2(CUcontext handle)
{
	struct rc_context *context;
	if (!handle)
		return CUDA_ERROR_INVALID_CONTEXT;
	CUresult result = rc_context_meant(handle, &context);
	if (result != CUDA_SUCCESS)
		return result;
	if (context->primary) /* or the primary context of a green one */
		return CUDA_ERROR_INVALID_CONTEXT;
	struct {
		struct rc_wire_call head;
		struct rc_wire_context call;
	} message = { .call.context = (uint64_t)(uintptr_t)handle };
	struct rc_link *link;
	rc_peer_settle(handle);
	result = rc_link_to(rc_handle_session(message.call.context), 0, &link);
	if (result != CUDA_SUCCESS)
		return result;
	if (rc_context_current() == handle)
		thread->depth--;
	rc_mirror_context_ending(handle, true);
	result = rc_link_call(link, RC_CALL_context_destroy, 0, &message.head, sizeof message, NULL, 0);
	if (!context_ended(link, message.head.number, result)) {
		rc_mirror_context_ending(handle, false);
		return result;
	}
	context_forget(handle, result);
	rc_handle_delete(message.call.context);
	rc_context_recycle(context);
	return result;
}

CUresult cuCtxDestroy(CUcontext handle)
{
	return cuCtxDestroy_v2(handle);
}

CUresult rc_context_wait(CUcontext handle)
{
	struct rc_context *context;
	CUresult result = rc_context_meant(handle, &context);
	if (result != CUDA_SUCCESS)
		return result;
	struct {
		struct rc_wire_call head;
		struct rc_wire_context call;
	} message = { .call.context = (uint64_t)(uintptr_t)context->handle };
	struct rc_link *link;
	result = rc_link_to(rc_handle_session(message.call.context), message.call.context, &link);
	if (result != CUDA_SUCCESS || rc_done_context(link, &result))
		return result;
	result = rc_link_call(link, RC_CALL_context_synchronize, 0, &message.head, sizeof message, NULL, 0);
	if (result == CUDA_SUCCESS)
		rc_link_settle(link->session, message.call.context, message.head.number);
	return result;
}

CUresult cuCtxSynchronize_v2(CUcontext handle)
{
	struct rc_context *context;
	CUresult refused = rc_context_meant(handle, &context) == CUDA_SUCCESS ? capture_refuse_context(context->handle) :
										CUDA_SUCCESS;
	return refused != CUDA_SUCCESS ? refused : rc_context_wait(handle);
}

CUresult cuCtxSynchronize(void)
{
	return cuCtxSynchronize_v2(NULL);
}
