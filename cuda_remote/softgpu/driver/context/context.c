/* SPDX-License-Identifier: BSD-3-Clause */
/* Creation and destruction of contexts, and each thread's stack of them. Limits and flags are in context_state.c. */
#include "cuda_remote/softgpu/driver/context/context.h"

#include "cuda_remote/graph/capture.h"
#include "cuda_remote/softgpu/driver/device/device.h"
#include "cuda_remote/softgpu/driver/init.h"

#include <stdlib.h>

#define STACK_DEPTH 64

_Static_assert(sizeof(struct CUctx_st) <= HANDLE_SLOT_BYTES, "a context fits into a slot");

/* The calling thread's contexts; the last one is current. */
static __thread struct {
	CUcontext context[STACK_DEPTH];
	unsigned depth;
} stack;

bool context_flags_valid(unsigned flags)
{
	unsigned schedule = flags & CU_CTX_SCHED_MASK;
	return !(flags & ~(unsigned)CU_CTX_FLAGS_MASK) && !(schedule & (schedule - 1));
}

static uint64_t newest; /* atomic; the id of the newest context */

uint64_t context_newest(void)
{
	return __atomic_load_n(&newest, __ATOMIC_RELAXED);
}

CUresult context_new(CUdevice device, unsigned flags, bool primary, CUcontext *output)
{
	CUcontext context = handle_new(HANDLE_CONTEXT, sizeof *context);
	if (!context)
		return CUDA_ERROR_OUT_OF_MEMORY;
	context->device = device;
	context->physical = device_physical(device);
	context->id = __atomic_add_fetch(&newest, 1, __ATOMIC_RELAXED);
	context->group.id = context->id;
	context->primary = primary;
	context->flags = flags;
	owned_list_init(&context->owned, &context->group);
	pthread_mutex_init(&context->lock, NULL);
	context->limits[CU_LIMIT_STACK_SIZE] = 1024;
	context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
	context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
	context->heap = (softgpu_heap_t){ .limit = 8 << 20, .device = context->physical, .owner = context };
	context->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
	context->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
	if (!queue_stream_new(context, &context->group, 0, 0, true)) {
		handle_retire(context);
		handle_release(context);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*output = context;
	return CUDA_SUCCESS;
}

softgpu_limits_t context_limits(CUcontext context)
{
	pthread_mutex_lock(&context->lock);
	softgpu_limits_t limits = { .heap = &context->heap,
				    .stack_bytes = (uint32_t)context->limits[CU_LIMIT_STACK_SIZE],
				    .print_bytes = context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] };
	pthread_mutex_unlock(&context->lock);
	return limits;
}

void context_retire_stream(CUstream stream)
{
	if (!handle_retire(stream))
		return;
	capture_stream_destroyed(stream);
	queue_stream_release(stream);
}

/* Retires all streams of the context, which are idle. */
static void destroy_streams(CUcontext context)
{
	/* A thread that ends may retire its own default stream meanwhile. */
	for (CUstream stream; (stream = queue_group_live(&context->group));)
		context_retire_stream(stream);
	queue_group_detach(&context->group);
}

static void note_free(const softgpu_allocation_t *allocation)
{
	CUcontext context = (CUcontext)(uintptr_t)allocation->owner;
	if (context->memory_freed)
		context->memory_freed(allocation);
}

void context_destroy(CUcontext context)
{
	queue_wait_group(&context->group);
	if (!handle_retire(context))
		return;
	owned_destroy_all(&context->owned);
	destroy_streams(context);
	softgpu_space_free_owned(context, note_free);
	free(context->coredump);
	pthread_mutex_destroy(&context->lock);
	handle_release(context);
}

CUcontext context_current(void)
{
	return context_of(stack.depth ? stack.context[stack.depth - 1] : NULL);
}

CUcontext context_of(CUcontext handle)
{
	return handle_valid(handle, HANDLE_CONTEXT) ? handle : context_of_green((CUgreenCtx)(void *)handle);
}

