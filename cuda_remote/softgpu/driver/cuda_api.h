/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver API's types and prototypes. How the names of versions are written: cuda_remote/api/exports.h. */
#ifndef SOFTGPU_CUDA_API_H
#define SOFTGPU_CUDA_API_H

#include <cuda.h>
#include <cudaProfiler.h>

/*
 * A function that uses the default stream exists twice: as name for the legacy default stream, and as name_ptsz or
 * name_ptds for programs that are compiled with a default stream for each thread. Files named *_twice.c are compiled
 * twice, the second time with SOFTGPU_PER_THREAD, and hold only such functions.
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
