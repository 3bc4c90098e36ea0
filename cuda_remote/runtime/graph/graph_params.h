/* SPDX-License-Identifier: BSD-3-Clause */
/* The parameters of nodes: the runtime's form and the driver's. */
#ifndef RUNTIME_GRAPH_PARAMS_H
#define RUNTIME_GRAPH_PARAMS_H

#include "cuda_remote/runtime/runtime.h"

/*
 * The driver's form of each kind. All enter a context and record failures; a missing pointer is cudaErrorInvalidValue.
 * What they point to stays the caller's.
 */
cudaError_t graph_params_kernel(const struct cudaKernelNodeParams *from, CUgraphNodeParams *to);
cudaError_t graph_params_memcpy(const struct cudaMemcpy3DParms *from, CUgraphNodeParams *to);
cudaError_t graph_params_memcpy_1d(void *to_memory, const void *from, size_t size, enum cudaMemcpyKind kind,
				   CUgraphNodeParams *to);
cudaError_t graph_params_memset(const struct cudaMemsetParams *from, CUgraphNodeParams *to);
cudaError_t graph_params_host(const struct cudaHostNodeParams *from, CUgraphNodeParams *to);
cudaError_t graph_params_event(CUgraphNodeType type, cudaEvent_t event, CUgraphNodeParams *to);
cudaError_t graph_params_alloc(const struct cudaMemAllocNodeParams *from, CUgraphNodeParams *to);
cudaError_t graph_params_free(void *memory, CUgraphNodeParams *to);
cudaError_t graph_params_any(const struct cudaGraphNodeParams *from, CUgraphNodeParams *to);

/* What the driver made and the program is to know. */
void graph_params_made(const CUgraphNodeParams *from, struct cudaGraphNodeParams *to);

/* The runtime's form of a copy. An array of it that is not there any more is an error, which is not recorded. */
cudaError_t graph_params_memcpy_back(const CUDA_MEMCPY3D *from, struct cudaMemcpy3DParms *to);

#endif
