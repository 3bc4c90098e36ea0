/* SPDX-License-Identifier: BSD-3-Clause */
/* Converts the parameters of nodes between the runtime's form and the driver's. */
#ifndef RUNTIME_GRAPH_PARAMS_H
#define RUNTIME_GRAPH_PARAMS_H

#include "cuda_remote/runtime/runtime.h"

/*
 * To the driver's form, for each type of node. All enter a context and record failures; a NULL argument is
 * cudaErrorInvalidValue. Pointers in the result are to the caller's memory.
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

/* Copies the outputs that the driver has written (an address, bodies) to the program's parameters. */
void graph_params_made(const CUgraphNodeParams *from, struct cudaGraphNodeParams *to);

/* To the runtime's form of a copy. Fails if an array of the copy was destroyed; records nothing. */
cudaError_t graph_params_memcpy_back(const CUDA_MEMCPY3D *from, struct cudaMemcpy3DParms *to);

#endif
