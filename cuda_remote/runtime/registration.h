/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions that compiled host code calls and no public header of the toolkit declares for C: crt/host_runtime.h
 * and crt/device_functions.h declare them for C++ inside nvcc. The handle of a fat binary is ours; a cudaKernel_t of
 * __cudaGetKernel is a struct runtime_symbol and goes to __cudaLaunchKernel only.
 */
#ifndef RUNTIME_REGISTRATION_H
#define RUNTIME_REGISTRATION_H

#include "cuda_remote/runtime/cuda_headers.h"

/* Static constructors. NULL when memory runs out; registering into NULL does nothing. */
void **__cudaRegisterFatBinary(void *fat_binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int threads, uint3 *tid,
			    uint3 *bid, dim3 *block, dim3 *grid, int *warp);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext, size_t size, int constant,
		       int global);
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int ext, size_t size,
			      int constant, int global);
char __cudaInitModule(void **handle);

/* kernel<<<grid, block, shared, stream>>>(…): push, then the stub pops and launches. */
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
cudaError_t __cudaLaunchKernel(
		cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
				    cudaStream_t stream);

#endif
