// SPDX-License-Identifier: BSD-3-Clause
// A library with kernels and with the static runtime. It calls CUDA in a constructor, too.
#include <cuda_runtime.h>

static __global__ void twice(int *value)
{
	*value *= 2;
}

static int doubled(int value)
{
	int *memory, result = -1;
	if (cudaMalloc((void **)&memory, sizeof *memory) ||
	    cudaMemcpy(memory, &value, sizeof value, cudaMemcpyHostToDevice))
		return -1;
	twice<<<1, 1>>>(memory);
	if (cudaMemcpy(&result, memory, sizeof result, cudaMemcpyDeviceToHost) || cudaFree(memory))
		return -1;
	return result;
}

static int early; // 2, if the constructor's calls succeed

__attribute__((constructor(200))) static void call_early()
{
	int devices = 0;
	early = cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0 ? 2 : -1;
}

extern "C" __attribute__((visibility("default"))) int library_doubled(int value)
{
	return early == 2 ? doubled(value) : -2;
}
