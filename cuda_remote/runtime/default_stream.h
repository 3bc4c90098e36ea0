/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions that exist for both kinds of default stream. Host code that is compiled with --default-stream per-thread
 * calls cudaMemcpyAsync_ptsz and its like, where stream 0 means the calling thread's own default stream.
 *
 * Files named *_twice.c include this header and are compiled twice, the second time with RUNTIME_PER_THREAD. They hold
 * only such functions; the macros below are the only difference between the two compilations.
 */
#ifndef RUNTIME_DEFAULT_STREAM_H
#define RUNTIME_DEFAULT_STREAM_H

#include "cuda_remote/runtime/runtime.h"

/*
 * DRIVER_STREAM: the driver's stream for the stream that the caller passed.
 * DRIVER_CALL: the driver's function that works on this kind of default stream.
 * PRIVATE_NAME: the name of a function that cuda_runtime_api.h does not rename.
 * PROC_ADDRESS_FLAG: makes cuGetProcAddress look for this kind's functions.
 */
#ifdef RUNTIME_PER_THREAD
#define DRIVER_STREAM(stream) ((stream) ? (CUstream)(stream) : CU_STREAM_PER_THREAD)
#define DRIVER_CALL(name) name##_ptds
#define PRIVATE_NAME(name) name##_ptsz
#define PROC_ADDRESS_FLAG CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
#else
#define DRIVER_STREAM(stream) ((CUstream)(stream))
#define DRIVER_CALL(name) name
#define PRIVATE_NAME(name) name
#define PROC_ADDRESS_FLAG CU_GET_PROC_ADDRESS_LEGACY_STREAM
#endif

#endif
