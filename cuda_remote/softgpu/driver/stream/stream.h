/* SPDX-License-Identifier: BSD-3-Clause */
/* Stream handles: created ones, the legacy default stream, and each thread's own default stream. */
#ifndef SOFTGPU_STREAM_H
#define SOFTGPU_STREAM_H

#include "cuda_remote/softgpu/driver/context/context.h"

/*
 * The stream a program means: CU_STREAM_LEGACY, CU_STREAM_PER_THREAD (created on the thread's first use in this
 * context, destroyed with the thread) or a handle. CUDA_ERROR_INVALID_HANDLE. It stays valid as long as the program may
 * use it.
 */
CUresult stream_resolve(CUcontext context, CUstream handle, CUstream *stream);

/* The start of calls on a stream: enters the current context, then resolves. */
CUresult stream_enter(CUstream handle, CUcontext *context, CUstream *stream);

/*
 * Attributes. The access policy window is a hint that finds no L2 cache here, the synchronization policy one that
 * waiting threads do not need; both are kept and told again. CUDA_ERROR_NOT_SUPPORTED: any other.
 */
CUresult stream_set_attribute(CUstream stream, CUstreamAttrID attribute, const CUstreamAttrValue *value);
CUresult stream_get_attribute(CUstream stream, CUstreamAttrID attribute, CUstreamAttrValue *value);

/*
 * Creates a stream for a program, in context or in its green context (NULL: none). The caller has checked the flags; the
 * priority is clamped to its range.
 */
CUresult stream_new(CUcontext context, CUgreenCtx green, unsigned flags, int priority, CUstream *stream);

#endif
