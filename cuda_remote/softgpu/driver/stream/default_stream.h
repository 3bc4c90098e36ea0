/* SPDX-License-Identifier: BSD-3-Clause */
/* How calls in files that are compiled twice begin (see cuda_api.h). Only *_twice.c includes it. */
#ifndef SOFTGPU_DEFAULT_STREAM_H
#define SOFTGPU_DEFAULT_STREAM_H

#include "cuda_remote/softgpu/driver/stream/stream.h"

/* stream_enter for the stream that the program gave; 0 means the default stream of this compilation. */
static inline CUresult enter_stream(CUstream given, CUstream *stream)
{
	CUcontext context;
	return stream_enter(STREAM_OR_DEFAULT(given), &context, stream);
}

/* enter_stream for a call with an output: CUDA_ERROR_INVALID_VALUE if output is NULL. */
static inline CUresult enter_stream_to_tell(CUstream given, const void *output, CUstream *stream)
{
	CUresult result = enter_stream(given, stream);
	return result || output ? result : CUDA_ERROR_INVALID_VALUE;
}

#endif
