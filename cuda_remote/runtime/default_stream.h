/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Default-stream twins. Compiled with --default-stream per-thread, host code calls cudaMemcpyAsync_ptsz and its like,
 * where stream 0 means the calling thread's own default stream. A source that includes this is compiled twice and
 * differs between the two only by what is defined here; everything in it that is not static is a function with a twin.
 */
#ifndef RUNTIME_TWIN_H
#define RUNTIME_TWIN_H

#include "cuda_remote/runtime/runtime.h"

#ifdef RUNTIME_PER_THREAD

/* The driver's stream for what the caller passed. */
#define TWIN_STREAM(stream) ((stream) ? (CUstream)(stream) : CU_STREAM_PER_THREAD)
/* The driver's function that works on the default stream. */
#define TWIN_CALL(name) name##_ptds
#define TWIN_PRIVATE(name) name##_ptsz
#define TWIN_PROC_ADDRESS CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

#else

#define TWIN_STREAM(stream) ((CUstream)(stream))
#define TWIN_CALL(name) name
#define TWIN_PRIVATE(name) name
#define TWIN_PROC_ADDRESS CU_GET_PROC_ADDRESS_LEGACY_STREAM

#endif
#endif