CUcontext context_of_green(CUgreenCtx green)
{
	if (!handle_valid(green, HANDLE_GREEN_CONTEXT) || !handle_valid(green->primary, HANDLE_CONTEXT) ||
	    green->primary->id != green->primary_id)
		return NULL;
	return green->primary;
}

CUgreenCtx context_current_green(void)
{
	CUgreenCtx top = stack.depth ? (CUgreenCtx)(void *)stack.context[stack.depth - 1] : NULL;
	return context_of_green(top) ? top : NULL;
}

CUresult context_enter(CUcontext *context)
{
	CUresult result = init_check();
	if (result)
		return result;
	CUcontext top = stack.depth ? stack.context[stack.depth - 1] : NULL;
	if (!top)
		return CUDA_ERROR_INVALID_CONTEXT;
	*context = context_of(top);
	return *context ? context_error(*context) : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult context_enter_unsafe(CUcontext *context)
{
	CUresult result = context_enter(context);
	return result ? result : capture_refuse_unsafe();
}

CUresult context_enter_handle(const void *handle, enum handle_kind kind)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	return result || handle_valid(handle, kind) ? result : CUDA_ERROR_INVALID_HANDLE;
}

CUresult context_enter_this(CUcontext *context)
{
	if (!*context)
		return context_enter(context);
	CUresult result = init_check();
	if (result)
		return result;
	*context = context_of(*context);
	return *context ? context_error(*context) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult context_synchronize(CUcontext context)
{
	CUresult result = capture_refuse_context(context);
	if (result)
		return result;
	queue_wait_group(&context->group);
	return context_error(context);
}

CUresult context_set_current(CUcontext context)
{
	if (!context) {
		if (stack.depth)
			stack.depth--;
	} else if (stack.depth) {
		stack.context[stack.depth - 1] = context;
	} else {
		stack.context[stack.depth++] = context;
	}
	return CUDA_SUCCESS;
}

static CUresult push(CUcontext context)
{
	if (stack.depth == STACK_DEPTH)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stack.context[stack.depth++] = context;
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!pctx || !context_flags_valid(flags))
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	CUcontext context;
	result = context_new(dev, flags, false, &context);
	if (result)
		return result;
	result = push(context);
	if (result) {
		context_destroy(context);
		return result;
	}
	*pctx = context;
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags,
			CUdevice dev)
{
	if (numParams || paramsArray)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	return cuCtxCreate_v2(pctx, flags, dev);
}

CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *params, unsigned int flags, CUdevice dev)
{
	if (params && params->cigParams)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (params && (params->numExecAffinityParams || params->execAffinityParams))
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	return cuCtxCreate_v2(pctx, flags, dev);
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!handle_valid(ctx, HANDLE_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (ctx->primary)
		return CUDA_ERROR_INVALID_VALUE;
	if (stack.depth && stack.context[stack.depth - 1] == ctx)
		stack.depth--;
	context_destroy(ctx);
	return CUDA_SUCCESS;
}

CUresult cuCtxDestroy(CUcontext ctx)
{
	return cuCtxDestroy_v2(ctx);
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	CUresult result = init_check();
	if (result)
		return result;
	return context_of(ctx) ? push(ctx) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxPopCurrent_v2(CUcontext *pctx)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!stack.depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	stack.depth--;
	if (pctx)
		*pctx = stack.context[stack.depth];
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext ctx)
{
	return cuCtxPushCurrent_v2(ctx);
}

CUresult cuCtxPopCurrent(CUcontext *pctx)
{
	return cuCtxPopCurrent_v2(pctx);
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (ctx && !context_of(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	return context_set_current(ctx);
}

CUresult cuCtxGetCurrent(CUcontext *pctx)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	*pctx = stack.depth ? stack.context[stack.depth - 1] : NULL;
	return CUDA_SUCCESS;
}
