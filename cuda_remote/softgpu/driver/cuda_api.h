/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver API's types and prototypes; see cuda_remote/api/exports.h for how names are written. */
#ifndef SOFTGPU_CUDA_API_H
#define SOFTGPU_CUDA_API_H

#include <cuda.h>
#include <cudaProfiler.h>

/*
 * Functions that take the default stream when none is named exist twice: legacy, and with the suffix _ptsz or _ptds for
 * programs whose default stream is each thread's own. Files named calls_*.c are compiled twice, the second time with
 * SOFTGPU_PER_THREAD, and hold nothing but such functions.
 */
#ifdef SOFTGPU_PER_THREAD
#define PTSZ(name) name##_ptsz
#define PTDS(name) name##_ptds
#define DEFAULT_STREAM CU_STREAM_PER_THREAD
#else
#define PTSZ(name) name
#define PTDS(name) name
#define DEFAULT_STREAM CU_STREAM_LEGACY
#endif
#define STREAM_OR_DEFAULT(stream) ((stream) ? (stream) : DEFAULT_STREAM)

#endif
