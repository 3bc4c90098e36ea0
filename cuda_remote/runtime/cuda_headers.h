/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The toolkit's headers, in the only order that works here. Files named *_twice.c are compiled twice, the second time
 * with RUNTIME_PER_THREAD: then cuda_runtime_api.h renames the functions that they define (cudaMemcpy becomes
 * cudaMemcpy_ptds, cudaMemcpyAsync becomes cudaMemcpyAsync_ptsz). cuda.h is included before that and keeps its plain
 * names, so that the table of driver calls is the same in both compilations. All files are compiled once more, with
 * RUNTIME_CUDA_12, for libcudart.so.12: see cuda12/headers.h.
 */
#ifndef RUNTIME_CUDA_HEADERS_H
#define RUNTIME_CUDA_HEADERS_H

#include <cuda.h>
#include <cudaProfiler.h>
#ifdef RUNTIME_PER_THREAD
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#endif
#ifdef RUNTIME_CUDA_12
#include "cuda_remote/runtime/cuda12/headers.h"
#else
#include <cuda_runtime_api.h>
#endif
#include <cuda_profiler_api.h>

/* On each function that the library exports. */
#define RUNTIME_API __attribute__((visibility("default")))

#endif
