// SPDX-License-Identifier: BSD-3-Clause
// A program whose kernels are its own, and which uses a library with kernels and a static runtime of its own.
#include <cstdio>
#include <cuda_runtime.h>

extern "C" int library_doubled(int value);

static __global__ void plus(int *value)
{
	*value += 1;
}

int main()
{
	int *memory, value = library_doubled(20);
	if (cudaMalloc((void **)&memory, sizeof *memory) ||
	    cudaMemcpy(memory, &value, sizeof value, cudaMemcpyHostToDevice))
		return 1;
	plus<<<1, 1>>>(memory);
	if (cudaMemcpy(&value, memory, sizeof value, cudaMemcpyDeviceToHost))
		return 1;
	printf("%d\n", value);
	return value == 41 ? 0 : 1;
}
