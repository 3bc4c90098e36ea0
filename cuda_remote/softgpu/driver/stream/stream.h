/* SPDX-License-Identifier: BSD-3-Clause */
/* Stream handles: created ones, the legacy default stream, and each thread's own default stream. */
#ifndef SOFTGPU_STREAM_H
#define SOFTGPU_STREAM_H

#include "cuda_remote/softgpu/driver/context/context.h"

/*
 * The stream behind a handle: CU_STREAM_LEGACY, CU_STREAM_PER_THREAD (created at the thread's first use in this
 * context, destroyed when the thread ends) or a created stream. CUDA_ERROR_INVALID_HANDLE;
 * CUDA_ERROR_CONTEXT_IS_DESTROYED: the stream's green context was destroyed. The result stays valid until the program
 * destroys the stream.
 */
CUresult stream_resolve(CUcontext context, CUstream handle, CUstream *stream);

/* Every call on a stream begins with this: context_enter, then stream_resolve. */
CUresult stream_enter(CUstream handle, CUcontext *context, CUstream *stream);

/*
 * Attributes. Access policy window and synchronization policy are hints without effect here; their values are stored
 * and returned. CUDA_ERROR_NOT_SUPPORTED: any other attribute.
 */
CUresult stream_set_attribute(CUstream stream, CUstreamAttrID attribute, const CUstreamAttrValue *value);
CUresult stream_get_attribute(CUstream stream, CUstreamAttrID attribute, CUstreamAttrValue *value);

/*
 * Creates a stream for a program, in context or in its green context (NULL: none). The caller has checked the flags;
 * the priority is clamped to its range.
 */
CUresult stream_new(CUcontext context, CUgreenCtx green, unsigned flags, int priority, CUstream *stream);

#endif
