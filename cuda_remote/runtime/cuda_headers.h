/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The toolkit's headers, in the one order that works for us. Sources of the default-stream twins are compiled twice,
 * the second time with RUNTIME_PER_THREAD: then cuda_runtime_api.h itself renames what they define (cudaMemcpy becomes
 * cudaMemcpy_ptds, cudaMemcpyAsync cudaMemcpyAsync_ptsz). cuda.h comes before that and keeps its plain names, so that
 * the table of driver calls is the same in both.
 */
#ifndef RUNTIME_CUDA_HEADERS_H
#define RUNTIME_CUDA_HEADERS_H

#include <cuda.h>
#include <cudaProfiler.h>
#ifdef RUNTIME_PER_THREAD
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#endif
#include <cuda_runtime_api.h>
#include <cuda_profiler_api.h>

#endif
