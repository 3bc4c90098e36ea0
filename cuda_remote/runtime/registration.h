/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions that compiled host code calls and that no public header declares for C: crt/host_runtime.h and
 * crt/device_functions.h declare them for C++ inside nvcc. The handle of a fat binary is a struct runtime_module. A
 * cudaKernel_t of __cudaGetKernel is a struct runtime_symbol, which only __cudaLaunchKernel uses.
 */
#ifndef RUNTIME_REGISTRATION_H
#define RUNTIME_REGISTRATION_H

#include "cuda_remote/runtime/cuda_headers.h"

/* Called by static constructors. NULL: no memory; registrations with a NULL handle do nothing. */
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

/* kernel<<<grid, block, shared, stream>>>(…): the caller pushes, then the kernel's host function pops and launches. */
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
cudaError_t __cudaLaunchKernel(
		cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
				    cudaStream_t stream);

#endif
