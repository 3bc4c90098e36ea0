// SPDX-License-Identifier: BSD-3-Clause
// A library with a static runtime that needs another such library.
#include <cuda_runtime.h>

extern "C" int library_doubled(int value);

static __global__ void half(int *value)
{
	*value /= 2;
}

extern "C" __attribute__((visibility("default"))) int second_doubled(int value)
{
	int *memory, result = -1, twice = library_doubled(2 * value);
	if (cudaMalloc((void **)&memory, sizeof *memory) ||
	    cudaMemcpy(memory, &twice, sizeof twice, cudaMemcpyHostToDevice))
		return -1;
	half<<<1, 1>>>(memory);
	if (cudaMemcpy(&result, memory, sizeof result, cudaMemcpyDeviceToHost) || cudaFree(memory))
		return -1;
	return result;
}
