/* SPDX-License-Identifier: BSD-3-Clause */
/* The usage count of contexts that old programs keep. */
#include "cuda_remote/softgpu/driver/context/context.h"

/* cuCtxCreate counts as one use. A context whose count becomes 0 is destroyed. */
CUresult cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	if (!pctx || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (context->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	__atomic_add_fetch(&context->attached, 1, __ATOMIC_RELAXED);
	*pctx = context;
	return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext ctx)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	if (!ctx || ctx != context || context->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	unsigned attached = __atomic_load_n(&context->attached, __ATOMIC_RELAXED);
	while (attached && !__atomic_compare_exchange_n(&context->attached, &attached, attached - 1, false,
							__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return attached ? CUDA_SUCCESS : cuCtxDestroy_v2(ctx);
}
