/* SPDX-License-Identifier: BSD-3-Clause */
/* How the calls begin whose files are compiled twice (see cuda_api.h); nothing but those files includes it. */
#ifndef SOFTGPU_CALLS_H
#define SOFTGPU_CALLS_H

#include "cuda_remote/softgpu/driver/stream/stream.h"

/* stream_enter for the stream that a program gave, or the default stream of the file's kind. */
static inline CUresult enter_stream(CUstream given, CUstream *stream)
{
	CUcontext context;
	return stream_enter(STREAM_OR_DEFAULT(given), &context, stream);
}

/* The same for a call that tells something: CUDA_ERROR_INVALID_VALUE if there is no place for it. */
static inline CUresult enter_stream_to_tell(CUstream given, const void *place, CUstream *stream)
{
	CUresult result = enter_stream(given, stream);
	return result || place ? result : CUDA_ERROR_INVALID_VALUE;
}

#endif
