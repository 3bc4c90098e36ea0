/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that is linked with the runtime starts without a driver, and each call returns cudaErrorInsufficientDriver.
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>

int main(void)
{
	int count = -1, version = -1;
	void *pointer = NULL;
	if (dlopen("libcuda.so.1", RTLD_NOW)) {
		puts("skipped: this machine has a CUDA driver");
		return 77;
	}
	if (cudaGetDeviceCount(&count) != cudaErrorInsufficientDriver || count != 0)
		return puts("cudaGetDeviceCount"), 1;
	if (cudaGetLastError() != cudaErrorInsufficientDriver || cudaGetLastError() != cudaSuccess)
		return puts("cudaGetLastError"), 1;
	if (cudaDriverGetVersion(&version) != cudaSuccess || version != 0)
		return puts("cudaDriverGetVersion"), 1;
	if (cudaRuntimeGetVersion(&version) != cudaSuccess || version != CUDART_VERSION)
		return puts("cudaRuntimeGetVersion"), 1;
	if (cudaMalloc(&pointer, 1) != cudaErrorInsufficientDriver || pointer)
		return puts("cudaMalloc"), 1;
	if (cudaDeviceSynchronize() != cudaErrorInsufficientDriver)
		return puts("cudaDeviceSynchronize"), 1;
	return 0;
}
