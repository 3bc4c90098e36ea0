/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CUDA 13's cuda_runtime_api.h, changed so that the runtime's sources, compiled with RUNTIME_CUDA_12, define the
 * functions of CUDA 12. Structures have CUDA 12's layout. A function of CUDA 13 whose arguments differ from those of
 * CUDA 12's function of the same name gets the name that it has in CUDA 12, such as cudaMemAdvise_v2. If it has none
 * there, it gets a name runtime_..., which is not exported. first_versions.c defines the functions that keep the name.
 */
#ifndef RUNTIME_CUDA12_HEADERS_H
#define RUNTIME_CUDA12_HEADERS_H

#define cudaDeviceProp cuda13DeviceProp
#define cudaPointerAttributes cuda13PointerAttributes
#define cudaResourceDesc cuda13ResourceDesc
#define cudaResourceViewDesc cuda13ResourceViewDesc
#include <driver_types.h>
#undef cudaDeviceProp
#undef cudaPointerAttributes
#undef cudaResourceDesc
#undef cudaResourceViewDesc
#include "cuda_remote/runtime/cuda12/structs.h"

#define cudaGetDeviceProperties cudaGetDeviceProperties_v2
#define cudaMemAdvise cudaMemAdvise_v2
#define cudaEventElapsedTime cudaEventElapsedTime_v2
#define cudaGraphAddDependencies cudaGraphAddDependencies_v2
#define cudaGraphAddNode cudaGraphAddNode_v2
#define cudaGraphGetEdges cudaGraphGetEdges_v2
#define cudaGraphNodeGetDependencies cudaGraphNodeGetDependencies_v2
#define cudaGraphNodeGetDependentNodes cudaGraphNodeGetDependentNodes_v2
#define cudaGraphRemoveDependencies cudaGraphRemoveDependencies_v2
/* CUDA 12's header declares the source first, CUDA 13's the target. Which comes first in CUDA 12 is not known. */
#define cudaGraphKernelNodeCopyAttributes runtime_kernel_node_copy_attributes

/* cuda_runtime_api.h appends the suffixes itself. */
#ifdef RUNTIME_PER_THREAD
#define cudaMemPrefetchAsync_ptsz cudaMemPrefetchAsync_v2_ptsz
#define cudaMemcpyBatchAsync_ptsz runtime_memcpy_batch_ptsz
#define cudaMemcpy3DBatchAsync_ptsz runtime_memcpy_3d_batch_ptsz
#define cudaStreamGetCaptureInfo_ptsz cudaStreamGetCaptureInfo_v3_ptsz
#define cudaStreamUpdateCaptureDependencies_ptsz cudaStreamUpdateCaptureDependencies_v2_ptsz
#else
#define cudaMemPrefetchAsync cudaMemPrefetchAsync_v2
#define cudaMemcpyBatchAsync runtime_memcpy_batch
#define cudaMemcpy3DBatchAsync runtime_memcpy_3d_batch
#define cudaStreamGetCaptureInfo cudaStreamGetCaptureInfo_v3
#define cudaStreamUpdateCaptureDependencies cudaStreamUpdateCaptureDependencies_v2
#endif

#include <cuda_runtime_api.h>

/* What cudaRuntimeGetVersion returns, and the version of the driver's functions that cudaGetDriverEntryPoint finds. */
#undef CUDART_VERSION
#define CUDART_VERSION 12090

#endif
