/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits, flags, cache settings and peer access of contexts. */
#include "cuda_remote/softgpu/driver/context/context.h"

#include "cuda_remote/softgpu/driver/device/device.h"
#include "cuda_remote/softgpu/driver/init.h"

#define API_VERSION 3020 /* of all contexts with 64-bit sizes and device addresses, which came with CUDA 3.2 */

#define STACK_BYTES_MAX (512u << 10) /* CUDA's bound of a thread's local memory */

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
	CUresult result = context_enter_this(&ctx);
	if (result)
		return result;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = ctx->device;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	return cuCtxGetDevice_v2(device, NULL);
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = __atomic_load_n(&context->flags, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	if (!context_flags_valid(flags))
		return CUDA_ERROR_INVALID_VALUE;
	__atomic_store_n(&context->flags, flags, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
	CUresult result = context_enter_this(&ctx);
	if (result)
		return result;
	if (!ctxId)
		return CUDA_ERROR_INVALID_VALUE;
	*ctxId = ctx->id;
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
	CUresult result = context_enter_this(&ctx);
	return result ? result : context_synchronize(ctx);
}

CUresult cuCtxSynchronize(void)
{
	return cuCtxSynchronize_v2(NULL);
}

/*
 * The limits of stack, printf buffer and heap apply from the next launch on (context_limits). The other limits have no
 * effect here: the number of pending launches is not bounded, and there is no L2 cache to set a part aside in. Their
 * values are stored and returned by queries.
 */
static CUresult limit_known(CUlimit limit)
{
	switch (limit) {
	case CU_LIMIT_STACK_SIZE:
	case CU_LIMIT_PRINTF_FIFO_SIZE:
	case CU_LIMIT_MALLOC_HEAP_SIZE:
	case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
	case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
	case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
		return CUDA_SUCCESS;
	default:
		return limit < 0 || limit >= CU_LIMIT_MAX ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_UNSUPPORTED_LIMIT;
	}
}

/* Checks the value of a known limit. */
static CUresult limit_check(CUcontext context, CUlimit limit, size_t value)
{
	int persisting = 0;
	switch (limit) {
	case CU_LIMIT_STACK_SIZE:
		return value > STACK_BYTES_MAX ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	case CU_LIMIT_PRINTF_FIFO_SIZE:
		/* cuda.h: the size of the buffer cannot change after a kernel that prints was launched. */
		return __atomic_load_n(&context->prints, __ATOMIC_RELAXED) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	case CU_LIMIT_MALLOC_HEAP_SIZE:
		/* cuda.h: the size of the heap cannot change after a kernel has used it. */
		return softgpu_heap_begun(&context->heap) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
		return value > 128 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
		if (cuDeviceGetAttribute(&persisting, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, context->device))
			return CUDA_ERROR_INVALID_VALUE;
		return value > (size_t)persisting ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	default:
		return CUDA_SUCCESS;
	}
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (!result)
		result = limit_known(limit);
	if (!result)
		result = limit_check(context, limit, value);
	if (result)
		return result;
	pthread_mutex_lock(&context->lock);
	context->limits[limit] = value;
	if (limit == CU_LIMIT_MALLOC_HEAP_SIZE)
		softgpu_heap_resize(&context->heap, value);
	pthread_mutex_unlock(&context->lock);
	return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (!result)
		result = limit_known(limit);
	if (result)
		return result;
	if (!pvalue)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&context->lock);
	*pvalue = context->limits[limit];
	pthread_mutex_unlock(&context->lock);
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *pconfig)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	if (!pconfig)
		return CUDA_ERROR_INVALID_VALUE;
	*pconfig = __atomic_load_n(&context->cache_config, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

/* The setting is a preference only. It has no effect: shared memory and cache do not share space here. */
CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	if (config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	__atomic_store_n(&context->cache_config, config, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

/* Banks are four bytes wide. Other widths are accepted without effect, as on all devices since capability 5.0. */
CUresult cuCtxGetSharedMemConfig(CUsharedconfig *pConfig)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	if (!pConfig)
		return CUDA_ERROR_INVALID_VALUE;
	*pConfig = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	return config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* No cache is set aside: nothing to reset. */
CUresult cuCtxResetPersistingL2Cache(void)
{
	CUcontext context;
	return context_enter(&context);
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	CUresult result = context_enter_this(&ctx);
	if (result)
		return result;
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = API_VERSION;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	if (leastPriority)
		*leastPriority = 0;
	if (greatestPriority)
		*greatestPriority = CONTEXT_GREATEST_PRIORITY;
	return CUDA_SUCCESS;
}

/* All devices share one memory; peer access is only recorded. */
static CUresult peer_check(CUcontext *context, CUcontext peer)
{
	CUresult result = context_enter(context);
	if (result)
		return result;
	if (!context_of(peer) || context_of(peer) == *context)
		return CUDA_ERROR_INVALID_CONTEXT;
	return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
	CUcontext context;
	CUresult result = peer_check(&context, peerContext);
	if (result)
		return result;
	if (Flags)
		return CUDA_ERROR_INVALID_VALUE;
	peerContext = context_of(peerContext);
	if (peerContext->device == context->device)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&context->lock);
	unsigned bit = 1u << peerContext->device, before = context->peers;
	context->peers |= bit;
	pthread_mutex_unlock(&context->lock);
	return before & bit ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_SUCCESS;
}

CUresult cuCtxDisablePeerAccess(CUcontext peerContext)
{
	CUcontext context;
	CUresult result = peer_check(&context, peerContext);
	if (result)
		return result;
	pthread_mutex_lock(&context->lock);
	unsigned bit = 1u << context_of(peerContext)->device, before = context->peers;
	context->peers &= ~bit;
	pthread_mutex_unlock(&context->lock);
	return before & bit ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}
